/** What follows from the end of an occurrence: its successor, who waited behind it, the end of its task. */
import { markReady } from './advance.js';
import type { Draft, OccurrencePatch } from './draft.js';
import type { TaskEventType } from './effect.js';
import type { OccurrenceRecord, OccurrenceState } from './model.js';
import { firstNominal } from './schedule.js';

type EndState = 'succeeded' | 'dead' | 'quarantined' | 'cancelled' | 'skipped' | 'missed';

const TOLD_AS: Record<EndState, TaskEventType> = {
  succeeded: 'succeeded',
  dead: 'deadLettered',
  quarantined: 'quarantined',
  cancelled: 'cancelled',
  skipped: 'skipped',
  missed: 'missed',
};

/** An occurrence that its own task's update dropped: no outcome of the task, nobody is told. */
export const SUPERSEDED = 'superseded';

/** Ends an occurrence and does all that follows from it. */
export function end(
  draft: Draft,
  occurrence: OccurrenceRecord,
  state: EndState,
  patch: OccurrencePatch = {},
): void {
  const endedAt = patch.endedAt ?? draft.facts.nowMs;
  const ended = draft.move(occurrence, state, {
    ...patch,
    endedAt,
    waiting: false,
    leaseUntil: undefined,
  });
  tellEnd(draft, ended, state);
  if (state !== 'skipped' && draft.task.lastEnd !== state) draft.changeTask({ lastEnd: state });
  succeed(draft, ended);
  stopIfExhausted(draft, ended);
  releaseWaiting(draft);
  completeIfDone(draft);
}

function tellEnd(draft: Draft, ended: OccurrenceRecord, state: EndState): void {
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
    default:
      draft.tell(TOLD_AS[state], ended, {
        reason: ended.reason,
        count: ended.count ?? 1,
        from: ended.nominalAt,
        to: ended.untilAt ?? ended.nominalAt,
      });
  }
}

function isOpen(draft: Draft): boolean {
  return draft.task.state === 'active' || draft.task.state === 'paused';
}

/** fixedDelay: the end of sequence n creates sequence n + 1, at the end + delay. */
function succeed(draft: Draft, ended: OccurrenceRecord): void {
  const { schedule } = draft.task;
  if (schedule.kind !== 'fixedDelay' || !isOpen(draft)) return;
  const needsSuccess = schedule.after === 'success';
  // Under `after: 'success'` the redrive of a failed run carries the sequence on.
  const carries = ended.kind === 'sequence' || (needsSuccess && ended.kind === 'redrive');
  if (!carries || (needsSuccess && ended.state !== 'succeeded')) return;
  const endedAt = ended.endedAt ?? draft.facts.nowMs;
  if (draft.live.some((other) => other.kind === 'sequence')) return;
  createSequence(draft, endedAt + schedule.delayMs);
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

/** The first sequence of a generation. */
export function createFirstSequence(draft: Draft, nowMs: number): void {
  const atMs = firstNominal(draft.task.schedule, draft.task.anchorAt, nowMs);
  if (atMs !== undefined) createSequence(draft, Math.max(atMs, nowMs));
}

/** `onExhausted: 'stop'`: a recurring task ends as failed when one of its occurrences is dead. */
function stopIfExhausted(draft: Draft, ended: OccurrenceRecord): void {
  const exhausted = ended.state === 'dead' || ended.state === 'quarantined';
  const { task } = draft;
  if (!exhausted || task.policies.onExhausted !== 'stop' || task.schedule.kind === 'once') return;
  if (!isOpen(draft)) return;
  draft.changeTask({
    state: 'completed',
    endedAt: draft.facts.nowMs,
    endReason: 'exhausted',
    pausedAt: undefined,
  });
  for (const other of draft.live.slice()) {
    if (other.state === 'scheduled') drop(draft, other, 'exhausted');
  }
}

/** Cancels what has not started, without any consequence. */
export function drop(draft: Draft, occurrence: OccurrenceRecord, reason: string): void {
  draft.move(occurrence, 'cancelled', {
    endedAt: draft.facts.nowMs,
    reason,
    waiting: false,
  });
}

const BLOCKING: ReadonlySet<OccurrenceState> = new Set<OccurrenceState>([
  'ready',
  'running',
  'cancel-requested',
  'retry-wait',
]);

/** Overlap looks at occurrences that were let through and have not ended. */
export function isBlocking(occurrence: OccurrenceRecord): boolean {
  return BLOCKING.has(occurrence.state);
}

/** The first of those held back by overlap becomes ready when nothing blocks any more. */
export function releaseWaiting(draft: Draft): void {
  if (draft.live.length === 0 || draft.live.some(isBlocking)) return;
  const paused = draft.task.state === 'paused';
  let first: OccurrenceRecord | undefined;
  for (const occurrence of draft.live) {
    if (!occurrence.waiting || (paused && occurrence.kind !== 'trigger')) continue;
    if (first === undefined || occurrence.nominalAt < first.nominalAt) first = occurrence;
  }
  if (first !== undefined) markReady(draft, first);
}

/** A task is completed when nothing of it lives and nothing can come. */
export function completeIfDone(draft: Draft): void {
  const { task } = draft;
  if (draft.live.length > 0 || !isOpen(draft)) return;
  if (task.schedule.kind === 'fixedDelay' && task.schedule.after === 'success') {
    // Failed without a next run: it waits for a redrive or an update, unless success has ended it.
    if (task.lastEnd !== 'succeeded') return;
  }
  const once = task.schedule.kind === 'once';
  draft.changeTask({
    state: once && task.lastEnd === 'cancelled' ? 'cancelled' : 'completed',
    endedAt: draft.facts.nowMs,
    endReason: once ? task.lastEnd : 'scheduleEnded',
    pausedAt: undefined,
  });
}
