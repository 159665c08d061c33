/**
 * The index of idempotency keys (keys/) as a part of this store's commits: what it writes, in the background too, is
 * noted beside the puts of the commit at hand and stands or falls with it. So a commit that fails leaves nothing of the
 * index on its way, and the index can be read again with all else.
 */
import { assert } from '../../core/assert.js';
import type { Writer } from './bytes.js';
import type { Db } from './environment.js';
import { type KeyEntries, KeyIndex, type KeyIndexOptions } from './keys/key-index.js';
import type { KeyDatabase } from './keys/writes.js';
import { Key, readU64 } from './keys.js';

const KEY_BYTES = 8;
/** Above all keys of the index. */
const KEYS_END = 2 ** 53;

export type KeySizes = Pick<KeyIndexOptions, 'entriesMax' | 'workMax'>;

export interface StoredKeysParts {
  readonly log: Db;
  readonly runs: Db;
  readonly writer: Writer;
  readonly sizes?: KeySizes | undefined;
}

export class StoredKeys {
  readonly #parts: StoredKeysParts;
  readonly #commits = new Commits();
  #index: KeyIndex | undefined;

  constructor(parts: StoredKeysParts) {
    this.#parts = parts;
  }

  /**
   * Reads the index from the disk, and forgets what is in memory; with nothing of the store's on its way.
   * @throws StoreCorruptError, StoreVersionError
   */
  load(): void {
    const { log, runs, writer, sizes } = this.#parts;
    this.#index?.abandon();
    this.#commits.fail();
    this.#index = KeyIndex.open({
      log: new LoggedKeyDatabase(log, writer, this.#commits),
      runs: new LoggedKeyDatabase(runs, writer, this.#commits),
      ...sizes,
    });
  }

  /** The id (16 bytes) of the newest task that was added under this hash, whatever became of that task. */
  find(hash: Uint8Array): Uint8Array | undefined {
    return this.#opened().find(hash);
  }

  /** See KeyIndex.entriesFrom. */
  entries(cursor: number, chunksMax: number): KeyEntries {
    return this.#opened().entriesFrom(cursor, chunksMax);
  }

  /** Seen by `find` at once; part of the commit at hand. */
  add(hash: Uint8Array, taskId: Uint8Array): void {
    this.#opened().add(hash, taskId);
  }

  /** The task is gone: the hash is free, unless another has taken it. Part of the commit at hand. */
  remove(hash: Uint8Array, taskId: Uint8Array): void {
    this.#opened().remove(hash, taskId);
  }

  /** Notes what is left to put, and does the work in the background that the adds of this commit pay for. */
  finish(commit: number): void {
    this.#opened().seal();
    this.#commits.handOver(commit);
  }

  /** All commits up to this one are visible. */
  visible(commit: number): void {
    this.#commits.succeed(commit);
  }

  /** A bounded piece of work in the background, as part of the commit at hand. False: there is no more for now. */
  step(): boolean {
    return this.#opened().step();
  }

  /** Work in the background that is not committed is not done; it will be after the next opening. */
  close(): void {
    this.#index?.abandon();
  }

  #opened(): KeyIndex {
    assert(this.#index !== undefined, 'keys are loaded before they are used');
    return this.#index;
  }
}

/** What of the index is on its way, by the commit that takes it along. */
class Commits {
  #next = new Outcome();
  #isAwaited = false;
  readonly #handedOver: { readonly commit: number; readonly outcome: Outcome }[] = [];

  /** Of the commit that takes what is noted now; rejects when it fails. */
  get next(): Promise<boolean> {
    this.#isAwaited = true;
    return this.#next.promise;
  }

  handOver(commit: number): void {
    if (!this.#isAwaited) return;
    this.#isAwaited = false;
    this.#handedOver.push({ commit, outcome: this.#next });
    this.#next = new Outcome();
  }

  succeed(commit: number): void {
    while (this.#handedOver.length > 0 && this.#handedOver[0].commit <= commit) {
      this.#handedOver.shift()?.outcome.resolve(true);
    }
  }

  fail(): void {
    this.#next.reject(new Error('a commit failed'));
    for (const { outcome } of this.#handedOver.splice(0)) {
      outcome.reject(new Error('a commit failed'));
    }
    this.#next = new Outcome();
    this.#isAwaited = false;
  }
}

class Outcome {
  readonly promise: Promise<boolean>;
  resolve!: (isWritten: boolean) => void;
  reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }
}

/** Numbers for keys, over a database of the store. */
class LoggedKeyDatabase implements KeyDatabase {
  readonly #db: Db;
  readonly #writer: Writer;
  readonly #commits: Commits;
  readonly #key = new Key(KEY_BYTES);

  constructor(db: Db, writer: Writer, commits: Commits) {
    this.#db = db;
    this.#writer = writer;
    this.#commits = commits;
  }

  put(key: number, value: Uint8Array): Promise<boolean> {
    this.#writer.begin(value.length);
    this.#writer.raw(value, value.length);
    this.#db.put(this.#keyOf(key), this.#writer.end());
    return this.#commits.next;
  }

  remove(key: number): Promise<boolean> {
    this.#db.remove(this.#keyOf(key));
    return this.#commits.next;
  }

  getBinary(key: number): Uint8Array | undefined {
    const value = this.#db.getBinaryFast(this.#keyOf(key));
    return value && copyOf(value);
  }

  getBinaryFast(key: number): Uint8Array | undefined {
    return this.#db.getBinaryFast(this.#keyOf(key));
  }

  *getRange({ start = 0 }: { start?: number }): Iterable<{ key: number; value: Uint8Array }> {
    for (const { key, value } of this.#db.getRange(rangeFrom(start))) {
      yield { key: readU64(key, 0), value: copyOf(value) };
    }
  }

  *getKeys({ limit = Number.MAX_SAFE_INTEGER }: { limit?: number }): Iterable<number> {
    for (const key of this.#db.getKeys({ ...rangeFrom(0), limit })) yield readU64(key, 0);
  }

  #keyOf(key: number): Key {
    return this.#key.clear().u64(key);
  }
}

function rangeFrom(start: number): { start: Key; end: Key } {
  return { start: new Key(KEY_BYTES).u64(start), end: new Key(KEY_BYTES).u64(KEYS_END) };
}

/** lmdb-js reads into a buffer of its own, of which `length` alone tells the end; a Buffer's slice is no copy. */
function copyOf(value: Uint8Array): Uint8Array {
  return new Uint8Array(value.subarray(0, value.length));
}
