import { describe, expect, it } from 'vitest';
import { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { drain, openWheel, randomOf } from './helpers.js';

const FIXED_BYTES = 1 << 20;

describe('the bounds of a wheel', () => {
  it('does at most max expiries and 4096 moves a call, however many are due', async () => {
    const wheel = await TimerWheel.create();
    const count = 60_000;
    const random = randomOf(1);
    // Half of them on one tick behind a cascade, half all over the levels.
    const dueTicks = new Float64Array(count).map((_, i) =>
      i % 2 === 0 ? 50_000_000 : Math.floor(2 ** (random() * 39)),
    );
    wheel.insertMany(dueTicks, new Uint32Array(count));
    let expiries = 0;
    let calls = 0;
    for (let more = true; more; calls++) {
      const expired = wheel.advance(2 ** 39, 1_000);
      more = expired.more;
      expect(expired.refs.length).toBeLessThanOrEqual(1_000);
      expect(wheel.lastAdvance.expiries).toBe(expired.refs.length);
      expect(wheel.lastAdvance.cascadeMoves).toBeLessThanOrEqual(4_096);
      expiries += expired.refs.length;
    }
    expect(expiries).toBe(count);
    // Each timer moves at most once a level, so the calls are bounded too.
    expect(calls).toBeLessThanOrEqual(count / 1_000 + (3 * count) / 4_096 + 2);
  });

  it('bounds the timers that enter from the overflow heap as well', async () => {
    const { wheel } = await openWheel();
    const due = 2 ** 42;
    for (let ref = 0; ref < 10_000; ref++) wheel.insert(due + (ref % 3), ref);
    let expiries = 0;
    for (let more = true; more; ) {
      const expired = wheel.advance(due + 10);
      more = expired.more;
      expiries += expired.refs.length;
      expect(wheel.lastAdvance.cascadeMoves).toBeLessThanOrEqual(4_096);
      expect(expired.refs.length).toBeLessThanOrEqual(4_096);
    }
    expect(expiries).toBe(10_000);
  });

  it('gives everything at once when max allows it', async () => {
    const wheel = await TimerWheel.create();
    wheel.insertMany(new Float64Array(50_000).fill(77), new Uint32Array(50_000));
    const { refs, more } = wheel.advance(77, 1_000_000);
    expect(refs.length).toBe(50_000);
    expect(more).toBe(false);
  });

  it('says no more when exactly max were due', async () => {
    const wheel = await TimerWheel.create();
    for (let ref = 0; ref < 10; ref++) wheel.insert(5, ref);
    wheel.insert(6, 10);
    expect(wheel.advance(5, 10)).toMatchObject({ more: false });
    expect(drain(wheel, 6)).toEqual([10]);
  });

  it('starts small and takes 20 bytes a timer and a fixed part', async () => {
    const wheel = await TimerWheel.create({ maxTimers: 400_000 });
    expect(wheel.memoryBytes).toBeLessThanOrEqual(FIXED_BYTES / 2);
    const random = randomOf(2);
    const dueTicks = new Float64Array(100_000).map(() => Math.floor(random() * 2 ** 39));
    for (let batch = 0; batch < 4; batch++) wheel.insertMany(dueTicks, new Uint32Array(100_000));
    expect(wheel.size).toBe(400_000);
    expect(wheel.memoryBytes).toBeLessThanOrEqual(400_000 * 20 + FIXED_BYTES);
    expect(wheel.memoryBytes).toBeGreaterThan(400_000 * 16);
  });

  it('grows in steps of at most an eighth, so that few timers never pay for many', async () => {
    const wheel = await TimerWheel.create();
    for (let ref = 0; ref < 100_000; ref++) {
      wheel.insert(ref, ref);
      if (ref % 1_000 !== 0) continue;
      expect(wheel.memoryBytes).toBeLessThanOrEqual(ref * 20 * 1.125 + FIXED_BYTES);
    }
  });

  it('uses the memory of timers that have gone', async () => {
    const wheel = await TimerWheel.create();
    const dueTicks = new Float64Array(20_000);
    wheel.advance(0);
    let bytes = 0;
    for (let round = 1; round < 20; round++) {
      const kept = wheel.insert(round * 1_000 + 999, 1);
      const handles = wheel.insertMany(dueTicks.fill(round * 1_000), new Uint32Array(20_000));
      if (round % 2 === 0) wheel.cancelMany(handles);
      drain(wheel, round * 1_000);
      wheel.cancel(kept);
      if (round === 1) bytes = wheel.memoryBytes;
    }
    expect(wheel.memoryBytes).toBe(bytes);
  });

  it('reserves memory ahead, after which inserts grow nothing', async () => {
    const wheel = await TimerWheel.create();
    wheel.reserve(50_000);
    const bytes = wheel.memoryBytes;
    for (let ref = 0; ref < 50_000; ref++) wheel.insert(ref * 3, ref);
    expect(wheel.memoryBytes).toBe(bytes);
    expect(drain(wheel, 150_000)).toHaveLength(50_000);
  });
});
