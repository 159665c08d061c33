/**
 * The nominal times of a schedule: pure arithmetic, or cron.ts. A nominal time is what the schedule names; when a run is
 * due (nominal + jitter) and when it starts are other matters, and never change the nominal times after it.
 *
 * 1. nextNominal is strictly increasing; every time it gives is at or before `endAt`.
 * 2. The times after a given one do not depend on how it was reached: no drift.
 * 3. `limit` is the caller's to count, except in nextTimesFrom.
 */
import { assert, unreachable } from './assert.js';
import { newestCronMs, nextCronMs } from './cron.js';
import { InvalidArgumentError } from './errors.js';
import type { CronSchedule, Schedule } from './schedule.js';
import { describe } from './units.js';

/** The last instant of a `Date` (ECMA-262, 21.4.1.1). */
const LATEST_MS = 8.64e15;
/** Cron times are counted one by one up to this many, some 10 ms. */
const WALK_MAX = 1_000;
const TIMES_MAX = 10_000;

/**
 * What a schedule counts from, epoch ms; stored with the task, as it depends on the creation. fixedRate and
 * fixedDelay: `startAt`, even when past, else creation + `startDelayMs`. cron: the later of creation and
 * `startAt`. once: its time.
 */
export function anchorOf(schedule: Schedule, createdAtMs: number): number {
  switch (schedule.kind) {
    case 'once':
      return schedule.at;
    case 'fixedRate':
    case 'fixedDelay':
      return schedule.startAt ?? createdAtMs + (schedule.startDelayMs ?? 0);
    case 'cron':
      return Math.max(createdAtMs, schedule.startAt ?? createdAtMs);
    default:
      return unreachable(schedule);
  }
}

/**
 * The first nominal time of a task created (or rescheduled) at `createdAtMs`; undefined if it would lie past `endAt`.
 * fixedRate: the anchor, or when that is past, its first phase point at or after creation. fixedDelay: the
 * anchor, or creation when that is past. cron: the first match at or after a `startAt` that is not
 * past, else strictly after creation. once: its time, even when past.
 */
export function firstNominal(
  schedule: Schedule,
  anchorMs: number,
  createdAtMs: number,
): number | undefined {
  switch (schedule.kind) {
    case 'once':
      return schedule.at;
    case 'fixedRate':
      return withinEnd(schedule, rateAfter(anchorMs, schedule.everyMs, createdAtMs - 1));
    case 'fixedDelay':
      return withinEnd(schedule, Math.max(anchorMs, createdAtMs));
    case 'cron':
      // A start at the creation itself is inclusive; without one, the creation is not.
      return withinEnd(
        schedule,
        cronAfter(schedule, createdAtMs === schedule.startAt ? createdAtMs - 1 : createdAtMs),
      );
    default:
      return unreachable(schedule);
  }
}

/**
 * The first nominal time strictly after `afterMs`; undefined if there is none at or before `endAt`. A fixedDelay
 * has none before its run ended, so asking for it is a bug. 0.1 µs; cron up to 20 µs.
 */
export function nextNominal(
  schedule: Schedule,
  anchorMs: number,
  afterMs: number,
): number | undefined {
  switch (schedule.kind) {
    case 'once':
      return schedule.at > afterMs ? schedule.at : undefined;
    case 'fixedRate':
      return withinEnd(schedule, rateAfter(anchorMs, schedule.everyMs, afterMs));
    case 'fixedDelay':
      assert(false, 'the next time of a fixedDelay comes from the end of its run');
      return undefined;
    case 'cron':
      return withinEnd(schedule, cronAfter(schedule, afterMs));
    default:
      return unreachable(schedule);
  }
}

export interface NewestNominal {
  readonly newestAt: number;
  /** How many nominal times lie in the interval; at least 1. */
  readonly count: number;
  /** False for a cron with more than 1,000 of them; `count` is 1,000 then. */
  readonly countIsExact: boolean;
}

/**
 * The newest nominal time in `(afterMs, atOrBeforeMs]` and how many lie in it; undefined if none. The cost is bounded
 * however long the interval: O(1), for cron at most 1,000 steps to count. Not for fixedDelay.
 */
export function newestNominal(
  schedule: Schedule,
  anchorMs: number,
  { afterMs, atOrBeforeMs }: { readonly afterMs: number; readonly atOrBeforeMs: number },
): NewestNominal | undefined {
  const untilMs = Math.min(atOrBeforeMs, endAtOf(schedule));
  const first = nextNominal(schedule, anchorMs, afterMs);
  if (first === undefined || first > untilMs) return undefined;
  switch (schedule.kind) {
    case 'once':
      return { newestAt: first, count: 1, countIsExact: true };
    case 'fixedRate': {
      const newestAt = untilMs - ((untilMs - anchorMs) % schedule.everyMs);
      const count = (newestAt - first) / schedule.everyMs + 1;
      return { newestAt, count, countIsExact: true };
    }
    case 'fixedDelay':
      return undefined;
    case 'cron':
      return newestOfCron(schedule, first, untilMs);
    default:
      return unreachable(schedule);
  }
}

function newestOfCron(schedule: CronSchedule, first: number, untilMs: number): NewestNominal {
  const newestAt = newestCronMs(schedule, { afterMs: first - 1, untilMs });
  assert(newestAt !== undefined, 'the first match is at or before the newest');
  let count = 1;
  let time: number | undefined = first;
  while (time < newestAt && count < WALK_MAX) {
    time = nextCronMs(schedule, time);
    assert(time !== undefined, 'walking on meets the newest match');
    count += 1;
  }
  return { newestAt, count, countIsExact: time === newestAt };
}

/**
 * How long after a nominal time its occurrence is due: whole ms in `[0, jitterMs]`, a hash of task, generation and
 * nominal time, so that it is the same however often it is asked for. 0 without jitter.
 */
export function jitterOf(
  schedule: Schedule,
  taskId: string,
  generation: number,
  nominalAt: number,
): number {
  if (!('jitterMs' in schedule) || schedule.jitterMs === 0) return 0;
  return hash53(`${taskId}.${generation}.${nominalAt}`) % (schedule.jitterMs + 1);
}

/** 53 bits of two multiplicative hashes that are mixed at the end (cyrb53). */
function hash53(text: string): number {
  let h1 = 0xdeadbeef;
  let h2 = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    h1 = Math.imul(h1 ^ unit, 2654435761);
    h2 = Math.imul(h2 ^ unit, 1597334677);
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return (h2 & 0x1fffff) * 2 ** 32 + (h1 >>> 0);
}

/**
 * The nominal times strictly after `fromMs`, as for a task created then; a start that is given by the creation, or not
 * at all, is itself the first. A fixedDelay's are those of runs that take no time. Fewer than `count` when
 * `limit` or `endAt` comes first. O(count).
 * @throws InvalidArgumentError if count is not an integer from 1 to 10,000
 */
export function nextTimesFrom(schedule: Schedule, fromMs: number, count: number): Date[] {
  if (!Number.isInteger(count) || count < 1 || count > TIMES_MAX) {
    throw new InvalidArgumentError(
      `count is ${describe(count)}; allowed: an integer from 1 to ${TIMES_MAX}`,
    );
  }
  // A fixedDelay whose runs take no time is a fixedRate.
  const rated: Schedule =
    schedule.kind === 'fixedDelay'
      ? { ...schedule, kind: 'fixedRate', everyMs: schedule.delayMs, jitterMs: 0 }
      : schedule;
  const anchorMs = anchorOf(rated, fromMs);
  const startsAtFrom = rated.kind === 'fixedRate' && rated.startAt === undefined;
  const limit = limitOf(rated);
  const times: Date[] = [];
  let time = firstNominal(rated, anchorMs, fromMs);
  for (let taken = 0; taken < limit && times.length < count && time !== undefined; taken++) {
    // A `startAt` that is `from` itself is taken, and counts, but does not lie after `from`.
    if (time > fromMs || startsAtFrom) times.push(new Date(time));
    time = nextNominal(rated, anchorMs, time);
  }
  return times;
}

function rateAfter(anchorMs: number, everyMs: number, afterMs: number): number {
  if (afterMs < anchorMs) return anchorMs;
  // By the remainder, which is exact; a quotient of such numbers could round.
  return afterMs - ((afterMs - anchorMs) % everyMs) + everyMs;
}

function cronAfter(schedule: CronSchedule, afterMs: number): number | undefined {
  return nextCronMs(schedule, Math.max(afterMs, (schedule.startAt ?? -LATEST_MS) - 1));
}

function withinEnd(schedule: Schedule, time: number | undefined): number | undefined {
  return time === undefined || time > endAtOf(schedule) ? undefined : time;
}

function endAtOf(schedule: Schedule): number {
  return 'endAt' in schedule ? (schedule.endAt ?? LATEST_MS) : LATEST_MS;
}

function limitOf(schedule: Schedule): number {
  return 'limit' in schedule ? (schedule.limit ?? Infinity) : Infinity;
}
