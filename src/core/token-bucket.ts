/**
 * A token bucket with a burst of one second, kept as one number (the generic cell rate algorithm,
 * ITU-T I.371): the time at which the bucket will be full again. There is no level to top up, hence
 * no drift, and the time of the next token is exact: whoever waits until then finds it.
 */
import { assert } from './assert.js';

/**
 * A token counts as there this much early, so that sums rounded up do not hide one that is due
 * exactly now.
 */
const ROUNDING_MS = 1e-6;

export class TokenBucket {
  /** Milliseconds a token takes to come. */
  #intervalMs = 0;
  #capacity = 1;
  /** How far `fullAtMs` may lie ahead while a token is left: (capacity − 1) intervals. */
  #toleranceMs = 0;
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** Full at first. `ratePerSecond` > 0, fractions allowed; holds max(1, rate) tokens. */
  constructor(ratePerSecond: number) {
    this.#rate(ratePerSecond);
  }

  #rate(ratePerSecond: number): void {
    assert(ratePerSecond > 0, `a token bucket of ${ratePerSecond} a second`);
    this.#intervalMs = 1000 / ratePerSecond;
    this.#capacity = Math.max(1, ratePerSecond);
    this.#toleranceMs = (this.#capacity - 1) * this.#intervalMs + ROUNDING_MS;
  }

  /** Monotonic time from which a token is there; in the past when one is. */
  get readyAtMs(): number {
    return this.#fullAtMs - this.#toleranceMs;
  }

  /** Monotonic time at which nothing is left to remember of past spending. */
  get fullAtMs(): number {
    return this.#fullAtMs;
  }

  /** Tokens that are missing: about the starts of the last second. */
  missingAt(monotonicMs: number): number {
    return Math.max(0, Math.ceil((this.#fullAtMs - monotonicMs) / this.#intervalMs - ROUNDING_MS));
  }

  /** Takes a token. The caller has checked `readyAtMs`. */
  spend(monotonicMs: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, monotonicMs) + this.#intervalMs;
  }

  /** Puts a token back that was taken for nothing. */
  refund(): void {
    this.#fullAtMs -= this.#intervalMs;
  }

  /** Another rate from now on; tokens spent stay spent, as far as the new capacity knows them. */
  setRate(ratePerSecond: number, monotonicMs: number): void {
    const owedMs = this.#fullAtMs - monotonicMs;
    const owed = owedMs > 0 ? owedMs / this.#intervalMs : 0;
    this.#rate(ratePerSecond);
    if (owed === 0) return;
    this.#fullAtMs = monotonicMs + Math.min(owed, this.#capacity) * this.#intervalMs;
  }
}
