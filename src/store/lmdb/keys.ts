/** Keys of the store's databases, and the ids in them: bytes that sort as they should. */

const HEX = new Int8Array(128).fill(-1);
for (let digit = 0; digit < 16; digit++) HEX[digit.toString(16).charCodeAt(0)] = digit;
const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const UUID_LENGTH = 36;
/** Where the 16 bytes of a uuid begin in its text. */
const BYTE_AT = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const DASH = 45;
export const ID_BYTES = 16;
const TWO_31 = 2 ** 31;
const TWO_32 = 2 ** 32;

/** A key under construction; reused, so that a put makes no object. */
export class Key {
  bytes: Uint8Array;
  /** Where it begins in `bytes`. */
  at = 0;
  length = 0;

  constructor(bytesMax = 64) {
    this.bytes = new Uint8Array(bytesMax);
  }

  clear(): this {
    this.length = 0;
    return this;
  }

  byte(value: number): this {
    this.bytes[this.length++] = value;
    return this;
  }

  u32(value: number): this {
    const { bytes } = this;
    const at = this.length;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
    this.length = at + 4;
    return this;
  }

  /** 0 to 2⁵³. */
  u64(value: number): this {
    return this.u32(Math.floor(value / TWO_32)).u32(value >>> 0);
  }

  /** Any whole number up to ±2⁵³, in order. */
  i64(value: number): this {
    const high = Math.floor(value / TWO_32);
    return this.u32(high + TWO_31).u32(value - high * TWO_32);
  }

  raw(value: Uint8Array, length = value.length): this {
    for (let i = 0; i < length; i++) this.bytes[this.length + i] = value[i];
    this.length += length;
    return this;
  }

  /** False when the text is no id; then the key means nothing. */
  id(text: string): boolean {
    const read = readId(text, this.bytes, this.length);
    this.length += ID_BYTES;
    return read;
  }

  /** The id, of which it is known that it is one. */
  knownId(text: string): this {
    this.id(text);
    return this;
  }
}

/** False when the text is not a uuid in lower case. */
export function readId(text: string, target: Uint8Array, at: number): boolean {
  if (text.length !== UUID_LENGTH) return false;
  let all = 0;
  for (let i = 0; i < ID_BYTES; i++) {
    const from = BYTE_AT[i];
    const high = HEX[text.charCodeAt(from) & 127] | (text.charCodeAt(from) > 127 ? -1 : 0);
    const low = HEX[text.charCodeAt(from + 1) & 127] | (text.charCodeAt(from + 1) > 127 ? -1 : 0);
    all |= high | low;
    target[at + i] = (high << 4) | low;
  }
  return (
    all >= 0 &&
    text.charCodeAt(8) === DASH &&
    text.charCodeAt(13) === DASH &&
    text.charCodeAt(18) === DASH &&
    text.charCodeAt(23) === DASH
  );
}

export function idText(bytes: Uint8Array, at = 0): string {
  const pair = (i: number): string => PAIRS[bytes[at + i]];
  return `${pair(0)}${pair(1)}${pair(2)}${pair(3)}-${pair(4)}${pair(5)}-${pair(6)}${pair(7)}-${pair(8)}${pair(9)}-${pair(10)}${pair(11)}${pair(12)}${pair(13)}${pair(14)}${pair(15)}`;
}

export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

export function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) * TWO_32 + readU32(bytes, at + 4);
}

export function readI64(bytes: Uint8Array, at: number): number {
  return (readU32(bytes, at) - TWO_31) * TWO_32 + readU32(bytes, at + 4);
}
