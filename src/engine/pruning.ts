/**
 * Retention: asks the store to forget what has been kept long enough, a bounded step at a time. Steps run beside the
 * loop's turns, for nobody waits for what they do.
 */
import type { Clock } from '../clock/clock.js';
import { StoreFullError } from '../core/errors.js';
import type { Retention, StoreSession } from '../store/store.js';

/** Records removed in one step at most. */
const STEP_MAX = 500;
/** A step is followed by a rest as long as itself, and as many times as long while work is overdue. */
const RESTS_WHEN_BEHIND = 8;
/** After a step that could remove nothing: a key still holds, or the store has no space. */
const RETRY_MS = 1000;

export interface PruningParts {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly retention: Retention;
  /** A step is done, and `nextAtMs` may have come nearer. */
  wake(): void;
  fail(error: unknown): void;
}

export class Pruning {
  readonly #parts: PruningParts;
  readonly #shortestMs: number;
  /** A step is under way. */
  #stepping = false;
  #nextAtMs = Number.POSITIVE_INFINITY;
  #rests = 1;

  constructor(parts: PruningParts) {
    this.#parts = parts;
    this.#shortestMs = Math.min(parts.retention.succeededMs, parts.retention.failedMs);
  }

  get busy(): boolean {
    return this.#stepping;
  }

  /** Wall clock time of the next step; Infinity while there is nothing to do, or a step is under way. */
  get nextAtMs(): number {
    return this.busy ? Number.POSITIVE_INFINITY : this.#nextAtMs;
  }

  /** Something ended: there will be something to forget. */
  noteEnd(nowMs: number): void {
    this.#nextAtMs = Math.min(this.#nextAtMs, nowMs + this.#shortestMs);
  }

  /**
   * Begins a step when its time has come.
   * @param isBehind work is overdue, which goes first
   */
  prune(nowMs: number, isBehind: boolean): void {
    this.#rests = isBehind ? RESTS_WHEN_BEHIND : 1;
    if (nowMs < this.nextAtMs) return;
    this.#nextAtMs = Number.POSITIVE_INFINITY;
    // Before it begins: it may end, or fail, before it has to wait for anything.
    this.#stepping = true;
    void this.#step(nowMs);
  }

  async #step(nowMs: number): Promise<void> {
    const { session, clock } = this.#parts;
    try {
      const beganMs = clock.monotonic();
      const { removed, nextAtMs } = await session.prune(nowMs, STEP_MAX);
      const tookMs = clock.monotonic() - beganMs;
      // What could not be removed yet must not make the loop spin.
      const restMs = removed === 0 ? RETRY_MS : Math.ceil(this.#rests * tookMs);
      const soonestMs = clock.now() + restMs;
      const nextMs = Math.max(nextAtMs ?? Number.POSITIVE_INFINITY, soonestMs);
      this.#nextAtMs = Math.min(this.#nextAtMs, nextMs);
    } catch (error) {
      if (error instanceof StoreFullError) this.#nextAtMs = nowMs + RETRY_MS;
      else this.#parts.fail(error);
    }
    this.#stepping = false;
    this.#parts.wake();
  }
}
