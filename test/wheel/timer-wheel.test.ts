import { describe, expect, it } from 'vitest';
import {
  InvalidArgumentError,
  SchedulerStateError,
  WheelFullError,
} from '../../src/core/errors.js';
import { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { drain, expectSound, openWheel, thrownBy } from './helpers.js';

describe('a timer wheel', () => {
  it('expires each timer once, at its tick, in order of due tick', async () => {
    const wheel = await TimerWheel.create();
    for (const tick of [70, 5, 5_000, 5, 4_000_000, 71]) wheel.insert(tick, tick);
    expect(drain(wheel, 4)).toEqual([]);
    expect(drain(wheel, 5)).toEqual([5, 5]);
    expect(drain(wheel, 70)).toEqual([70]);
    expect(drain(wheel, 3_999_999)).toEqual([71, 5_000]);
    expect(drain(wheel, 4_000_000)).toEqual([4_000_000]);
    expect(wheel.size).toBe(0);
  });

  it('hands back any u32 as ref', async () => {
    const wheel = await TimerWheel.create();
    wheel.insert(1, 0);
    wheel.insert(2, 0xffff_ffff);
    wheel.insert(3, 0x8000_0000);
    wheel.insert(2 ** 50, 0xffff_fffe);
    expect(drain(wheel, 2 ** 50)).toEqual([0, 0xffff_ffff, 0x8000_0000, 0xffff_fffe]);
  });

  it('cancels a live timer once, and knows a stale handle', async () => {
    const { wheel, native } = await openWheel();
    const kept = wheel.insert(10, 1);
    const gone = wheel.insert(10, 2);
    expect(wheel.cancel(gone)).toBe(true);
    expect(wheel.cancel(gone)).toBe(false);
    expect(wheel.size).toBe(1);
    expectSound(native);
    expect(drain(wheel, 10)).toEqual([1]);
    expect(wheel.cancel(kept)).toBe(false);
    expect(wheel.reschedule(kept, 20)).toBe(false);
  });

  it('takes any number for a handle, and changes nothing by those it never gave', async () => {
    const { wheel, native } = await openWheel();
    const handle = wheel.insert(10, 1);
    wheel.cancel(wheel.insert(10, 2));
    const others = [
      0,
      -0,
      1,
      -1,
      0.5,
      handle + 0.5,
      handle + 1,
      handle + 2 ** 27,
      handle - 2 ** 27,
    ];
    others.push(
      handle + 1 + 2 ** 27,
      handle + 2 ** 51,
      handle + 2 ** 59,
      -handle,
      2 ** 53,
      2 ** 64,
    );
    others.push(2 ** 70, Number.NaN, Infinity, -Infinity, Number.MAX_VALUE);
    for (const other of others) {
      expect(wheel.cancel(other), String(other)).toBe(false);
      expect(wheel.reschedule(other, 5), String(other)).toBe(false);
    }
    expect(wheel.cancelMany(Float64Array.from(others))).toBe(0);
    expectSound(native);
    expect(drain(wheel, 10)).toEqual([1]);
  });

  it('moves a timer earlier, later and far away under the same handle', async () => {
    const { wheel, native } = await openWheel({ startTick: 1_000 });
    const handle = wheel.insert(50_000, 7);
    let from = 50_000;
    for (const tick of [
      1_500,
      900_000,
      2 ** 45,
      2 ** 51,
      2_000,
      400,
      300,
      2 ** 44,
      1_000,
      60_000,
    ]) {
      expect(wheel.reschedule(handle, tick)).toBe(true);
      expect(wheel.nextExpiry(), `from ${from} to ${tick}`).toBe(tick);
      expect(wheel.nextWake()).toBeLessThanOrEqual(tick);
      expectSound(native);
      from = tick;
    }
    expect(drain(wheel, 59_999)).toEqual([]);
    expect(drain(wheel, 60_000)).toEqual([7]);
    expect(wheel.reschedule(handle, 70_000)).toBe(false);
  });

  it('inserts, cancels and expires in batches across the size of its buffers', async () => {
    const { wheel, native } = await openWheel();
    const count = 20_001;
    const dueTicks = Float64Array.from({ length: count }, (_, i) => (i * 7919) % 100_003);
    const refs = Uint32Array.from({ length: count }, (_, i) => i);
    const handles = wheel.insertMany(dueTicks, refs);
    expect(new Set(handles).size).toBe(count);
    expect(wheel.size).toBe(count);
    expectSound(native);
    const odd = handles.filter((_, i) => i % 2 === 1);
    expect(wheel.cancelMany(odd)).toBe(odd.length);
    expect(wheel.cancelMany(odd)).toBe(0);
    expectSound(native);
    const expected = [...refs]
      .filter((i) => i % 2 === 0)
      .sort((a, b) => dueTicks[a]! - dueTicks[b]!);
    expect(drain(wheel, 200_000, 15_000)).toEqual(expected);
  });

  it('takes timers of every range in one batch, also cancelled in one', async () => {
    const { wheel, native } = await openWheel({ startTick: 5_000 });
    const dueTicks = [6_000, 4_000, 2 ** 48, 5_000, 3_000, 2 ** 47, 7_000, 0];
    const handles = wheel.insertMany(
      Float64Array.from(dueTicks),
      Uint32Array.from(dueTicks, (_, i) => i),
    );
    expect(wheel.nextExpiry()).toBe(0);
    expectSound(native);
    expect(wheel.cancelMany(handles.slice(1, 4))).toBe(3);
    expect(wheel.cancelMany(handles)).toBe(5);
    expect(wheel.size).toBe(0);
    expect(wheel.nextExpiry()).toBe(undefined);
    expectSound(native);
  });

  it('writes the handles of a batch into a given array, be it that of the dues', async () => {
    const { wheel } = await openWheel();
    const count = 10_000;
    const dueTicks = Float64Array.from({ length: count }, (_, i) => (i * 7) % 5_000);
    const refs = Uint32Array.from(dueTicks);
    expect(wheel.insertMany(dueTicks, refs, dueTicks)).toBe(dueTicks);
    expect(wheel.cancelMany(dueTicks.subarray(5_000))).toBe(5_000);
    expect(drain(wheel, 5_000)).toEqual([...refs.subarray(0, 5_000)].sort((a, b) => a - b));
    for (const wrong of [new Float64Array(3), [], null]) {
      const act = () => wheel.insertMany(new Float64Array(2), new Uint32Array(2), wrong as never);
      expect(thrownBy(act)).toBeInstanceOf(InvalidArgumentError);
    }
    expect(wheel.size).toBe(0);
  });

  it('cancels neighbours, doubles, parked and foreign handles in one batch', async () => {
    const { wheel, native } = await openWheel({ startTick: 1_000 });
    const dueTicks = Float64Array.from({ length: 90 }, (_, i) =>
      i % 3 === 0 ? 5_000_000 : i % 3 === 1 ? 10 : 2 ** 45,
    );
    const handles = wheel.insertMany(dueTicks, new Uint32Array(90));
    wheel.cancel(handles[0]!); // Its record is free, and linked as free records are.
    const foreign = [Number.NaN, -1, 0.5, Infinity, -Infinity, 2 ** 27 + 90, 2 ** 53, 2 ** 63, 0];
    const batch = Float64Array.from([...handles, ...foreign, ...handles]);
    expect(wheel.cancelMany(batch)).toBe(89);
    expect(wheel.size).toBe(0);
    expectSound(native);
    expect(wheel.cancelMany(batch)).toBe(0);
  });

  it('tells the exact next expiry, and a lower bound of it', async () => {
    const { wheel } = await openWheel();
    expect(wheel.nextExpiry()).toBe(undefined);
    expect(wheel.nextWake()).toBe(undefined);
    const handles = [];
    for (const tick of [2 ** 50, 10_000_123, 10_000_007, 5_003, 5_002, 17]) {
      handles.push(wheel.insert(tick, 0));
      expect(wheel.nextExpiry()).toBe(tick);
    }
    for (const tick of [5_002, 5_003, 10_000_007, 10_000_123, 2 ** 50]) {
      wheel.cancel(handles.pop()!);
      const bound = wheel.nextWake()!;
      expect(bound).toBeLessThanOrEqual(tick);
      expect(bound).toBeGreaterThan(0);
      expect(wheel.nextExpiry()).toBe(tick);
    }
  });

  it('keeps the result of an advance apart from what is inserted while it is read', async () => {
    const { wheel } = await openWheel();
    for (let ref = 0; ref < 100; ref++) wheel.insert(1, ref);
    const { refs } = wheel.advance(1);
    wheel.insertMany(new Float64Array(60_000).fill(9), new Uint32Array(60_000));
    expect([...refs].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  it('does nothing when advanced to an earlier tick', async () => {
    const wheel = await TimerWheel.create({ startTick: 100 });
    wheel.insert(50, 1);
    expect(wheel.advance(99)).toEqual({ refs: new Uint32Array(0), more: false });
    expect(drain(wheel, 100)).toEqual([1]);
    wheel.insert(100, 2);
    expect(drain(wheel, 99)).toEqual([]);
    expect(drain(wheel, 100)).toEqual([2]);
  });

  it.each([Number.NaN, -1, 0.5, Infinity, -Infinity, 2 ** 53, '5', null, undefined, 5n])(
    'refuses the tick %s and stays usable',
    async (tick) => {
      const { wheel, native } = await openWheel();
      const bad = tick as number;
      const handle = wheel.insert(5, 1);
      for (const act of [
        () => wheel.insert(bad, 1),
        () => wheel.reschedule(handle, bad),
        () => wheel.advance(bad),
      ]) {
        const error = thrownBy(act);
        expect(error).toBeInstanceOf(InvalidArgumentError);
        expect((error as Error).message).toMatch(/Tick is .*; allowed: an integer from 0/);
      }
      if (typeof bad === 'number') {
        const dues = Float64Array.of(7, bad);
        expect(() => wheel.insertMany(dues, new Uint32Array(2))).toThrow(/dueTicks\[1\]/);
      }
      expect(wheel.size).toBe(1);
      expectSound(native);
      expect(drain(wheel, 5)).toEqual([1]);
    },
  );

  it.each([-1, 2 ** 32, 0.5, Number.NaN, Infinity, '1', undefined])(
    'refuses the ref %s',
    async (ref) => {
      const wheel = await TimerWheel.create();
      expect(() => wheel.insert(1, ref as number)).toThrow(InvalidArgumentError);
      expect(wheel.size).toBe(0);
    },
  );

  it('refuses options, bounds and batches outside their range', async () => {
    const bad = [
      { maxTimers: 0 },
      { maxTimers: 1.5 },
      { maxTimers: 2 ** 27 + 1 },
      { startTick: -1 },
    ];
    for (const options of bad) {
      await expect(TimerWheel.create(options)).rejects.toThrow(InvalidArgumentError);
    }
    const wheel = await TimerWheel.create();
    for (const max of [0, -1, 0.5, Number.NaN, Infinity]) {
      expect(() => wheel.advance(1, max)).toThrow(InvalidArgumentError);
    }
    expect(() => wheel.insertMany(new Float64Array(2), new Uint32Array(3))).toThrow(
      InvalidArgumentError,
    );
    expect(() => wheel.insertMany([1] as never, [1] as never)).toThrow(InvalidArgumentError);
    expect(() => wheel.cancelMany([1] as never)).toThrow(InvalidArgumentError);
    expect(() => wheel.reserve(-1)).toThrow(InvalidArgumentError);
  });

  it('says when it is full, inserts nothing then, and stays usable', async () => {
    const { wheel, native } = await openWheel({ maxTimers: 5, startTick: 10 });
    const handles = wheel.insertMany(Float64Array.of(11, 12, 2 ** 50), Uint32Array.of(1, 2, 3));
    expect(() => wheel.insertMany(new Float64Array(3).fill(20), new Uint32Array(3))).toThrow(
      WheelFullError,
    );
    expect(wheel.size).toBe(3);
    wheel.insert(13, 4);
    wheel.insert(5, 5);
    for (const tick of [14, 2 ** 50, 3])
      expect(() => wheel.insert(tick, 6)).toThrow(WheelFullError);
    expect(() => wheel.reserve(1)).toThrow(/holds 5 of at most 5/);
    expectSound(native);
    wheel.cancel(handles[1]!);
    wheel.insert(14, 7);
    expect(drain(wheel, 2 ** 50)).toEqual([5, 1, 4, 7, 3]);
    expectSound(native);
  });

  it('throws a typed error after close, from every call', async () => {
    const wheel = await TimerWheel.create({ startTick: 10 });
    const handle = wheel.insert(50, 1);
    wheel.close();
    wheel.close();
    const calls = [
      () => wheel.insert(60, 1),
      () => wheel.insertMany(new Float64Array(1), new Uint32Array(1)),
      () => wheel.cancel(handle),
      () => wheel.cancelMany(Float64Array.of(handle)),
      () => wheel.reschedule(handle, 60),
      () => wheel.advance(0),
      () => wheel.advance(100),
      () => wheel.nextExpiry(),
      () => wheel.nextWake(),
      () => wheel.size,
      () => wheel.memoryBytes,
      () => wheel.reserve(1),
    ];
    for (const call of calls)
      expect(thrownBy(call), String(call)).toBeInstanceOf(SchedulerStateError);
  });

  it('has an invariant walk that can fail', async () => {
    const { wheel, native } = await openWheel();
    const handle = wheel.insert(10, 1);
    expectSound(native);
    native.damage(handle);
    expect(native.check()).not.toBe(0);
  });
});
