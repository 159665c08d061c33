/**
 * Payloads, results and progress as bytes. What comes back is deeply equal to what was given, or it was refused.
 *
 *   ┌ msgpack ──────────────┐   plain objects, arrays, strings, numbers, Dates, bytes: nearly everything, under 1 µs
 *   └───────────────────────┘
 *   ┌ 0xc1 ┬ V8 structured ─┐   all else (Map, Set, other typed arrays, errors, −0 …): some 5 to 15 µs. MessagePack
 *   └──────┴────────────────┘   never uses 0xc1, so that the first byte tells the two apart
 *
 * msgpackr alone loses −0, lone surrogates, `__proto__`, classes and functions silently, so the value is walked
 * first. V8's format is read by all later releases of Node.js, not by earlier ones.
 */
import { Packr } from 'msgpackr';
import { isWellFormed } from '../core/arguments.js';
import { PayloadTooLargeError, StoreCorruptError, toStoredError } from '../core/errors.js';
import type { PayloadCodec } from './executor.js';
import { decodeStructured, encodeStructured, STRUCTURED } from './payload-structured.js';

export { canonical, hashDefinition } from './canonical.js';

export interface PayloadCodecOptions {
  /** Bytes of an encoded value, ≥ 1. */
  readonly maxPayloadBytes: number;
}

/** Deeper values take the careful way, which tells a cycle from mere depth. */
const SIMPLE_DEPTH_MAX = 64;
/** Dates in this range (1970 to 2106) are whole milliseconds in MessagePack's timestamps. */
const SIMPLE_DATE_END_MS = 2 ** 32 * 1000;

/** Bytes come back as a copy, not as a view of what is stored. */
const packr = new Packr({ useRecords: false, variableMapSize: true, copyBuffers: true });

/**
 * The codec of payloads. `encode` throws PayloadNotSerializableError naming the path of what it refuses, such as
 * `payload.user.fn`, and PayloadTooLargeError; its cost is bounded by `maxPayloadBytes`, whatever it is given.
 * A Buffer comes back as a Uint8Array, an object without prototype as a plain object, an error of a class of
 * the caller's own as the built-in error that it extends, its name, code and other fields kept. A value that is
 * referred to twice comes back as two.
 */
export function createPayloadCodec(options: PayloadCodecOptions): PayloadCodec {
  const { maxPayloadBytes } = options;
  return {
    encode(value: unknown, what: string): Uint8Array {
      const budget = new Budget(maxPayloadBytes);
      const simple = isReadableAndSimple(value, budget);
      if (budget.left < 0) throw tooLarge(what, maxPayloadBytes);
      const bytes = simple ? packr.pack(value) : encodeStructured(value, what, maxPayloadBytes);
      if (bytes.length > maxPayloadBytes) throw tooLarge(what, maxPayloadBytes, bytes.length);
      return bytes;
    },
    copy(value: unknown, bytes: Uint8Array): unknown {
      return bytes[0] === STRUCTURED ? decodeStructured(bytes) : copyOfSimple(value);
    },
    decode(bytes: Uint8Array): unknown {
      try {
        if (bytes[0] === STRUCTURED) return decodeStructured(bytes);
        // A view of our own, as msgpackr leaves a property on the one it is given; and no Buffer, or bytes in it would be Buffers.
        return packr.unpack(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      } catch (error) {
        throw new StoreCorruptError(
          `stored bytes cannot be read: ${toStoredError(error).message}; damaged, or of another payloadCodec`,
          { cause: error },
        );
      }
    },
  };
}

function tooLarge(what: string, maxBytes: number, bytes?: number): PayloadTooLargeError {
  const size = bytes === undefined ? `more than ${maxBytes}` : String(bytes);
  return new PayloadTooLargeError(
    `${what} takes ${size} bytes; allowed: ${maxBytes} (limits.maxPayloadBytes)`,
  );
}

/** What is left of the bytes: each value takes one at least, so a walk never goes on for ever. */
class Budget {
  left: number;
  constructor(left: number) {
    this.left = left;
  }
}

const { getPrototypeOf, getOwnPropertySymbols, hasOwn, keys } = Object;
const lookupGetter = (Object.prototype as unknown as { __lookupGetter__(key: string): unknown })
  .__lookupGetter__;

/** What cannot be read, such as a proxy whose trap throws, goes the careful way, which names it. */
function isReadableAndSimple(value: unknown, budget: Budget): boolean {
  try {
    return isSimple(value, budget, 0);
  } catch {
    return false;
  }
}

/** True when MessagePack brings the value back equal. False also when it is to be refused. */
function isSimple(value: unknown, budget: Budget, depth: number): boolean {
  if (--budget.left < 0) return false;
  switch (typeof value) {
    case 'string':
      return isSimpleString(value, budget);
    case 'number':
      return value !== 0 || 1 / value > 0;
    case 'boolean':
    case 'undefined':
      return true;
    case 'bigint':
      return BigInt.asIntN(64, value) === value;
    case 'object': {
      if (value === null) return true;
      if (depth > SIMPLE_DEPTH_MAX) return false;
      const prototype = getPrototypeOf(value);
      if (prototype === Object.prototype) return isSimpleObject(value, budget, depth);
      if (prototype === Array.prototype) return isSimpleArray(value as unknown[], budget, depth);
      if (prototype === Date.prototype) return isSimpleDate(value as Date);
      const isBytes = prototype === Uint8Array.prototype || prototype === Buffer.prototype;
      return isBytes && isSimpleBytes(value as Uint8Array, budget);
    }
    default:
      return false;
  }
}

/** What `decode` would make of a simple value's bytes, ten times as fast. */
function copyOfSimple(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOfSimple);
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof Uint8Array) return new Uint8Array(value);
  const copy: Record<string, unknown> = {};
  for (const name in value) {
    if (hasOwn(value, name)) copy[name] = copyOfSimple((value as typeof copy)[name]);
  }
  return copy;
}

function isSimpleString(value: string, budget: Budget): boolean {
  budget.left -= value.length;
  // A leading byte order mark is swallowed by the decoder, a lone surrogate becomes U+FFFD.
  return budget.left >= 0 && isWellFormed(value) && value.charCodeAt(0) !== 0xfeff;
}

function isSimpleObject(value: object, budget: Budget, depth: number): boolean {
  if (getOwnPropertySymbols(value).length > 0) return false;
  // Not by `keys`, which makes a list of each object.
  for (const name in value) {
    if (!hasOwn(value, name)) continue;
    // msgpackr looks at these two itself.
    if (name === 'constructor' || name === 'toJSON' || name === '__proto__') return false;
    if (lookupGetter.call(value, name) !== undefined || !isSimpleString(name, budget)) return false;
    if (!isSimple((value as Record<string, unknown>)[name], budget, depth + 1)) return false;
  }
  return true;
}

function isSimpleArray(value: readonly unknown[], budget: Budget, depth: number): boolean {
  if (value.length > budget.left) {
    budget.left = -1;
    return false;
  }
  // A hole or a further property, such as those of a RegExp match.
  if (keys(value).length !== value.length) return false;
  if (getOwnPropertySymbols(value).length > 0) return false;
  for (let i = 0; i < value.length; i++) {
    if (!isSimple(value[i], budget, depth + 1)) return false;
  }
  return true;
}

function isSimpleBytes(value: Uint8Array, budget: Budget): boolean {
  budget.left -= value.length;
  // Empty is also what was detached. msgpackr goes by the constructor.
  return value.length > 0 && budget.left >= 0 && !hasOwn(value, 'constructor');
}

function isSimpleDate(value: Date): boolean {
  const ms = value.getTime();
  if (!(ms >= 0 && ms < SIMPLE_DATE_END_MS)) return false;
  return keys(value).length === 0 && getOwnPropertySymbols(value).length === 0;
}
