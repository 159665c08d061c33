/**
 * What follows from the end of an occurrence: its successor, who waited behind it, the end of its
 * task.
 */
import { ensureNext, markReady } from './advance.js';
import { unreachable } from './assert.js';
import type { Draft, OccurrencePatch } from './draft.js';
import type { OccurrenceRecord, OccurrenceState, TaskRecord } from './model.js';

type EndState = 'succeeded' | 'dead' | 'quarantined' | 'cancelled' | 'skipped' | 'missed';

/** An occurrence that its own task's update dropped: no outcome of the task, nobody is told. */
export const SUPERSEDED = 'superseded';
/**
 * `endReason` of a task that `onExhausted: 'stop'` stopped; from then on it only waits for what
 * still lives.
 */
export const EXHAUSTED = 'exhausted';

/** Ends an occurrence, now unless `patch` says when, and does all that follows from it. */
export function end(
  draft: Draft,
  occurrence: OccurrenceRecord,
  state: EndState,
  patch?: OccurrencePatch,
): void {
  const ended = draft.move(occurrence, state, patch);
  if (state === 'skipped' || state === 'missed') {
    ended.count ??= 1;
    ended.untilAt ??= ended.nominalAt;
  }
  afterEnd(draft, ended, state);
}

/** All that follows from an end, once the record says so. */
export function afterEnd(draft: Draft, ended: OccurrenceRecord, state: EndState): void {
  tellEnd(draft, ended, state);
  noteLastEnd(draft, ended);
  stopIfExhausted(draft, ended);
  if (draft.task.schedule.kind === 'fixedDelay') continueSequence(draft, ended);
  else ensureNext(draft, ended);
  releaseWaiting(draft);
  completeIfDone(draft, ended);
}

const EVENT_OF_END = {
  succeeded: 'succeeded',
  quarantined: 'quarantined',
  dead: 'deadLettered',
  cancelled: 'cancelled',
  skipped: 'skipped',
  missed: 'missed',
} as const;

function tellEnd(draft: Draft, ended: OccurrenceRecord, state: EndState): void {
  if (!draft.isTold(EVENT_OF_END[state])) return;
  switch (state) {
    case 'succeeded':
      draft.tell('succeeded', ended, {
        result: ended.result,
        durationMs: (ended.endedAt ?? 0) - (ended.startedAt ?? ended.endedAt ?? 0),
      });
      return;
    case 'quarantined':
      draft.tell('quarantined', ended, { error: ended.error, crashes: ended.crashes });
      return;
    case 'dead':
      draft.tell('deadLettered', ended, { error: ended.error });
      return;
    case 'cancelled':
      draft.tell('cancelled', ended, { reason: ended.reason });
      return;
    case 'skipped':
    case 'missed':
      draft.tell(state, ended, {
        reason: ended.reason,
        count: ended.count ?? 1,
        from: ended.nominalAt,
        to: ended.untilAt ?? ended.nominalAt,
      });
      return;
    default:
      unreachable(state);
  }
}

/**
 * What the task's status goes by when nothing of it lives. A skipped one says nothing: the one it
 * was skipped for will.
 */
function noteLastEnd(draft: Draft, { state, kind }: OccurrenceRecord): void {
  const { lastEnd, endReason } = draft.task;
  if (state === 'skipped' || lastEnd === state) return;
  // One that was stopped is failed, however those end that had started; a redrive may make that
  // good.
  if (endReason === EXHAUSTED && kind !== 'redrive') return;
  draft.ownTask().lastEnd = state;
}

function isOpen({ state }: TaskRecord): boolean {
  return state === 'active' || state === 'paused';
}

/** True while the schedule may still give occurrences. */
export function goesOn(task: TaskRecord): boolean {
  return isOpen(task) && task.endReason === undefined;
}

/** Of the schedule; what was triggered or redriven stands outside of it. */
export function isPlanned({ kind }: OccurrenceRecord): boolean {
  return kind === 'nominal' || kind === 'sequence';
}

/** fixedDelay: the end of sequence n creates sequence n + 1, at the end + delay. */
function continueSequence(draft: Draft, ended: OccurrenceRecord): void {
  const { schedule, generation, taken, cursorAt, anchorAt } = draft.task;
  if (schedule.kind !== 'fixedDelay' || !goesOn(draft.task)) return;
  // An end that is told twice, or of another, creates no second one.
  if (draft.live.some(({ kind }) => kind === 'sequence')) return;
  const nextAt = (ended.endedAt ?? draft.facts.nowMs) + schedule.delayMs;
  if (ended.generation !== generation) {
    // The schedule was given while this one lived: its end, whichever, starts the new generation.
    if (isPlanned(ended) && taken === 0) createSequence(draft, Math.max(nextAt, anchorAt));
    return;
  }
  const needsSuccess = schedule.after === 'success';
  // Under `after: 'success'` the redrive of the failed run, which has its nominal time, carries the
  // sequence on.
  const carries =
    ended.kind === 'sequence' ||
    (needsSuccess && ended.kind === 'redrive' && ended.nominalAt === cursorAt);
  if (carries && (!needsSuccess || ended.state === 'succeeded')) createSequence(draft, nextAt);
}

/** The next sequence of a fixedDelay, unless its limit or `endAt` says it was the last. */
export function createSequence(draft: Draft, atMs: number): void {
  const { schedule, taken } = draft.task;
  if (schedule.kind !== 'fixedDelay') return;
  if (schedule.limit !== undefined && taken >= schedule.limit) return;
  if (schedule.endAt !== undefined && atMs > schedule.endAt) return;
  draft.changeTask({ taken: taken + 1, cursorAt: atMs });
  draft.create({ kind: 'sequence', ordinal: taken + 1, nominalAt: atMs, dueAt: atMs });
}

/**
 * `onExhausted: 'stop'`: when one of its occurrences is dead nothing of a recurring task's schedule
 * starts any more. What has started, or was triggered, goes on to its end, and with that the task
 * has ended.
 */
function stopIfExhausted(draft: Draft, ended: OccurrenceRecord): void {
  const { task } = draft;
  if (ended.state !== 'dead' && ended.state !== 'quarantined') return;
  if (task.policies.onExhausted !== 'stop' || task.schedule.kind === 'once') return;
  if (!goesOn(task)) return;
  draft.changeTask({ endReason: EXHAUSTED });
  for (const other of draft.live.slice()) {
    if (isDroppable(other)) draft.tell('cancelled', drop(draft, other, EXHAUSTED), DROPPED);
  }
}

const DROPPED = Object.freeze({ reason: EXHAUSTED });

/** Of the schedule, and not begun. */
export function isDroppable(occurrence: OccurrenceRecord): boolean {
  const { state, attempt } = occurrence;
  return isPlanned(occurrence) && attempt === 0 && (state === 'scheduled' || state === 'ready');
}

/** Cancels what has not started, without any consequence. */
export function drop(draft: Draft, occurrence: OccurrenceRecord, reason: string): OccurrenceRecord {
  return draft.move(occurrence, 'cancelled', { reason });
}

/** Let through by overlap and not ended. */
export function isLetThrough(state: OccurrenceState): boolean {
  return (
    state === 'ready' ||
    state === 'running' ||
    state === 'cancel-requested' ||
    state === 'retry-wait'
  );
}

export function isRunning({ state }: OccurrenceRecord): boolean {
  return state === 'running' || state === 'cancel-requested';
}

/**
 * A pause holds back everything but what was triggered during it. Such a run is marked by
 * `catchup`, which means nothing else for a triggered one.
 */
export function isHeld(task: TaskRecord, { kind, catchup }: OccurrenceRecord): boolean {
  return task.state === 'paused' && !(kind === 'trigger' && catchup);
}

/** True while another of the task keeps this one from being let through. */
export function isBlocked({ task, live }: Draft, occurrence: OccurrenceRecord): boolean {
  const { overlap, catchup } = task.policies;
  for (const other of live) {
    if (other.id === occurrence.id || !isLetThrough(other.state)) continue;
    if (overlap === 'allowAll') {
      // Only the runs of `catchup: 'all'` go one after another.
      const inRow = catchup === 'all' && isCatchupRun(occurrence) && isCatchupRun(other);
      if (!inRow) continue;
    }
    // What a pause holds back does not hold back what was triggered during it.
    if (isRunning(other) || !isHeld(task, other)) return true;
  }
  return false;
}

function isCatchupRun({ kind, catchup }: OccurrenceRecord): boolean {
  return kind === 'nominal' && catchup;
}

/** Past due and held back; off the wheel until a commit that ends another lets it through. */
export function hold(draft: Draft, occurrence: OccurrenceRecord): OccurrenceRecord {
  return draft.move(occurrence, 'scheduled', { waiting: true });
}

/**
 * Those held back become ready, in the order of their due times, as long as nothing blocks them.
 */
export function releaseWaiting(draft: Draft): void {
  if (draft.live.length === 0 || draft.releasing || !isOpen(draft.task)) return;
  draft.releasing = true;
  for (;;) {
    const first = firstWaiting(draft);
    if (first === undefined || isBlocked(draft, first)) break;
    markReady(draft, first);
  }
  draft.releasing = false;
}

function firstWaiting({ task, live }: Draft): OccurrenceRecord | undefined {
  let first: OccurrenceRecord | undefined;
  for (const occurrence of live) {
    if (!occurrence.waiting || isHeld(task, occurrence)) continue;
    if (first === undefined || occurrence.dueAt < first.dueAt) first = occurrence;
  }
  return first;
}

/** A task is completed when nothing of it lives and nothing can come. */
function completeIfDone(draft: Draft, ended: OccurrenceRecord): void {
  const { task } = draft;
  if (draft.live.length > 0 || !isOpen(task) || awaitsSuccess(draft, ended)) return;
  const once = task.schedule.kind === 'once';
  const cancelled = once && ended.state === 'cancelled' && ended.kind !== 'trigger';
  const reason = cancelled ? ended.reason : once ? ended.state : 'scheduleEnded';
  const done = draft.ownTask();
  done.state = cancelled ? 'cancelled' : 'completed';
  done.endedAt = draft.facts.nowMs;
  done.endReason ??= reason;
  done.pausedAt = undefined;
}

/**
 * A fixedDelay `after: 'success'` that failed, without a next run: it waits for a redrive or an
 * update, as long as there could be a next one.
 */
function awaitsSuccess({ task, facts }: Draft, ended: OccurrenceRecord): boolean {
  const { schedule, taken } = task;
  if (schedule.kind !== 'fixedDelay' || schedule.after !== 'success' || !goesOn(task)) return false;
  if (schedule.limit !== undefined && taken >= schedule.limit) return false;
  const nextAt = Math.max(facts.nowMs, ended.endedAt ?? facts.nowMs) + schedule.delayMs;
  return schedule.endAt === undefined || nextAt <= schedule.endAt;
}
