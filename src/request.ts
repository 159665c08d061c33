/** What callers ask for when they schedule or update, checked and resolved. */
import {
  integerOf,
  numberOf,
  oneOf,
  optionsOf,
  positiveDurationMs,
  refuse,
  textOf,
} from './check.js';
import { InvalidArgumentError } from './core/errors.js';
import type { Catchup, Overlap, Policies } from './core/model.js';
import { type OnceSchedule, type Schedule, scheduleKey, toSchedule } from './core/schedule.js';
import {
  type Duration,
  INSTANT_MAX_MS,
  type Instant,
  parseDurationMs,
  parseInstantMs,
} from './core/units.js';

/** When a task runs: at most one of the three; none: now. */
export type When =
  | { runAt?: Instant; delay?: undefined; schedule?: undefined }
  | { delay?: Duration; runAt?: undefined; schedule?: undefined }
  | { schedule?: Schedule; runAt?: undefined; delay?: undefined };

export interface RetryOptions {
  /** Attempts that may fail, ≥ 1; default 3. */
  maxAttempts?: number;
  /** Wait after the first failure; default 1 s. */
  initialBackoff?: Duration;
  /** Growth of the wait from failure to failure, ≥ 1; default 2. */
  multiplier?: number;
  /** The longest wait; default 60 s. */
  maxBackoff?: Duration;
  /** Fraction 0–1 of the wait that is taken off at random; default 0. */
  jitter?: number;
}

export interface PolicyOptions {
  retry?: RetryOptions;
  /** A run is aborted, and counts as failed, after this long. */
  timeout?: Duration;
  /** A run that neither reported nor beat for this long is aborted, and counts as failed. */
  heartbeatTimeout?: Duration;
  /** Missed if not started by due + ttl. */
  ttl?: Duration;
  /** Crashes after which an occurrence is quarantined, ≥ 1; default 3. */
  maxCrashes?: number;
  /** cron and fixedRate only; default 'skip'. */
  overlap?: Overlap;
  /** What becomes of times that passed while nobody could run them; default 'latest'. */
  catchup?: Catchup;
  /** How far back `catchup: 'all'` goes; default one day. */
  catchupWindow?: Duration;
  /** Whether a recurring task goes on when one of its occurrences is dead; default 'continue'. */
  onExhausted?: 'continue' | 'stop';
  /** How long the idempotency key outlives the end of its task; default 24 h. */
  idempotencyTtl?: Duration;
}

export type Priority = 'high' | 'normal' | 'low' | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

export type ScheduleOptions = When &
  PolicyOptions & {
    /** Whose work it is; default 'default'. */
    tenant?: string;
    /** 0 most urgent to 9, default 5; 'high' 2, 'normal' 5, 'low' 8. */
    priority?: Priority | number;
    handlerVersion?: number;
    idempotencyKey?: string;
    /** When the key is held by a task with another definition; default 'error'. */
    onConflict?: 'error' | 'update';
  };

export type UpdateOptions = When &
  PolicyOptions & { payload?: unknown; priority?: Priority | number; handlerVersion?: number };

const WHEN = ['runAt', 'delay', 'schedule'] as const;
const POLICIES = [
  'retry',
  'timeout',
  'heartbeatTimeout',
  'ttl',
  'maxCrashes',
  'overlap',
  'catchup',
  'catchupWindow',
  'onExhausted',
  'idempotencyTtl',
] as const;
const SCHEDULE_NAMES = new Set([
  ...WHEN,
  ...POLICIES,
  'tenant',
  'priority',
  'handlerVersion',
  'idempotencyKey',
  'onConflict',
  'tx',
] as const);
const UPDATE_NAMES = new Set([
  ...WHEN,
  ...POLICIES,
  'payload',
  'priority',
  'handlerVersion',
] as const);
const RETRY_NAMES = new Set([
  'maxAttempts',
  'initialBackoff',
  'multiplier',
  'maxBackoff',
  'jitter',
] as const);

const NAME_MAX = 256;
const KEY_MAX = 1024;
const COUNT_MAX = 1_000_000;
const PRIORITY_NAMES: Readonly<Record<string, number>> = { high: 2, normal: 5, low: 8 };
const DEFAULT_PRIORITY = 5;

export const DEFAULT_POLICIES: Policies = Object.freeze({
  maxAttempts: 3,
  initialBackoffMs: 1_000,
  backoffMultiplier: 2,
  maxBackoffMs: 60_000,
  backoffJitter: 0,
  timeoutMs: undefined,
  heartbeatTimeoutMs: undefined,
  ttlMs: undefined,
  maxCrashes: 3,
  overlap: 'skip',
  catchup: 'latest',
  catchupWindowMs: 86_400_000,
  onExhausted: 'continue',
  idempotencyTtlMs: 86_400_000,
});

export interface ScheduleRequest {
  readonly tenant: string;
  readonly priority: number;
  readonly schedule: Schedule;
  /**
   * The schedule as first given, where a key is: a delay stays a delay, so that declaring it again is the same.
   */
  readonly scheduleText: string | undefined;
  readonly policies: Policies;
  readonly handlerVersion: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly onConflict: 'error' | 'update';
}

/** @throws InvalidArgumentError naming the option and what is allowed */
export function scheduleRequest(given: unknown, nowMs: number): ScheduleRequest {
  if (given === undefined) return immediate(nowMs);
  const options = optionsOf(given, 'options', SCHEDULE_NAMES);
  if (options.tx !== undefined) {
    throw new InvalidArgumentError(
      'options.tx is given; allowed: only with a store that joins transactions (PostgreSQL)',
    );
  }
  const schedule = whenOf(options, nowMs) ?? onceAt(nowMs);
  const { idempotencyKey, handlerVersion } = options;
  return {
    tenant: options.tenant === undefined ? 'default' : textOf(options.tenant, 'tenant', NAME_MAX),
    priority: priorityOf(options.priority),
    schedule,
    scheduleText: idempotencyKey === undefined ? undefined : textOfWhen(options, schedule),
    policies: policiesOf(options, DEFAULT_POLICIES, schedule),
    handlerVersion: handlerVersion === undefined ? undefined : versionOf(handlerVersion),
    idempotencyKey:
      idempotencyKey === undefined ? undefined : textOf(idempotencyKey, 'idempotencyKey', KEY_MAX),
    onConflict:
      options.onConflict === undefined
        ? 'error'
        : oneOf(options.onConflict, 'onConflict', ['error', 'update']),
  };
}

function immediate(nowMs: number): ScheduleRequest {
  return {
    tenant: 'default',
    priority: DEFAULT_PRIORITY,
    schedule: onceAt(nowMs),
    scheduleText: undefined,
    policies: DEFAULT_POLICIES,
    handlerVersion: undefined,
    idempotencyKey: undefined,
    onConflict: 'error',
  };
}

export interface UpdateRequest {
  readonly hasPayload: boolean;
  readonly payload: unknown;
  readonly schedule: Schedule | undefined;
  readonly priority: number | undefined;
  readonly handlerVersion: number | undefined;
  /** The policies afterwards, given those before and the schedule afterwards. */
  readonly policies: (before: Policies, schedule: Schedule) => Policies;
}

/** @throws InvalidArgumentError naming the option and what is allowed */
export function updateRequest(given: unknown, nowMs: number): UpdateRequest {
  if (given === undefined) refuse('patch', given, 'an object of what to change');
  const options = optionsOf(given, 'patch', UPDATE_NAMES);
  const { priority, handlerVersion } = options;
  return {
    hasPayload: Object.hasOwn(options, 'payload'),
    payload: options.payload,
    schedule: whenOf(options, nowMs),
    priority: priority === undefined ? undefined : priorityOf(priority),
    handlerVersion: handlerVersion === undefined ? undefined : versionOf(handlerVersion),
    policies: (before, schedule) => policiesOf(options, before, schedule),
  };
}

type Named<K extends string> = { readonly [key in K]?: unknown };

function whenOf(options: Named<(typeof WHEN)[number]>, nowMs: number): Schedule | undefined {
  const { runAt, delay, schedule } = options;
  if (
    Number(runAt !== undefined) + Number(delay !== undefined) + Number(schedule !== undefined) >
    1
  ) {
    const given = WHEN.filter((name) => options[name] !== undefined);
    throw new InvalidArgumentError(
      `${given.join(' and ')} are given; allowed: at most one of runAt, delay, schedule`,
    );
  }
  if (runAt !== undefined) return onceAt(parseInstantMs(runAt, 'runAt'));
  if (delay !== undefined) {
    const atMs = nowMs + parseDurationMs(delay, 'delay');
    if (atMs > INSTANT_MAX_MS) refuse('delay', delay, 'one that ends before the year 275760');
    return onceAt(atMs);
  }
  return schedule === undefined ? undefined : toSchedule(schedule);
}

function textOfWhen(options: Named<(typeof WHEN)[number]>, schedule: Schedule): string {
  if (options.delay !== undefined) return `delay ${parseDurationMs(options.delay, 'delay')}`;
  if (options.runAt === undefined && options.schedule === undefined) return 'now';
  return schedule.kind === 'once' ? `runAt ${schedule.at}` : scheduleKey(schedule);
}

/** Of a time that was checked. Not frozen: callers are given copies, and there is one a task. */
function onceAt(at: number): OnceSchedule {
  return { kind: 'once', at };
}

export function priorityOf(value: unknown): number {
  if (value === undefined) return DEFAULT_PRIORITY;
  if (typeof value === 'string' && Object.hasOwn(PRIORITY_NAMES, value)) {
    return PRIORITY_NAMES[value] as number;
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 9) {
    refuse('priority', value, "0 (most urgent) to 9, 'high', 'normal' or 'low'");
  }
  return value;
}

export function versionOf(value: unknown): number {
  return integerOf(value, 'handlerVersion', 1, Number.MAX_SAFE_INTEGER);
}

/** Distinct policies seen so far: a million tasks of the same kind share one object. */
const interned = new Map<string, Policies>();
const INTERNED_MAX = 10_000;

function policiesOf(
  options: Named<(typeof POLICIES)[number]>,
  before: Policies,
  schedule: Schedule,
): Policies {
  const overlaps = schedule.kind === 'cron' || schedule.kind === 'fixedRate';
  if (options.overlap !== undefined && !overlaps) {
    refuse('overlap', options.overlap, 'only with a cron or fixedRate schedule');
  }
  if (!hasAny(options, POLICIES)) return before;
  const policies: Policies = { ...before, ...retryOf(options.retry), ...othersOf(options) };
  const key = JSON.stringify(policies);
  const known = interned.get(key);
  if (known !== undefined) return known;
  if (interned.size >= INTERNED_MAX) interned.clear();
  interned.set(key, Object.freeze(policies));
  return policies;
}

function hasAny<K extends string>(options: Named<K>, names: readonly K[]): boolean {
  for (const name of names) if (options[name] !== undefined) return true;
  return false;
}

function retryOf(given: unknown): Partial<Policies> {
  if (given === undefined) return {};
  const retry = optionsOf(given, 'retry', RETRY_NAMES);
  const { maxAttempts, initialBackoff, multiplier, maxBackoff, jitter } = retry;
  const part: { -readonly [K in keyof Policies]?: Policies[K] } = {};
  if (maxAttempts !== undefined) {
    part.maxAttempts = integerOf(maxAttempts, 'retry.maxAttempts', 1, COUNT_MAX);
  }
  if (initialBackoff !== undefined) {
    part.initialBackoffMs = parseDurationMs(initialBackoff, 'retry.initialBackoff');
  }
  if (multiplier !== undefined) {
    part.backoffMultiplier = numberOf(multiplier, 'retry.multiplier', 1, 1000);
  }
  if (maxBackoff !== undefined) {
    part.maxBackoffMs = parseDurationMs(maxBackoff, 'retry.maxBackoff');
  }
  if (jitter !== undefined) part.backoffJitter = numberOf(jitter, 'retry.jitter', 0, 1);
  return part;
}

function othersOf(options: Named<(typeof POLICIES)[number]>): Partial<Policies> {
  const part: { -readonly [K in keyof Policies]?: Policies[K] } = {};
  const { timeout, heartbeatTimeout, ttl, maxCrashes, overlap, catchup } = options;
  if (timeout !== undefined) part.timeoutMs = positiveDurationMs(timeout, 'timeout');
  if (heartbeatTimeout !== undefined) {
    part.heartbeatTimeoutMs = positiveDurationMs(heartbeatTimeout, 'heartbeatTimeout');
  }
  if (ttl !== undefined) part.ttlMs = parseDurationMs(ttl, 'ttl');
  if (maxCrashes !== undefined) {
    part.maxCrashes = integerOf(maxCrashes, 'maxCrashes', 1, COUNT_MAX);
  }
  if (overlap !== undefined) {
    const all = ['skip', 'bufferOne', 'bufferAll', 'allowAll', 'cancelOther'] as const;
    part.overlap = oneOf(overlap, 'overlap', all);
  }
  if (catchup !== undefined) part.catchup = oneOf(catchup, 'catchup', ['latest', 'all', 'none']);
  if (options.catchupWindow !== undefined) {
    part.catchupWindowMs = parseDurationMs(options.catchupWindow, 'catchupWindow');
  }
  if (options.onExhausted !== undefined) {
    part.onExhausted = oneOf(options.onExhausted, 'onExhausted', ['continue', 'stop']);
  }
  if (options.idempotencyTtl !== undefined) {
    part.idempotencyTtlMs = parseDurationMs(options.idempotencyTtl, 'idempotencyTtl');
  }
  return part;
}
