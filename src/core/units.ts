/** Durations and instants as callers write them, and values as error messages show them. */
import { InvalidArgumentError } from './errors.js';

/** Milliseconds, or `'250ms' '30s' '5m' '2h' '1d'`. */
export type Duration = number | string;
/** A `Date`, epoch milliseconds, or an ISO 8601 string with a zone. */
export type Instant = Date | number | string;

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * A `Duration` in milliseconds: a finite number ≥ 0, or `'250ms' '30s' '5m' '2h' '1d'`. Fractions of a
 * millisecond round up, so that nothing comes early.
 * @throws InvalidArgumentError naming `what`
 */
export function parseDurationMs(value: unknown, what: string): number {
  if (typeof value === 'number') {
    if (Number.isFinite(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER) {
      return Math.ceil(value);
    }
  } else if (typeof value === 'string') {
    const match = DURATION.exec(value);
    if (match) {
      const ms = Math.ceil(Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]);
      if (Number.isSafeInteger(ms)) return ms;
    }
  }
  throw new InvalidArgumentError(
    `${what} is ${describe(value)}; allowed: milliseconds ≥ 0, or a string such as '250ms', '30s', '5m', '2h', '1d'`,
  );
}

/** A value for an error message: short, and never the content of an object. */
export function describe(value: unknown): string {
  if (typeof value === 'string') {
    return value.length > 60 ? `'${value.slice(0, 57)}…'` : `'${value}'`;
  }
  if (typeof value === 'bigint') return `${value}n`;
  if (value === null || typeof value !== 'object') {
    return typeof value === 'function' || typeof value === 'symbol'
      ? `a ${typeof value}`
      : String(value);
  }
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
  return 'an object';
}

const ISO_WITH_ZONE =
  /^([+-]?\d{4,6}-\d{2}-(\d{2}))T\d{2}:\d{2}(?::\d{2}(?:[.,](\d+))?)?(?:Z|[+-]\d{2}:?\d{2})$/i;
/** The range of `Date`: ± 100 million days around the epoch (ECMA-262, 21.4.1.1). */
export const INSTANT_MAX_MS = 8.64e15;

/**
 * An `Instant` in epoch milliseconds. Fractions of a millisecond round up, so that nothing comes early.
 * @throws InvalidArgumentError naming `what`
 */
export function parseInstantMs(value: unknown, what: string): number {
  let ms = Number.NaN;
  if (value instanceof Date) ms = value.getTime();
  else if (typeof value === 'number') ms = Math.ceil(value);
  else if (typeof value === 'string') ms = parseIsoMs(value);
  if (Number.isFinite(ms) && Math.abs(ms) <= INSTANT_MAX_MS) return ms;
  throw new InvalidArgumentError(
    `${what} is ${describe(value)}; allowed: a Date, epoch milliseconds, or an ISO 8601 string with a zone such as '2026-01-31T09:00:00Z'`,
  );
}

/** NaN for what is none, 30 February included: `Date.parse` would take it for 2 March. */
function parseIsoMs(text: string): number {
  const match = ISO_WITH_ZONE.exec(text);
  if (match === null) return Number.NaN;
  const [, date, day, fraction = ''] = match;
  if (new Date(`${date}T00:00Z`).getUTCDate() !== Number(day)) return Number.NaN;
  // `Date.parse` knows no comma, and cuts what is beyond milliseconds off.
  const isCut = /[1-9]/.test(fraction.slice(3));
  return Date.parse(text.replace(',', '.')) + (isCut ? 1 : 0);
}
