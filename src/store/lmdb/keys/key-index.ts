/**
 * The index of idempotency keys: from the hash of tenant and key to the task that was last created under it.
 *
 * Random keys in one B-tree cost a page or two of writing each once it is large. Here every entry is appended to a log
 * with the create itself, is found in a table in memory, and reaches the disk for good in sorted runs, which are
 * written and merged from front to back. A find asks the table, then each run, newest first, whose filter lets it pass.
 *
 * Invariants
 * 1. The newest entry of a hash wins: tables are newer than runs, both are kept newest first.
 * 2. Every entry that was committed is in the log from `logFrom` on or in a run of the manifest, at each commit.
 * 3. A run is in the manifest as garbage, visibly, before its first value is written, and as a run only when its last
 *    is; what a crash leaves behind is therefore known, and removed.
 * 4. A find asks what was visible before a change of the manifest until the change is visible itself.
 * 5. Work in the background is paid for by adds, WORK_PER_ADD units each, in pieces of about WORK_MAX.
 * 6. A filter that is not loaded lets everything pass.
 *
 * A tombstone says that the newest entry's task is gone. It hides all that is older, and ends when it is merged with the
 * oldest run.
 */
import { assert } from '../../../core/assert.js';
import { Background } from './background.js';
import { ENTRY_WORDS, HASH_WORDS, hashOf, idOf, wordsOf } from './entry.js';
import { KeyLog } from './log.js';
import { Memtable } from './memtable.js';
import { FIRST_KEY, isChunkOf } from './run.js';
import type { KeyDatabase } from './writes.js';

/** A flush and a merge a level cost an entry one unit each; the rest is for leftovers and to catch up. */
const WORK_PER_ADD = 10;
/** Of work that could not be done as a commit was waited for, so many pieces are made up for by one `seal`. */
const OWED_PIECES_MAX = 4;
/** Units of work a piece. */
const WORK_MAX = 4096;
const ENTRIES_MAX = 2 ** 18;

export interface KeyEntry {
  readonly hash: Uint8Array;
  readonly id: Uint8Array;
}

export interface KeyEntries {
  readonly found: readonly KeyEntry[];
  /** Undefined: there are no more. */
  readonly next: number | undefined;
}

export interface KeyIndexOptions {
  /** Used by nobody else. */
  readonly log: KeyDatabase;
  /** Likewise. */
  readonly runs: KeyDatabase;
  /** Entries in memory before they are written as a run: a power of two, 40 bytes each. Default 2¹⁸. */
  readonly entriesMax?: number;
  /** Units of work a piece in the background, an entry merged being one. Default 4096. */
  readonly workMax?: number;
}

/** What it holds and what it did, for tests, benchmarks and `inspect`. */
export interface KeyIndexStats {
  /** In tables and runs; a hash that was added again, or removed, counts until it is merged. */
  readonly entries: number;
  readonly runs: number;
  /** Tables and filters. */
  readonly memoryBytes: number;
  readonly filterBytes: number;
  readonly flushes: number;
  readonly merges: number;
  /** The most units of work in one piece. */
  readonly workMax: number;
  /** Chunks that finds read, and in how many of them there was nothing. */
  readonly chunksRead: number;
  readonly chunksMissed: number;
}

export class KeyIndex {
  readonly #background: Background;
  readonly #database: KeyDatabase;
  readonly #log: KeyLog;
  readonly #entriesMax: number;
  readonly #workMax: number;
  #table: Memtable | undefined;
  /** The entry at hand. */
  readonly #entry = new Uint32Array(ENTRY_WORDS);
  readonly #glances = new Uint8Array(256);
  /** Units of work that adds have asked for. */
  #owed = 0;
  #closed = false;
  #chunksRead = 0;
  #chunksMissed = 0;

  /**
   * Reads the manifest and replays the log: as a rule less than two tables of entries. Filters are loaded by `step` and `seal`;
   * until then a find is right and reads one chunk more a run.
   * @throws StoreCorruptError, StoreVersionError
   */
  static open(options: KeyIndexOptions): KeyIndex {
    return new KeyIndex(options);
  }

  private constructor(options: KeyIndexOptions) {
    const { log, runs, entriesMax = ENTRIES_MAX, workMax = WORK_MAX } = options;
    this.#database = runs;
    this.#entriesMax = entriesMax;
    this.#workMax = workMax;
    this.#background = new Background(runs, workMax);
    this.#log = new KeyLog(log, this.#background.writes, this.#background.logFrom);
    this.#log.replay((words, at) => {
      this.#makeRoom();
      this.#remember(words, at);
    });
  }

  /**
   * The task last added under this hash, unless it was removed. It sees what was added a moment ago, before its commit.
   * 0.3 to 1 µs where there is none; a chunk read more where there is one.
   */
  find(hash: Uint8Array): Uint8Array | undefined {
    const entry = this.#entry;
    wordsOf(hash, entry, 0);
    const inTable = this.#table?.find(entry, 0) ?? -1;
    if (inTable >= 0) return idOf(this.#table!.entries, inTable);
    for (const { table } of this.#background.full) {
      const at = table.find(entry, 0);
      if (at >= 0) return idOf(table.entries, at);
    }
    const { runs, reader } = this.#background;
    const glances = this.#glances;
    for (let i = 0; i < runs.length; i++) glances[i] = runs[i].filter.glance(entry, 0);
    for (let i = 0; i < runs.length; i++) {
      const run = runs[i];
      // Undefined, were there ever more runs than room for their glances: it may hold it.
      if (glances[i] === 0 || !run.filter.mayHold(entry, 0)) continue;
      this.#chunksRead++;
      const at = run.find(entry, 0);
      if (at >= 0) return idOf(reader.words, at);
      this.#chunksMissed++;
    }
    return undefined;
  }

  /**
   * From now on the hash finds this task. Part of the commit of the other writes of this turn, once `seal` was called in
   * it. `taskId`: 16 bytes, not all zero.
   */
  add(hash: Uint8Array, taskId: Uint8Array): void {
    assert(!this.#closed, 'nothing is added to a closed key index');
    wordsOf(hash, this.#entry, 0);
    wordsOf(taskId, this.#entry, HASH_WORDS);
    this.#append();
  }

  /**
   * The task is gone: unless another one has taken its hash, the hash is free, and its entry goes at a merge. Part of a
   * commit as `add` is. Costs a find.
   */
  remove(hash: Uint8Array, taskId: Uint8Array): void {
    assert(!this.#closed, 'nothing is removed from a closed key index');
    const newest = this.find(hash);
    if (newest === undefined || !newest.every((byte, i) => byte === taskId[i])) return;
    wordsOf(hash, this.#entry, 0);
    this.#entry.fill(0, HASH_WORDS);
    this.#append();
  }

  /**
   * To be called once after the adds and removes of a turn, in that turn: queues what of them is not queued yet, and
   * does the work in the background that they pay for.
   */
  seal(): void {
    this.#log.write();
    this.#payForAdds();
    void this.#background.writes.settle();
  }

  /**
   * One bounded piece of work in the background, about `workMax` units: for idle moments, so that adds have less to pay.
   * True: there is more, in a later turn (now and then it only waits for a commit). False: nothing to do, or a commit
   * failed; then it goes on with the next add.
   */
  step(): boolean {
    if (this.#closed) return false;
    const work = this.#background.work(this.#log);
    void this.#background.writes.settle();
    this.#owed = Math.max(0, this.#owed - work);
    return work > 0 || this.#background.waits;
  }

  /** No writes after this; resolves when those that are queued are visible. */
  async close(): Promise<void> {
    if (!this.#closed) this.#log.write();
    this.abandon();
    await this.#background.writes.settle();
  }

  /** No writes after this, and what is not queued yet never is. */
  abandon(): void {
    this.#closed = true;
    this.#background.close();
  }

  /**
   * All entries but tombstones, also those that newer ones hide, in no order: first those in memory, then the runs'
   * chunks, `chunksMax` a call. `cursor`: 0, then the `next` of the call before.
   */
  entriesFrom(cursor: number, chunksMax: number): KeyEntries {
    const found: KeyEntry[] = [];
    const take = (words: Uint32Array, at: number): void => {
      const id = idOf(words, at);
      if (id !== undefined) found.push({ hash: hashOf(words, at), id });
    };
    if (cursor === 0) {
      const { full } = this.#background;
      for (const table of [this.#table, ...full.map(({ table }) => table)]) {
        for (let n = 0; n < (table?.count ?? 0); n++) take(table!.entries, n * ENTRY_WORDS);
      }
    }
    const listed = new Set(this.#background.runs.map(({ meta }) => meta.id));
    let left = chunksMax;
    for (const { key, value } of this.#database.getRange({ start: Math.max(cursor, FIRST_KEY) })) {
      if (left-- === 0) return { found, next: key };
      if (!isChunkOf(key, listed)) continue;
      const words = new Uint32Array(new Uint8Array(value).buffer);
      for (let at = 0; at < words.length; at += ENTRY_WORDS) take(words, at);
    }
    return { found, next: undefined };
  }

  get stats(): KeyIndexStats {
    const { full, runs, spare, flushes, merges, workMax } = this.#background;
    const tables = full.map(({ table }) => table);
    if (this.#table !== undefined) tables.push(this.#table);
    const filterBytes = sum(runs, ({ filter }) => filter.memoryBytes);
    const tableBytes = sum(tables, ({ memoryBytes }) => memoryBytes) + (spare?.memoryBytes ?? 0);
    return {
      entries: sum(tables, ({ count }) => count) + sum(runs, ({ meta }) => meta.count),
      runs: runs.length,
      memoryBytes: tableBytes + filterBytes,
      filterBytes,
      flushes,
      merges,
      workMax,
      chunksRead: this.#chunksRead,
      chunksMissed: this.#chunksMissed,
    };
  }

  #payForAdds(): void {
    while (this.#owed >= this.#workMax) {
      const work = this.#background.work(this.#log);
      if (work === 0) {
        // What must wait for a commit is made up for later, what is not there is not.
        const owedMax = this.#background.waits ? OWED_PIECES_MAX * this.#workMax : 0;
        this.#owed = Math.min(this.#owed, owedMax);
        return;
      }
      this.#owed -= work;
    }
  }

  /** The entry at hand: into the log and the table. */
  #append(): void {
    this.#makeRoom();
    this.#log.append(this.#entry, 0);
    this.#remember(this.#entry, 0);
    this.#owed += WORK_PER_ADD;
    this.#background.resume();
  }

  /** A full table is set aside; the log record at hand ends with it. */
  #makeRoom(): void {
    if (!this.#table?.isFull) return;
    this.#log.write();
    this.#background.setAside({ table: this.#table, logEnd: this.#log.next });
    this.#table = undefined;
  }

  #remember(words: Uint32Array, at: number): void {
    if (this.#table === undefined) {
      this.#table = this.#background.spare ?? new Memtable(this.#entriesMax);
      this.#background.spare = undefined;
    }
    this.#table.set(words, at);
  }
}

function sum<T>(of: readonly T[], amount: (each: T) => number): number {
  return of.reduce((total, each) => total + amount(each), 0);
}
