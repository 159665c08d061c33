/** Queued puts of the key index, and how many of them are not committed yet. */
import type { Database } from 'lmdb';

/** Opened with `encoding: 'binary'` and number keys, without a cache. */
export type KeyDatabase = Database<Uint8Array, number>;

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
    // lmdb-js gives all unconditional writes of a turn the same promise.
    this.#commit = commit;
  }

  /** lmdb-js reads the value on its own thread until the commit: an arena is never written to twice. */
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
