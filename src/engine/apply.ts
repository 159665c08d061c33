/**
 * What follows a commit: timers set and taken out, lanes filled, callers answered, listeners told. And what
 * follows a commit that failed: everything as if it had not been decided, and nothing lost.
 */
import { isHeld } from '../core/ending.js';
import { StoreFullError } from '../core/errors.js';
import { isTerminal, type OccurrenceRecord, type TaskRecord } from '../core/model.js';
import type { Commit, Refusal } from '../store/store.js';
import type { Batch, Change } from './batch.js';
import type { EngineParts } from './parts.js';
import type { ActiveTask } from './working-set.js';

/** A store without space is asked again after this long. */
const FULL_RETRY_MS = 1000;

/** Waits for its time: not ended, not held back by a sibling or by a pause of its task. */
function isTimed(task: TaskRecord, occurrence: OccurrenceRecord): boolean {
  return (
    (occurrence.state === 'scheduled' || occurrence.state === 'retry-wait') &&
    !occurrence.waiting &&
    !isHeld(task, occurrence)
  );
}

function isReadyToStart(task: TaskRecord, occurrence: OccurrenceRecord): boolean {
  return occurrence.state === 'ready' && !isHeld(task, occurrence);
}

function isOpen(task: TaskRecord): boolean {
  return task.state === 'active' || task.state === 'paused';
}

/** It stood in the wheel or the backlog, and does so still unless this turn admitted it. */
function wasTimed({ viewBefore, admittedId }: Change, id: string): boolean {
  if (viewBefore === undefined || admittedId === id) return false;
  const before = viewBefore.live.find((occurrence) => occurrence.id === id);
  return before !== undefined && isTimed(viewBefore.task, before);
}

export class Apply {
  readonly #parts: EngineParts;
  readonly #fail: (error: unknown) => void;
  #lastDurable: Promise<unknown> = Promise.resolve();
  /** Commits whose callers and listeners have not been told. */
  unsettled = 0;

  constructor(parts: EngineParts, fail: (error: unknown) => void) {
    this.#parts = parts;
    this.#fail = fail;
  }

  /** Brings the lanes in line with the task as decided, so that this turn's claims already see it. */
  placeReady(active: ActiveTask, batch: Batch): void {
    const { ready, timing, draining, holding } = this.#parts;
    const { view } = active;
    if (view === undefined || timing === undefined || draining || holding) return;
    for (let i = active.ready.length - 1; i >= 0; i--) {
      const item = active.ready[i];
      if (item === undefined) continue;
      const occurrence = active.find(item.occurrenceId);
      const stays =
        occurrence !== undefined &&
        isReadyToStart(view.task, occurrence) &&
        occurrence.dueAt <= batch.facts.nowMs &&
        item.priority === view.task.priority &&
        item.handlerVersion === occurrence.handlerVersion;
      if (!stays) {
        ready.remove(item);
        active.ready.splice(i, 1);
      }
    }
    for (const occurrence of view.live) {
      if (!isReadyToStart(view.task, occurrence)) continue;
      if (occurrence.dueAt > batch.facts.nowMs) {
        this.placeEarly(active, occurrence.id, batch.facts.nowMs);
        continue;
      }
      if (active.ready.some((item) => item.occurrenceId === occurrence.id)) continue;
      const item = {
        tenant: occurrence.tenant,
        handler: occurrence.handler,
        handlerVersion: occurrence.handlerVersion,
        priority: view.task.priority,
        readyAtMs: batch.facts.nowMs,
        dueAt: occurrence.dueAt,
        alone: occurrence.alone,
        throttled: false,
        laneIndex: -1,
        occurrenceId: occurrence.id,
        active,
      };
      active.ready.push(item);
      ready.push(item);
    }
  }

  /** It was due, and then the wall clock went back: it waits for its time again. */
  placeEarly(active: ActiveTask, occurrenceId: string, nowMs: number): void {
    const occurrence = active.find(occurrenceId);
    const task = active.view?.task;
    if (task === undefined || occurrence === undefined || occurrence.dueAt <= nowMs) return;
    if (!isTimed(task, occurrence) && !isReadyToStart(task, occurrence)) return;
    this.#parts.timing?.place({
      occurrenceId: occurrence.id,
      tenant: occurrence.tenant,
      handler: occurrence.handler,
      handlerVersion: occurrence.handlerVersion,
      priority: task.priority,
      dueAt: occurrence.dueAt,
    });
  }

  /** The batch is visible, but for the refused units. */
  applyTo(batch: Batch, refusals: readonly Refusal[]): void {
    const refused = new Set(refusals.map((refusal) => batch.changes[refusal.unit]));
    for (const change of batch.changes) {
      if (refused.has(change)) this.#takeBack(batch, change);
      else this.#applyChange(change, batch);
    }
    for (const active of batch.reloaded) {
      this.#placeAll(active);
      this.#parts.working.release(active, false);
    }
    for (const active of batch.touched) this.#parts.working.release(active, false);
  }

  #applyChange(change: Change, batch: Batch): void {
    const { active, draft, taskBefore } = change;
    const { working, pruning } = this.#parts;
    const { nowMs } = batch.facts;
    const { task } = draft;
    active.change = undefined;
    active.view = draft.view();
    this.#count(taskBefore, task);
    let dueAtOnce = false;
    for (const record of draft.changed) {
      if (isTerminal(record.state)) pruning.noteEnd(nowMs);
      dueAtOnce = this.#placeTimed(task, record, wasTimed(change, record.id), nowMs) || dueAtOnce;
    }
    const moved =
      taskBefore !== undefined &&
      (taskBefore.state !== task.state || taskBefore.priority !== task.priority);
    if (moved && isOpen(task)) this.#placeAll(active);
    if (draft.effects.length > 0) this.#abortRuns(change, batch);
    working.release(active, dueAtOnce);
  }

  /** Keeps the count of tasks that have not ended; a new one was counted when it was admitted. */
  #count(before: TaskRecord | undefined, task: TaskRecord): void {
    const { admission } = this.#parts;
    const wasOpen = before === undefined || isOpen(before);
    if (wasOpen && !isOpen(task)) admission.closed(task.tenant);
    else if (!wasOpen && isOpen(task)) admission.opened(task.tenant);
  }

  /** Into the wheel, or out of it. True when it is due already. */
  #placeTimed(
    task: TaskRecord,
    occurrence: OccurrenceRecord,
    existed: boolean,
    nowMs: number,
  ): boolean {
    const { timing, loader } = this.#parts;
    if (timing === undefined) return false;
    // While the store is being scanned nothing goes to a lane yet: what is ready waits in the wheel too.
    const held = this.#parts.holding && isReadyToStart(task, occurrence);
    if (!held && !isTimed(task, occurrence)) {
      if (existed) timing.remove(occurrence.id);
      return false;
    }
    if (loader?.isNear(occurrence.dueAt) === false) {
      // The store gives it in time, or gave it and has not moved it.
      if (existed) timing.removeUnless(occurrence.id, occurrence.dueAt);
      return false;
    }
    timing.place({
      occurrenceId: occurrence.id,
      tenant: occurrence.tenant,
      handler: occurrence.handler,
      handlerVersion: occurrence.handlerVersion,
      priority: task.priority,
      dueAt: occurrence.dueAt,
    });
    return occurrence.dueAt <= nowMs;
  }

  #placeAll(active: ActiveTask): void {
    const { view } = active;
    if (view === undefined) return;
    for (const occurrence of view.live) {
      this.#placeTimed(view.task, occurrence, true, Number.NEGATIVE_INFINITY);
    }
  }

  #abortRuns({ active, draft }: Change, batch: Batch): void {
    for (const effect of draft.effects) {
      if (effect.kind !== 'abort') continue;
      const run = active.runs.find((other) => other.token === effect.token);
      if (run === undefined) continue;
      this.#parts.dispatch?.abort(run, effect.why, effect.message, batch.monotonicMs);
    }
  }

  /** One unit was refused: its task is not what was believed. Read it again, repeat what matters. */
  #takeBack(batch: Batch, change: Change): void {
    const { inbox } = this.#parts;
    this.#restore(change);
    if (change.taskBefore === undefined) return;
    inbox.addReload(change.active.id);
    for (const redo of batch.attemptEvents) {
      if (redo.taskId === change.active.id) inbox.addRedo(redo);
    }
  }

  /** The task as it stood before the turn, with nothing of it in a lane or claimed. */
  #restore(change: Change): void {
    const { ready, working, dispatch } = this.#parts;
    const { active } = change;
    active.change = undefined;
    active.view = change.viewBefore;
    for (const item of active.ready) ready.remove(item);
    active.ready.length = 0;
    dispatch?.dropClaims((run) => run.active === active);
    working.release(active, false);
  }

  /** The whole commit failed. A full store fails this batch alone; anything else ends the engine. */
  undo(batch: Batch, error: unknown): void {
    const { inbox, clock } = this.#parts;
    for (const { job } of batch.answers) job.group.settle(job.index, { kind: 'failed', error });
    batch.answers.length = 0;
    for (const revert of batch.reverts.reverse()) revert();
    for (const change of batch.changes) this.#restore(change);
    const reloads = batch.changes.filter((change) => change.taskBefore !== undefined);
    batch.changes.length = 0;
    if (!(error instanceof StoreFullError)) {
      this.#fail(error);
      return;
    }
    this.#parts.log.error({ code: error.code }, 'the store is full: the turn is tried again');
    const retryAt = {
      wallMs: Number.POSITIVE_INFINITY,
      monotonicMs: clock.monotonic() + FULL_RETRY_MS,
    };
    clock.arm(retryAt, () => {
      for (const change of reloads) inbox.addReload(change.active.id);
      for (const redo of batch.attemptEvents) inbox.addRedo(redo);
      this.#parts.wake();
    });
  }

  /** Answers callers and tells listeners once the commit, and all before it, are durable. */
  settleWhenDurable(
    batch: Batch,
    commit: Commit | undefined,
    refusals: readonly Refusal[] = [],
  ): void {
    if (commit === undefined && batch.answers.length === 0) return;
    const durable = commit?.durable ?? this.#lastDurable;
    this.#lastDurable = durable;
    this.unsettled++;
    durable.then(
      () => {
        this.unsettled--;
        this.#settle(batch, refusals);
      },
      (error) => {
        this.unsettled--;
        for (const { job } of batch.answers) job.group.settle(job.index, { kind: 'failed', error });
        this.#fail(error);
      },
    );
  }

  #settle(batch: Batch, refusals: readonly Refusal[]): void {
    const { hub } = this.#parts;
    const refusedBy = new Map(refusals.map((refusal) => [batch.changes[refusal.unit], refusal]));
    for (const change of batch.changes) {
      if (refusedBy.has(change)) continue;
      for (const effect of change.draft.effects) {
        if (effect.kind === 'tell') hub.tell(effect.event);
      }
      hub.changed(change.active.id);
    }
    for (const { job, change, outcome } of batch.answers) {
      const refusal = change === undefined ? undefined : refusedBy.get(change);
      if (refusal === undefined) job.group.settle(job.index, outcome);
      else if (refusal.reason === 'key') {
        job.group.settle(job.index, { kind: 'held', holder: refusal.holder as string });
      } else {
        // Another writer was first: decide again on what it left.
        const { failure } = this.#parts;
        if (failure !== undefined) job.group.settle(job.index, { kind: 'failed', error: failure });
        this.#parts.inbox.addJob(job);
        this.#parts.wake();
      }
    }
  }

  /** Resolves when all that was visible before is durable. */
  get durable(): Promise<unknown> {
    return this.#lastDurable;
  }
}
