import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../src/core/errors.js';
import { parseDurationMs, parseInstantMs } from '../../src/core/units.js';

const AT = Date.UTC(2026, 0, 31, 9);

describe('an instant', () => {
  it.each([
    ['a Date', new Date(AT), AT],
    ['epoch milliseconds', AT, AT],
    ['a text in UTC', '2026-01-31T09:00:00Z', AT],
    ['a text without seconds', '2026-01-31T09:00Z', AT],
    ['a text with an offset', '2026-01-31T10:30:00.000+01:30', AT],
    ['an offset without colon', '2026-01-31T10:00:00+0100', AT],
    ['a fraction after a comma', '2026-01-31T09:00:00,5Z', AT + 500],
    ['29 February of a leap year', '2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
  ])('may be %s', (_, given, ms) => {
    expect(parseInstantMs(given, 'runAt')).toBe(ms);
  });

  it('rounds up to a millisecond, so that nothing comes early', () => {
    expect(parseInstantMs(AT + 0.2, 'runAt')).toBe(AT + 1);
    expect(parseInstantMs('2026-01-31T09:00:00.0001Z', 'runAt')).toBe(AT + 1);
    expect(parseInstantMs('2026-01-31T09:00:00.001000Z', 'runAt')).toBe(AT + 1);
  });

  it.each([
    ['a day that the month does not have', '2026-02-30T00:00:00Z'],
    ['29 February of another year', '2025-02-29T00:00:00Z'],
    ['31 April', '2026-04-31T00:00:00+02:00'],
    ['month 13', '2026-13-01T00:00:00Z'],
    ['hour 25', '2026-01-01T25:00:00Z'],
    ['a date alone', '2026-01-01'],
    ['a time without zone', '2026-01-01T00:00:00'],
    ['words', 'tomorrow'],
    ['null', null],
  ])('is not %s', (_, given) => {
    expect(() => parseInstantMs(given, 'runAt')).toThrow(InvalidArgumentError);
    expect(() => parseInstantMs(given, 'runAt')).toThrow(/runAt is .*allowed: /);
  });
});

describe('a duration', () => {
  it('is milliseconds or a number with a unit, rounded up', () => {
    const texts = ['250ms', '30s', '5m', '2h', '1d', '1.5s', '0.1ms'];
    const ms = [250, 30_000, 300_000, 7_200_000, 86_400_000, 1500, 1];
    expect(texts.map((text) => parseDurationMs(text, 'delay'))).toEqual(ms);
    expect(parseDurationMs(0.5, 'delay')).toBe(1);
  });

  it.each(['5', '5 s', '1w', '-1s', '', Number.NaN, -1, Infinity, null, 5n, new Date(5)])(
    'is not %s',
    (given) => {
      expect(() => parseDurationMs(given, 'delay')).toThrow(InvalidArgumentError);
    },
  );
});
