/**
 * Time: what comes due, overlap, catch-up, and the next nominal time.
 *
 * A scheduled occurrence of the newest nominal time taken, the cursor, has no successor yet: it
 * gets one when it becomes ready, waits, or ends in whatever way. So each nominal time is accounted
 * for before the next one is.
 */
import { assert, unreachable } from './assert.js';
import { newestCronMs } from './cron.js';
import type { Draft } from './draft.js';
import { end, goesOn, hold, isBlocked, isHeld, isLetThrough, isPlanned } from './ending.js';
import type { OccurrenceRecord } from './model.js';
import { requestCancel } from './running.js';
import { jitterOf, newestNominal, nextNominal, type Schedule } from './schedule.js';

/** Occurrences of one task held back by overlap; more are skipped with `backlogFull`. */
export const WAITING_MAX = 1000;
/** Nominal times walked one by one: up to a `limit`, and where jitter decides which have passed. */
const WALK_MAX = 1000;

const CATCHUP = Object.freeze({ catchup: true });

/** The due time of an occurrence has come: it becomes ready, is held back, skipped or missed. */
export function becomeDue(draft: Draft, occurrenceId: string): void {
  const { nowMs } = draft.facts;
  const occurrence = draft.find(occurrenceId);
  if (occurrence === undefined || occurrence.dueAt > nowMs) return;
  if (isHeld(draft.task, occurrence)) return;
  if (occurrence.state === 'retry-wait') {
    // A retry that a pause held back is due when that is over.
    const next = draft.move(occurrence, 'ready');
    if (wasAway(draft, occurrence)) next.dueAt = nowMs;
  } else if (occurrence.state === 'scheduled' && !occurrence.waiting) {
    letThrough(draft, occurrence);
  }
}

/** Until when nobody was there to run the task's occurrences. */
function awayUntilMs({ facts, task }: Draft): number {
  // Of an active task, `pausedAt` is the end of its last pause.
  if (task.state !== 'active' || task.pausedAt === undefined) return facts.awayUntilMs;
  return Math.max(facts.awayUntilMs, task.pausedAt);
}

function wasAway(draft: Draft, occurrence: OccurrenceRecord): boolean {
  return occurrence.dueAt < awayUntilMs(draft);
}

function letThrough(draft: Draft, occurrence: OccurrenceRecord): void {
  const away = wasAway(draft, occurrence);
  if (!isPlanned(occurrence) || draft.task.schedule.kind === 'once') {
    startOrWait(draft, away ? asCatchup(draft, occurrence) : occurrence);
  } else if (away) {
    catchUp(draft, occurrence);
  } else {
    startBesides(draft, occurrence);
  }
}

/**
 * Starts, or does what the overlap policy says when another is live. Only cron and fixedRate have
 * one.
 */
function startBesides(draft: Draft, occurrence: OccurrenceRecord): void {
  if (occurrence.kind === 'sequence') startOrWait(draft, occurrence);
  else if (isBlocked(draft, occurrence)) overlap(draft, occurrence);
  else markReady(draft, occurrence);
}

/** What no overlap policy speaks of never runs besides another of its task: it starts behind it. */
export function startOrWait(draft: Draft, occurrence: OccurrenceRecord): void {
  if (isBlocked(draft, occurrence)) hold(draft, occurrence);
  else markReady(draft, occurrence);
}

/**
 * scheduled → ready, or missed when its ttl has passed; either way the next nominal time is taken.
 */
export function markReady(draft: Draft, occurrence: OccurrenceRecord): void {
  if (ttlPassed(draft, occurrence)) {
    end(draft, occurrence, 'missed', { reason: 'ttl' });
    return;
  }
  const next = draft.move(occurrence, 'ready');
  if (next.waiting) {
    next.waiting = false;
    // It was not allowed to start when it was due, so its lateness is counted apart.
    if (next.kind !== 'trigger') next.catchup = true;
  }
  ensureNext(draft, next);
}

/** Missed if not started by due + ttl. */
export function ttlPassed(draft: Draft, occurrence: OccurrenceRecord): boolean {
  const { ttlMs } = draft.task.policies;
  return (
    ttlMs !== undefined && occurrence.attempt === 0 && draft.facts.nowMs > occurrence.dueAt + ttlMs
  );
}

function asCatchup(draft: Draft, occurrence: OccurrenceRecord): OccurrenceRecord {
  return occurrence.kind === 'trigger' ? occurrence : draft.move(occurrence, 'scheduled', CATCHUP);
}

/**
 * cron and fixedRate: nominal times come from the schedule alone, never from when runs started or
 * ended.
 */
function isRecurring(
  schedule: Schedule,
): schedule is Extract<Schedule, { kind: 'cron' | 'fixedRate' }> {
  return schedule.kind === 'cron' || schedule.kind === 'fixedRate';
}

/**
 * Creates the occurrence after this one, if this is the newest taken from a schedule that goes on.
 * Idempotent.
 */
export function ensureNext(draft: Draft, occurrence: OccurrenceRecord): void {
  const { task } = draft;
  const { schedule } = task;
  if (!isRecurring(schedule) || !goesOn(task)) return;
  if (occurrence.kind !== 'nominal' || occurrence.generation !== task.generation) return;
  const newestAt = occurrence.untilAt ?? occurrence.nominalAt;
  if (task.cursorAt !== newestAt) return;
  if (schedule.limit !== undefined && task.taken >= schedule.limit) return;
  const nextAt = nextNominal(schedule, task.anchorAt, newestAt);
  if (nextAt !== undefined) createNominal(draft, nextAt);
}

export function createNominal(draft: Draft, nominalAt: number): void {
  const { task } = draft;
  draft.changeTask({ cursorAt: nominalAt, taken: task.taken + 1 });
  const jitterMs = jitterOf(task.schedule, task.id, task.generation, nominalAt);
  draft.create({ kind: 'nominal', ordinal: nominalAt, nominalAt, dueAt: nominalAt + jitterMs });
}

// --- catch-up ------------------------------------------------------------------------------------

/**
 * The occurrence's time passed while nobody could run it, and others after it may have.
 * `latest`: the newest runs, those before it are missed, as one record. `all`: those within the
 * window run, one after another. `none`: all are missed. A fixedDelay has one such time at most.
 */
function catchUp(draft: Draft, occurrence: OccurrenceRecord): void {
  const { policies } = draft.task;
  switch (policies.catchup) {
    case 'none':
      miss(draft, occurrence, passedTimes(draft, occurrence), 'catchupNone');
      return;
    case 'latest': {
      // One that is due at this very moment is the newest, though it is on time: one run, not two.
      const dueMaxMs = Math.min(draft.facts.nowMs, awayUntilMs(draft));
      const passed = passedTimes(draft, occurrence, Number.POSITIVE_INFINITY, dueMaxMs);
      if (passed.count === 1) startBesides(draft, asCatchup(draft, occurrence));
      else miss(draft, occurrence, withoutNewest(draft, occurrence, passed), 'catchupLatest');
      return;
    }
    case 'all': {
      // The window ends when catching up begins: a long row of runs does not push its own end out
      // of it.
      const windowStartMs = awayUntilMs(draft) - policies.catchupWindowMs;
      if (occurrence.nominalAt < windowStartMs) {
        const passed = passedTimes(draft, occurrence, windowStartMs - 1);
        miss(draft, occurrence, passed, 'catchupWindow');
        return;
      }
      // One after another, even under `skip`: the next is created when this one becomes ready.
      startOrWait(draft, asCatchup(draft, occurrence));
      return;
    }
    default:
      unreachable(policies.catchup);
  }
}

/** Consecutive nominal times, the first of them an occurrence's. */
interface Passed {
  readonly newestAt: number;
  readonly count: number;
}

/** Misses a run of times as one record and one event; then the schedule goes on after them. */
function miss(draft: Draft, occurrence: OccurrenceRecord, passed: Passed, reason: string): void {
  if (passed.count > 1) {
    const { taken } = draft.task;
    draft.changeTask({ cursorAt: passed.newestAt, taken: taken + passed.count - 1 });
  }
  end(draft, occurrence, 'missed', { reason, count: passed.count, untilAt: passed.newestAt });
}

/**
 * The times from the occurrence's on, up to `nominalMaxMs`, that were due while nobody was there;
 * only those that `limit` allows. O(1) for a fixedRate, at most some 1,000 steps for a cron or
 * within the jitter.
 */
function passedTimes(
  draft: Draft,
  occurrence: OccurrenceRecord,
  nominalMaxMs = Number.POSITIVE_INFINITY,
  dueMaxMs = Math.min(draft.facts.nowMs, awayUntilMs(draft) - 1),
): Passed {
  const { schedule, anchorAt, taken, cursorAt } = draft.task;
  if (!isRecurring(schedule)) return { newestAt: occurrence.nominalAt, count: 1 };
  assert(cursorAt === occurrence.nominalAt, 'only the newest time taken has passed times after it');
  const untilMs = Math.min(nominalMaxMs, dueMaxMs);
  const leftMax = (schedule.limit ?? Number.POSITIVE_INFINITY) - taken;

  let { newestAt, count } = leap(draft, occurrence, untilMs - schedule.jitterMs, leftMax);
  if (schedule.jitterMs === 0) return { newestAt, count };
  for (let steps = 0; steps < WALK_MAX && count <= leftMax; steps++) {
    const nextAt = nextNominal(schedule, anchorAt, newestAt);
    if (nextAt === undefined || nextAt > untilMs) break;
    const { id, generation } = draft.task;
    if (nextAt + jitterOf(schedule, id, generation, nextAt) > dueMaxMs) break;
    newestAt = nextAt;
    count += 1;
  }
  return { newestAt, count };
}

/**
 * All times from the occurrence's to `untilMs`, at most `leftMax` after it, without looking at each
 * where possible.
 */
function leap(
  draft: Draft,
  { nominalAt }: OccurrenceRecord,
  untilMs: number,
  leftMax: number,
): Passed {
  const { schedule, anchorAt } = draft.task;
  const range = { afterMs: nominalAt, atOrBeforeMs: untilMs };
  const later = untilMs > nominalAt ? newestNominal(schedule, anchorAt, range) : undefined;
  if (later === undefined || leftMax <= 0) return { newestAt: nominalAt, count: 1 };
  // Beyond 1,000 the count of a cron, and with it what `limit` counts, is a lower bound.
  const allowed = later.countIsExact ? later.count <= leftMax : leftMax > WALK_MAX;
  if (allowed) return { newestAt: later.newestAt, count: later.count + 1 };
  if (schedule.kind === 'fixedRate') {
    return { newestAt: nominalAt + leftMax * schedule.everyMs, count: leftMax + 1 };
  }
  let newestAt = nominalAt;
  for (let i = 0; i < leftMax; i++) {
    const nextAt = nextNominal(schedule, anchorAt, newestAt);
    assert(nextAt !== undefined, 'the limit is met before the last passed time');
    newestAt = nextAt;
  }
  return { newestAt, count: leftMax + 1 };
}

function withoutNewest(
  { task: { schedule } }: Draft,
  { nominalAt }: OccurrenceRecord,
  { newestAt, count }: Passed,
): Passed {
  if (schedule.kind === 'fixedRate') {
    return { newestAt: newestAt - schedule.everyMs, count: count - 1 };
  }
  assert(schedule.kind === 'cron', 'only cron and fixedRate repeat');
  const before = newestCronMs(schedule, { afterMs: nominalAt, untilMs: newestAt - 1 });
  return { newestAt: before ?? nominalAt, count: count - 1 };
}

// --- overlap -------------------------------------------------------------------------------------

/** Due while another of its task is live. */
function overlap(draft: Draft, occurrence: OccurrenceRecord): void {
  const { policies } = draft.task;
  switch (policies.overlap) {
    case 'skip':
      skip(draft, occurrence, 'overlap');
      return;
    case 'bufferOne':
      if (draft.live.some(({ waiting, kind }) => waiting && kind === 'nominal')) {
        skip(draft, occurrence, 'overlap');
      } else waitInTurn(draft, occurrence);
      return;
    case 'bufferAll':
      if (backlogIsFull(draft)) skip(draft, occurrence, 'backlogFull');
      else waitInTurn(draft, occurrence);
      return;
    case 'allowAll':
      // Only catch-up runs are ever blocked under it, and those wait before they come here.
      markReady(draft, occurrence);
      return;
    case 'cancelOther':
      waitInTurn(draft, occurrence);
      cancelOthers(draft, occurrence);
      return;
    default:
      unreachable(policies.overlap);
  }
}

export function skip(draft: Draft, occurrence: OccurrenceRecord, reason: string): void {
  end(draft, occurrence, 'skipped', { reason });
}

export function backlogIsFull({ live }: Draft): boolean {
  let waiting = 0;
  for (const occurrence of live) if (occurrence.waiting) waiting++;
  return waiting >= WAITING_MAX;
}

function waitInTurn(draft: Draft, occurrence: OccurrenceRecord): void {
  ensureNext(draft, hold(draft, occurrence));
}

/**
 * `cancelOther`: this one starts when the others have ended. One of the schedule that was waiting
 * to do so is overtaken; what was triggered or redriven keeps its place. Those that wait go first,
 * so that no end here lets them through.
 */
function cancelOthers(draft: Draft, occurrence: OccurrenceRecord): void {
  const others = draft.live.filter(({ id }) => id !== occurrence.id);
  const letThrough = others.filter(({ state }) => isLetThrough(state));
  for (const other of others) {
    if (other.waiting && other.kind === 'nominal') skip(draft, other, 'overlap');
  }
  for (const other of letThrough) {
    if (other.state === 'running') requestCancel(draft, other, 'overlap');
    else if (other.state === 'ready' && other.attempt === 0) skip(draft, other, 'overlap');
    else if (other.state !== 'cancel-requested') {
      end(draft, other, 'cancelled', { reason: 'overlap' });
    }
  }
}
