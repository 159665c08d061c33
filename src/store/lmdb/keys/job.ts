/** Writing a run in bounded pieces: from a full memtable, or from older runs. */
import { compareHashes, ENTRY_WORDS, isTombstone } from './entry.js';
import type { RunMeta } from './manifest.js';
import type { Memtable } from './memtable.js';
import type { ChunkReader, Run } from './run.js';
import type { RunWriter } from './run-writer.js';

export interface Job {
  /** Its run, as far as it is written. */
  readonly meta: RunMeta;
  readonly isDone: boolean;
  /**
   * Does about `max` units of work: an entry, or a chunk looked for, is one. Returns how many it did: at least one, and
   * more than `max` by no more than a chunk.
   */
  step(max: number): number;
}

export class FlushJob implements Job {
  isDone = false;
  readonly #table: Memtable;
  readonly #writer: RunWriter;
  /** There is no older entry that a tombstone must hide. */
  readonly #isOldest: boolean;
  readonly #order: number[] = [];
  #prefix = 0;

  constructor(table: Memtable, writer: RunWriter, isOldest: boolean) {
    this.#table = table;
    this.#writer = writer;
    this.#isOldest = isOldest;
  }

  get meta(): RunMeta {
    return this.#writer.meta;
  }

  step(max: number): number {
    const { entries } = this.#table;
    const { bits } = this.#writer.meta;
    const chunks = 2 ** bits;
    let work = 0;
    while (work < max && this.#prefix < chunks) {
      // A look at a slot costs a fraction of writing an entry.
      work += 1 + (this.#table.collect(this.#prefix++, bits, this.#order) >> 1);
      for (const at of this.#order) {
        if (!this.#isOldest || !isTombstone(entries, at)) this.#writer.add(entries, at);
      }
    }
    if (this.#prefix === chunks) {
      this.#writer.finish();
      this.isDone = true;
    }
    return work;
  }
}

/** Where a merge stands in one of its inputs. */
interface Cursor {
  readonly run: Run;
  /** A copy of the chunk at hand: what is read later overwrites the reader's. */
  chunk: Uint32Array;
  length: number;
  at: number;
  nextPrefix: number;
}

export class MergeJob implements Job {
  isDone = false;
  readonly inputs: readonly Run[];
  readonly #cursors: Cursor[];
  readonly #reader: ChunkReader;
  readonly #writer: RunWriter;
  readonly #isOldest: boolean;

  /** `inputs` are neighbours in age, newest first. `isOldest`: the oldest of all runs is among them. */
  constructor(inputs: readonly Run[], reader: ChunkReader, writer: RunWriter, isOldest: boolean) {
    this.inputs = inputs;
    this.#reader = reader;
    this.#writer = writer;
    this.#isOldest = isOldest;
    this.#cursors = inputs.map((run) => ({
      run,
      chunk: new Uint32Array(64 * ENTRY_WORDS),
      length: 0,
      at: 0,
      nextPrefix: 0,
    }));
  }

  get meta(): RunMeta {
    return this.#writer.meta;
  }

  step(max: number): number {
    let work = 0;
    while (work < max) {
      work += this.#fill(max - work);
      if (work >= max) break;
      const least = this.#least();
      if (least === undefined) {
        this.#writer.finish();
        this.isDone = true;
        return work + 1;
      }
      work += this.#take(least);
    }
    return work;
  }

  /** Every cursor stands at an entry afterwards, or at its end; unless `max` chunks were looked for. */
  #fill(max: number): number {
    let looked = 0;
    for (const cursor of this.#cursors) {
      const chunks = 2 ** cursor.run.meta.bits;
      while (cursor.at === cursor.length && cursor.nextPrefix < chunks) {
        if (looked === max) return looked;
        looked++;
        this.#read(cursor);
      }
    }
    return looked;
  }

  #read(cursor: Cursor): void {
    const length = this.#reader.readChunk(cursor.run.meta.id, cursor.nextPrefix++);
    if (length > cursor.chunk.length) cursor.chunk = new Uint32Array(length);
    const { chunk } = cursor;
    const { words } = this.#reader;
    for (let word = 0; word < length; word++) chunk[word] = words[word];
    cursor.length = length;
    cursor.at = 0;
  }

  /** Of equal hashes the newest. */
  #least(): Cursor | undefined {
    let least: Cursor | undefined;
    for (const cursor of this.#cursors) {
      if (cursor.at === cursor.length) continue;
      if (
        least === undefined ||
        compareHashes(cursor.chunk, cursor.at, least.chunk, least.at) < 0
      ) {
        least = cursor;
      }
    }
    return least;
  }

  /** Writes the entry unless it is a tombstone with nothing older to hide, and passes over older ones of its hash. */
  #take(least: Cursor): number {
    const { chunk, at } = least;
    if (!this.#isOldest || !isTombstone(chunk, at)) this.#writer.add(chunk, at);
    let passed = 0;
    for (const cursor of this.#cursors) {
      if (cursor === least || cursor.at === cursor.length) continue;
      if (compareHashes(cursor.chunk, cursor.at, chunk, at) === 0) {
        cursor.at += ENTRY_WORDS;
        passed++;
      }
    }
    least.at += ENTRY_WORDS;
    return passed + 1;
  }
}
