/** What one turn of the loop decides, collected into one commit. */
import { decide } from '../core/decide.js';
import type { Decision } from '../core/draft.js';
import type { Effect } from '../core/effect.js';
import type { CoreEvent, Facts } from '../core/event.js';
import type { AttemptRecord, OccurrenceRecord, TaskRecord, TaskView } from '../core/model.js';
import type { Guarded, Setting, Unit } from '../store/store.js';
import type { Redo } from './inbox.js';
import type { Job, Outcome } from './job.js';
import type { ActiveTask } from './working-set.js';

/** All that a turn changes of one task; stands or falls as one unit of the commit. */
export class Change {
  readonly active: ActiveTask;
  /** Revision of the stored task; undefined when the task itself does not change. */
  taskExpected: number | undefined;
  readonly occurrences: { record: OccurrenceRecord; expected: number }[] = [];
  readonly attempts: AttemptRecord[] = [];
  removed = false;
  /** As it stood before this turn; undefined when the turn creates it. */
  readonly viewBefore: TaskView | undefined;

  constructor(active: ActiveTask) {
    this.active = active;
    this.viewBefore = active.view;
  }

  get taskBefore(): TaskRecord | undefined {
    return this.viewBefore?.task;
  }

  add(decision: Decision): void {
    if (decision.taskChanged && this.taskExpected === undefined) {
      this.taskExpected = decision.view.task.revision - 1;
    }
    for (const record of decision.changed) this.#put(record);
    for (const attempt of decision.attempts) this.attempts.push(attempt);
    if (decision.remove) this.removed = true;
  }

  /** Several changes of a record in one turn are one put, guarded by the revision before the first. */
  #put(record: OccurrenceRecord): void {
    for (const change of this.occurrences) {
      if (change.record.id === record.id) {
        change.record = record;
        return;
      }
    }
    this.occurrences.push({ record, expected: record.revision - 1 });
  }

  unit(): Unit {
    const { active } = this;
    if (this.removed) return { taskId: active.id, remove: { revision: this.taskBefore?.revision ?? 0 } };
    return {
      taskId: active.id,
      ...(this.taskExpected === undefined
        ? {}
        : {
            task: {
              record: active.view?.task as TaskRecord,
              expected: this.taskExpected,
            } satisfies Guarded<TaskRecord>,
          }),
      occurrences: this.occurrences,
      attempts: this.attempts,
    };
  }
}

/** A job that was decided, and what to tell its caller when its change is durable. */
interface Answer {
  readonly job: Job;
  readonly change: Change | undefined;
  readonly outcome: Outcome;
}

export class Batch {
  readonly facts: Facts;
  readonly monotonicMs: number;
  readonly changes: Change[] = [];
  readonly settings: (readonly [string, Setting | undefined])[] = [];
  readonly answers: Answer[] = [];
  /** Events of attempts decided in this turn: repeated when the commit fails, so that no end is lost. */
  readonly attemptEvents: Redo[] = [];
  /** Tasks looked at, whether or not anything of them changed. */
  readonly touched: ActiveTask[] = [];
  /** Tasks read again: all that lives of them is to be placed anew. */
  readonly reloaded: ActiveTask[] = [];
  /** Effects in the order decided, each with the change it belongs to. */
  readonly effects: Effect[] = [];
  readonly effectOf: Change[] = [];

  constructor(facts: Facts, monotonicMs: number) {
    this.facts = facts;
    this.monotonicMs = monotonicMs;
  }

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.settings.length === 0;
  }

  /**
   * Lets `decide` judge the event on the task as it stands in this turn.
   * @returns undefined when there was nothing to do
   * @throws what `decide` throws; nothing is changed then
   */
  decide(active: ActiveTask, event: CoreEvent, awayUntilMs: number): Decision | undefined {
    const facts =
      awayUntilMs === this.facts.awayUntilMs ? this.facts : { ...this.facts, awayUntilMs };
    const decision = decide(active.view, event, facts);
    if (decision === undefined) return undefined;
    let change = active.change;
    if (change === undefined) {
      change = new Change(active);
      active.change = change;
      this.changes.push(change);
    }
    active.view = decision.view;
    change.add(decision);
    for (const effect of decision.effects) {
      this.effects.push(effect);
      this.effectOf.push(change);
    }
    return decision;
  }

  /** The occurrence as this turn leaves it so far; undefined when the turn has not changed it. */
  changedRecord(active: ActiveTask | undefined, id: string): OccurrenceRecord | undefined {
    return active?.change?.occurrences.find(({ record }) => record.id === id)?.record;
  }

  answer(job: Job, change: Change | undefined, outcome: Outcome): void {
    this.answers.push({ job, change, outcome });
  }

  units(): Unit[] {
    const units = this.changes.map((change) => change.unit());
    if (this.settings.length > 0) units.push({ taskId: '', settings: this.settings });
    return units;
  }
}
