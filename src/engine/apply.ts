/**
 * What follows a commit: timers set and taken out, lanes filled, callers answered, listeners told. And what
 * follows a commit that failed: everything as if it had not been decided, and nothing lost.
 */
import type { Draft } from '../core/draft.js';
import type { Effect } from '../core/effect.js';
import { isHeld } from '../core/ending.js';
import { StoreFullError } from '../core/errors.js';
import {
  isTerminal,
  type OccurrenceRecord,
  type OccurrenceState,
  type TaskRecord,
  type TaskState,
} from '../core/model.js';
import { withItem } from '../core/small-list.js';
import type { Commit } from '../store/store.js';
import type { Batch } from './batch.js';
import type { Job } from './job.js';
import type { EngineParts } from './parts.js';
import { ActiveRun } from './runs.js';
import { Telling } from './telling.js';
import type { Timed } from './timing.js';
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

/** Due once, and then the wall clock went back: it waits for its time again. */
function isEarly(task: TaskRecord, occurrence: OccurrenceRecord, nowMs: number): boolean {
  return occurrence.dueAt > nowMs && isReadyToStart(task, occurrence);
}

function isOpen(task: TaskRecord): boolean {
  return isOpenState(task.state);
}

function isOpenState(state: TaskState): boolean {
  return state === 'active' || state === 'paused';
}

/** One that was found in such a state stands in the wheel or the backlog, most likely. */
function waitsForTime(state: OccurrenceState | undefined): boolean {
  return state === 'scheduled' || state === 'retry-wait';
}

function holds(runs: readonly ActiveRun[], occurrenceId: string): boolean {
  for (const run of runs) if (run.occurrenceId === occurrenceId) return true;
  return false;
}

/** What timing must know of it. */
export function timedOf(task: TaskRecord, occurrence: OccurrenceRecord): Timed {
  return {
    occurrenceId: occurrence.id,
    tenant: occurrence.tenant,
    handler: occurrence.handler,
    handlerVersion: occurrence.handlerVersion,
    priority: task.priority,
    dueAt: occurrence.dueAt,
  };
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
    const { draft } = active;
    if (draft === undefined || timing === undefined || draining || holding) return;
    const { task, live } = draft;
    const { nowMs } = batch.facts;
    for (let i = active.ready.length - 1; i >= 0; i--) {
      const run = active.ready[i] as ActiveRun;
      const occurrence = active.find(run.occurrenceId);
      const stays =
        occurrence !== undefined &&
        isReadyToStart(task, occurrence) &&
        occurrence.dueAt <= nowMs &&
        run.priority === task.priority &&
        run.handlerVersion === occurrence.handlerVersion;
      if (!stays) {
        ready.remove(run);
        active.ready.splice(i, 1);
      }
    }
    for (const occurrence of live) {
      if (!isReadyToStart(task, occurrence)) continue;
      if (occurrence.dueAt > nowMs) {
        this.placeEarly(active, occurrence.id, nowMs);
        continue;
      }
      if (holds(active.ready, occurrence.id)) continue;
      const run = new ActiveRun(active, task, occurrence, nowMs);
      active.ready = withItem(active.ready, run);
      ready.push(run);
    }
  }

  /** It was due, and then the wall clock went back: it waits for its time again. */
  placeEarly(active: ActiveTask, occurrenceId: string, nowMs: number): void {
    const occurrence = active.find(occurrenceId);
    const task = active.draft?.task;
    if (task === undefined || occurrence === undefined || occurrence.dueAt <= nowMs) return;
    if (!isTimed(task, occurrence) && !isEarly(task, occurrence, nowMs)) return;
    this.#parts.timing?.place(timedOf(task, occurrence));
  }

  /** The batch is visible, but for the refused units. */
  applyTo(batch: Batch): void {
    const { refused } = batch;
    if (refused.size > 0) this.#takeBack(batch);
    for (const active of batch.changes) {
      if (!refused.has(active)) this.#applyChange(active, batch);
    }
    for (const active of batch.reloaded) {
      this.#placeReloaded(active, batch.facts.nowMs);
      this.#parts.working.release(active, false);
    }
    for (const active of batch.touched) this.#parts.working.release(active, false);
  }

  #applyChange(active: ActiveTask, batch: Batch): void {
    const { working, pruning } = this.#parts;
    const { nowMs } = batch.facts;
    const draft = active.draft as Draft;
    const { task, changed, statesBefore } = draft;
    active.changing = false;
    this.#count(active, task);
    let dueAtOnce = false;
    for (let i = 0; i < changed.length; i++) {
      const record = changed[i] as OccurrenceRecord;
      if (isTerminal(record.state)) pruning.noteEnd(nowMs);
      const before = statesBefore[i];
      const mayBeTimed = waitsForTime(before)
        ? record.id !== active.admittedId
        : before === 'ready' && record.dueAt > nowMs;
      dueAtOnce = this.#placeTimed(task, record, mayBeTimed, nowMs) || dueAtOnce;
    }
    const moved =
      !active.isNew &&
      (active.stateBefore !== task.state || active.priorityBefore !== task.priority);
    if (moved && isOpen(task)) this.#placeAll(active, nowMs);
    for (const effect of draft.effects) {
      if (effect.kind === 'tell') batch.tells.push(effect.event);
      else this.#abortRun(active, effect, batch);
    }
    working.release(active, dueAtOnce);
  }

  /** Keeps the count of tasks that have not ended; a new one was counted when it was admitted. */
  #count({ isNew, stateBefore }: ActiveTask, task: TaskRecord): void {
    const { admission } = this.#parts;
    const wasOpen = isNew || isOpenState(stateBefore);
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
    if (!held && !isTimed(task, occurrence) && !isEarly(task, occurrence, nowMs)) {
      if (existed) timing.remove(occurrence.id);
      return false;
    }
    if (loader?.admits(occurrence, occurrence.dueAt) === false) {
      // The store gives it in time, or gave it and has not moved it.
      if (existed) timing.removeUnless(occurrence.id, occurrence.dueAt);
      return false;
    }
    timing.place(timedOf(task, occurrence));
    return occurrence.dueAt <= nowMs;
  }

  #placeAll(active: ActiveTask, nowMs: number): void {
    const { draft } = active;
    if (draft === undefined) return;
    for (const occurrence of draft.live) {
      this.#placeTimed(draft.task, occurrence, true, nowMs);
    }
  }

  /**
   * The turn that failed may have let go what was due. The store gave that once, and not again: it is timed whatever
   * room its lane has.
   */
  #placeReloaded(active: ActiveTask, nowMs: number): void {
    const { timing, loader } = this.#parts;
    this.#placeAll(active, nowMs);
    if (active.draft === undefined || timing === undefined || loader === undefined) return;
    const { task, live } = active.draft;
    for (const occurrence of live) {
      if (occurrence.dueAt > timing.latestTakeMs || !isTimed(task, occurrence)) continue;
      timing.place(timedOf(task, occurrence));
    }
  }

  #abortRun(active: ActiveTask, effect: Extract<Effect, { kind: 'abort' }>, batch: Batch): void {
    const run = active.runs.find((other) => other.fencingToken === effect.token);
    if (run === undefined) return;
    this.#parts.dispatch?.abort(run, effect.why, effect.message, batch.monotonicMs);
  }

  /** Units were refused: their tasks are not what was believed. Read them again, repeat what matters. */
  #takeBack({ refused, attemptEvents }: Batch): void {
    const { inbox } = this.#parts;
    const reread = new Set<string>();
    this.#restore([...refused.keys()]);
    for (const { isNew, id } of refused.keys()) if (!isNew) reread.add(id);
    for (const id of reread) inbox.addReload(id);
    for (const redo of attemptEvents) if (reread.has(redo.taskId)) inbox.addRedo(redo);
  }

  /** Tasks as if the turn had not been, with nothing of them in a lane or claimed. */
  #restore(changes: readonly ActiveTask[]): void {
    const { ready, working, dispatch } = this.#parts;
    for (const active of changes) {
      active.changing = false;
      for (const run of active.ready) ready.remove(run);
      active.ready.length = 0;
    }
    const all = new Set(changes);
    dispatch?.dropClaims((run) => all.has(run.active));
    for (const active of changes) {
      if (active.isNew) working.forget(active);
      else working.setStale(active);
    }
  }

  /** The whole commit failed. A full store fails this batch alone; anything else ends the engine. */
  undo(batch: Batch, error: unknown): void {
    const { inbox, clock } = this.#parts;
    batch.fail(error);
    for (const revert of batch.reverts.reverse()) revert();
    this.#restore(batch.changes);
    const reloads = batch.changes.filter((active) => !active.isNew);
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
    inbox.postponed++;
    clock.arm(retryAt, () => {
      inbox.postponed--;
      for (const active of reloads) inbox.addReload(active.id);
      for (const redo of batch.attemptEvents) inbox.addRedo(redo);
      this.#parts.wake();
    });
  }

  /** Answers callers and tells listeners once the commit, and all before it, are durable. */
  settleWhenDurable(batch: Batch, commit: Commit | undefined): void {
    if (commit === undefined && batch.answers.length === 0) return;
    const durable = commit?.durable ?? this.#lastDurable;
    this.#lastDurable = durable;
    this.unsettled++;
    this.#tellAfter(durable, new Telling(batch));
  }

  /** A function of its own, that has no hold on the batch. */
  #tellAfter(durable: Promise<unknown>, telling: Telling): void {
    durable.then(
      () => {
        this.unsettled--;
        telling.tell(this.#parts.hub);
        this.#decideAgain(telling.again);
      },
      (error) => {
        this.unsettled--;
        telling.fail(error);
        this.#fail(error);
      },
    );
  }

  #decideAgain(jobs: readonly Job[]): void {
    const { inbox, failure, wake } = this.#parts;
    if (jobs.length === 0) return;
    for (const job of jobs) inbox.addAgain(job);
    if (failure !== undefined) inbox.fail(failure);
    wake();
  }

  /** Resolves when all that was visible before is durable. */
  get durable(): Promise<unknown> {
    return this.#lastDurable;
  }
}
