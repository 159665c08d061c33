import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AssertionError } from '../../src/core/assert.js';
import { InvalidArgumentError, InvalidScheduleError } from '../../src/core/errors.js';
import {
  anchorOf,
  cron,
  firstNominal,
  fixedDelay,
  fixedRate,
  isSchedule,
  jitterOf,
  newestNominal,
  nextNominal,
  nextTimes,
  nextTimesFrom,
  once,
  type Schedule,
  scheduleKey,
  toSchedule,
} from '../../src/core/schedule.js';

const SEED = Number(process.env.TICKWHEEL_SEED ?? 20260308);
const T0 = Date.parse('2026-01-01T00:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('the constructors', () => {
  it('return plain frozen values with every duration and instant in ms', () => {
    const rate = fixedRate({
      every: '5m',
      startAt: '2026-01-01T01:00:00+01:00',
      endAt: new Date(T0 + DAY),
      limit: 3,
      jitter: '2s',
    });
    expect(rate).toEqual({
      kind: 'fixedRate',
      everyMs: 300_000,
      startAt: T0,
      endAt: T0 + DAY,
      limit: 3,
      jitterMs: 2_000,
    });
    expect(Object.keys(fixedRate({ every: 1, startDelay: undefined }))).toEqual([
      'kind',
      'everyMs',
      'jitterMs',
    ]);
    expect(fixedDelay({ delay: '1d', startDelay: '1s' })).toEqual({
      kind: 'fixedDelay',
      delayMs: DAY,
      startDelayMs: 1_000,
      after: 'terminal',
    });
    expect(cron('0 9 * * 1-5')).toEqual({
      kind: 'cron',
      expression: '0 9 * * 1-5',
      timezone: 'UTC',
      jitterMs: 0,
    });
    expect(once(T0)).toEqual({ kind: 'once', at: T0 });
    for (const schedule of [rate, fixedDelay({ delay: 1 }), cron('@daily'), once(0)]) {
      expect(Object.isFrozen(schedule)).toBe(true);
      expect(JSON.parse(JSON.stringify(schedule))).toEqual(schedule);
    }
  });

  it('leave their arguments as they are', () => {
    const startAt = new Date(T0);
    const options = Object.freeze({ every: '1h', startAt });
    const schedule = fixedRate(options);
    startAt.setTime(0);
    expect(schedule.startAt).toBe(T0);
  });

  it.each<[string, () => unknown]>([
    ['every of 0', () => fixedRate({ every: 0 })],
    ['a negative every', () => fixedRate({ every: -1 })],
    ['a NaN every', () => fixedRate({ every: Number.NaN })],
    ['an infinite every', () => fixedRate({ every: Number.POSITIVE_INFINITY })],
    ['an unreadable every', () => fixedRate({ every: '5 minutes' })],
    ['a missing every', () => fixedRate({} as never)],
    ['no options', () => fixedRate(undefined as never)],
    ['null options', () => cron('* * * * *', null as never)],
    ['options that are an array', () => fixedDelay([] as never)],
    ['an unknown option', () => fixedRate({ every: 1, interval: 1 } as never)],
    ['another constructor’s option', () => fixedDelay({ delay: 1, jitter: 1 } as never)],
    ['a start delay of a cron', () => cron('* * * * *', { startDelay: 1 } as never)],
    ['startAt with startDelay', () => fixedRate({ every: 1, startAt: T0, startDelay: 1 })],
    ['a start delay below 0', () => fixedDelay({ delay: 1, startDelay: -1 })],
    ['endAt before startAt', () => fixedRate({ every: 1, startAt: T0, endAt: T0 - 1 })],
    ['an invalid Date', () => fixedRate({ every: 1, startAt: new Date(Number.NaN) })],
    ['an instant without zone', () => fixedRate({ every: 1, endAt: '2026-01-01T00:00:00' })],
    ['a null startAt', () => fixedRate({ every: 1, startAt: null as never })],
    ['a limit of 0', () => fixedRate({ every: 1, limit: 0 })],
    ['a fractional limit', () => fixedDelay({ delay: 1, limit: 1.5 })],
    ['a limit of text', () => cron('* * * * *', { limit: '3' as never })],
    ['a negative jitter', () => fixedRate({ every: 1, jitter: -1 })],
    ['a NaN jitter', () => cron('* * * * *', { jitter: Number.NaN })],
    ['delay of 0', () => fixedDelay({ delay: 0 })],
    ['an unknown after', () => fixedDelay({ delay: 1, after: 'failure' as never })],
    ['an expression of another type', () => cron(5 as never)],
    ['a malformed expression', () => cron('61 * * * *')],
    ['an expression that never fires', () => cron('0 0 30 2 *')],
    ['a window without a match', () => cron('0 0 1 6 *', { startAt: T0, endAt: T0 + DAY })],
    ['an unknown zone', () => cron('* * * * *', { timezone: 'Mars/Olympus' })],
    ['an empty zone', () => cron('* * * * *', { timezone: '' })],
    ['a zone of another type', () => cron('* * * * *', { timezone: 1 as never })],
    ['a time that is none', () => once(Number.NaN)],
  ])('refuse %s', (_what, construct) => {
    expect(construct).toThrow(InvalidScheduleError);
  });
});

describe('isSchedule', () => {
  const valid: Schedule[] = [
    once(T0),
    fixedRate({ every: 1, startAt: T0, limit: 2 }),
    fixedDelay({ delay: 1, startDelay: 5, after: 'success' }),
    cron('0 9 * * *', { timezone: 'Europe/Berlin', endAt: T0 }),
  ];

  it.each(valid)('takes what a constructor made, and its like by hand: %j', (schedule) => {
    const byHand = JSON.parse(JSON.stringify(schedule));
    expect([isSchedule(schedule), isSchedule(byHand)]).toEqual([true, true]);
    expect(toSchedule(schedule)).toBe(schedule);
    expect(toSchedule(byHand)).toEqual(schedule);
    expect(Object.isFrozen(toSchedule(byHand))).toBe(true);
    expect(isSchedule({ ...byHand, extra: 1 })).toBe(false);
  });

  it.each([
    [undefined],
    [null],
    ['0 9 * * *'],
    [{}],
    [[]],
    [{ kind: 'hourly' }],
    [{ kind: 'once', at: '2026-01-01T00:00:00Z' }],
    [{ kind: 'once', at: T0, endAt: T0 }],
    [{ kind: 'fixedRate', everyMs: '1s', jitterMs: 0 }],
    [{ kind: 'fixedRate', everyMs: 1000 }],
    [{ kind: 'fixedRate', everyMs: 0, jitterMs: 0 }],
    [{ kind: 'fixedRate', everyMs: 1, jitterMs: 0, startDelay: 5 }],
    [{ kind: 'fixedRate', everyMs: 1, jitterMs: 0, startAt: new Date(T0) }],
    [{ kind: 'fixedDelay', delayMs: 1 }],
    [{ kind: 'cron', expression: '0 0 30 2 *', timezone: 'UTC', jitterMs: 0 }],
    [{ kind: 'cron', expression: '0 0 1 1 *', jitterMs: 0 }],
  ])('refuses %j', (value) => {
    expect(isSchedule(value)).toBe(false);
    expect(() => toSchedule(value)).toThrow(InvalidScheduleError);
  });

  it('does not stumble over values that JSON cannot hold', () => {
    const cyclic: Record<string, unknown> = { kind: 'once', at: T0 };
    cyclic.self = cyclic;
    expect(isSchedule(cyclic)).toBe(false);
    expect(isSchedule({ kind: 'once', at: 1n })).toBe(false);
    expect(isSchedule({ kind: 'once', at: T0, more: 1n })).toBe(false);
  });
});

describe('scheduleKey', () => {
  it('does not depend on the order of the options, and tells schedules apart', () => {
    const a = scheduleKey(fixedRate({ every: '1m', limit: 2, startAt: T0 }));
    const b = scheduleKey(fixedRate({ startAt: new Date(T0), limit: 2, every: 60_000 }));
    expect(a).toBe(b);
    const reversed = Object.fromEntries(Object.entries(JSON.parse(a)).reverse());
    expect(scheduleKey(reversed as never)).toBe(a);
    expect(scheduleKey(fixedRate({ every: '1m', limit: 3, startAt: T0 }))).not.toBe(a);
  });
});

describe('the first nominal time', () => {
  it('of a fixedRate is its creation, its start, or the next point of a past start’s phase', () => {
    expect(first(fixedRate({ every: HOUR }), T0)).toBe(T0);
    expect(first(fixedRate({ every: HOUR, startDelay: '10m' }), T0)).toBe(T0 + 600_000);
    expect(first(fixedRate({ every: HOUR, startAt: T0 + 5 }), T0)).toBe(T0 + 5);
    expect(first(fixedRate({ every: HOUR, startAt: T0 }), T0)).toBe(T0);
    expect(first(fixedRate({ every: HOUR, startAt: T0 }), T0 + HOUR)).toBe(T0 + HOUR);
    expect(first(fixedRate({ every: HOUR, startAt: T0 }), T0 + HOUR + 1)).toBe(T0 + 2 * HOUR);
    expect(first(fixedRate({ every: 7, startAt: 0 }), T0)).toBe(Math.ceil(T0 / 7) * 7);
  });

  it('of a fixedDelay is its start, or its creation when that is later', () => {
    expect(first(fixedDelay({ delay: HOUR }), T0)).toBe(T0);
    expect(first(fixedDelay({ delay: HOUR, startDelay: 5 }), T0)).toBe(T0 + 5);
    expect(first(fixedDelay({ delay: HOUR, startAt: T0 + 5 }), T0)).toBe(T0 + 5);
    expect(first(fixedDelay({ delay: HOUR, startAt: T0 - 5 }), T0)).toBe(T0);
  });

  it('of a cron lies at or after a start to come, else strictly after its creation', () => {
    expect(first(cron('0 * * * *'), T0)).toBe(T0 + HOUR);
    expect(first(cron('0 * * * *', { startAt: T0 + HOUR }), T0)).toBe(T0 + HOUR);
    expect(first(cron('0 * * * *', { startAt: T0 + HOUR + 1 }), T0)).toBe(T0 + 2 * HOUR);
    expect(first(cron('0 * * * *', { startAt: T0 }), T0)).toBe(T0);
    expect(first(cron('0 * * * *', { startAt: T0 - DAY }), T0)).toBe(T0 + HOUR);
  });

  it('of a one-off is its time, even when past', () => {
    expect(first(once(T0 - 1), T0)).toBe(T0 - 1);
  });

  it('is none past the end, which is inclusive', () => {
    expect(first(fixedRate({ every: 1, endAt: T0 }), T0)).toBe(T0);
    expect(first(fixedRate({ every: 1, endAt: T0 - 1 }), T0)).toBeUndefined();
    expect(first(fixedDelay({ delay: 1, startDelay: 5, endAt: T0 + 4 }), T0)).toBeUndefined();
    expect(first(cron('0 * * * *', { endAt: T0 + HOUR }), T0)).toBe(T0 + HOUR);
    expect(first(cron('0 * * * *', { endAt: T0 + HOUR - 1 }), T0)).toBeUndefined();
  });
});

describe('the next nominal times', () => {
  it.each([100, 500, 1000])('of a rate of %i ms do not drift in a million periods', (every) => {
    // bullmq#3550
    const schedule = fixedRate({ every });
    const late = T0 + 999_999 * every + every - 1;
    expect(nextNominal(schedule, T0, late)).toBe(T0 + 1_000_000 * every);
    expect(nextNominal(schedule, T0, T0 + 1_000_000 * every)).toBe(T0 + 1_000_001 * every);
  });

  it('are exact where a quotient would round', () => {
    const schedule = fixedRate({ every: 3, startAt: -8.64e15 });
    const after = 8.64e15 - 10;
    const next = nextNominal(schedule, anchorOf(schedule, 0), after)!;
    expect(BigInt(next) - BigInt(-8.64e15)).toBe(
      ((BigInt(after) + BigInt(8.64e15)) / 3n + 1n) * 3n,
    );
  });

  it('end with endAt, inclusive, and with the last instant of Date', () => {
    const schedule = fixedRate({ every: HOUR, endAt: T0 + 2 * HOUR });
    expect(nextNominal(schedule, T0, T0 + HOUR)).toBe(T0 + 2 * HOUR);
    expect(nextNominal(schedule, T0, T0 + 2 * HOUR)).toBeUndefined();
    expect(nextNominal(fixedRate({ every: 10 }), 8.64e15 - 5, 8.64e15 - 5)).toBeUndefined();
    expect(nextNominal(once(T0), T0, T0 - 1)).toBe(T0);
    expect(nextNominal(once(T0), T0, T0)).toBeUndefined();
  });

  it('of a fixedDelay are a bug to ask for', () => {
    expect(() => nextNominal(fixedDelay({ delay: 1 }), T0, T0)).toThrow(AssertionError);
  });

  it('of a cron never lie before its start', () => {
    const schedule = cron('0 0 * * *', { startAt: T0 + 10 * DAY });
    expect(nextNominal(schedule, T0 + 10 * DAY, T0)).toBe(T0 + 10 * DAY);
  });
});

describe('the newest nominal time', () => {
  it('is Sunday’s when the machine slept from Friday to Tuesday', () => {
    // node-schedule#632
    const sunday = cron('0 8 * * 0', { timezone: 'Europe/Berlin' });
    const slept = {
      afterMs: Date.parse('2026-05-29T18:00:00Z'),
      atOrBeforeMs: Date.parse('2026-06-02T07:00:00Z'),
    };
    expect(newestNominal(sunday, T0, slept)).toEqual({
      newestAt: Date.parse('2026-05-31T06:00:00Z'),
      count: 1,
      countIsExact: true,
    });
  });

  it('of a minutely cron is found after 101 minutes, and after a year at bounded cost', () => {
    // kubernetes#42649
    const minutely = cron('* * * * *', { timezone: 'America/New_York' });
    const away = (ms: number) =>
      newestNominal(minutely, T0, { afterMs: T0, atOrBeforeMs: T0 + ms + 59_999 });
    expect(away(101 * 60_000)).toEqual({
      newestAt: T0 + 101 * 60_000,
      count: 101,
      countIsExact: true,
    });
    expect(away(1_000 * 60_000)).toMatchObject({ count: 1_000, countIsExact: true });
    expect(away(365 * DAY)).toEqual({
      newestAt: T0 + 365 * DAY,
      count: 1_000,
      countIsExact: false,
    });
  });

  it('of a rate is counted by arithmetic, however many there are', () => {
    const schedule = fixedRate({ every: 100, startAt: T0 });
    const year = { afterMs: T0, atOrBeforeMs: T0 + 365 * DAY + 99 };
    expect(newestNominal(schedule, T0, year)).toEqual({
      newestAt: T0 + 365 * DAY,
      count: (365 * DAY) / 100,
      countIsExact: true,
    });
    const beforeStart = { afterMs: T0 - DAY, atOrBeforeMs: T0 };
    expect(newestNominal(schedule, T0, beforeStart)).toMatchObject({ newestAt: T0, count: 1 });
  });

  it('is none in an interval without any, and none past the end', () => {
    const schedule = fixedRate({ every: HOUR, endAt: T0 + 2 * HOUR });
    const within = (from: number, to: number) =>
      newestNominal(schedule, T0, { afterMs: T0 + from, atOrBeforeMs: T0 + to });
    expect(within(0, HOUR - 1)).toBeUndefined();
    expect(within(-DAY, -1)).toBeUndefined();
    expect(within(2 * HOUR, DAY)).toBeUndefined();
    expect(within(0, DAY)).toEqual({ newestAt: T0 + 2 * HOUR, count: 2, countIsExact: true });
    const daily = cron('0 0 * * *', { endAt: T0 + 3 * DAY + 5 });
    expect(newestNominal(daily, T0, { afterMs: T0, atOrBeforeMs: T0 + 9 * DAY })).toEqual({
      newestAt: T0 + 3 * DAY,
      count: 3,
      countIsExact: true,
    });
    expect(newestNominal(once(T0), T0, { afterMs: T0 - 1, atOrBeforeMs: T0 })?.newestAt).toBe(T0);
    expect(newestNominal(once(T0), T0, { afterMs: T0, atOrBeforeMs: T0 + 1 })).toBeUndefined();
  });
});

describe('nextTimes', () => {
  const from = new Date(T0);
  const offsets = (schedule: Schedule, count = 5) =>
    nextTimes(schedule, { from, count }, 0).map((time) => time.getTime() - T0);

  it('gives five times after now unless told otherwise', () => {
    const times = nextTimes(cron('0 * * * *'), {}, T0);
    expect(times.map((time) => time.getTime())).toEqual([1, 2, 3, 4, 5].map((n) => T0 + n * HOUR));
  });

  it('gives times strictly after from, but from itself for a rate without start', () => {
    expect(offsets(fixedRate({ every: 10 }), 3)).toEqual([0, 10, 20]);
    expect(offsets(fixedRate({ every: 10, startDelay: 5 }), 3)).toEqual([5, 15, 25]);
    expect(offsets(fixedRate({ every: 10, startAt: T0 }), 3)).toEqual([10, 20, 30]);
    expect(offsets(fixedRate({ every: 10, startAt: T0 - 13 }), 3)).toEqual([7, 17, 27]);
    expect(offsets(fixedRate({ every: 10, startAt: T0 + 99 }), 2)).toEqual([99, 109]);
    expect(offsets(cron('0 0 * * *'), 2)).toEqual([DAY, 2 * DAY]);
    expect(offsets(once(T0))).toEqual([]);
    expect(offsets(once(T0 + 1))).toEqual([1]);
  });

  it('gives a fixedDelay’s as if its runs took no time', () => {
    expect(offsets(fixedDelay({ delay: 10, startAt: T0 + 3 }), 3)).toEqual([3, 13, 23]);
    expect(offsets(fixedDelay({ delay: 10 }), 2)).toEqual([0, 10]);
  });

  it('honours limit and endAt', () => {
    expect(offsets(fixedRate({ every: 10, limit: 2 }))).toEqual([0, 10]);
    expect(offsets(fixedRate({ every: 10, endAt: T0 + 20 }))).toEqual([0, 10, 20]);
    expect(offsets(fixedRate({ every: 10, startAt: T0, limit: 2 }))).toEqual([10]);
    expect(offsets(cron('0 * * * *', { limit: 2, startAt: T0 + DAY }))).toEqual([DAY, DAY + HOUR]);
    expect(offsets(cron('0 * * * *', { endAt: T0 + 2 * HOUR }))).toEqual([HOUR, 2 * HOUR]);
    expect(offsets(fixedDelay({ delay: 10, startAt: T0 + 1, limit: 1 }))).toEqual([1]);
  });

  it('refuses a count out of range, an unknown option, a bad from and what is no schedule', () => {
    const rate = fixedRate({ every: 1 });
    for (const count of [0, -1, 1.5, 10_001, Number.NaN, '5' as never]) {
      expect(() => nextTimes(rate, { count }, T0)).toThrow(InvalidArgumentError);
    }
    expect(() => nextTimes(rate, { form: T0 } as never, T0)).toThrow(InvalidArgumentError);
    expect(() => nextTimes(rate, { from: 'tomorrow' }, T0)).toThrow(InvalidArgumentError);
    expect(() => nextTimes('@daily' as never, {}, T0)).toThrow(InvalidScheduleError);
    expect(nextTimesFrom(rate, T0, 10_000)).toHaveLength(10_000);
  });
});

describe('jitter', () => {
  const schedule = fixedRate({ every: 1_000, jitter: 99 });

  it('is none unless asked for', () => {
    expect(jitterOf(fixedRate({ every: 1_000 }), 'task', 1, T0)).toBe(0);
    expect(jitterOf(fixedDelay({ delay: 1_000 }), 'task', 1, T0)).toBe(0);
    expect(jitterOf(once(T0), 'task', 1, T0)).toBe(0);
  });

  it('spreads evenly over all of its range, and is the same when asked again', () => {
    const counts = new Array<number>(100).fill(0);
    for (let i = 0; i < 20_000; i++) {
      const ms = jitterOf(schedule, 'task', 1, T0 + i * 1_000);
      counts[ms]! += 1;
      expect(jitterOf(schedule, 'task', 1, T0 + i * 1_000)).toBe(ms);
    }
    expect(counts).toHaveLength(100);
    // 200 each; six standard deviations are 84.
    for (const count of counts) expect(Math.abs(count - 200)).toBeLessThan(84);
  });

  it('depends on the task, the generation and the nominal time', () => {
    const wide = fixedRate({ every: 1_000, jitter: '365d' });
    const all = [
      jitterOf(wide, 'task', 1, T0),
      jitterOf(wide, 'task', 1, T0 + 1),
      jitterOf(wide, 'task', 2, T0),
      jitterOf(wide, 'tasl', 1, T0),
    ];
    expect(new Set(all).size).toBe(4);
    for (const ms of all) expect(ms).toBeLessThanOrEqual(365 * DAY);
  });
});

describe('whatever the schedule', () => {
  const instants = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2035, 0, 1) });
  const rates = fc
    .record(
      { every: fc.integer({ min: 1, max: 3 * DAY }), startAt: instants, endAt: instants },
      { requiredKeys: ['every'] },
    )
    .filter(({ startAt, endAt }) => !(endAt !== undefined && startAt! > endAt))
    .map((options) => fixedRate(options));
  const crons = fc
    .tuple(
      fc.constantFrom('*/7 * * * *', '30 2 * * *', '0 0 1,15 * *', '*/20 * * * * *', '0 */5 * * 1'),
      fc.constantFrom('UTC', 'America/Santiago', 'Australia/Lord_Howe', 'Africa/Casablanca'),
    )
    .map(([expression, timezone]) => cron(expression, { timezone }));
  const schedules: fc.Arbitrary<Schedule> = fc.oneof(rates, crons);

  it(`next is strictly increasing and skips no time (seed ${SEED})`, () => {
    fc.assert(
      fc.property(schedules, instants, fc.nat(1000), (schedule, createdAt, part) => {
        const anchor = anchorOf(schedule, createdAt);
        const start = firstNominal(schedule, anchor, createdAt);
        if (start === undefined) return;
        expect(start).toBeGreaterThanOrEqual(createdAt);
        const second = nextNominal(schedule, anchor, start);
        if (second === undefined) return;
        expect(second).toBeGreaterThan(start);
        const between = start + Math.floor(((second - start - 1) * part) / 1000);
        expect(nextNominal(schedule, anchor, between)).toBe(second);
      }),
      { seed: SEED, numRuns: 400 },
    );
  });

  it(`newest agrees with walking next (seed ${SEED})`, () => {
    fc.assert(
      fc.property(schedules, instants, fc.nat(40), fc.nat(1000), (schedule, at, steps, part) => {
        const anchor = anchorOf(schedule, at);
        const walked: number[] = [];
        let time = nextNominal(schedule, anchor, at);
        while (time !== undefined && walked.length <= steps) {
          walked.push(time);
          time = nextNominal(schedule, anchor, time);
        }
        // An end somewhere between the last time walked to and the one after it.
        const last = walked.at(-1) ?? at;
        const gap = (time ?? last + DAY) - last;
        const atOrBeforeMs = last + Math.floor(((gap - 1) * part) / 1000);
        expect(newestNominal(schedule, anchor, { afterMs: at, atOrBeforeMs })).toEqual(
          walked.length === 0
            ? undefined
            : { newestAt: last, count: walked.length, countIsExact: true },
        );
      }),
      { seed: SEED, numRuns: 200 },
    );
  });
});

function first(schedule: Schedule, createdAtMs: number): number | undefined {
  return firstNominal(schedule, anchorOf(schedule, createdAtMs), createdAtMs);
}
