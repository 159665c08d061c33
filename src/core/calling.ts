/** What users call: create, update, cancel, pause, resume, trigger, redrive, delete. */
import { becomeDue, createNominal, ensureNext, markReady } from './advance.js';
import { Draft } from './draft.js';
import {
  createFirstSequence,
  drop,
  end,
  isBlocking,
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
import { anchorOf, firstNominal } from './schedule.js';

export function createTask(made: NewTask, facts: Facts): Draft {
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
    revision: 0,
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
  const draft = new Draft(task, [], facts);
  createFirst(draft, made.createdAt);
  return draft;
}

/** The first occurrence of a generation. */
function createFirst(draft: Draft, nowMs: number): void {
  const { schedule, anchorAt } = draft.task;
  if (schedule.kind === 'once') {
    draft.create({
      kind: 'nominal',
      ordinal: schedule.at,
      nominalAt: schedule.at,
      dueAt: Math.max(schedule.at, nowMs),
    });
    return;
  }
  const firstAt = firstNominal(schedule, anchorAt, nowMs);
  if (firstAt === undefined) {
    throw new InvalidScheduleError('the schedule has no time left: its endAt has passed');
  }
  if (schedule.kind === 'fixedDelay') createFirstSequence(draft, nowMs);
  else createNominal(draft, firstAt);
}

/** @throws TaskEndedError */
function assertOpen(draft: Draft, call: string): void {
  const { task } = draft;
  if (task.state === 'completed' || task.state === 'cancelled') {
    throw new TaskEndedError(
      `${call}: task ${task.id} has ended (${task.state}${task.endReason ? `, ${task.endReason}` : ''})`,
    );
  }
}

export function updateTask(
  draft: Draft,
  patch: TaskPatch,
  expectedVersion: number | undefined,
): void {
  assertOpen(draft, 'update');
  const { task, facts } = draft;
  if (expectedVersion !== undefined && expectedVersion !== task.version) {
    throw new VersionConflictError(
      `update: task ${task.id} is at version ${task.version}, not at ${expectedVersion}`,
    );
  }
  draft.changeTask({ ...patch, version: task.version + 1 });
  if (patch.schedule === undefined) return;
  for (const occurrence of draft.live.slice()) {
    const planned = occurrence.kind === 'nominal' || occurrence.kind === 'sequence';
    const notStarted = occurrence.state === 'scheduled' || occurrence.state === 'ready';
    if (planned && notStarted && occurrence.attempt === 0) drop(draft, occurrence, SUPERSEDED);
  }
  draft.changeTask({
    generation: task.generation + 1,
    anchorAt: anchorOf(patch.schedule, facts.nowMs),
    cursorAt: undefined,
    taken: 0,
  });
  // fixedDelay: while one is live, its end starts the new generation.
  const live = draft.live.some((other) => other.kind === 'sequence');
  if (patch.schedule.kind !== 'fixedDelay' || !live) createFirst(draft, facts.nowMs);
}

/** Nothing of the task starts again; what runs is asked to stop. Nothing to do when it has ended. */
export function cancelTask(draft: Draft, reason: string | undefined): void {
  const { task, facts } = draft;
  if (task.state === 'completed' || task.state === 'cancelled') return;
  draft.changeTask({
    state: 'cancelled',
    endedAt: facts.nowMs,
    endReason: reason ?? 'cancelled',
    pausedAt: undefined,
  });
  for (const occurrence of draft.live.slice()) stop(draft, occurrence, reason);
}

function stop(draft: Draft, occurrence: OccurrenceRecord, reason: string | undefined): void {
  if (occurrence.state === 'cancel-requested') return;
  if (occurrence.state === 'running') requestCancel(draft, occurrence, reason);
  else end(draft, occurrence, 'cancelled', { reason: reason ?? 'cancelled' });
}

/** @throws OccurrenceNotFoundError when no live occurrence of the task has this id */
export function cancelOccurrence(
  draft: Draft,
  occurrenceId: string,
  reason: string | undefined,
): void {
  const occurrence = draft.find(occurrenceId);
  if (occurrence === undefined) {
    throw new OccurrenceNotFoundError(`no live occurrence ${occurrenceId}`);
  }
  ensureNext(draft, occurrence);
  stop(draft, occurrence, reason);
  draft.subject = draft.changed.find((record) => record.id === occurrenceId) ?? occurrence;
}

export function pauseTask(draft: Draft): void {
  assertOpen(draft, 'pause');
  if (draft.task.state === 'paused') return;
  draft.changeTask({ state: 'paused', pausedAt: draft.facts.nowMs });
  draft.tell('paused', undefined);
}

/** Times that passed while paused follow the catch-up policy, now. */
export function resumeTask(draft: Draft): void {
  assertOpen(draft, 'resume');
  const { task, facts } = draft;
  if (task.state !== 'paused') return;
  draft.changeTask({ state: 'active', pausedAt: undefined });
  draft.tell('resumed', undefined);
  draft.facts = { ...facts, awayUntilMs: Math.max(facts.awayUntilMs, facts.nowMs + 1) };
  for (const occurrence of draft.live.slice()) {
    if (occurrence.state === 'scheduled') becomeDue(draft, occurrence.id);
  }
  releaseWaiting(draft);
}

/** One run now, also while paused; behind a live run unless `allowAll`. */
export function trigger(draft: Draft): void {
  assertOpen(draft, 'trigger');
  const { nowMs } = draft.facts;
  const ordinal = draft.task.extras + 1;
  draft.changeTask({ extras: ordinal });
  const made = draft.create({ kind: 'trigger', ordinal, nominalAt: nowMs, dueAt: nowMs });
  startExtra(draft, made);
}

function startExtra(draft: Draft, made: OccurrenceRecord): void {
  const blocked = draft.live.some((other) => other.id !== made.id && isBlocking(other));
  if (blocked && draft.task.policies.overlap !== 'allowAll') {
    draft.move(made, 'scheduled', { waiting: true });
  } else if (draft.task.state !== 'paused' || made.kind === 'trigger') {
    markReady(draft, made);
  }
  draft.subject = draft.find(made.id) ?? made;
}

/**
 * A new occurrence for one that is dead or quarantined, linked both ways; once each: again gives the same.
 * A task that had completed lives again until the new one has ended.
 * @throws InvalidArgumentError when it did not die; TaskEndedError when its task was cancelled
 */
export function redrive(draft: Draft, dead: OccurrenceRecord): void {
  const { task } = draft;
  if (dead.state !== 'dead' && dead.state !== 'quarantined') {
    throw new InvalidArgumentError(
      `redrive: occurrence ${dead.id} is ${dead.state}; allowed: dead or quarantined`,
    );
  }
  if (dead.redrivenAs !== undefined) {
    // The caller reads the one made before.
    return;
  }
  if (task.state === 'cancelled') {
    throw new TaskEndedError(`redrive: task ${task.id} was cancelled`);
  }
  const ordinal = task.extras + 1;
  draft.changeTask({
    extras: ordinal,
    ...(task.state === 'completed'
      ? { state: 'active', endedAt: undefined, endReason: undefined }
      : {}),
  });
  const made = draft.create({
    kind: 'redrive',
    ordinal,
    nominalAt: dead.nominalAt,
    dueAt: draft.facts.nowMs,
    redriveOf: dead.id,
  });
  draft.move(dead, dead.state, { redrivenAs: made.id });
  startExtra(draft, made);
}

/** @throws TaskEndedError when it has not ended */
export function deleteTask(draft: Draft): void {
  const { task } = draft;
  const ended = task.state === 'completed' || task.state === 'cancelled';
  if (!ended || draft.live.length > 0) {
    throw new TaskEndedError(`delete: task ${task.id} has not ended; allowed: ended tasks only`);
  }
  draft.remove = true;
}
