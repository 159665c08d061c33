/**
 * The newest entries, in memory: an open-addressed table whose slots are in the order of hashes.
 *
 * Invariants
 * 1. One entry a hash: a newer one replaces it.
 * 2. An entry lies at its home slot (the highest bits of its hash) or after it with no free slot between, so that the
 *    entries of a range of hashes are found by walking its slots, and on to the first free one: no sort of the whole.
 * 3. At most half of the slots are taken.
 */
import { assert } from '../../../core/assert.js';
import { compareHashes, ENTRY_BYTES, ENTRY_WORDS, prefixOf } from './entry.js';

export class Memtable {
  readonly entriesMax: number;
  readonly entries: Uint32Array;
  count = 0;
  readonly #slotBits: number;
  /** Number of the entry + 1; 0: free. */
  readonly #slots: Uint32Array;

  /** `entriesMax` is a power of two, 1 to 2²⁴; 40 bytes each, which the system gives as they are touched. */
  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
    this.#slotBits = Math.log2(entriesMax) + 1;
    assert(Number.isInteger(this.#slotBits), 'the size of a memtable is a power of two');
    this.entries = new Uint32Array(entriesMax * ENTRY_WORDS);
    this.#slots = new Uint32Array(2 ** this.#slotBits);
  }

  get isFull(): boolean {
    return this.count === this.entriesMax;
  }

  get memoryBytes(): number {
    return this.entriesMax * ENTRY_BYTES + this.#slots.byteLength;
  }

  /** Where in `entries` the entry with this hash begins; -1: there is none. */
  find(hash: Uint32Array, at: number): number {
    const slot = this.#slotOf(hash, at);
    return this.#slots[slot] === 0 ? -1 : (this.#slots[slot] - 1) * ENTRY_WORDS;
  }

  /** Puts a copy of the entry at `at` of `words`. It may replace one also when the table is full. */
  set(words: Uint32Array, at: number): void {
    const slot = this.#slotOf(words, at);
    if (this.#slots[slot] === 0) {
      assert(!this.isFull, 'a memtable has room for what is put into it');
      this.#slots[slot] = ++this.count;
    }
    const to = (this.#slots[slot] - 1) * ENTRY_WORDS;
    for (let word = 0; word < ENTRY_WORDS; word++) this.entries[to + word] = words[at + word];
  }

  /**
   * Where the entries begin whose hash has this prefix, in the order of hashes, into `into`. Returns how many slots were
   * looked at.
   */
  collect(prefix: number, bits: number, into: number[]): number {
    assert(bits <= this.#slotBits, 'a prefix is a whole number of slots');
    into.length = 0;
    const { entries } = this;
    const slots = this.#slots;
    const width = 2 ** (this.#slotBits - bits);
    const from = prefix * width;
    let looked = 0;
    for (; looked < slots.length; looked++) {
      const number = slots[(from + looked) & (slots.length - 1)];
      if (number === 0) {
        if (looked >= width) break;
        continue;
      }
      const at = (number - 1) * ENTRY_WORDS;
      if (prefixOf(entries[at], bits) === prefix) insertInOrder(entries, into, at);
    }
    return looked;
  }

  /** Empties it: fills its slots, 2 MiB for 2¹⁸ entries. */
  clear(): void {
    this.count = 0;
    this.#slots.fill(0);
  }

  /** Of the entry with this hash, or the free slot where it would go. */
  #slotOf(hash: Uint32Array, at: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = prefixOf(hash[at], this.#slotBits);
    for (; slots[slot] !== 0; slot = (slot + 1) & mask) {
      if (compareHashes(this.entries, (slots[slot] - 1) * ENTRY_WORDS, hash, at) === 0) break;
    }
    return slot;
  }
}

/** Slots are nearly in order, so an entry seldom moves past more than one or two. */
function insertInOrder(entries: Uint32Array, order: number[], at: number): void {
  let place = order.length;
  order.push(at);
  for (; place > 0 && compareHashes(entries, order[place - 1], entries, at) > 0; place--) {
    order[place] = order[place - 1];
  }
  order[place] = at;
}
