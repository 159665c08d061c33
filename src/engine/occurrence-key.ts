/**
 * Occurrence ids as numbers: `<uuid>.<generation>.<kind mark><ordinal>` (core/model.ts) taken apart
 * and put together without a regular expression, since every timing passes here.
 */
import type { OccurrenceKind } from '../core/model.js';
import { parseUuid, UUID_LENGTH, writeUuid } from '../core/uuid.js';

/** The numbers by which tables know the kinds. */
export const KINDS: readonly OccurrenceKind[] = ['nominal', 'sequence', 'trigger', 'redrive'];
/** Character codes of their marks: none, s, t, r. */
const MARK_CODES = new Uint8Array([0, 115, 116, 114]);

const DASH = 45;
const DOT = 46;
const ZERO = 48;
const GENERATION_MAX = 0xffff_ffff;

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
    if (!parseUuid(text, this.words) || text.charCodeAt(UUID_LENGTH) !== DOT) return false;
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

/** A uuid, two dots, ten digits of a generation, a mark, a sign, sixteen digits. */
const scratch = Buffer.alloc(UUID_LENGTH + 32, '-');
const HALF = 100_000_000;

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

/** The occurrence's id; the task's is in the four words from `from`. The inverse of `parse`. */
export function formatOccurrenceId(
  words: Uint32Array,
  from: number,
  generation: number,
  kind: number,
  ordinal: number,
): string {
  writeUuid(words, from, scratch);
  scratch[UUID_LENGTH] = DOT;
  let at = writeDecimal(generation, UUID_LENGTH + 1);
  scratch[at++] = DOT;
  if (kind > 0) scratch[at++] = MARK_CODES[kind];
  if (ordinal < 0) scratch[at++] = DASH;
  return scratch.toString('latin1', 0, writeDecimal(Math.abs(ordinal), at));
}
