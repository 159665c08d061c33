/**
 * Each stored value ends with a checksum of its key and itself, so that what was damaged, or is not where it was put, is
 * not believed. Two values that differ in one byte never have the same; others do once in 2³².
 *
 * Not zlib's crc32: to call it costs more than to sum up a record, and Node 20.0 has none.
 */
import { type Arena, MalformedError, SEAL_BYTES } from './bytes.js';
import type { Key } from './keys.js';

const PRIME_1 = 0x9e37_79b1;
const PRIME_2 = 0x85eb_ca77;
const PRIME_3 = 0xc2b2_ae3d;
const PRIME_4 = 0x27d4_eb2f;
/** Whole words are read as the machine has them, single bytes as here. */
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** Appends the checksum behind the value, where its writer has left room. */
export function seal(key: Key, value: Arena): void {
  value.writeInt32LE(
    sumOf(key.bytes, key.at, key.length, value, value.start, value.end),
    value.end,
  );
  value.end += SEAL_BYTES;
}

/** As it is stored, for those who have no arena. */
export function sealed(key: Uint8Array, value: Uint8Array): Buffer {
  const whole = Buffer.alloc(value.length + SEAL_BYTES);
  whole.set(value);
  whole.writeInt32LE(sumOf(key, 0, key.length, value, 0, value.length), value.length);
  return whole;
}

/** Whether a value, with its checksum, is what was stored under that key. */
export function isWhole(key: Uint8Array, keyLength: number, value: Uint8Array): boolean {
  const end = value.length - SEAL_BYTES;
  if (end < 0) return false;
  const sum = value[end] | (value[end + 1] << 8) | (value[end + 2] << 16) | (value[end + 3] << 24);
  return sum === sumOf(key, 0, keyLength, value, 0, end);
}

/** The value without its checksum. @throws MalformedError */
export function unsealed(
  db: string,
  key: Uint8Array,
  keyLength: number,
  value: Uint8Array,
): Uint8Array {
  if (!isWhole(key, keyLength, value)) {
    const hex = Buffer.from(key.subarray(0, keyLength)).toString('hex');
    throw new MalformedError(`record ${hex} of '${db}' is not what was written`);
  }
  const length = value.length - SEAL_BYTES;
  // What lmdb-js lends says by a property of its own how long it is.
  if (!Object.hasOwn(value, 'length')) return value.subarray(0, length);
  (value as { length: number }).length = length;
  return value;
}

let words: Int32Array = new Int32Array(0);

/** Whole words of the memory in which the bytes lie. */
function wordsOf({ buffer }: Uint8Array): Int32Array {
  if (words.buffer !== buffer) words = new Int32Array(buffer, 0, buffer.byteLength >>> 2);
  return words;
}

/** O(bytes), some 0.3 ns each where the value begins at a whole word. */
export function sumOf(
  key: Uint8Array,
  keyAt: number,
  keyLength: number,
  value: Uint8Array,
  from: number,
  to: number,
): number {
  let sum = PRIME_4 ^ keyLength;
  let k = keyAt;
  const keyEnd = keyAt + keyLength;
  for (const last = keyEnd - 3; k < last; k += 4) {
    sum = Math.imul(sum ^ wordAt(key, k), PRIME_1);
    sum ^= sum >>> 15;
  }
  for (; k < keyEnd; k++) {
    sum = Math.imul(sum ^ key[k], PRIME_1);
    sum ^= sum >>> 15;
  }
  let a = sum ^ (to - from);
  let b = PRIME_2;
  let c = PRIME_3;
  let d = PRIME_4;
  let at = from;
  const last = to - 15;
  const first = value.byteOffset + from;
  if ((first & 3) === 0 && IS_LITTLE_ENDIAN) {
    const of = wordsOf(value);
    for (let i = first >>> 2; at < last; at += 16, i += 4) {
      a = Math.imul(a ^ of[i], PRIME_1);
      b = Math.imul(b ^ of[i + 1], PRIME_1);
      c = Math.imul(c ^ of[i + 2], PRIME_1);
      d = Math.imul(d ^ of[i + 3], PRIME_1);
      a ^= a >>> 15;
      b ^= b >>> 15;
      c ^= c >>> 15;
      d ^= d >>> 15;
    }
  } else {
    for (; at < last; at += 16) {
      a = Math.imul(a ^ wordAt(value, at), PRIME_1);
      b = Math.imul(b ^ wordAt(value, at + 4), PRIME_1);
      c = Math.imul(c ^ wordAt(value, at + 8), PRIME_1);
      d = Math.imul(d ^ wordAt(value, at + 12), PRIME_1);
      a ^= a >>> 15;
      b ^= b >>> 15;
      c ^= c >>> 15;
      d ^= d >>> 15;
    }
  }
  for (const lastWord = to - 3; at < lastWord; at += 4) {
    b = Math.imul(b ^ wordAt(value, at), PRIME_1);
    b ^= b >>> 15;
  }
  for (; at < to; at++) {
    a = Math.imul(a ^ value[at], PRIME_1);
    a ^= a >>> 15;
  }
  sum = Math.imul(a ^ Math.imul(b, PRIME_2) ^ Math.imul(c, PRIME_3), PRIME_1) ^ d;
  sum = Math.imul(sum ^ (sum >>> 15), PRIME_2);
  return sum ^ (sum >>> 13);
}

/** Little endian. */
function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}
