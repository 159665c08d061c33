/** Queued puts of the key index, and how many of them are not committed yet. */

/**
 * What is asked of a database: bytes by whole numbers, in their order. One of lmdb-js is one, opened with `encoding:
 * 'binary'` and without a cache. Values given to `put` are left alone until the commit.
 */
export interface KeyDatabase {
  /** All puts and removes of a turn, of all databases, get the same promise: it rejects when their commit fails. */
  put(key: number, value: Uint8Array): Promise<boolean>;
  remove(key: number): Promise<boolean>;
  getBinary(key: number): Uint8Array | undefined;
  /** Valid until the next read. */
  getBinaryFast(key: number): Uint8Array | undefined;
  getRange(options: { start?: number }): Iterable<{ key: number; value: Uint8Array }>;
  getKeys(options: { limit?: number }): Iterable<number>;
}

const ARENA_BYTES = 0x4_0000;

export class Writes {
  /** Queued and not committed. */
  outstanding = 0;
  readonly #onFailure: () => void;
  #arena = new Uint8Array(0);
  #used = 0;
  #queued = 0;
  /** Of the commit that takes what was queued. */
  #commit: Promise<boolean> | undefined;
  #settled: Promise<boolean> = Promise.resolve(true);

  /** `onFailure`: a commit failed; called before `settle` of it, or of a later one, resolves. */
  constructor(onFailure: () => void) {
    this.#onFailure = onFailure;
  }

  /** Queues a put of a copy of the first `length` words. */
  put(database: KeyDatabase, key: number, words: Uint32Array, length: number): void {
    const bytes = new Uint8Array(words.buffer, words.byteOffset, length * 4);
    this.#queue(database.put(key, this.#copy(bytes)));
  }

  putBytes(database: KeyDatabase, key: number, bytes: Uint8Array): void {
    this.#queue(database.put(key, this.#copy(bytes)));
  }

  remove(database: KeyDatabase, key: number): void {
    this.#queue(database.remove(key));
  }

  /**
   * To be called in the turn of the puts. Resolves when they, and all before them, are visible, with false if their
   * commit failed; never rejects.
   */
  settle(): Promise<boolean> {
    if (this.#commit === undefined) return this.#settled;
    const queued = this.#queued;
    this.#settled = this.#commit.then(
      () => {
        this.outstanding -= queued;
        return true;
      },
      () => {
        this.outstanding -= queued;
        this.#onFailure();
        return false;
      },
    );
    this.#commit = undefined;
    this.#queued = 0;
    return this.#settled;
  }

  #queue(commit: Promise<boolean>): void {
    this.#queued++;
    this.outstanding++;
    this.#commit = commit;
  }

  /** Values are read until the commit, by lmdb-js on its own thread: an arena is never written to twice. */
  #copy(bytes: Uint8Array): Uint8Array {
    if (this.#used + bytes.length > this.#arena.length) {
      this.#arena = new Uint8Array(Math.max(ARENA_BYTES, bytes.length));
      this.#used = 0;
    }
    const copy = this.#arena.subarray(this.#used, this.#used + bytes.length);
    copy.set(bytes);
    this.#used += bytes.length;
    return copy;
  }
}
