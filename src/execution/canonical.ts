/** One text for equal payloads, whatever the order of their keys: what idempotency compares. */
import { types } from 'node:util';
import { digest } from '../core/digest.js';
import { PayloadNotSerializableError } from '../core/errors.js';
import { fieldsOfError } from './payload-error.js';

/** Hexadecimal digits of a definition's hash: 128 bits, so that no two of 2⁴⁰ tasks are likely to meet. */
const HASH_DIGITS = 32;
const DEPTH_MAX = 500;

/** The hash of what an idempotency key stands for; `schedule` in a canonical form of its own. 32 hex digits. */
export function hashDefinition(handler: string, payload: unknown, schedule: string): string {
  const text = `${JSON.stringify([handler, schedule])}${canonical(payload)}`;
  return digest('sha256', text, 'hex').slice(0, HASH_DIGITS);
}

/**
 * A text that is the same for equal values and differs for others. Keys of objects, entries of Maps and elements
 * of Sets come in any order; an error's stack is left out, as it differs from call to call.
 * @throws PayloadNotSerializableError for what the payload codec refuses
 */
export function canonical(value: unknown): string {
  return textOf(value, 0);
}

function textOf(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'object':
      return value === null ? 'null' : textOfObject(value, depth + 1);
    default:
      throw new PayloadNotSerializableError(`the payload holds a ${typeof value}`);
  }
}

function textOfObject(value: object, depth: number): string {
  if (depth > DEPTH_MAX) {
    throw new PayloadNotSerializableError(
      `the payload is a cycle, or nested over ${DEPTH_MAX} deep`,
    );
  }
  const text = (element: unknown): string => textOf(element, depth);
  if (Array.isArray(value)) return `[${value.map(text).join(',')}]`;
  if (types.isDate(value)) return `Date(${value.getTime()})`;
  if (types.isMap(value)) {
    const entries = Array.from(value, ([key, element]) => `${text(key)}=>${text(element)}`);
    return `Map{${entries.sort().join(',')}}`;
  }
  if (types.isSet(value)) return `Set{${Array.from(value, text).sort().join(',')}}`;
  if (types.isRegExp(value)) return `RegExp(${JSON.stringify(String(value))})`;
  if (types.isAnyArrayBuffer(value)) return `ArrayBuffer(${Buffer.from(value).toString('base64')})`;
  if (ArrayBuffer.isView(value)) return textOfView(value);
  if (types.isNativeError(value) || value instanceof Error) return textOfError(value, depth);
  return textOfFields(value, depth);
}

function textOfView(view: ArrayBufferView): string {
  const bytes = Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString('base64');
  // A Buffer comes back as the Uint8Array that it is.
  const name = types.isUint8Array(view) ? 'Uint8Array' : view.constructor.name;
  return `${name}(${bytes})`;
}

function textOfError(error: Error, depth: number): string {
  const { kind, name, message, stack: _, own: __, ...rest } = fieldsOfError(error);
  const own = Object.fromEntries(Object.entries(error));
  return `Error(${textOfFields({ kind, name, message, ...rest, own }, depth)})`;
}

function textOfFields(value: object, depth: number): string {
  const holder = value as Record<string, unknown>;
  const names = Object.keys(value).sort();
  let text = '{';
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string;
    text += `${i > 0 ? ',' : ''}${JSON.stringify(name)}:${textOf(holder[name], depth)}`;
  }
  return `${text}}`;
}
