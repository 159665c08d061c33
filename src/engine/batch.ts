/** What one turn of the loop decides, collected into one commit. */
import { decideOn, draftOf } from '../core/decide.js';
import type { Draft } from '../core/draft.js';
import type { CoreEvent, Facts } from '../core/event.js';
import type { OccurrenceRecord, TaskRecord, TaskView } from '../core/model.js';
import type { Guarded, Setting, Unit } from '../store/store.js';
import type { Redo } from './inbox.js';
import type { Job, Outcome } from './job.js';
import type { ActiveTask } from './working-set.js';

/** All that a turn changes of one task; stands or falls as one unit of the commit. */
export class Change {
  readonly active: ActiveTask;
  readonly draft: Draft;
  /** As it stood before this turn; undefined when the turn creates it. */
  readonly viewBefore: TaskView | undefined;
  /** The occurrence that came due in this turn: timing has let it go. */
  admittedId: string | undefined;

  constructor(active: ActiveTask, draft: Draft) {
    this.active = active;
    this.draft = draft;
    this.viewBefore = active.view;
  }

  get taskBefore(): TaskRecord | undefined {
    return this.viewBefore?.task;
  }

  /** A turn changes a record once, whatever happened to it, so the revision before is one less. */
  unit(): Unit {
    const { draft } = this;
    const taskId = this.active.id;
    if (draft.remove) return { taskId, remove: { revision: this.taskBefore?.revision ?? 0 } };
    const occurrences = draft.changed.map(guarded);
    const { attempts } = draft;
    return draft.taskChanged
      ? { taskId, task: guarded(draft.task), occurrences, attempts }
      : { taskId, occurrences, attempts };
  }
}

function guarded<T extends { readonly revision: number }>(record: T): Guarded<T> {
  return { record, expected: record.revision - 1 };
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
  /** Take back what settings of this turn have set, should the commit fail. */
  readonly reverts: (() => void)[] = [];
  /** Events of attempts decided in this turn: repeated when the commit fails, so that no end is lost. */
  readonly attemptEvents: Redo[] = [];
  /** Tasks looked at, whether or not anything of them changed. */
  readonly touched: ActiveTask[] = [];
  /** Tasks read again: all that lives of them is to be placed anew. */
  readonly reloaded: ActiveTask[] = [];
  constructor(facts: Facts, monotonicMs: number) {
    this.facts = facts;
    this.monotonicMs = monotonicMs;
  }

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.settings.length === 0;
  }

  /**
   * Lets `decide` judge the event on the task as it stands in this turn.
   * @returns false when there was nothing to do
   * @throws what `decide` throws; nothing is changed then
   */
  decide(active: ActiveTask, event: CoreEvent, awayUntilMs: number): boolean {
    const { change } = active;
    const draft = change?.draft ?? draftOf(active.view, event, this.#factsWith(awayUntilMs));
    const done = decideOn(draft, event);
    if (change === undefined && (done || draft.moves > 0)) {
      active.change = new Change(active, draft);
      this.changes.push(active.change);
      active.view = draft;
    }
    return done;
  }

  #factsWith(awayUntilMs: number): Facts {
    return awayUntilMs === this.facts.awayUntilMs ? this.facts : { ...this.facts, awayUntilMs };
  }

  /** The occurrence as this turn leaves it so far; undefined when the turn has not changed it. */
  changedRecord(active: ActiveTask | undefined, id: string): OccurrenceRecord | undefined {
    return active?.change?.draft.changed.find((record) => record.id === id);
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
