/** Task ids (UUIDs, 36 characters) and definitions (32 hex digits) as four u32 words, and back. */
import { addWord, mix32 } from './row-index.js';

const BAD = -1;
const NIBBLES = new Int8Array(128).fill(BAD);
for (let value = 0; value < 16; value++) NIBBLES[value.toString(16).charCodeAt(0)] = value;

/** Two ASCII digits of each byte, low byte first. */
const DIGITS = new Uint16Array(256);
for (let value = 0; value < 256; value++) {
  const text = value.toString(16).padStart(2, '0');
  DIGITS[value] = text.charCodeAt(0) | (text.charCodeAt(1) << 8);
}

const ID_LENGTH = 36;
const HEX_LENGTH = 32;
const DASH = 45;
const scratch = Buffer.alloc(ID_LENGTH);
let bad = 0;

/** Reads hex digits into a word; a character that is none leaves its mark in `bad`. */
function take(text: string, from: number, count: number, start: number): number {
  let word = start;
  for (let i = from; i < from + count; i++) {
    const code = text.charCodeAt(i);
    const nibble = code < 128 ? NIBBLES[code] : BAD;
    bad |= nibble;
    word = (word << 4) | nibble;
  }
  return word;
}

/** The words of a task id; false when the text is no UUID in lower case. */
export function parseId(text: string, words: Uint32Array): boolean {
  if (text.length !== ID_LENGTH) return false;
  bad = 0;
  words[0] = take(text, 0, 8, 0);
  words[1] = take(text, 14, 4, take(text, 9, 4, 0));
  words[2] = take(text, 24, 4, take(text, 19, 4, 0));
  words[3] = take(text, 28, 8, 0);
  const dashes =
    text.charCodeAt(8) === DASH &&
    text.charCodeAt(13) === DASH &&
    text.charCodeAt(18) === DASH &&
    text.charCodeAt(23) === DASH;
  return bad >= 0 && dashes;
}

export function hashId(words: Uint32Array): number {
  const h = addWord(addWord(addWord(addWord(0, words[0]), words[1]), words[2]), words[3]);
  return mix32(h);
}

/** The words of 32 hex digits; false when the text is something else. */
export function parseHex(text: string, words: Uint32Array, base: number): boolean {
  if (text.length !== HEX_LENGTH) return false;
  bad = 0;
  for (let i = 0; i < 4; i++) words[base + i] = take(text, i * 8, 8, 0);
  return bad >= 0;
}

function put(word: number, at: number): void {
  for (let i = 0; i < 4; i++) {
    const digits = DIGITS[(word >>> (24 - i * 8)) & 0xff];
    scratch[at + i * 2] = digits & 0xff;
    scratch[at + i * 2 + 1] = digits >>> 8;
  }
}

export function formatHex(words: Uint32Array, base: number): string {
  for (let i = 0; i < 4; i++) put(words[base + i], i * 8);
  return scratch.toString('latin1', 0, HEX_LENGTH);
}

/** The id whose four words begin at `base`. */
export function formatId(words: Uint32Array, base: number): string {
  put(words[base], 0);
  put(words[base + 1], 9);
  put(words[base + 2], 19);
  put(words[base + 3], 28);
  // The second and third word are each cut by a dash after four digits.
  for (const at of [9, 19]) {
    for (let i = 8; i > 4; i--) scratch[at + i] = scratch[at + i - 1];
    scratch[at + 4] = DASH;
    scratch[at - 1] = DASH;
  }
  return scratch.toString('latin1', 0, ID_LENGTH);
}
