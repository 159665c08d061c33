/**
 * Cron expressions as a calendar of wall times: a strict gate, then croner as the parser and the calendar.
 *
 * The dialect: five fields, or six with leading seconds; numbers, names, lists, ranges, steps, nicknames; `L`, `LW`, `nW`
 * in days of the month, `d#n`, `dL` in days of the week, `?` for a whole day field, as in Quartz. croner alone is
 * laxer in places, so the gate admits only what this grammar names; croner judges ranges and bounds.
 */
import { CronDate, type CronOptions, CronPattern } from 'croner';
import { assert } from './assert.js';
import { InvalidScheduleError } from './errors.js';
import { LruCache } from './lru.js';
import { describe } from './units.js';

/** The longest expression, in characters. */
const EXPRESSION_CHARS_MAX = 1024;
/** A calendar holds some 4 KB and takes 0.1 ms to make again. */
const CALENDARS_MAX = 512;
/** The last wall time that croner finds; its years end with 2999. */
const WALL_END_MS = Date.UTC(3000, 0, 1);
/** The calendar repeats every 400 years, so whatever has no match from here on has none at all. */
const NEVER_PROBE_MS = Date.UTC(2000, 0, 1) - 1;

/** `CronDate` and `CronPattern` rather than `Cron`: they hold no timer, and read no clock. */
const PATTERN_OPTIONS = { mode: '5-or-6-parts' } as const;
const DATE_OPTIONS: CronOptions = {};
const UTC_OFFSET_MINUTES = 0;

/** Wall times are epoch ms of the same date and time in UTC. */
export interface CronCalendar {
  /** The minute or hour field begins with `*`: such a job follows the clock through a change of offset. */
  readonly wild: boolean;
  /** The first match strictly after a wall time; undefined after the year 2999. 3 µs. */
  nextAfter(wallMs: number): number | undefined;
  /** The last match at or before a wall time. 3 µs. */
  lastUntil(wallMs: number): number | undefined;
}

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const MONTH = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
const DAY = 'sun|mon|tue|wed|thu|fri|sat';

/** A field: a list of `*` or ranges, stepped or not, and single values, which `others` may follow or replace. */
function fieldOf(names: string, others: string): RegExp {
  const value = names === '' ? '\\d{1,4}' : `(?:\\d{1,4}|${names})`;
  const item = `(?:(?:\\*|${value}-${value})(?:/\\d{1,4})?|${value}${others})`;
  return new RegExp(`^${item}(?:,${item})*$`, 'i');
}

const NUMBERS = fieldOf('', '');
const FIELDS: readonly { readonly name: string; readonly grammar: RegExp }[] = [
  { name: 'second', grammar: NUMBERS },
  { name: 'minute', grammar: NUMBERS },
  { name: 'hour', grammar: NUMBERS },
  { name: 'day of month', grammar: fieldOf('', 'W?|LW|L') },
  { name: 'month', grammar: fieldOf(MONTH, '') },
  { name: 'day of week', grammar: fieldOf(DAY, '(?:#[1-5]|L)?') },
];

/** Refusals are kept too: to find that an expression never fires takes 15 ms. */
const calendars = new LruCache<CronCalendar | { readonly refusal: string }>(CALENDARS_MAX);

/**
 * The calendar of an expression.
 * @throws InvalidScheduleError if it is malformed, outside the dialect, too long, or never fires
 */
export function calendarOf(expression: string): CronCalendar {
  const result =
    expression.length > EXPRESSION_CHARS_MAX
      ? { refusal: `is longer than ${EXPRESSION_CHARS_MAX} characters` }
      : calendars.take(expression, () => parse(expression));
  if ('refusal' in result) {
    throw new InvalidScheduleError(`cron expression ${describe(expression)} ${result.refusal}`);
  }
  return result;
}

function parse(expression: string): CronCalendar | { refusal: string } {
  // Only blanks and tabs part fields: trim() and \s know others, such as the no-break space.
  const text = expression.replace(/^[ \t]+|[ \t]+$/g, '');
  const expanded = NICKNAMES.get(text.toLowerCase()) ?? text;
  const given = expanded.split(/[ \t]+/);
  if (given.length !== 5 && given.length !== 6) {
    return { refusal: 'must have five fields, or six with leading seconds, or be like @daily' };
  }
  const fields = given.length === 5 ? ['0', ...given] : given;
  for (const [index, field] of fields.entries()) {
    const { name, grammar } = FIELDS[index]!;
    const isDay = index === 3 || index === 5;
    if (field === '?' && isDay) fields[index] = '*';
    else if (!grammar.test(field)) {
      return { refusal: `is malformed: ${describe(field)} is not a ${name}` };
    }
  }
  return calendarFrom(fields);
}

function calendarFrom(fields: string[]): CronCalendar | { refusal: string } {
  const [, minute, hour, dayOfMonth, , dayOfWeek] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  // Both days must match if either field begins with a star; `+` is how croner is told so.
  const bothDays = dayOfMonth.startsWith('*') || dayOfWeek.startsWith('*');
  if (bothDays && dayOfMonth !== '*' && dayOfWeek !== '*') fields[5] = `+${dayOfWeek}`;
  let pattern: CronPattern;
  try {
    pattern = new CronPattern(fields.join(' '), undefined, PATTERN_OPTIONS);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { refusal: `is malformed: ${message.replace(/^CronPattern: /, '')}` };
  }
  const calendar = new CronerCalendar(pattern, minute.startsWith('*') || hour.startsWith('*'));
  if (calendar.nextAfter(NEVER_PROBE_MS) === undefined) return { refusal: 'can never fire' };
  return calendar;
}

class CronerCalendar implements CronCalendar {
  readonly wild: boolean;
  readonly #pattern: CronPattern;

  constructor(pattern: CronPattern, wild: boolean) {
    this.#pattern = pattern;
    this.wild = wild;
    // Of the 83 KB of a pattern 80 are its table of years, which is not read when all years match.
    assert(pattern.starYear, 'the dialect has no years');
    pattern.year = [];
  }

  nextAfter(wallMs: number): number | undefined {
    if (wallMs >= WALL_END_MS - 1) return undefined;
    const from = new CronDate(new Date(wallMs), UTC_OFFSET_MINUTES);
    const match = from.increment(this.#pattern, DATE_OPTIONS, false)?.getTime();
    if (match === undefined || match >= WALL_END_MS) return undefined;
    assert(match > wallMs, 'a match lies after the time given');
    return match;
  }

  lastUntil(wallMs: number): number | undefined {
    const boundMs = Math.min(wallMs + 1, WALL_END_MS);
    const from = new CronDate(new Date(boundMs), UTC_OFFSET_MINUTES);
    const match = from.decrement(this.#pattern, DATE_OPTIONS)?.getTime();
    assert(match === undefined || match < boundMs, 'a match lies before the time given');
    return match;
  }
}
