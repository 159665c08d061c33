/**
 * Brings what comes near from the store's due index into timing, a bounded step at the end of a turn; whatever is
 * pending, timing holds about `windowMax` occurrences. A store without a due index has no loader: all is near then.
 */
import type { DueWindow } from '../store/store.js';
import type { Timing } from './timing.js';

/** Occurrences that timing holds of those that the store can keep for later. */
const WINDOW_MAX = 2_000_000;

export class Loader {
  readonly #window: DueWindow;
  readonly #timing: Timing;
  readonly #windowMax: number;
  /** Wall clock time of the next step. */
  nextAtMs = Number.NEGATIVE_INFINITY;
  /** The next step can be made at once. */
  hasMore = true;

  constructor(window: DueWindow, timing: Timing, windowMax = WINDOW_MAX) {
    this.#window = window;
    this.#timing = timing;
    this.#windowMax = windowMax;
  }

  /** False: it is left to the store until it comes near. To be asked once the change is visible. */
  isNear(dueAt: number): boolean {
    return dueAt < this.#window.watermarkMs;
  }

  /** A step of at most some 1,000 occurrences. */
  async load(nowMs: number): Promise<void> {
    const room = Math.max(0, this.#windowMax - this.#timing.size);
    const { entries, more, nextAtMs } = await this.#window.load(nowMs, room);
    for (const entry of entries) if (!entry.held) this.#timing.place(entry);
    this.hasMore = more;
    this.nextAtMs = nextAtMs;
  }
}
