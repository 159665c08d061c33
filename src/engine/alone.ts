/**
 * A thread emptied for what must run alone. With several threads one drains for as long as that takes, and others go on.
 * Where there is only one, nothing else starts meanwhile: so it drains for a bounded time, then others go on for ten times
 * as long, unless it is empty by then, and each time it drains twice as long as before. What must run alone has its turn in
 * the end, and others lose a tenth of the time at most.
 */
import type { Executor } from '../execution/executor.js';

const DRAIN_MS = 5000;
const REST_TIMES = 10;

export class AloneThread {
  readonly #executor: Executor;
  #state: 'idle' | 'draining' | 'resting' = 'idle';
  #drainMs = DRAIN_MS;
  /** Monotonic time at which it drains, or rests, no longer. */
  nextMs = Number.POSITIVE_INFINITY;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  /** A thread is wanted, and was not asked for yet. */
  isNews(isWanted: boolean): boolean {
    return isWanted && this.#state === 'idle';
  }

  /** To be called in each turn. True: a thread is empty, and stays so until something is started on it or it is let go. */
  ask(isWanted: boolean, monotonicMs: number): boolean {
    if (!isWanted) {
      if (this.#state !== 'idle') this.letGo();
      return false;
    }
    const isResting = this.#state === 'resting' && monotonicMs < this.nextMs;
    if (!isResting && this.#state !== 'draining') {
      this.#enter('draining', monotonicMs + this.#drainMs);
    }
    if (this.#executor.reserve(true)) return true;
    if (isResting) this.#executor.reserve(false);
    else if (monotonicMs >= this.nextMs) {
      this.#executor.reserve(false);
      this.#enter('resting', monotonicMs + REST_TIMES * this.#drainMs);
      this.#drainMs *= 2;
    }
    return false;
  }

  #enter(state: 'draining' | 'resting', untilMs: number): void {
    this.#state = state;
    this.nextMs = this.#executor.threads === 1 ? untilMs : Number.POSITIVE_INFINITY;
  }

  /** It is in use, or about to be. */
  taken(): void {
    this.#state = 'idle';
    this.nextMs = Number.POSITIVE_INFINITY;
    this.#drainMs = DRAIN_MS;
  }

  /** Nobody wants it any more, or what was to start on it does not. */
  letGo(): void {
    this.#executor.reserve(false);
    this.taken();
  }
}
