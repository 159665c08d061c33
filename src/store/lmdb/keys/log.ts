/**
 * The log of the key index: every entry in the order in which it was added, in records of up to 63, under growing
 * numbers. It is committed with the creates themselves; memory is rebuilt from its tail.
 */
import { StoreCorruptError } from '../../../core/errors.js';
import { ENTRY_BYTES, ENTRY_WORDS } from './entry.js';
import type { KeyDatabase, Writes } from './writes.js';

/** 2016 bytes: two records share a page of LMDB. */
const RECORD_ENTRIES = 63;

export class KeyLog {
  readonly #database: KeyDatabase;
  readonly #writes: Writes;
  readonly #record = new Uint32Array(RECORD_ENTRIES * ENTRY_WORDS);
  #length = 0;
  /** The oldest record that may still be there. */
  #first: number;
  #next: number;

  constructor(database: KeyDatabase, writes: Writes, from: number) {
    this.#database = database;
    this.#writes = writes;
    this.#first = Math.min(from, this.#firstKey() ?? from);
    this.#next = from;
  }

  /** The number of the next record. */
  get next(): number {
    return this.#next;
  }

  /** Calls `take` with each entry that is logged, in order; to be called once, before anything is added. */
  replay(take: (words: Uint32Array, at: number) => void): void {
    for (const { key, value } of this.#database.getRange({ start: this.#next })) {
      if (value.length === 0 || value.length % ENTRY_BYTES !== 0) {
        throw new StoreCorruptError(`log record ${key} of the key index is damaged`);
      }
      // A copy, as values need not begin at a whole word.
      const words = new Uint32Array(value.slice().buffer);
      // While its entries are taken the record counts as not yet taken: better twice than not at all.
      this.#next = key;
      for (let at = 0; at < words.length; at += ENTRY_WORDS) take(words, at);
      this.#next = key + 1;
    }
  }

  /** Takes a copy of the entry. It is queued with `write`, or before, when a record is full. */
  append(words: Uint32Array, at: number): void {
    for (let word = 0; word < ENTRY_WORDS; word++) {
      this.#record[this.#length + word] = words[at + word];
    }
    this.#length += ENTRY_WORDS;
    if (this.#length === this.#record.length) this.write();
  }

  /** Queues what was appended. */
  write(): void {
    if (this.#length === 0) return;
    this.#writes.put(this.#database, this.#next++, this.#record, this.#length);
    this.#length = 0;
  }

  /** Removes records below `end`, `max` at most. Returns how many. */
  trim(end: number, max: number): number {
    const from = this.#first;
    const to = Math.min(end, from + max);
    for (let number = from; number < to; number++) this.#writes.remove(this.#database, number);
    this.#first = Math.max(from, to);
    return Math.max(0, to - from);
  }

  #firstKey(): number | undefined {
    for (const key of this.#database.getKeys({ limit: 1 })) return key;
    return undefined;
  }
}
