/** Retention: asks the store to forget what has been kept long enough, a bounded step at a time. */
import type { Retention, StoreSession } from '../store/store.js';

/** Records removed in one turn at most. */
const STEP_MAX = 500;

export class Pruning {
  readonly #session: StoreSession;
  readonly #shortestMs: number;
  /** Wall clock time of the next step; Infinity while nothing has ended. */
  nextAtMs = Number.POSITIVE_INFINITY;

  constructor(session: StoreSession, retention: Retention) {
    this.#session = session;
    this.#shortestMs = Math.min(retention.succeededMs, retention.failedMs);
  }

  /** Something ended: there will be something to forget. */
  noteEnd(nowMs: number): void {
    this.nextAtMs = Math.min(this.nextAtMs, nowMs + this.#shortestMs);
  }

  async prune(nowMs: number): Promise<void> {
    if (nowMs < this.nextAtMs) return;
    const { removed, nextAtMs } = await this.#session.prune(nowMs, STEP_MAX);
    this.nextAtMs = nextAtMs ?? Number.POSITIVE_INFINITY;
    // What could not be removed yet (a key still holds) must not make the loop spin.
    if (removed === 0) this.nextAtMs = Math.max(this.nextAtMs, nowMs + 1000);
  }
}
