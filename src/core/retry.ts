/** When a failed occurrence is tried again. */
import { assert } from './assert.js';
import type { Policies } from './model.js';

export type BackoffPolicies = Pick<
  Policies,
  'initialBackoffMs' | 'backoffMultiplier' | 'maxBackoffMs' | 'backoffJitter'
>;

/**
 * Whole milliseconds to wait after the `failures`th failure (≥ 1): initial × multiplier^(failures −
 * 1), at most `maxBackoffMs`, less up to the fraction `backoffJitter` of it. `random01` is in [0,
 * 1]. Rounded up.
 */
export function backoffMs(policies: BackoffPolicies, failures: number, random01: number): number {
  const { initialBackoffMs, backoffMultiplier, maxBackoffMs, backoffJitter } = policies;
  assert(random01 >= 0 && random01 <= 1, `a random fraction of ${random01}`);
  // The power may overflow to Infinity, which the cap takes back; 0 × Infinity would be no number.
  const power = initialBackoffMs === 0 ? 0 : backoffMultiplier ** Math.max(0, failures - 1);
  const wholeMs = Math.min(maxBackoffMs, initialBackoffMs * power);
  const waitMs = Math.min(maxBackoffMs, Math.ceil(wholeMs * (1 - backoffJitter * random01)));
  assert(waitMs >= 0, `a backoff of ${waitMs} ms`);
  return waitMs;
}
