/** Checks of what callers pass: each throws InvalidArgumentError with the value and what is allowed. */
import { isWellFormed, optionsOf, refuse, signalOf } from './core/arguments.js';
import { InvalidArgumentError } from './core/errors.js';
import { parseDurationMs } from './core/units.js';

export { optionsOf, refuse, signalOf };

export function textOf(value: unknown, what: string, lengthMax: number): string {
  const allowed = `a string of 1 to ${lengthMax} characters`;
  if (typeof value !== 'string' || value.length === 0) refuse(what, value, allowed);
  if (value.length > lengthMax) {
    throw new InvalidArgumentError(`${what} has ${value.length} characters; allowed: ${allowed}`);
  }
  // A store of UTF-8 would bring half a pair back as U+FFFD: another name.
  if (!isWellFormed(value)) {
    throw new InvalidArgumentError(`${what} has half of a surrogate pair; allowed: ${allowed}`);
  }
  return value;
}

export function integerOf(value: unknown, what: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    refuse(what, value, `a whole number from ${min} to ${max}`);
  }
  return value;
}

export function numberOf(value: unknown, what: string, min: number, max: number): number {
  if (typeof value !== 'number' || !(value >= min && value <= max)) {
    refuse(what, value, `a number from ${min} to ${max}`);
  }
  return value;
}

export function oneOf<T extends string>(value: unknown, what: string, allowed: readonly T[]): T {
  if (!allowed.includes(value as T)) refuse(what, value, allowed.map((a) => `'${a}'`).join(', '));
  return value as T;
}

export function functionOf<F>(value: unknown, what: string): F {
  if (typeof value !== 'function') refuse(what, value, 'a function');
  return value as F;
}

/** A duration of more than nothing. */
export function positiveDurationMs(value: unknown, what: string): number {
  const ms = parseDurationMs(value, what);
  if (ms <= 0) refuse(what, value, 'more than 0');
  return ms;
}
