/** Removes in bounded pieces what is of no use any more: log records that are in runs, and runs that were merged. */
import { piecesOf } from './filter.js';
import type { RunMeta } from './manifest.js';
import { chunkKey, pieceKey } from './run.js';
import type { KeyDatabase, Writes } from './writes.js';

export class Sweeper {
  readonly #runs: KeyDatabase;
  readonly #writes: Writes;
  /** The run at hand, and how many of its keys are removed. */
  #id = 0;
  #removed = 0;

  constructor(runs: KeyDatabase, writes: Writes) {
    this.#runs = runs;
    this.#writes = writes;
  }

  /** Removes up to `max` keys of the run. Returns how many; fewer than `max` when there are no more. */
  sweep(meta: RunMeta, max: number): number {
    if (this.#id !== meta.id) {
      this.#id = meta.id;
      this.#removed = 0;
    }
    const chunks = 2 ** meta.bits;
    const end = Math.min(chunks + piecesOf(meta.blocks), this.#removed + max);
    const from = this.#removed;
    for (let n = from; n < end; n++) {
      const key = n < chunks ? chunkKey(meta.id, n) : pieceKey(meta.id, n - chunks);
      this.#writes.remove(this.#runs, key);
    }
    this.#removed = end;
    return end - from;
  }

  /** All of the run's keys were removed. */
  isAtEndOf(meta: RunMeta): boolean {
    return this.#id === meta.id && this.#removed === 2 ** meta.bits + piecesOf(meta.blocks);
  }

  /** Some removals may have been lost. */
  restart(): void {
    this.#id = 0;
  }
}
