/**
 * Schedules: plain, deeply frozen values that name the times at which a task runs. They hold numbers and strings
 * only, so they are stored and sent as they are. What times they name is in nominal.ts.
 */
import { optionsOf as checkedOptions } from './arguments.js';
import { nextCronMs, validateCron } from './cron.js';
import { InvalidArgumentError, InvalidScheduleError } from './errors.js';
import { nextTimesFrom } from './nominal.js';
import { type Duration, describe, type Instant, parseDurationMs, parseInstantMs } from './units.js';

export {
  anchorOf,
  firstNominal,
  jitterOf,
  newestNominal,
  nextNominal,
  nextTimesFrom,
} from './nominal.js';

/** One time. */
export interface OnceSchedule {
  readonly kind: 'once';
  /** Epoch ms. */
  readonly at: number;
}

/** A time every `everyMs`, counted from the start, never from when runs began or ended. */
export interface FixedRateSchedule {
  readonly kind: 'fixedRate';
  /** ≥ 1. */
  readonly everyMs: number;
  /** Inclusive, epoch ms; in the past it only sets the phase. Excludes `startDelayMs`. */
  readonly startAt?: number;
  readonly startDelayMs?: number;
  /** Inclusive, epoch ms. */
  readonly endAt?: number;
  /** How many nominal times there are, run or not; ≥ 1. */
  readonly limit?: number;
  /** Due is nominal plus up to this much. */
  readonly jitterMs: number;
}

/** `delayMs` after the end of the run before. */
export interface FixedDelaySchedule {
  readonly kind: 'fixedDelay';
  /** ≥ 1. */
  readonly delayMs: number;
  readonly startAt?: number;
  readonly startDelayMs?: number;
  readonly endAt?: number;
  readonly limit?: number;
  /** Whether any end of a run starts the delay, or only success. */
  readonly after: 'terminal' | 'success';
}

/** The times that a cron expression names on the wall clock of a zone. */
export interface CronSchedule {
  readonly kind: 'cron';
  readonly expression: string;
  /** An IANA zone, such as `Europe/Berlin`. */
  readonly timezone: string;
  readonly startAt?: number;
  readonly endAt?: number;
  readonly limit?: number;
  readonly jitterMs: number;
}

export type Schedule = OnceSchedule | FixedRateSchedule | FixedDelaySchedule | CronSchedule;

export interface FixedRateOptions {
  /** More than 0. */
  every: Duration;
  /** The first time, inclusive; in the past it sets the phase. Not together with `startDelay`. */
  startAt?: Instant | undefined;
  /** The first time, counted from the task's creation. With neither, the first time is the creation itself. */
  startDelay?: Duration | undefined;
  /** No time after this; inclusive. */
  endAt?: Instant | undefined;
  /** How many times in all, run or not; ≥ 1. */
  limit?: number | undefined;
  /** Each run is due up to this much after its nominal time. Default 0. */
  jitter?: Duration | undefined;
}

export interface FixedDelayOptions {
  /** From the end of one run to the start of the next; more than 0. */
  delay: Duration;
  startAt?: Instant | undefined;
  startDelay?: Duration | undefined;
  endAt?: Instant | undefined;
  limit?: number | undefined;
  /** Which ends of a run start the delay: any, or only success. Default `'terminal'`. */
  after?: 'terminal' | 'success' | undefined;
}

export interface CronOptions {
  /** An IANA zone, such as `Europe/Berlin`. Default `'UTC'`. */
  timezone?: string | undefined;
  startAt?: Instant | undefined;
  endAt?: Instant | undefined;
  limit?: number | undefined;
  jitter?: Duration | undefined;
}

/** What the constructors made: valid, and frozen. */
const made = new WeakSet<object>();

/**
 * One time, epoch ms.
 * @throws InvalidScheduleError
 */
export function once(at: number): OnceSchedule {
  return seal({ kind: 'once', at: checked(() => parseInstantMs(at, 'at')) });
}

/**
 * A time every `every`, without drift: the nominal times are start + k × every, whatever the runs do.
 * @throws InvalidScheduleError
 */
export function fixedRate(options: FixedRateOptions): FixedRateSchedule {
  const given = optionsOf('fixedRate', options, [...WINDOW, 'every', 'startDelay', 'jitter']);
  return seal({
    kind: 'fixedRate',
    everyMs: positive(given.every, 'every'),
    ...windowOf(given),
    jitterMs: jitterMsOf(given),
  });
}

/**
 * A run `delay` after the end of the one before.
 * @throws InvalidScheduleError
 */
export function fixedDelay(options: FixedDelayOptions): FixedDelaySchedule {
  const given = optionsOf('fixedDelay', options, [...WINDOW, 'delay', 'startDelay', 'after']);
  const { after = 'terminal' } = given;
  if (after !== 'terminal' && after !== 'success') {
    return refuse('after', after, `'terminal' or 'success'`);
  }
  const delayMs = positive(given.delay, 'delay');
  return seal({ kind: 'fixedDelay', delayMs, ...windowOf(given), after });
}

/**
 * The times that a cron expression names: five fields, or six with leading seconds; `@daily` and its like; `L`, `LW`,
 * `nW`, `d#n`, `dL` and `?` as in Quartz. Day of month and day of week: either matches, but both must if
 * either field begins with `*`. Through changes of the zone's offset the rules of Debian's cron hold (cron.ts).
 * @throws InvalidScheduleError, also when it can never fire. 0.3 ms for a new expression, 15 ms to refuse.
 */
export function cron(expression: string, options: CronOptions = {}): CronSchedule {
  const given = optionsOf('cron', options, [...WINDOW, 'timezone', 'jitter']);
  if (typeof expression !== 'string') refuse('expression', expression, 'a string');
  const { timezone = 'UTC' } = given;
  if (typeof timezone !== 'string') return refuse('timezone', timezone, 'an IANA name');
  validateCron({ expression, timezone });
  const window = windowOf(given);
  if (window.startAt !== undefined) {
    const first = nextCronMs({ expression, timezone }, window.startAt - 1);
    if (first === undefined || first > (window.endAt ?? first)) {
      refuse('expression', expression, 'one that fires between startAt and endAt');
    }
  }
  return seal({ kind: 'cron', expression, timezone, ...window, jitterMs: jitterMsOf(given) });
}

/**
 * Whether a value is a schedule: one that a constructor made, or a plain object of the same shape, which is validated
 * as the constructor would. O(1) for the former.
 */
export function isSchedule(value: unknown): value is Schedule {
  if (typeof value !== 'object' || value === null) return false;
  if (made.has(value)) return true;
  try {
    return isLike(value as RawSchedule, remake(value as RawSchedule));
  } catch (error) {
    if (error instanceof InvalidScheduleError) return false;
    throw error;
  }
}

/**
 * The schedule that a caller gave: itself if a constructor made it, else a frozen copy of what is a valid one.
 * @throws InvalidScheduleError
 */
export function toSchedule(value: unknown): Schedule {
  if (!isSchedule(value)) {
    return refuse('schedule', value, 'what fixedRate(), fixedDelay() or cron() returns');
  }
  return made.has(value) ? value : remake(value as unknown as RawSchedule);
}

/** Canonical JSON, keys sorted: equal for schedules that were given alike. */
export function scheduleKey(schedule: Schedule): string {
  return JSON.stringify(Object.fromEntries(partsOf(schedule)));
}

export interface NextTimesOptions {
  /** Default now. */
  from?: Instant | undefined;
  /** From 1 to 10,000; default 5. */
  count?: number | undefined;
}

/**
 * The nominal times of a schedule strictly after `from`, as for a task created at `from`; a start that is given by the
 * creation, or not at all, is itself the first. A fixedDelay's are those of runs that take no time. Fewer than
 * `count` when `limit` or `endAt` comes first.
 * @throws InvalidScheduleError, InvalidArgumentError
 */
export function nextTimes(schedule: Schedule, options: NextTimesOptions, nowMs: number): Date[] {
  const { from = nowMs, count = 5 } = checkedOptions(options, 'nextTimes options', NEXT_TIMES);
  const fromMs = parseInstantMs(from, 'from');
  return nextTimesFrom(toSchedule(schedule), fromMs, count as number);
}

const NEXT_TIMES = new Set(['from', 'count'] as const);

type Options = Readonly<Record<string, unknown>>;
type RawSchedule = Record<string, never>;
interface Window {
  startAt?: number;
  startDelayMs?: number;
  endAt?: number;
  limit?: number;
}

const WINDOW = ['startAt', 'endAt', 'limit'] as const;

/** Runs the constructor again on the parts of a schedule. */
function remake(raw: RawSchedule): Schedule {
  const { kind, at, expression, everyMs, delayMs, startDelayMs, jitterMs, ...rest } = raw;
  const startDelay = startDelayMs === undefined ? {} : { startDelay: startDelayMs };
  switch (kind as unknown) {
    case 'once':
      return once(at as unknown as number);
    case 'fixedRate':
      return fixedRate({ ...rest, ...startDelay, every: everyMs, jitter: jitterMs });
    case 'fixedDelay':
      return fixedDelay({ ...rest, ...startDelay, delay: delayMs });
    case 'cron':
      return cron(expression as unknown as string, { ...rest, jitter: jitterMs });
    default:
      return refuse('kind', kind, `'once', 'fixedRate', 'fixedDelay' or 'cron'`);
  }
}

function isLike(raw: RawSchedule, schedule: Schedule): boolean {
  const parts = partsOf(schedule);
  return (
    partsOf(raw).length === parts.length && parts.every(([name, value]) => raw[name] === value)
  );
}

function partsOf(schedule: object): [string, unknown][] {
  const given = Object.entries(schedule).filter(([, value]) => value !== undefined);
  return given.sort(([a], [b]) => (a < b ? -1 : 1));
}

function seal<S extends Schedule>(schedule: S): S {
  made.add(schedule);
  return Object.freeze(schedule);
}

function optionsOf(of: string, options: unknown, names: readonly string[]): Options {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    return refuse(`options of ${of}`, options, 'an object');
  }
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) return refuse(`option of ${of}`, name, names.join(', '));
  }
  return options as Options;
}

function windowOf({ startAt, startDelay, endAt, limit }: Options): Window {
  const window: Window = {};
  if (startAt !== undefined) window.startAt = checked(() => parseInstantMs(startAt, 'startAt'));
  if (startDelay !== undefined) {
    if (startAt !== undefined) refuse('startDelay', startDelay, 'it or startAt, not both');
    window.startDelayMs = checked(() => parseDurationMs(startDelay, 'startDelay'));
  }
  if (endAt !== undefined) {
    window.endAt = checked(() => parseInstantMs(endAt, 'endAt'));
    if (window.startAt !== undefined && window.endAt < window.startAt) {
      refuse('endAt', endAt, 'startAt or later');
    }
  }
  if (limit !== undefined) {
    if (!Number.isSafeInteger(limit) || (limit as number) < 1) {
      refuse('limit', limit, 'an integer ≥ 1');
    }
    window.limit = limit as number;
  }
  return window;
}

function jitterMsOf({ jitter = 0 }: Options): number {
  return checked(() => parseDurationMs(jitter, 'jitter'));
}

function positive(duration: unknown, what: string): number {
  const ms = checked(() => parseDurationMs(duration, what));
  return ms > 0 ? ms : refuse(what, duration, 'more than 0');
}

/** An argument of the wrong type makes a wrong schedule. */
function checked(parse: () => number): number {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new InvalidScheduleError(error.message, { cause: error });
  }
}

function refuse(what: string, value: unknown, allowed: string): never {
  throw new InvalidScheduleError(`${what} is ${describe(value)}; allowed: ${allowed}`);
}
