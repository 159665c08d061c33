/**
 * An entry of the key index: what is kept of one idempotency key. Eight words of 32 bits:
 *
 *     word   0        1        2        3        4        5        6        7
 *          ┌────────┬────────┬────────┬────────┬────────┬────────┬────────┬────────┐
 *          │ hash of tenant and key            │ task id; all zeros: a tombstone   │
 *          └────────┴────────┴────────┴────────┴────────┴────────┴────────┴────────┘
 *
 * A word holds its four bytes with the first one highest, so entries are ordered by their words as hashes are by
 * their bytes. Words are stored in the order of the machine, as LMDB's own pages are.
 */
export const ENTRY_WORDS = 8;
export const ENTRY_BYTES = 32;
export const HASH_WORDS = 4;

/** 16 bytes to the four words from `at` on. */
export function wordsOf(bytes: Uint8Array, into: Uint32Array, at: number): void {
  for (let word = 0, byte = 0; word < 4; word++, byte += 4) {
    into[at + word] =
      (bytes[byte] << 24) | (bytes[byte + 1] << 16) | (bytes[byte + 2] << 8) | bytes[byte + 3];
  }
}

/** The 16 bytes of the entry's hash. */
export function hashOf(words: Uint32Array, at: number): Uint8Array {
  return bytesOf(words, at);
}

/** The task id of the entry at `at`; undefined for a tombstone. */
export function idOf(words: Uint32Array, at: number): Uint8Array | undefined {
  if (isTombstone(words, at)) return undefined;
  return bytesOf(words, at + HASH_WORDS);
}

function bytesOf(words: Uint32Array, at: number): Uint8Array {
  const bytes = new Uint8Array(16);
  for (let byte = 0; byte < 16; byte++) {
    bytes[byte] = words[at + (byte >> 2)] >>> (24 - 8 * (byte & 3));
  }
  return bytes;
}

export function isTombstone(words: Uint32Array, at: number): boolean {
  return (words[at + 4] | words[at + 5] | words[at + 6] | words[at + 7]) === 0;
}

/** Below, equal, above: negative, 0, positive. */
export function compareHashes(a: Uint32Array, aAt: number, b: Uint32Array, bAt: number): number {
  for (let word = 0; word < HASH_WORDS; word++) {
    const difference = a[aAt + word] - b[bAt + word];
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The highest `bits` (0 to 32) of the hash. */
export function prefixOf(firstWord: number, bits: number): number {
  // A shift by 32 would be one by 0.
  return bits === 0 ? 0 : firstWord >>> (32 - bits);
}
