/** Handlers for worker threads: every thread loads this module. */
import type { Context } from 'tickwheel';

/** How many primes lie below `limit`: work that would block the event loop of the scheduler. */
export function countPrimes(limit: number, ctx: Context): { primes: number; attempt: number } {
  let primes = 0;
  for (let n = 2; n < limit; n++) {
    // On a thread `aborted` is up to date even in a loop that never yields.
    if (ctx.signal.aborted) throw ctx.signal.reason;
    if (isPrime(n)) primes += 1;
  }
  return { primes, attempt: ctx.attempt };
}

function isPrime(n: number): boolean {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}
