/** Cron times: cases 14 to 18 of faults that other schedulers had, and every expression against a scan of the minutes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newestCronMs, nextCronMs, validateCron } from '../../src/core/cron.js';
import { InvalidScheduleError } from '../../src/core/errors.js';
import { zoneOf } from '../../src/core/zone.js';
import { type FieldChoice, fieldText, firesOf, scan } from './cron-scan.js';

const SEED = Number(process.env.TICKWHEEL_SEED ?? 20260308);
const DAY_MS = 86_400_000;

describe('cron times', () => {
  it('14. go on the next day after a time that the spring change skips, not the next year', () => {
    // node-cron#518
    expect(times('30 2 * * *', 'America/New_York', '2026-03-08T06:30:00Z', 3)).toEqual([
      '2026-03-08T07:00:00Z',
      '2026-03-09T06:30:00Z',
      '2026-03-10T06:30:00Z',
    ]);
  });

  it('15. come to an end for a date whose time does not exist in this year', () => {
    // kelektiv/node-cron#919: 01:00 on 30 March 2025 is skipped in Lisbon
    expect(times('0 1 30 3 *', 'Europe/Lisbon', '2025-01-01T00:00:00Z', 3)).toEqual([
      '2025-03-30T01:00:00Z',
      '2026-03-30T00:00:00Z',
      '2027-03-30T00:00:00Z',
    ]);
  });

  it('16. keep coming every 30 minutes and every second through the autumn hour', () => {
    // kelektiv/node-cron#881, node-schedule#435
    for (const [expression, stepMs] of [
      ['*/30 * * * *', 1_800_000],
      ['* * * * * *', 1_000],
    ] as const) {
      const rule = { expression, timezone: 'Europe/Berlin' };
      const startMs = Date.parse('2025-10-26T00:55:00Z') - (stepMs === 1_000 ? 0 : 55 * 60_000);
      for (let i = 0, time = startMs; i < 600; i++, time += stepMs) {
        expect(nextCronMs(rule, time)).toBe(time + stepMs);
      }
    }
  });

  it('17. give one run an occurrence in the weeks after the autumn change', () => {
    // bull#2207
    expect(times('0 6 * * MON', 'America/New_York', '2025-10-31T00:00:00Z', 4)).toEqual([
      '2025-11-03T11:00:00Z',
      '2025-11-10T11:00:00Z',
      '2025-11-17T11:00:00Z',
      '2025-11-24T11:00:00Z',
    ]);
  });

  it('18. are right all day on the days of a change, and in UTC jobs', () => {
    // cron-expression#202, tokio-cron-scheduler#107, cronie#124
    const spring = '2026-03-28T20:00:00Z';
    expect(times('0 10,18 * * *', 'Europe/Berlin', spring, 3)).toEqual([
      '2026-03-29T08:00:00Z',
      '2026-03-29T16:00:00Z',
      '2026-03-30T08:00:00Z',
    ]);
    const autumn = '2026-10-24T20:00:00Z';
    expect(times('0 10,18 * * *', 'Europe/Berlin', autumn, 3)).toEqual([
      '2026-10-25T09:00:00Z',
      '2026-10-25T17:00:00Z',
      '2026-10-26T09:00:00Z',
    ]);
    expect(times('30 1,2,3 * * *', 'UTC', spring, 3)).toEqual([
      '2026-03-29T01:30:00Z',
      '2026-03-29T02:30:00Z',
      '2026-03-29T03:30:00Z',
    ]);
  });

  it('cross the year and leap days, also those of 2000 and 2100', () => {
    expect(times('59 59 23 31 12 *', 'Asia/Kathmandu', '2025-12-31T18:14:59Z', 1)).toEqual([
      '2026-12-31T18:14:59Z',
    ]);
    expect(times('0 0 1 1 *', 'America/New_York', '2025-12-31T23:00:00Z', 2)).toEqual([
      '2026-01-01T05:00:00Z',
      '2027-01-01T05:00:00Z',
    ]);
    expect(times('0 12 29 2 *', 'Europe/Paris', '1996-03-01T00:00:00Z', 2)).toEqual([
      '2000-02-29T11:00:00Z',
      '2004-02-29T11:00:00Z',
    ]);
    expect(times('0 0 29 2 *', 'UTC', '2096-02-29T00:00:00Z', 1)).toEqual(['2104-02-29T00:00:00Z']);
    expect(times('0 0 L 2 *', 'Australia/Lord_Howe', '2099-06-01T00:00:00Z', 1)).toEqual([
      '2100-02-27T13:00:00Z',
    ]);
    // The longest wait there is: 29 February on a Monday, around a year 2100 without one.
    expect(times('0 0 29 2 */7', 'America/New_York', '2088-03-01T00:00:00Z', 1)).toEqual([
      '2128-02-29T05:00:00Z',
    ]);
  });

  it('keep the millisecond of a bound: strictly after', () => {
    const rule = { expression: '0 9 * * *', timezone: 'Europe/Berlin' };
    const nine = Date.parse('2026-06-01T07:00:00Z');
    expect(nextCronMs(rule, nine - 1)).toBe(nine);
    expect(nextCronMs(rule, nine)).toBe(nine + DAY_MS);
    expect(newestCronMs(rule, { afterMs: nine - 1, untilMs: nine })).toBe(nine);
    expect(newestCronMs(rule, { afterMs: nine, untilMs: nine + DAY_MS - 1 })).toBeUndefined();
    expect(newestCronMs(rule, { afterMs: nine, untilMs: nine })).toBeUndefined();
  });

  it('are bounded at both ends of the calendar', () => {
    const rule = { expression: '0 0 1 1 *', timezone: 'Europe/Berlin' };
    expect(nextCronMs(rule, -8.64e15)).toBe(nextCronMs(rule, Date.UTC(1900, 0, 1) - 1));
    expect(nextCronMs(rule, Date.UTC(2999, 5, 1))).toBeUndefined();
    expect(nextCronMs(rule, 8.64e15)).toBeUndefined();
    expect(newestCronMs(rule, { afterMs: -8.64e15, untilMs: 8.64e15 })).toBe(
      Date.UTC(2998, 11, 31, 23),
    );
    expect(
      newestCronMs(rule, { afterMs: -8.64e15, untilMs: Date.UTC(1899, 5, 1) }),
    ).toBeUndefined();
  });
});

describe('a cron rule is refused', () => {
  it.each([
    ['+', '0 0 * * +1'],
    ['a question mark for a minute', '? * * * *'],
    ['a stepped question mark', '* * ?/2 * *'],
    ['a stepped value with a suffix', '* * * * 1L/2'],
    ['a range of nth days', '* * * * 1-5#2'],
    ['a line break', '* * * *\n*'],
    ['LW in a list', '0 0 1,LW * *'],
    ['@reboot', '@reboot'],
    ['the empty text', ''],
    ['a name inside a number', '0 0 * 1jan *'],
  ])('with %s', (_what, expression) => {
    expect(() => validateCron({ expression, timezone: 'UTC' })).toThrow(InvalidScheduleError);
  });

  it.each(['', 'Mars/Olympus', '+02:00', 'Europe/Berlin ', 'Europe/Berlin\0', '__proto__', 'x'])(
    'in the zone %j',
    (timezone) => {
      expect(() => validateCron({ expression: '* * * * *', timezone })).toThrow(
        InvalidScheduleError,
      );
    },
  );

  it('when its zone skips all that it names', () => {
    // The second Sunday of March has no 02:00 to 03:00 in New York.
    const rule = { expression: '*/5 2 * 3 0#2', timezone: 'America/New_York' };
    expect(() => validateCron(rule)).toThrow(/can never fire in America\/New_York/);
    expect(() => validateCron({ ...rule, timezone: 'UTC' })).not.toThrow();
    // A fixed job of the same times is caught up instead.
    expect(() => validateCron({ ...rule, expression: '0-55/5 2 * 3 0#2' })).not.toThrow();
  });

  it('again and again alike, and tells what is wrong', () => {
    const rule = { expression: '0 0 31 2 *', timezone: 'UTC' };
    for (let i = 0; i < 2; i++) expect(() => validateCron(rule)).toThrow(/'0 0 31 2 \*' can never/);
    expect(() => validateCron({ ...rule, expression: '0 0 31 foo *' })).toThrow(
      /'foo' is not a month/,
    );
    expect(() => validateCron({ ...rule, expression: '61 * * * *' })).toThrow(/malformed.*minute/);
  });
});

describe('zone names', () => {
  it('ignore case and keep one zone for it', () => {
    expect(zoneOf('europe/BERLIN')).toBe(zoneOf('Europe/Berlin'));
    expect(zoneOf('utc')?.pieceAt(0).endAt).toBe(Number.POSITIVE_INFINITY);
  });
});

const ZONED_DAYS = [
  ['America/New_York', '2026-03-07'],
  ['America/New_York', '2026-10-31'],
  ['Europe/Berlin', '2025-03-29'],
  ['Europe/Berlin', '2025-10-25'],
  ['Australia/Lord_Howe', '2025-04-05'],
  ['Australia/Lord_Howe', '2025-10-04'],
  ['Antarctica/Troll', '2025-03-29'],
  ['Antarctica/Troll', '2025-10-25'],
  ['America/Nuuk', '2025-03-29'],
  ['America/Havana', '2025-03-08'],
  ['America/Havana', '2025-11-01'],
  ['Africa/Casablanca', '2026-02-14'],
  ['Africa/Casablanca', '2026-03-21'],
  ['Pacific/Chatham', '2026-04-04'],
  ['Pacific/Apia', '2011-12-29'],
  ['America/Caracas', '2016-04-30'],
  ['UTC', '2024-02-28'],
  ['Asia/Kolkata', '2025-12-31'],
] as const;

describe('an independent scan of every minute', () => {
  const choice = (low: number, high: number): fc.Arbitrary<FieldChoice> =>
    fc.oneof(
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('any' as const) }) },
      fc.record({ kind: fc.constant('step' as const), step: fc.integer({ min: 1, max: high }) }),
      fc.record({
        kind: fc.constant('list' as const),
        values: fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 3 }),
      }),
      fc
        .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
        .map(([a, b]) => ({ kind: 'range' as const, from: Math.min(a, b), to: Math.max(a, b) })),
    );
  const fields = fc.tuple(
    fc.oneof(choice(0, 59), fc.constant<FieldChoice>({ kind: 'list', values: [0, 30] })),
    fc.oneof(choice(0, 23), choice(0, 4)),
    fc.oneof(fc.constant<FieldChoice>({ kind: 'any' }), choice(1, 31)),
    fc.oneof({ weight: 4, arbitrary: fc.constant<FieldChoice>({ kind: 'any' }) }, choice(1, 12)),
    fc.oneof(fc.constant<FieldChoice>({ kind: 'any' }), choice(0, 6)),
  );

  it(`agrees on random expressions around changes of offset (seed ${SEED})`, () => {
    const zonedDay = fc.constantFrom(...ZONED_DAYS);
    fc.assert(
      fc.property(fields, zonedDay, fc.nat(3 * 1440), (choices, [timezone, day], start) => {
        const minutes = scan(timezone, Date.parse(`${day}T00:00:00Z`), 4 * 1440);
        const afterMs = minutes[start]!.instant;
        const expected = firesOf(choices, minutes).filter((instant) => instant > afterMs);
        const rule = { expression: choices.map(fieldText).join(' '), timezone };
        const untilMs = minutes.at(-1)!.instant;
        expect(walk(rule, afterMs, untilMs)).toEqual(expected);
        expect(walkBack(rule, afterMs, untilMs)).toEqual(expected.reverse());
      }),
      { seed: SEED, numRuns: 250 },
    );
  });
});

describe('searching back', () => {
  const zones = ['UTC', 'America/New_York', 'Africa/Casablanca', 'Australia/Lord_Howe'];
  const expressions = [
    '0 0 31 * *',
    '30 2 * * *',
    '0 12 L * *',
    '0 0 LW * *',
    '15 1 15W * *',
    '0 0 * * 5L',
    '0 0 * * 1#5',
    '0 9 29 2 *',
    '0 0 13 * 5',
    '0 0 */2 * 1',
    '*/30 * 31 1,3 *',
    '0 22 30 4-6 3',
    '5,10 0 0 1 */5 *',
  ];

  it(`meets what walking on meets (seed ${SEED})`, () => {
    const start = fc.integer({ min: Date.UTC(1995, 0, 1), max: Date.UTC(2045, 0, 1) });
    fc.assert(
      fc.property(
        fc.constantFrom(...expressions),
        fc.constantFrom(...zones),
        start,
        (expression, timezone, startMs) => {
          const rule = { expression, timezone };
          const first = nextCronMs(rule, startMs)!;
          const second = nextCronMs(rule, first)!;
          expect(first).toBeGreaterThan(startMs);
          expect(second).toBeGreaterThan(first);
          const search = (untilMs: number) => newestCronMs(rule, { afterMs: startMs, untilMs });
          expect([search(first - 1), search(first), search(second - 1), search(second)]).toEqual([
            undefined,
            first,
            first,
            second,
          ]);
        },
      ),
      { seed: SEED, numRuns: 400 },
    );
  });
});

interface Rule {
  readonly expression: string;
  readonly timezone: string;
}

function walk(rule: Rule, afterMs: number, untilMs: number): number[] {
  const found: number[] = [];
  for (let time = nextIn(rule, afterMs); time <= untilMs; time = nextIn(rule, time)) {
    found.push(time);
  }
  return found;
}

/** Dates that never come (31 February) are refused; then nothing is expected either. */
function nextIn(rule: Rule, afterMs: number): number {
  return orNever(() => nextCronMs(rule, afterMs)) ?? Number.POSITIVE_INFINITY;
}

function walkBack(rule: Rule, afterMs: number, untilMs: number): number[] {
  const found: number[] = [];
  const before = (ms: number) => orNever(() => newestCronMs(rule, { afterMs, untilMs: ms }));
  for (let time = before(untilMs); time !== undefined; time = before(time - 1)) found.push(time);
  return found;
}

function orNever(search: () => number | undefined): number | undefined {
  try {
    return search();
  } catch (error) {
    if (error instanceof InvalidScheduleError && /can never fire/.test(error.message)) {
      return undefined;
    }
    throw error;
  }
}

function times(expression: string, timezone: string, from: string, count: number): string[] {
  const found: string[] = [];
  let time = Date.parse(from);
  while (found.length < count) {
    time = nextCronMs({ expression, timezone }, time)!;
    found.push(new Date(time).toISOString().replace('.000Z', 'Z'));
  }
  return found;
}
