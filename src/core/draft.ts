/**
 * A decision being made: the task's records as they stand after the moves made so far, and what
 * changed. Every move is checked against the table of transitions.ts.
 *
 * A draft of `decide` leaves its input records as they are and writes to copies. An owned draft writes to the
 * records themselves: the engine keeps one for each task that something happens to, turn after turn, because a
 * copy of each record a turn made up a third of all garbage.
 */
import { assert } from './assert.js';
import type { Effect, TaskEventDetails, TaskEventType } from './effect.js';
import type { Facts } from './event.js';
import {
  type AttemptOutcome,
  type AttemptRecord,
  copyOfOccurrence,
  copyOfTask,
  isTerminal,
  type Mutable,
  type OccurrenceKind,
  type OccurrenceRecord,
  type OccurrenceState,
  occurrenceId,
  overwrite,
  type TaskRecord,
  type TaskView,
} from './model.js';
import { withItem } from './small-list.js';
import { assertMove } from './transitions.js';

export interface Decision {
  /** The task and its live occurrences afterwards. */
  readonly view: TaskView;
  readonly taskChanged: boolean;
  /** The newest record of each occurrence that changed or is new. */
  readonly changed: readonly OccurrenceRecord[];
  readonly attempts: readonly AttemptRecord[];
  readonly effects: readonly Effect[];
  /** The occurrence that a trigger or redrive made (or had made before). */
  readonly subject: OccurrenceRecord | undefined;
  readonly remove: boolean;
}

export type OccurrencePatch = Partial<Omit<OccurrenceRecord, 'id' | 'state' | 'revision'>>;
export type TaskRecordPatch = Partial<Omit<TaskRecord, 'id' | 'revision'>>;

export interface NewOccurrence {
  readonly kind: OccurrenceKind;
  readonly ordinal: number;
  readonly nominalAt: number;
  readonly dueAt: number;
  readonly redriveOf?: string;
  readonly catchup?: boolean;
}

/** Most drafts need neither list: they are made when they are. */
const NONE: readonly never[] = [];

export class Draft implements TaskView {
  /** A copy of our own once `taskChanged`. */
  #task: Mutable<TaskRecord>;
  readonly #owned: boolean;
  live: OccurrenceRecord[];
  facts: Facts;
  taskChanged = false;
  /** Counts what was done so far: whether an event did anything. */
  moves = 0;
  /**
   * True while those that waited are being released: one release at a time, however deep it
   * reaches.
   */
  releasing = false;
  subject: OccurrenceRecord | undefined;
  remove = false;
  changed: Mutable<OccurrenceRecord>[] = [];
  /** Of each changed one: the state in which this decision found it; undefined for one that it made. */
  statesBefore: (OccurrenceState | undefined)[] = [];
  attempts: readonly AttemptRecord[] = NONE;
  effects: readonly Effect[] = NONE;

  constructor(task: TaskRecord, live: readonly OccurrenceRecord[], facts: Facts, owned = false) {
    this.#task = task;
    this.#owned = owned;
    this.live = owned ? (live as OccurrenceRecord[]) : live.slice();
    this.facts = facts;
  }

  /** Of a task that is being created: the record, at revision 1, is our own from the start. */
  static ofNew(task: TaskRecord, facts: Facts, owned = false): Draft {
    const draft = new Draft(task, [], facts, owned);
    draft.taskChanged = true;
    return draft;
  }

  /** For the decisions of another turn: what was changed so far is committed, and the past. */
  begin(facts: Facts): void {
    this.facts = facts;
    this.taskChanged = false;
    this.moves = 0;
    this.subject = undefined;
    this.remove = false;
    this.changed = [];
    this.statesBefore = [];
    this.attempts = NONE;
    this.effects = NONE;
  }

  get task(): TaskRecord {
    return this.#task;
  }

  decision(): Decision {
    return {
      view: { task: this.task, live: this.live },
      taskChanged: this.taskChanged,
      changed: this.changed,
      attempts: this.attempts,
      effects: this.effects,
      subject: this.subject,
      remove: this.remove,
    };
  }

  find(id: string): OccurrenceRecord | undefined {
    for (const occurrence of this.live) if (occurrence.id === id) return occurrence;
    return undefined;
  }

  changeTask(patch: TaskRecordPatch): void {
    overwrite(this.ownTask(), patch);
  }

  /**
   * The task's record, to be written to: a copy of our own. Several changes in one decision are one
   * revision.
   */
  ownTask(): Mutable<TaskRecord> {
    this.moves++;
    if (!this.taskChanged) {
      if (!this.#owned) this.#task = copyOfTask(this.task);
      this.#task.revision++;
      this.taskChanged = true;
    }
    return this.#task;
  }

  /** The record of an occurrence as it stands, also when this decision has ended it. */
  newest(occurrence: OccurrenceRecord): OccurrenceRecord {
    const index = indexOfId(this.changed, occurrence.id);
    return index >= 0 ? this.changed[index]! : occurrence;
  }

  /**
   * A new occurrence, scheduled; the id follows from its identity, so that one made twice is
   * refused.
   */
  create(made: NewOccurrence): OccurrenceRecord {
    const { task } = this;
    const record: Mutable<OccurrenceRecord> = {
      id: occurrenceId(task.id, task.generation, made.kind, made.ordinal),
      taskId: task.id,
      tenant: task.tenant,
      handler: task.handler,
      generation: task.generation,
      kind: made.kind,
      ordinal: made.ordinal,
      nominalAt: made.nominalAt,
      dueAt: made.dueAt,
      state: 'scheduled',
      revision: 1,
      handlerVersion: task.handlerVersion ?? this.facts.latestVersion(task.handler),
      attempt: 0,
      failures: 0,
      crashes: 0,
      displacements: 0,
      deaths: 0,
      alone: false,
      waiting: false,
      catchup: made.catchup ?? false,
      token: 0,
      leaseUntil: undefined,
      workerId: undefined,
      progress: undefined,
      result: undefined,
      error: undefined,
      outcome: undefined,
      reason: undefined,
      count: undefined,
      untilAt: undefined,
      cancelRequestedAt: undefined,
      startedAt: undefined,
      endedAt: undefined,
      redriveOf: made.redriveOf,
      redrivenAs: undefined,
    };
    this.live = withItem(this.live, record);
    this.changed = withItem(this.changed, record);
    this.statesBefore = withItem(this.statesBefore, undefined);
    this.ownTask().lastOccurrenceId = record.id;
    if (this.isTold('scheduled')) this.tell('scheduled', record, { dueAt: record.dueAt });
    return record;
  }

  /** Makes a legal move; the record that came of it, which is our own and may be written to. */
  move(
    occurrence: OccurrenceRecord,
    to: OccurrenceState,
    patch?: OccurrencePatch,
  ): Mutable<OccurrenceRecord> {
    const index = indexOfId(this.changed, occurrence.id);
    const place = indexOfId(this.live, occurrence.id);
    // Several moves in one decision are one change of the record: one copy, one revision.
    const next = index >= 0 ? this.changed[index]! : this.#toChange(occurrence, place);
    this.moves++;
    // By the record as it stands: an older one in the caller's hands must not undo what came after
    // it.
    assertMove(next.state, to);
    if (index < 0) {
      next.revision++;
      this.changed = withItem(this.changed, next);
      this.statesBefore = withItem(this.statesBefore, next.state);
    }
    if (patch !== undefined) overwrite<OccurrenceRecord>(next, patch);
    next.state = to;

    if (isTerminal(to)) {
      next.waiting = false;
      next.leaseUntil = undefined;
      next.endedAt ??= this.facts.nowMs;
      if (place >= 0) removeAt(this.live, place);
    } else {
      assert(place >= 0, 'a live occurrence is in its task’s view');
      this.live[place] = next;
    }
    return next;
  }

  #toChange(occurrence: OccurrenceRecord, place: number): Mutable<OccurrenceRecord> {
    return this.#owned && place >= 0 ? this.live[place]! : copyOfOccurrence(occurrence);
  }

  /** Keeps the attempt that just ended apart from its occurrence, which goes on. */
  keepAttempt(
    occurrence: OccurrenceRecord,
    outcome: AttemptOutcome,
    error: Uint8Array | undefined,
    endedAt: number,
  ): void {
    const attempt: AttemptRecord = {
      occurrenceId: occurrence.id,
      attempt: occurrence.attempt,
      fencingToken: occurrence.token,
      workerId: occurrence.workerId,
      startedAt: occurrence.startedAt,
      endedAt,
      progress: occurrence.progress,
      outcome,
      error,
    };
    this.attempts = [...this.attempts, attempt];
  }

  effect(effect: Effect): void {
    if (this.effects === NONE) this.effects = [effect];
    else (this.effects as Effect[]).push(effect);
  }

  /** Whether anybody would hear of it: what nobody hears need not be made. */
  isTold(type: TaskEventType): boolean {
    return this.facts.tells?.(type) !== false;
  }

  tell(
    type: TaskEventType,
    occurrence: OccurrenceRecord | undefined,
    details: TaskEventDetails = {},
  ): void {
    if (!this.isTold(type)) return;
    this.effect({
      kind: 'tell',
      event: {
        type,
        at: this.facts.nowMs,
        taskId: this.task.id,
        tenant: this.task.tenant,
        handler: this.task.handler,
        occurrenceId: occurrence?.id,
        attempt:
          occurrence === undefined || occurrence.attempt === 0 ? undefined : occurrence.attempt,
        details,
      },
    });
  }
}

function removeAt<T>(list: T[], index: number): void {
  if (index === list.length - 1) list.pop();
  else list.splice(index, 1);
}

function indexOfId(records: readonly OccurrenceRecord[], id: string): number {
  for (let i = 0; i < records.length; i++) if (records[i]?.id === id) return i;
  return -1;
}
