/**
 * Occurrence ids as numbers: `<uuid>.<generation>.<kind mark><ordinal>` (core/model.ts) taken apart
 * and put together without a regular expression, since every timing passes here.
 */
import type { OccurrenceKind } from '../core/model.js';

/** The numbers by which tables know the kinds. */
export const KINDS: readonly OccurrenceKind[] = ['nominal', 'sequence', 'trigger', 'redrive'];
/** Character codes of their marks: none, s, t, r. */
const MARK_CODES = new Uint8Array([0, 115, 116, 114]);

const UUID_LENGTH = 36;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
const GENERATION_MAX = 0xffff_ffff;

/** Value of a hexadecimal digit in lower case by its character code; −1: none. */
const HEX_VALUE = new Int8Array(128).fill(-1);
for (let digit = 0; digit < 16; digit++) HEX_VALUE[digit.toString(16).charCodeAt(0)] = digit;

/** Four digits as a number; negative when one is none. */
function hex4(text: string, at: number): number {
  const a = text.charCodeAt(at);
  const b = text.charCodeAt(at + 1);
  const c = text.charCodeAt(at + 2);
  const d = text.charCodeAt(at + 3);
  if ((a | b | c | d) > 127) return -1;
  return (HEX_VALUE[a] << 12) | (HEX_VALUE[b] << 8) | (HEX_VALUE[c] << 4) | HEX_VALUE[d];
}

/** Digits from `at` to `end` as a number, −1 when that is not how a number is written. */
function decimal(text: string, at: number, end: number): number {
  const length = end - at;
  if (length < 1 || length > 16 || (length > 1 && text.charCodeAt(at) === ZERO)) return -1;
  let value = 0;
  for (let i = at; i < end; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** One occurrence's identity, as numbers. Reused: `parse` overwrites it. */
export class OccurrenceKey {
  /** The task's id, most significant word first, then the generation. */
  readonly words = new Uint32Array(5);
  kind = 0;
  ordinal = 0;

  /** False when the text is no occurrence's id; then the key means nothing. */
  parse(text: string): boolean {
    if (!this.#parseUuid(text) || text.charCodeAt(UUID_LENGTH) !== DOT) return false;
    const dot = text.indexOf('.', UUID_LENGTH + 1);
    const generation = dot < 0 ? -1 : decimal(text, UUID_LENGTH + 1, dot);
    if (generation < 0 || generation > GENERATION_MAX) return false;
    this.words[4] = generation;
    let at = dot + 1;
    const mark = text.charCodeAt(at);
    this.kind = mark === 115 ? 1 : mark === 116 ? 2 : mark === 114 ? 3 : 0;
    if (this.kind > 0) at++;
    const negative = text.charCodeAt(at) === DASH;
    const ordinal = decimal(text, negative ? at + 1 : at, text.length);
    if (ordinal < 0 || ordinal > Number.MAX_SAFE_INTEGER || (negative && ordinal === 0))
      return false;
    this.ordinal = negative ? -ordinal : ordinal;
    return true;
  }

  #parseUuid(text: string): boolean {
    const { words } = this;
    const a = hex4(text, 0);
    const b = hex4(text, 4);
    const c = hex4(text, 9);
    const d = hex4(text, 14);
    const e = hex4(text, 19);
    const f = hex4(text, 24);
    const g = hex4(text, 28);
    const h = hex4(text, 32);
    words[0] = (a << 16) | b;
    words[1] = (c << 16) | d;
    words[2] = (e << 16) | f;
    words[3] = (g << 16) | h;
    return (
      (a | b | c | d | e | f | g | h) >= 0 &&
      text.charCodeAt(8) === DASH &&
      text.charCodeAt(13) === DASH &&
      text.charCodeAt(18) === DASH &&
      text.charCodeAt(23) === DASH
    );
  }

  hash(): number {
    return hashOf(this.words, 0, this.words[4], this.kind, this.ordinal);
  }
}

/** 32 bits, every one of which depends on all of the key. (Mixers: Murmur3, Appleby 2011.) */
export function hashOf(
  words: Uint32Array,
  at: number,
  generation: number,
  kind: number,
  ordinal: number,
): number {
  let h = Math.imul(words[at], 0x9e37_79b1) ^ words[at + 1];
  h = Math.imul(h ^ (h >>> 15), 0x85eb_ca6b) ^ words[at + 2];
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35) ^ words[at + 3];
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b) ^ (generation * 4 + kind);
  h = Math.imul(h ^ (h >>> 15), 0xc2b2_ae35) ^ (ordinal / 0x1_0000_0000) ^ ordinal;
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Two digits of each byte as their character codes, so that one write puts both. */
const HEX_DIGITS = new Uint8Array(512);
for (let byte = 0; byte < 256; byte++) {
  const digits = byte.toString(16).padStart(2, '0');
  HEX_DIGITS[2 * byte] = digits.charCodeAt(0);
  HEX_DIGITS[2 * byte + 1] = digits.charCodeAt(1);
}
/** Where the 16 bytes of a uuid begin in its text. */
const BYTE_AT = new Uint8Array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]);
/** A uuid, two dots, ten digits of a generation, a mark, a sign, sixteen digits. */
const scratch = Buffer.alloc(UUID_LENGTH + 32, '-');
const HALF = 100_000_000;

function writeUuid(words: Uint32Array, from: number): void {
  for (let i = 0; i < 16; i++) {
    const byte = (words[from + (i >> 2)] >>> (24 - 8 * (i & 3))) & 0xff;
    const to = BYTE_AT[i];
    scratch[to] = HEX_DIGITS[2 * byte];
    scratch[to + 1] = HEX_DIGITS[2 * byte + 1];
  }
}

/** Writes the digits of a whole number from 0 to 2⁵³; where they end. */
function writeDecimal(value: number, at: number): number {
  // In halves that fit in 32 bits, where dividing is cheap.
  if (value < HALF) return writeDigits(value, at, digitsOf(value));
  const high = Math.floor(value / HALF);
  return writeDigits(value - high * HALF, writeDigits(high, at, digitsOf(high)), 8);
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  return digits;
}

function writeDigits(value: number, at: number, digits: number): number {
  let left = value | 0;
  for (let i = at + digits - 1; i >= at; i--) {
    const rest = (left / 10) | 0;
    scratch[i] = ZERO + left - rest * 10;
    left = rest;
  }
  return at + digits;
}

/** The uuid in the four words from `from`, as text. */
export function formatUuid(words: Uint32Array, from: number): string {
  writeUuid(words, from);
  return scratch.toString('latin1', 0, UUID_LENGTH);
}

/** The occurrence's id; the task's is in the four words from `from`. The inverse of `parse`. */
export function formatOccurrenceId(
  words: Uint32Array,
  from: number,
  generation: number,
  kind: number,
  ordinal: number,
): string {
  writeUuid(words, from);
  scratch[UUID_LENGTH] = DOT;
  let at = writeDecimal(generation, UUID_LENGTH + 1);
  scratch[at++] = DOT;
  if (kind > 0) scratch[at++] = MARK_CODES[kind];
  if (ordinal < 0) scratch[at++] = DASH;
  return scratch.toString('latin1', 0, writeDecimal(Math.abs(ordinal), at));
}
