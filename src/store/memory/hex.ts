/** Task ids and definitions (32 hex digits) as four u32 words, and back. */
import { formatUuid, hex4, parseUuid, UUID_LENGTH } from '../../core/uuid.js';
import { addWord, mix32 } from './row-index.js';

const HEX_LENGTH = 32;

/** The words of a task id; false when the text is no UUID in lower case. */
export function parseId(text: string, words: Uint32Array): boolean {
  return text.length === UUID_LENGTH && parseUuid(text, words);
}

export function hashId(words: Uint32Array): number {
  const h = addWord(addWord(addWord(addWord(0, words[0]), words[1]), words[2]), words[3]);
  return mix32(h);
}

/** The words of 32 hex digits; false when the text is something else. */
export function parseHex(text: string, words: Uint32Array, base: number): boolean {
  if (text.length !== HEX_LENGTH) return false;
  let bad = 0;
  for (let i = 0; i < 4; i++) {
    const high = hex4(text, i * 8);
    const low = hex4(text, i * 8 + 4);
    bad |= high | low;
    words[base + i] = (high << 16) | low;
  }
  return bad >= 0;
}

export function formatHex(words: Uint32Array, base: number): string {
  let text = '';
  for (let i = 0; i < 4; i++) text += words[base + i].toString(16).padStart(8, '0');
  return text;
}

/** The id whose four words begin at `base`. */
export function formatId(words: Uint32Array, base: number): string {
  return formatUuid(words, base);
}
