/**
 * Brings what comes near from the store's due index into timing, a bounded step at the end of a turn; whatever is
 * pending, timing holds about `windowMax` occurrences. A store without a due index has no loader: all is near then.
 *
 * Each lane may have as many in memory as there is room left (Choudhury and Hahne, Dynamic queue length thresholds for
 * shared-memory packet switches, 1998): one that has the memory for itself fills half of it, of n that are crowded each has
 * an n + 1st part, and one that comes new finds room.
 */
import { StoreFullError } from '../core/errors.js';
import type { Logger } from '../observe/log.js';
import type { DueStep, DueWindow, Lane } from '../store/store.js';
import type { Timing } from './timing.js';

/** Occurrences that timing holds of those that the store can keep for later. */
const WINDOW_MAX = 2_000_000;
/** Of a lane that cannot start anything for now: its tenant or handler is paused, or nobody can run its version. */
const PARKED_MAX = 64;
/** A store without space is asked again after this long. */
const FULL_RETRY_MS = 1000;

export interface LoaderOptions {
  readonly window: DueWindow;
  readonly timing: Timing;
  readonly log: Logger;
  readonly isParked: (lane: Lane) => boolean;
  readonly windowMax?: number | undefined;
}

export class Loader {
  readonly #options: LoaderOptions;
  readonly windowMax: number;
  /** Lanes that got more than their share by what was committed. */
  readonly #crowded = new Set<Lane>();
  /** Wall clock time of the next step. */
  nextAtMs = Number.NEGATIVE_INFINITY;
  /** The next step can be made at once. */
  hasMore = true;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.windowMax = options.windowMax ?? WINDOW_MAX;
  }

  /** False: it is left to the store until it comes near. To be asked once the change is visible. */
  isNear(lane: Lane, dueAt: number): boolean {
    return this.#options.window.isNear(lane, dueAt);
  }

  /** As `isNear`, of one that is to be timed now: what is too much of its lane is left to the store from the next step on. */
  admits(lane: Lane, dueAt: number): boolean {
    if (!this.isNear(lane, dueAt)) return false;
    if (this.#roomOf(lane) <= 0) this.#crowded.add(lane);
    return true;
  }

  #roomOf(lane: Lane): number {
    const { timing, isParked } = this.#options;
    const max = isParked(lane) ? PARKED_MAX : this.windowMax - timing.size;
    return max - timing.sizeOf(lane);
  }

  /** A step of at most some 2,000 occurrences. */
  async load(nowMs: number): Promise<void> {
    const { timing } = this.#options;
    const step = await this.#step(nowMs);
    for (const entry of step.entries) if (!entry.held) timing.place(entry);
    this.hasMore = step.more;
    this.nextAtMs = step.nextAtMs;
  }

  async #step(nowMs: number): Promise<DueStep> {
    const { window, timing, log } = this.#options;
    const room = {
      total: Math.max(0, this.windowMax - timing.size),
      of: (lane: Lane) => this.#roomOf(lane),
      crowded: [...this.#crowded],
    };
    this.#crowded.clear();
    try {
      return await window.load(nowMs, room);
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error;
      log.error({ code: error.code }, 'the store is full: what comes near is moved later');
      return { entries: [], more: false, nextAtMs: nowMs + FULL_RETRY_MS };
    }
  }
}
