import { describe, expect, it } from 'vitest';
import { drain, expectSound, openWheel } from './helpers.js';

const LEVEL_SPANS = [2 ** 12, 2 ** 22, 2 ** 32, 2 ** 40];
const YEAR = 365 * 86_400_000;

/**
 * Places where a cursor may stand that differ in what lies ahead of it: level edges and their
 * neighbours.
 */
const CURSORS = [
  0,
  1,
  4095,
  4096,
  4097,
  2 ** 22 - 1,
  2 ** 22,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 32 + 12_345,
];
CURSORS.push(2 ** 40 - 1, 2 ** 40, 2 ** 40 + 2 ** 32 - 1, 1_767_225_600_000, 2 ** 45 + 77);

describe('faults that other schedulers had', () => {
  it.each([2 ** 31 - 1, 2 ** 31, 30 * 86_400_000, 10 * YEAR, 34 * YEAR, 35 * YEAR, 3_000 * YEAR])(
    'case 1: a delay of %d ms fires at its tick, not before, from every cursor position',
    async (delay) => {
      for (const cursor of CURSORS) {
        const { wheel, native } = await openWheel({ startTick: cursor });
        wheel.insert(cursor + delay, 1);
        expect(drain(wheel, cursor)).toEqual([]);
        expect(drain(wheel, cursor + delay - 1)).toEqual([]);
        expect(wheel.nextExpiry()).toBe(cursor + delay);
        expect(drain(wheel, cursor + delay)).toEqual([1]);
        expectSound(native);
      }
    },
  );

  it('case 4: a wheel of any age takes an insert ten seconds ahead', async () => {
    const { wheel } = await openWheel();
    for (const age of [2 ** 36, 2 ** 36 + 1, 2 ** 40 + 5, 2 ** 41, 2 ** 52]) {
      drain(wheel, age);
      wheel.insert(age + 10_000, 1);
      expect(wheel.nextExpiry()).toBe(age + 10_000);
      expect(drain(wheel, age + 9_999)).toEqual([]);
      expect(drain(wheel, age + 10_000)).toEqual([1]);
    }
  });

  it('case 5: rescheduled to now or the past it expires next; then its handle is stale', async () => {
    for (const now of CURSORS.filter((cursor) => cursor > 0)) {
      const { wheel, native } = await openWheel({ startTick: now });
      const handle = wheel.insert(now + 5_000, 1);
      expect(wheel.reschedule(handle, now)).toBe(true);
      expect(drain(wheel, now)).toEqual([1]);
      const next = wheel.insert(now + 2 ** 41, 2);
      expect(wheel.reschedule(next, now - 1)).toBe(true);
      expect(wheel.nextExpiry()).toBe(now - 1);
      expect(drain(wheel, now)).toEqual([2]);
      for (const stale of [handle, next]) expect(wheel.reschedule(stale, now + 1)).toBe(false);
      expect(wheel.size).toBe(0);
      expectSound(native);
    }
  });

  it('case 6: due at the largest safe integer never fires early', async () => {
    const { wheel } = await openWheel({ startTick: 1_767_225_600_000 });
    const last = Number.MAX_SAFE_INTEGER;
    wheel.insert(last, 1);
    for (const tick of [2 ** 41, 2 ** 50, last - 2 ** 40, last - 4096, last - 1]) {
      expect(drain(wheel, tick)).toEqual([]);
      expect(wheel.nextExpiry()).toBe(last);
      expect(wheel.nextWake()).toBeGreaterThan(tick);
    }
    expect(drain(wheel, last)).toEqual([1]);
    wheel.insert(last, 2);
    expect(drain(wheel, last)).toEqual([2]);
  });

  it('case 7: exact multiples of a level fire at their tick from every cursor position', async () => {
    for (const cursor of CURSORS) {
      for (const span of LEVEL_SPANS) {
        const { wheel, native } = await openWheel({ startTick: cursor });
        const dues = [1, 2, 3, 255, 256, 257, 1023, 1024, 1025].flatMap((turns) =>
          [-1, 0, 1].map((more) => cursor + turns * span + more),
        );
        for (const [ref, due] of dues.entries()) wheel.insert(due, ref);
        expectSound(native);
        for (const [ref, due] of dues.entries()) {
          expect(drain(wheel, due - 1), `cursor ${cursor} span ${span}`).toEqual([]);
          expect(drain(wheel, due), `cursor ${cursor} span ${span}`).toEqual([ref]);
        }
      }
    }
  });

  it('case 7: the same through every position of level 1, in one wheel', async () => {
    const { wheel, native } = await openWheel();
    const dues: number[] = [];
    const seen: number[] = [];
    for (let turn = 1; turn <= 1_100; turn++) {
      const cursor = turn * 4_097;
      for (const ref of drain(wheel, cursor)) {
        expect(dues[ref]).toBeGreaterThan(cursor - 4_097);
        expect(dues[ref]).toBeLessThanOrEqual(cursor);
        seen.push(dues[ref]!);
      }
      for (const span of [4_096, 8_192, 2 ** 22]) {
        wheel.insert(cursor + span, dues.length);
        dues.push(cursor + span);
      }
    }
    expectSound(native);
    seen.push(...drain(wheel, 2 ** 24).map((ref) => dues[ref]!));
    expect(seen).toEqual(dues.sort((a, b) => a - b));
  });

  it('case 8: after a long absence everything due comes out, in order', async () => {
    const { wheel, native } = await openWheel({ startTick: 1_767_225_600_000 });
    const dues: number[] = [];
    for (let i = 0; i < 3_000; i++)
      dues.push(1_767_225_600_000 + ((i * 2_654_435_761) % (30 * YEAR)));
    for (const [ref, due] of dues.entries()) wheel.insert(due, ref);
    const refs = drain(wheel, 1_767_225_600_000 + 40 * YEAR, 100);
    expect(refs.map((ref) => dues[ref])).toEqual([...dues].sort((a, b) => a - b));
    expectSound(native);
  });

  it('case 8: a jump of years over idle time is one step', async () => {
    const { wheel } = await openWheel();
    wheel.insert(500 * YEAR, 1);
    wheel.insert(20 * YEAR, 2);
    for (let year = 1; year < 20; year++) {
      expect(wheel.advance(year * YEAR).more).toBe(false);
      expect(wheel.lastAdvance.cascadeMoves).toBeLessThanOrEqual(3);
    }
    expect(drain(wheel, 499 * YEAR)).toEqual([2]);
    expect(drain(wheel, 500 * YEAR)).toEqual([1]);
  });

  it('case 10: inserts into the slot that is being drained come out in their order', async () => {
    const { wheel, native } = await openWheel();
    for (let ref = 0; ref < 10; ref++) wheel.insert(100, ref);
    wheel.insert(101, 50);
    expect(wheel.advance(200, 4)).toMatchObject({ more: true });
    wheel.insert(100, 10);
    wheel.insert(99, 20);
    wheel.insert(150, 60);
    expectSound(native);
    const rest = drain(wheel, 200, 3);
    expect(rest[0]).toBe(20);
    expect(rest.slice(1, 8).every((ref) => ref <= 10)).toBe(true);
    expect(rest.slice(8)).toEqual([50, 60]);
  });

  it('case 10: siblings of one tick change between two bounded calls', async () => {
    const { wheel, native } = await openWheel();
    const handles = Array.from({ length: 40 }, (_, ref) => wheel.insert(7, ref));
    const out = new Set(wheel.advance(7, 10).refs);
    const left = handles.map((_, ref) => ref).filter((ref) => !out.has(ref));
    for (const ref of left.slice(0, 10)) expect(wheel.cancel(handles[ref]!)).toBe(true);
    for (const ref of left.slice(10, 20)) expect(wheel.reschedule(handles[ref]!, 8)).toBe(true);
    for (const ref of out) expect(wheel.cancel(handles[ref]!)).toBe(false);
    expectSound(native);
    const byNumber = (a: number, b: number) => a - b;
    expect(drain(wheel, 7, 3).sort(byNumber)).toEqual(left.slice(20));
    expect(drain(wheel, 8, 3).sort(byNumber)).toEqual(left.slice(10, 20));
  });

  it('case 10: a timer that re-arms itself at no delay does not starve the others', async () => {
    const { wheel } = await openWheel();
    for (let ref = 0; ref < 50; ref++) wheel.insert(1_000, ref);
    let others = 0;
    for (let calls = 0; others < 49 && calls < 200; calls++) {
      for (const ref of wheel.advance(1_000, 5).refs) {
        if (ref === 7) wheel.insert(1_000, 7);
        else others += 1;
      }
    }
    expect(others).toBe(49);
  });

  it('case 11: a stale handle on a re-used record cancels nothing', async () => {
    const { wheel, native } = await openWheel();
    const stale = [];
    for (let i = 0; i < 1_000; i++) {
      const handle = wheel.insert(10, i);
      wheel.cancel(handle);
      stale.push(handle);
    }
    wheel.insert(10, 5);
    expect(new Set(stale).size).toBe(1_000);
    expect(wheel.cancelMany(Float64Array.from(stale))).toBe(0);
    for (const handle of stale) expect(wheel.reschedule(handle, 11)).toBe(false);
    expectSound(native);
    expect(drain(wheel, 10)).toEqual([5]);
  });

  it('case 11: a record whose generation would wrap is retired', async () => {
    const { wheel, native } = await openWheel();
    const others = [wheel.insert(20, 1), wheel.insert(20, 2)];
    const last = native.setLastGeneration(wheel.insert(10, 3));
    expect(last).toBeLessThan(2 ** 51);
    expect(wheel.cancel(last)).toBe(true);
    expect(native.retiredCount()).toBe(1);
    expectSound(native);
    const record = last % 2 ** 27;
    const reused = () => Array.from({ length: 20 }, (_, i) => wheel.insert(30, i) % 2 ** 27);
    expect(reused()).not.toContain(record);
    // Also once the wheel has been empty, when records are handed out from the first one again.
    drain(wheel, 30);
    expect(reused()).not.toContain(record);
    expect(wheel.cancel(record)).toBe(false);
    for (const handle of others) expect(wheel.cancel(handle)).toBe(false);
    expectSound(native);
  });

  it('case 13: a timer below the level that is being cascaded fires in its turn', async () => {
    for (const [level, span] of LEVEL_SPANS.slice(0, 3).entries()) {
      const { wheel, native } = await openWheel();
      const count = 10_000;
      const start = span * 3;
      const dues: number[] = [];
      const add = (due: number) => {
        dues.push(due);
        return wheel.insert(due, dues.length - 1);
      };
      const handles = Array.from({ length: count }, (_, i) =>
        add(start + 100 + ((i * 31) % 4_000)),
      );
      const seen: number[] = [];
      const now = start + 5_000;
      seen.push(...wheel.advance(now, 1).refs);
      expect(native.isCascading(), `level ${level}`).toBe(1);
      expect(wheel.nextExpiry()).toBe(start + 100);
      // Below, at and after the cursor, and out of and back into the slot that is half cascaded.
      for (const due of [start - 1, start, start + 1, start + 99, start + 4_095, start + 4_096])
        add(due);
      for (let i = 0; i < count; i += 10) {
        expect(wheel.cancel(handles[i]!)).toBe(true);
        dues[i] = -1;
      }
      for (let i = 1; i < count; i += 10) {
        dues[i] = start + ((i * 17) % 6_000);
        expect(wheel.reschedule(handles[i]!, dues[i]!)).toBe(true);
      }
      expectSound(native);
      expect(wheel.nextExpiry()).toBe(start - 1);
      seen.push(...drain(wheel, now, 500));
      expectSound(native);
      const expected = dues.filter((due) => due >= 0 && due <= now).sort((a, b) => a - b);
      expect(seen.map((ref) => dues[ref])).toEqual(expected);
    }
  });
});
