import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BackoffPolicies, backoffMs } from '../../src/core/retry.js';

const base: BackoffPolicies = {
  initialBackoffMs: 1000,
  backoffMultiplier: 2,
  maxBackoffMs: 60_000,
  backoffJitter: 0,
};

describe('backoff', () => {
  it('doubles from the initial wait and stops at the greatest', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((failures) => backoffMs(base, failures, 0.5));
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('caps before the power overflows', () => {
    expect(backoffMs(base, 1_000_000, 0)).toBe(60_000);
    expect(backoffMs({ ...base, initialBackoffMs: 0 }, 1_000_000, 0)).toBe(0);
  });

  it('keeps the initial wait with a multiplier of 1, and never waits longer than the cap', () => {
    expect(backoffMs({ ...base, backoffMultiplier: 1 }, 9, 0)).toBe(1000);
    expect(backoffMs({ ...base, initialBackoffMs: 90_000 }, 1, 0)).toBe(60_000);
  });

  it('takes off up to the jitter, in whole milliseconds', () => {
    const jittered = { ...base, backoffJitter: 0.25 };
    expect(backoffMs(jittered, 1, 0)).toBe(1000);
    expect(backoffMs(jittered, 1, 1)).toBe(750);
    expect(backoffMs({ ...base, backoffJitter: 1 }, 1, 1)).toBe(0);
    expect(backoffMs({ ...base, initialBackoffMs: 3, backoffMultiplier: 1.5 }, 2, 0)).toBe(5);
  });

  it('is a whole number within the bounds, whatever the policies', () => {
    const fraction = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.nat(1e12),
        fc.double({ min: 1, max: 1000, noNaN: true }),
        fc.nat(1e12),
        fraction,
        fc.integer({ min: 1, max: 1e6 }),
        fraction,
        (initialBackoffMs, backoffMultiplier, maxBackoffMs, backoffJitter, failures, random01) => {
          const policies = { initialBackoffMs, backoffMultiplier, maxBackoffMs, backoffJitter };
          const full = backoffMs({ ...policies, backoffJitter: 0 }, failures, random01);
          const waitMs = backoffMs(policies, failures, random01);
          expect(Number.isSafeInteger(waitMs)).toBe(true);
          expect(waitMs).toBeLessThanOrEqual(full);
          expect(full).toBeLessThanOrEqual(maxBackoffMs);
          expect(waitMs).toBeGreaterThanOrEqual(Math.floor(full * (1 - backoffJitter) - 1));
        },
      ),
    );
  });
});
