/**
 * Time of the machine itself, whatever clock a scheduler was given: for what concerns real threads, which run
 * and hang in real time even where a test's clock stands still.
 */
import type { Disarm } from './clock.js';

/** Monotonic milliseconds, with fractions. */
export function realNowMs(): number {
  return performance.now();
}

/** Calls `fire` once after at least `ms`. Does not keep the process alive. */
export function afterRealMs(ms: number, fire: () => void): Disarm {
  const timer = setTimeout(fire, ms).unref();
  return () => clearTimeout(timer);
}
