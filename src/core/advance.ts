/** Time: what comes due, overlap, catch-up, and the next nominal time. */
import { assert } from './assert.js';
import type { Draft } from './draft.js';
import { end, isBlocking, releaseWaiting } from './ending.js';
import type { OccurrenceRecord } from './model.js';
import { requestCancel } from './running.js';
import { jitterOf, newestNominal, nextNominal, type Schedule } from './schedule.js';

/** Occurrences of one task held back by overlap; more are skipped with `backlogFull`. */
export const WAITING_MAX = 1000;
/** Nominal times walked one by one where a `limit` must be met exactly. */
const LIMIT_WALK_MAX = 1000;

/** The due time of an occurrence has come: it becomes ready, is held back, skipped or missed. */
export function becomeDue(draft: Draft, occurrenceId: string): void {
  const occurrence = draft.find(occurrenceId);
  if (occurrence === undefined || occurrence.dueAt > draft.facts.nowMs) return;
  const { state } = draft.task;
  if (state === 'paused' && occurrence.kind !== 'trigger') return;
  if (state === 'completed' && occurrence.state === 'scheduled') return;
  if (occurrence.state === 'retry-wait') {
    draft.move(occurrence, 'ready');
  } else if (occurrence.state === 'scheduled' && !occurrence.waiting) {
    letThrough(draft, occurrence);
  }
}

function letThrough(draft: Draft, occurrence: OccurrenceRecord): void {
  const away = occurrence.nominalAt < draft.facts.awayUntilMs;
  if (!isRecurring(draft.task.schedule) || occurrence.kind !== 'nominal') {
    markReady(draft, away ? asCatchup(draft, occurrence) : occurrence);
  } else if (away && occurrence.generation === draft.task.generation) {
    catchUp(draft, occurrence);
  } else {
    overlap(draft, occurrence);
  }
}

/** cron and fixedRate: nominal times come from the schedule alone, never from when runs started or ended. */
function isRecurring(schedule: Schedule): boolean {
  return schedule.kind === 'cron' || schedule.kind === 'fixedRate';
}

/** scheduled → ready, or missed when its ttl has passed; either way the next nominal time is taken. */
export function markReady(draft: Draft, occurrence: OccurrenceRecord): void {
  if (ttlPassed(draft, occurrence)) {
    ensureNext(draft, occurrence);
    end(draft, occurrence, 'missed', { reason: 'ttl', count: 1 });
    return;
  }
  draft.move(occurrence, 'ready', { waiting: false });
  ensureNext(draft, occurrence);
}

/** Missed if not started by due + ttl. */
export function ttlPassed(draft: Draft, occurrence: OccurrenceRecord): boolean {
  const { ttlMs } = draft.task.policies;
  return (
    ttlMs !== undefined && occurrence.attempt === 0 && draft.facts.nowMs > occurrence.dueAt + ttlMs
  );
}

function asCatchup(draft: Draft, occurrence: OccurrenceRecord): OccurrenceRecord {
  return draft.move(occurrence, 'scheduled', { catchup: true });
}

/** Creates the occurrence after this one, if this is the newest taken from the schedule. */
export function ensureNext(draft: Draft, occurrence: OccurrenceRecord): void {
  const { task } = draft;
  if (occurrence.kind !== 'nominal' || occurrence.generation !== task.generation) return;
  if (task.state !== 'active' && task.state !== 'paused') return;
  if (!isRecurring(task.schedule) || task.cursorAt !== occurrence.nominalAt) return;
  takeNext(draft, occurrence.nominalAt);
}

/** Takes the next nominal time after `afterMs` and creates its occurrence; undefined at the schedule's end. */
function takeNext(draft: Draft, afterMs: number): OccurrenceRecord | undefined {
  const { schedule, anchorAt, taken } = draft.task;
  assert(schedule.kind === 'cron' || schedule.kind === 'fixedRate', 'only these have a next time');
  if (schedule.limit !== undefined && taken >= schedule.limit) return undefined;
  const nominalAt = nextNominal(schedule, anchorAt, afterMs);
  return nominalAt === undefined ? undefined : createNominal(draft, nominalAt);
}

export function createNominal(draft: Draft, nominalAt: number): OccurrenceRecord {
  const { task } = draft;
  draft.changeTask({ cursorAt: nominalAt, taken: task.taken + 1 });
  const jitterMs = jitterOf(task.schedule, task.id, task.generation, nominalAt);
  return draft.create({
    kind: 'nominal',
    ordinal: nominalAt,
    nominalAt,
    dueAt: nominalAt + jitterMs,
  });
}

/** The newest nominal time up to `untilMs` that `limit` still allows, counted from the occurrence on. */
function newestUpTo(
  draft: Draft,
  occurrence: OccurrenceRecord,
  untilMs: number,
): { newestAt: number; count: number } {
  const { schedule, anchorAt, taken } = draft.task;
  assert(schedule.kind === 'cron' || schedule.kind === 'fixedRate', 'only these repeat');
  const alone = { newestAt: occurrence.nominalAt, count: 1 };
  const range = { afterMs: occurrence.nominalAt, atOrBeforeMs: untilMs };
  const later =
    untilMs > occurrence.nominalAt ? newestNominal(schedule, anchorAt, range) : undefined;
  if (later === undefined) return alone;
  const allowed = schedule.limit === undefined ? later.count : schedule.limit - taken;
  if (later.count <= allowed) return { newestAt: later.newestAt, count: later.count + 1 };
  let newestAt = occurrence.nominalAt;
  let count = 1;
  for (; count <= Math.min(allowed, LIMIT_WALK_MAX); count++) {
    const nextAt = nextNominal(schedule, anchorAt, newestAt);
    if (nextAt === undefined || nextAt > untilMs) break;
    newestAt = nextAt;
  }
  return { newestAt, count };
}

/**
 * Nominal times passed while nobody could run them, this occurrence's being the first of them.
 * `latest`: the newest runs, the others are missed, as one record. `all`: those within the window run, one
 * after another. `none`: all are missed.
 */
function catchUp(draft: Draft, occurrence: OccurrenceRecord): void {
  const { policies } = draft.task;
  const { nowMs, awayUntilMs } = draft.facts;
  const untilMs = Math.min(nowMs, awayUntilMs - 1);
  switch (policies.catchup) {
    case 'none':
      miss(draft, occurrence, newestUpTo(draft, occurrence, untilMs), 'catchupNone');
      return;
    case 'latest': {
      const { newestAt } = newestUpTo(draft, occurrence, untilMs);
      if (newestAt > occurrence.nominalAt) {
        const older = newestUpTo(draft, occurrence, newestAt - 1);
        miss(draft, occurrence, older, 'catchupLatest');
        return;
      }
      overlap(draft, asCatchup(draft, occurrence));
      return;
    }
    case 'all': {
      const windowStartMs = nowMs - policies.catchupWindowMs;
      if (occurrence.nominalAt < windowStartMs) {
        const beforeWindow = Math.min(untilMs, windowStartMs - 1);
        miss(draft, occurrence, newestUpTo(draft, occurrence, beforeWindow), 'catchupWindow');
        return;
      }
      const catching = asCatchup(draft, occurrence);
      // One after another, even under `skip`; the next is created when this one becomes ready.
      if (isBlocked(draft, catching)) draft.move(catching, 'scheduled', { waiting: true });
      else markReady(draft, catching);
      return;
    }
    default:
      return policies.catchup satisfies never;
  }
}

/** One record and one event for a run of consecutive missed times; then the schedule goes on after them. */
function miss(
  draft: Draft,
  occurrence: OccurrenceRecord,
  passed: { newestAt: number; count: number },
  reason: string,
): void {
  if (draft.task.cursorAt === occurrence.nominalAt) {
    const taken = draft.task.taken + passed.count - 1;
    draft.changeTask({ cursorAt: passed.newestAt, taken });
    const next = takeNext(draft, passed.newestAt);
    // It may have passed too (the newest under `latest`): then it is due at once, in this same decision.
    if (next !== undefined && next.dueAt <= draft.facts.nowMs) letThrough(draft, next);
  }
  end(draft, occurrence, 'missed', {
    reason,
    count: passed.count,
    untilAt: passed.newestAt,
  });
}

function isBlocked(draft: Draft, occurrence: OccurrenceRecord): boolean {
  return draft.live.some((other) => other.id !== occurrence.id && isBlocking(other));
}

function overlap(draft: Draft, occurrence: OccurrenceRecord): void {
  if (!isBlocked(draft, occurrence)) {
    markReady(draft, occurrence);
    return;
  }
  const { policies } = draft.task;
  const waiting = draft.live.filter((other) => other.waiting);
  switch (policies.overlap) {
    case 'skip':
      skip(draft, occurrence, 'overlap');
      return;
    case 'bufferOne':
      if (waiting.length > 0) skip(draft, occurrence, 'overlap');
      else wait(draft, occurrence);
      return;
    case 'bufferAll':
      if (waiting.length >= WAITING_MAX) skip(draft, occurrence, 'backlogFull');
      else wait(draft, occurrence);
      return;
    case 'allowAll':
      markReady(draft, occurrence);
      return;
    case 'cancelOther':
      wait(draft, occurrence);
      cancelOthers(draft, occurrence);
      return;
    default:
      return policies.overlap satisfies never;
  }
}

function skip(draft: Draft, occurrence: OccurrenceRecord, reason: string): void {
  ensureNext(draft, occurrence);
  end(draft, occurrence, 'skipped', { reason, count: 1 });
}

function wait(draft: Draft, occurrence: OccurrenceRecord): void {
  const held = draft.move(occurrence, 'scheduled', { waiting: true });
  ensureNext(draft, held);
}

/** `cancelOther`: this one starts when the others have ended; one that was waiting to do so is overtaken. */
function cancelOthers(draft: Draft, occurrence: OccurrenceRecord): void {
  for (const other of draft.live.slice()) {
    if (other.id === occurrence.id) continue;
    if (other.waiting) end(draft, other, 'skipped', { reason: 'overlap', count: 1 });
    else if (other.state === 'ready' || other.state === 'retry-wait') {
      end(draft, other, 'cancelled', { reason: 'overlap' });
    } else if (other.state === 'running') {
      requestCancel(draft, other, 'overlap');
    }
  }
  releaseWaiting(draft);
}
