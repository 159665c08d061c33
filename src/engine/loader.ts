/**
 * Brings what comes near from the store's due index into timing, a bounded step at the end of a turn; whatever is
 * pending, timing holds about `windowMax` occurrences. A store without a due index has no loader: all is near then.
 *
 * Each lane may have as many in memory as there is room left (Choudhury and Hahne, Dynamic queue length thresholds for
 * shared-memory packet switches, 1998): one that has the memory for itself fills half of it, of n that are crowded each has
 * an n + 1st part, and one that comes new finds room. That holds for lanes that empty as fast as others let them. Of those
 * that start slowly or not at all (at a limit, paused, no worker) any number may wait at once, so each has but a few.
 */
import { StoreFullError } from '../core/errors.js';
import type { Logger } from '../observe/log.js';
import type { DueStep, DueWindow, Lane } from '../store/store.js';
import type { Timing } from './timing.js';

/** Occurrences that timing holds of those that the store can keep for later. */
const WINDOW_MAX = 2_000_000;
/** Of a lane that cannot start anything for now: its tenant or handler is paused, or nobody can run its version. */
const PARKED_MAX = 64;
/** The same, as a part of a small window. */
const PARKED_PART = 1 / 32;
/** Of a lane whose tenant or handler has a limit: enough to be read on in time, whatever the limit. */
const LIMITED_PART = 1 / 256;
/** Of the window, left to lanes that can start without a limit. */
const FREE_PART = 1 / 2;
/** A store without space is asked again after this long. */
const FULL_RETRY_MS = 1000;
/** Between two steps that look for what was committed meanwhile; what is near is so for 10 s at least before it is due. */
const BESIDE_COMMITS_MS = 50;

export interface LoaderOptions {
  readonly window: DueWindow;
  readonly timing: Timing;
  readonly log: Logger;
  readonly isParked: (lane: Lane) => boolean;
  /** Its tenant or handler has a limit of rate or concurrency. */
  readonly isLimited: (lane: Lane) => boolean;
  readonly windowMax?: number | undefined;
}

export class Loader {
  readonly #options: LoaderOptions;
  readonly windowMax: number;
  /** Of one lane that is parked, and of one with a limit, at most. */
  readonly #parkedMax: number;
  readonly #limitedMax: number;
  /** Lanes that got more than their share by what was committed. */
  readonly #crowded = new Set<Lane>();
  /** Wall clock time of the last step. */
  #loadedMs = Number.NEGATIVE_INFINITY;
  /** Wall clock time of the next step. */
  nextAtMs = Number.NEGATIVE_INFINITY;
  /** The next step can be made at once. */
  hasMore = true;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.windowMax = options.windowMax ?? WINDOW_MAX;
    this.#parkedMax = Math.min(PARKED_MAX, Math.ceil(PARKED_PART * this.windowMax));
    this.#limitedMax = Math.max(this.#parkedMax, Math.floor(LIMITED_PART * this.windowMax));
  }

  /** False: it is left to the store until it comes near. To be asked once the change is visible. */
  isNear(lane: Lane, dueAt: number): boolean {
    return this.#options.window.isNear(lane, dueAt);
  }

  /** As `isNear`, and not only on its way here. */
  isTold(lane: Lane, dueAt: number): boolean {
    return this.#options.window.isTold(lane, dueAt);
  }

  /** As `isNear`, of one that is to be timed now: what is too much of its lane is left to the store from the next step on. */
  admits(lane: Lane, dueAt: number): boolean {
    if (!this.isNear(lane, dueAt)) return false;
    if (this.#roomOf(lane, 0) <= 0) this.#crowded.add(lane);
    return true;
  }

  #roomOf(lane: Lane, given: number): number {
    const { timing, isParked, isLimited } = this.#options;
    const left = this.windowMax - timing.size - given;
    const size = timing.sizeOf(lane);
    const spare = left - FREE_PART * this.windowMax;
    if (isParked(lane)) return Math.min(this.#parkedMax - size, spare);
    if (!isLimited(lane)) return left - size;
    // A few always: it may be able to start at this moment, however many others are not.
    const few = Math.min(this.#parkedMax - size, left);
    return Math.max(few, Math.min(this.#limitedMax - size, spare));
  }

  /** While other commits are under way a step waits for them: it is not made for each, but when it is time, and now and then. */
  isWanted(nowMs: number): boolean {
    const sinceMs = Math.abs(nowMs - this.#loadedMs);
    return this.hasMore || nowMs >= this.nextAtMs || sinceMs >= BESIDE_COMMITS_MS;
  }

  /** A step of at most some 2,000 occurrences; with no commit under way. */
  async load(nowMs: number): Promise<void> {
    const { timing } = this.#options;
    this.#loadedMs = nowMs;
    const step = await this.#step(nowMs);
    for (const entry of step.entries) if (!entry.held) timing.place(entry);
    this.hasMore = step.more;
    this.nextAtMs = step.nextAtMs;
  }

  async #step(nowMs: number): Promise<DueStep> {
    const { window, timing, log } = this.#options;
    const room = {
      total: Math.max(0, this.windowMax - timing.size),
      of: (lane: Lane, given: number) => this.#roomOf(lane, given),
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
