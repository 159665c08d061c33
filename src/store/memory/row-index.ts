/**
 * A hash index from keys that live in rows to the rows' numbers: open addressing with linear probing and
 * deletion by backward shift. It is cut into 1024 shards that grow one by one, each at its own load, so that
 * no insert waits for more than one shard's doubling (20,000 entries at 20 million in all, well under 1 ms).
 *
 *   hash u32:  shard 10 bits | … home slot (low bits, as many as the shard needs)
 *   slot:      row u32 (0: empty) | hash u32
 *
 * The whole hash is kept beside the row: growing and closing gaps would else read a row for each entry, a
 * cache miss every time: 15 % of the time of creates when it was measured.
 */
import { assert } from '../../core/assert.js';

const SHARDS = 1024;
const SHARD_SHIFT = 22;
const SLOTS_MIN = 8;

export class RowIndex {
  readonly #isMatch: (row: number) => boolean;
  readonly #shards: (Uint32Array | undefined)[] = new Array(SHARDS).fill(undefined);
  readonly #counts = new Uint32Array(SHARDS);
  #bytes = 0;

  /** @param isMatch whether the row has the key looked for, which the caller keeps at hand */
  constructor(isMatch: (row: number) => boolean) {
    this.#isMatch = isMatch;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The row whose key is the one looked for, 0 for none. O(1), about one row is read.
   * @param hash u32 of the key, well mixed
   */
  find(hash: number): number {
    const slots = this.#shards[hash >>> SHARD_SHIFT];
    if (slots === undefined) return 0;
    const mask = slots.length - 1;
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const row = slots[at];
      if (row === 0) return 0;
      if (slots[at + 1] === hash && this.#isMatch(row)) return row;
    }
  }

  /** The key must not be there yet. */
  insert(hash: number, row: number): void {
    const shard = hash >>> SHARD_SHIFT;
    let slots = this.#shards[shard];
    const count = this.#counts[shard] + 1;
    if (slots === undefined) {
      slots = this.#resize(shard, SLOTS_MIN * 2);
    } else if (count * 2 > slots.length * loadMax(shard)) {
      slots = this.#resize(shard, slots.length * 2);
    }
    this.#counts[shard] = count;
    place(slots, hash, row);
  }

  /** The row must be there, under this hash. */
  remove(hash: number, row: number): void {
    const shard = hash >>> SHARD_SHIFT;
    const slots = this.#shards[shard];
    assert(slots !== undefined, 'a row is removed from the shard that it was put into');
    const mask = slots.length - 1;
    let at = (hash << 1) & mask;
    while (slots[at] !== row) {
      assert(slots[at] !== 0, 'a row that is removed is in the index');
      at = (at + 2) & mask;
    }
    this.#counts[shard] -= 1;
    closeGap(slots, at);
    const sparse = this.#counts[shard] * 16 < slots.length;
    if (sparse && slots.length > SLOTS_MIN * 2) this.#resize(shard, slots.length / 2);
  }

  /** `length` in words: two a slot. */
  #resize(shard: number, length: number): Uint32Array {
    const before = this.#shards[shard];
    const slots = new Uint32Array(length);
    this.#shards[shard] = slots;
    this.#bytes += slots.byteLength - (before?.byteLength ?? 0);
    if (before !== undefined) {
      for (let at = 0; at < before.length; at += 2) {
        if (before[at] !== 0) place(slots, before[at + 1], before[at]);
      }
    }
    return slots;
  }
}

/** 0.6 to 0.8, different for each shard: all hold about as many, and must not all double at once. */
function loadMax(shard: number): number {
  return 0.6 + (0.2 * shard) / SHARDS;
}

function place(slots: Uint32Array, hash: number, row: number): void {
  const mask = slots.length - 1;
  let at = (hash << 1) & mask;
  while (slots[at] !== 0) at = (at + 2) & mask;
  slots[at] = row;
  slots[at + 1] = hash;
}

/** Moves back those that were pushed past the gap, so that no search ends at it too early. */
function closeGap(slots: Uint32Array, gapAt: number): void {
  const mask = slots.length - 1;
  let gap = gapAt;
  for (let at = (gap + 2) & mask; slots[at] !== 0; at = (at + 2) & mask) {
    const home = (slots[at + 1] << 1) & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    slots[gap] = slots[at];
    slots[gap + 1] = slots[at + 1];
    gap = at;
  }
  slots[gap] = 0;
}

/** Spreads the bits of a u32 (the finalizer of MurmurHash3). */
export function mix32(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Takes one more word into a hash; finish with `mix32`. */
export function addWord(hash: number, word: number): number {
  const h = Math.imul(hash ^ Math.imul(word, 0xcc9e_2d51), 0x1b87_3593);
  return (h ^ (h >>> 15)) | 0;
}

export function addText(hash: number, text: string): number {
  let h = hash;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x0100_0193);
  return addWord(h, text.length);
}
