import { expect } from 'vitest';
import { loadNativeWheel, type NativeWheel } from '../../src/wheel/native.js';
import { TimerWheel, type TimerWheelOptions } from '../../src/wheel/timer-wheel.js';

/** A wheel of the debug build, which has assertions, and the instance under it. */
export async function openWheel(
  options: TimerWheelOptions = {},
): Promise<{ wheel: TimerWheel; native: NativeWheel }> {
  const native = await loadNativeWheel({ debug: true });
  return { wheel: TimerWheel.createOn(native, options), native };
}

/** Everything due at `nowTick`, by repeated calls, each within its bounds. */
export function drain(wheel: TimerWheel, nowTick: number, max = 4096): number[] {
  const refs: number[] = [];
  for (;;) {
    const expired = wheel.advance(nowTick, max);
    expect(expired.refs.length).toBeLessThanOrEqual(max);
    refs.push(...expired.refs);
    if (!expired.more) return refs;
  }
}

export function expectSound(native: NativeWheel): void {
  expect(native.check(), 'number of the broken invariant, as in assembly/check.ts').toBe(0);
}

/** Seeded numbers from 0 to below 1 (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}
