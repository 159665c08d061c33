/** What users call: create, update, cancel, pause, resume, trigger, redrive, delete. */
import { backlogIsFull, becomeDue, createNominal, skip, startOrWait } from './advance.js';
import { Draft } from './draft.js';
import {
  createSequence,
  drop,
  EXHAUSTED,
  end,
  isBlocked,
  isDroppable,
  isHeld,
  isPlanned,
  isRunning,
  releaseWaiting,
  SUPERSEDED,
} from './ending.js';
import {
  InvalidArgumentError,
  InvalidScheduleError,
  OccurrenceNotFoundError,
  TaskEndedError,
  VersionConflictError,
} from './errors.js';
import type { Facts, NewTask, TaskPatch } from './event.js';
import type { OccurrenceRecord, TaskRecord } from './model.js';
import { requestCancel } from './running.js';
import { anchorOf, firstNominal, type Schedule } from './schedule.js';

export function createTask(made: NewTask, facts: Facts, owned: boolean): Draft {
  const task: TaskRecord = {
    id: made.id,
    tenant: made.tenant,
    handler: made.handler,
    // A one-off takes the highest version now; a recurring task at each occurrence, unless pinned.
    handlerVersion:
      made.handlerVersion ??
      (made.schedule.kind === 'once' ? facts.latestVersion(made.handler) : undefined),
    payload: made.payload,
    schedule: made.schedule,
    policies: made.policies,
    priority: made.priority,
    state: 'active',
    pausedAt: undefined,
    version: 1,
    generation: 1,
    revision: 1,
    idempotencyKey: made.idempotencyKey,
    definition: made.definition,
    createdAt: made.createdAt,
    endedAt: undefined,
    endReason: undefined,
    anchorAt: anchorOf(made.schedule, made.createdAt),
    cursorAt: undefined,
    taken: 0,
    extras: 0,
    lastOccurrenceId: undefined,
    lastEnd: undefined,
  };
  const draft = Draft.ofNew(task, facts, owned);
  createFirst(draft, made.createdAt);
  return draft;
}

/**
 * The first occurrence of a generation.
 * @throws InvalidScheduleError
 */
function createFirst(draft: Draft, nowMs: number): void {
  const { schedule, anchorAt } = draft.task;
  const firstAt = firstOf(schedule, anchorAt, nowMs);
  if (schedule.kind === 'once') {
    const dueAt = Math.max(firstAt, nowMs);
    draft.create({ kind: 'nominal', ordinal: firstAt, nominalAt: firstAt, dueAt });
  } else if (schedule.kind === 'fixedDelay') createSequence(draft, firstAt);
  else createNominal(draft, firstAt);
}

function firstOf(schedule: Schedule, anchorAt: number, nowMs: number): number {
  const firstAt = firstNominal(schedule, anchorAt, nowMs);
  if (firstAt === undefined) {
    throw new InvalidScheduleError('the schedule has no time left: its endAt has passed');
  }
  return firstAt;
}

/** @throws TaskEndedError */
function assertOpen(draft: Draft, call: string): void {
  const { task } = draft;
  if (task.state === 'completed' || task.state === 'cancelled') {
    const why = task.endReason === undefined ? '' : `, ${task.endReason}`;
    throw new TaskEndedError(`${call}: task ${task.id} has ended (${task.state}${why})`);
  }
}

/** @throws TaskEndedError, VersionConflictError, InvalidScheduleError; nothing is changed then */
export function updateTask(
  draft: Draft,
  patch: TaskPatch,
  expectedVersion: number | undefined,
): void {
  assertOpen(draft, 'update');
  const { task } = draft;
  if (expectedVersion !== undefined && expectedVersion !== task.version) {
    throw new VersionConflictError(
      `update: task ${task.id} is at version ${task.version}, not at ${expectedVersion}`,
    );
  }
  const { schedule, handlerVersion } = patch;
  const { nowMs } = draft.facts;
  // One that is over is refused before anything is changed.
  if (schedule !== undefined) firstOf(schedule, anchorOf(schedule, nowMs), nowMs);
  draft.changeTask({ ...patch, version: task.version + 1 });
  if (handlerVersion !== undefined) pinVersion(draft, handlerVersion);
  if (schedule !== undefined) reschedule(draft, schedule, nowMs);
  // Under the new policies, and without what was dropped, one that waited may start.
  releaseWaiting(draft);
}

/**
 * What does not run now will run this version, so that an occurrence whose version is gone can be
 * saved.
 */
function pinVersion(draft: Draft, handlerVersion: number): void {
  for (const occurrence of draft.live.slice()) {
    if (isRunning(occurrence) || occurrence.handlerVersion === handlerVersion) continue;
    draft.move(occurrence, occurrence.state, { handlerVersion });
  }
}

/** Begins a new generation: what the old one planned and has not started is dropped. */
function reschedule(draft: Draft, schedule: Schedule, nowMs: number): void {
  for (const occurrence of draft.live.slice()) {
    if (isDroppable(occurrence)) drop(draft, occurrence, SUPERSEDED);
  }
  draft.changeTask({
    generation: draft.task.generation + 1,
    anchorAt: anchorOf(schedule, nowMs),
    cursorAt: undefined,
    taken: 0,
    endReason: undefined,
  });
  // fixedDelay: while one is live, its end starts the new generation.
  if (schedule.kind !== 'fixedDelay' || !draft.live.some(isPlanned)) createFirst(draft, nowMs);
}

/**
 * Nothing of the task starts again; what runs is asked to stop. Nothing to do when it has ended.
 */
export function cancelTask(draft: Draft, reason: string | undefined): void {
  const { task, facts } = draft;
  if (task.state === 'completed' || task.state === 'cancelled') return;
  draft.changeTask({
    state: 'cancelled',
    endedAt: facts.nowMs,
    endReason: reason ?? 'cancelled',
    pausedAt: undefined,
  });
  for (const { id } of draft.live.slice()) {
    const occurrence = draft.find(id);
    if (occurrence !== undefined) stop(draft, occurrence, reason);
  }
}

function stop(draft: Draft, occurrence: OccurrenceRecord, reason: string | undefined): void {
  if (occurrence.state === 'cancel-requested') return;
  if (occurrence.state === 'running') requestCancel(draft, occurrence, reason);
  else end(draft, occurrence, 'cancelled', { reason: reason ?? 'cancelled' });
}

/**
 * That one alone: a recurring task's schedule goes on.
 * @throws OccurrenceNotFoundError when no live occurrence of the task has this id
 */
export function cancelOccurrence(
  draft: Draft,
  occurrenceId: string,
  reason: string | undefined,
): void {
  const occurrence = draft.find(occurrenceId);
  if (occurrence === undefined) {
    throw new OccurrenceNotFoundError(`no live occurrence ${occurrenceId}`);
  }
  stop(draft, occurrence, reason);
  draft.subject = draft.newest(occurrence);
}

export function pauseTask(draft: Draft): void {
  assertOpen(draft, 'pause');
  if (draft.task.state === 'paused') return;
  draft.changeTask({ state: 'paused', pausedAt: draft.facts.nowMs });
  for (const occurrence of draft.live.slice()) {
    // Triggered during an earlier pause, so before this one, which holds it (isHeld).
    const { kind, catchup, state } = occurrence;
    if (kind === 'trigger' && catchup) draft.move(occurrence, state, { catchup: false });
  }
  draft.tell('paused', undefined);
}

/** Times that passed while paused follow the catch-up policy, now. */
export function resumeTask(draft: Draft): void {
  assertOpen(draft, 'resume');
  const { task, facts } = draft;
  if (task.state !== 'paused') return;
  // Kept for catch-up: what was due before this instant passed while paused (advance.ts).
  draft.changeTask({ state: 'active', pausedAt: facts.nowMs + 1 });
  draft.tell('resumed', undefined);
  releaseWaiting(draft);
  for (const { id } of draft.live.slice()) becomeDue(draft, id);
}

/** One run now, also while paused; behind a live run unless `allowAll`. */
export function trigger(draft: Draft): void {
  assertOpen(draft, 'trigger');
  const { nowMs } = draft.facts;
  const ordinal = draft.task.extras + 1;
  draft.changeTask({ extras: ordinal });
  const made = draft.create({
    kind: 'trigger',
    ordinal,
    nominalAt: nowMs,
    dueAt: nowMs,
    // Says that the pause does not hold it (isHeld).
    catchup: draft.task.state === 'paused',
  });
  // However often it is asked for, what waits is bounded.
  if (isBlocked(draft, made) && backlogIsFull(draft)) skip(draft, made, 'backlogFull');
  else startOrWait(draft, made);
  draft.subject = draft.newest(made);
}

/**
 * A new occurrence for one that is dead or quarantined, linked both ways; once each: again gives
 * the same. A task that had completed lives again until the new one has ended.
 * @throws InvalidArgumentError when it did not die; TaskEndedError when its task was cancelled
 */
export function redrive(draft: Draft, dead: OccurrenceRecord): void {
  const { task } = draft;
  if (dead.state !== 'dead' && dead.state !== 'quarantined') {
    throw new InvalidArgumentError(
      `redrive: occurrence ${dead.id} is ${dead.state}; allowed: dead or quarantined`,
    );
  }
  // The caller reads the one made before.
  if (dead.redrivenAs !== undefined) return;
  const before = draft.live.find(({ redriveOf }) => redriveOf === dead.id);
  if (before !== undefined) {
    // Made after the caller had read the record.
    draft.subject = before;
    return;
  }
  if (task.state === 'cancelled') {
    throw new TaskEndedError(`redrive: task ${task.id} was cancelled`);
  }
  const ordinal = task.extras + 1;
  draft.changeTask({ extras: ordinal });
  if (task.state === 'completed') {
    // A schedule that was stopped stays so: this run is all there is.
    const endReason = task.endReason === EXHAUSTED ? EXHAUSTED : undefined;
    draft.changeTask({ state: 'active', endedAt: undefined, endReason });
  }
  const made = draft.create({
    kind: 'redrive',
    ordinal,
    nominalAt: dead.nominalAt,
    dueAt: draft.facts.nowMs,
    redriveOf: dead.id,
  });
  draft.move(dead, dead.state, { redrivenAs: made.id });
  // While paused it waits for the resume.
  if (!isHeld(task, made)) startOrWait(draft, made);
  draft.subject = draft.newest(made);
}

/** @throws InvalidArgumentError when it has not ended */
export function deleteTask(draft: Draft): void {
  const { task } = draft;
  const ended = task.state === 'completed' || task.state === 'cancelled';
  if (!ended || draft.live.length > 0) {
    throw new InvalidArgumentError(
      `delete: task ${task.id} has not ended; allowed: ended tasks only`,
    );
  }
  draft.remove = true;
}
