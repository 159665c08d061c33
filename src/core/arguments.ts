/** What every layer asks of the arguments that callers pass. */
import { InvalidArgumentError } from './errors.js';
import { describe } from './units.js';

export function refuse(what: string, value: unknown, allowed: string): never {
  throw new InvalidArgumentError(`${what} is ${describe(value)}; allowed: ${allowed}`);
}

/** A plain options object with none but the known names. */
export function optionsOf<K extends string>(
  value: unknown,
  what: string,
  names: ReadonlySet<K>,
): { readonly [key in K]?: unknown } {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(what, value, 'an object');
  }
  // Not Object.keys: a list a call, and each task is a few calls.
  for (const name in value) {
    if (!names.has(name as K) && Object.hasOwn(value, name)) {
      throw new InvalidArgumentError(
        `${what} has an unknown '${name}'; allowed: ${[...names].join(', ')}`,
      );
    }
  }
  return value as { readonly [key in K]?: unknown };
}

export function signalOf(value: unknown): AbortSignal | undefined {
  if (value !== undefined && !(value instanceof AbortSignal)) {
    refuse('signal', value, 'an AbortSignal');
  }
  return value;
}

/** No half of a surrogate pair. In Node.js since 20, in TypeScript's library since ES2024. */
export function isWellFormed(value: string): boolean {
  return (value as unknown as { isWellFormed(): boolean }).isWellFormed();
}
