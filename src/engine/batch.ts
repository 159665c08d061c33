/** What one turn of the loop decides, collected into one commit. */
import type { TaskEvent } from '../core/effect.js';
import type { CoreEvent, Facts } from '../core/event.js';
import type { OccurrenceRecord } from '../core/model.js';
import type { Refusal, Setting, Unit } from '../store/store.js';
import type { Redo } from './inbox.js';
import type { Job, Outcome } from './job.js';
import type { ActiveTask } from './working-set.js';

/** A job that was decided, and what to tell its caller when its change is durable. */
interface Answer {
  readonly job: Job;
  /** The task that it changes, if it does. */
  readonly active: ActiveTask | undefined;
  readonly outcome: Outcome;
}

export class Batch {
  readonly facts: Facts;
  readonly monotonicMs: number;
  /** It is committed beside the turn's own (bulk.ts): nothing of it may start before it is applied. */
  readonly isBeside: boolean;
  /** The tasks that change; of each, all that this turn changes stands or falls as one unit of the commit. */
  readonly changes: ActiveTask[] = [];
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
  /** Of the changes that are visible: what listeners are told once they are durable. */
  readonly tells: TaskEvent[] = [];
  /** Changes that the store refused. */
  readonly refused = new Map<ActiveTask, Refusal>();

  constructor(facts: Facts, monotonicMs: number, isBeside = false) {
    this.facts = facts;
    this.monotonicMs = monotonicMs;
    this.isBeside = isBeside;
  }

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.settings.length === 0;
  }

  /** As ActiveTask.decide; what it changes joins this batch. */
  decide(active: ActiveTask, event: CoreEvent, awayUntilMs: number): boolean {
    const done = active.decide(event, this.#factsWith(awayUntilMs));
    if (!active.changing && (done || (active.draft?.moves ?? 0) > 0)) {
      active.changing = true;
      this.changes.push(active);
    }
    return done;
  }

  #factsWith(awayUntilMs: number): Facts {
    return awayUntilMs === this.facts.awayUntilMs ? this.facts : { ...this.facts, awayUntilMs };
  }

  /** The occurrence as this turn leaves it so far; undefined when the turn has not changed it. */
  changedRecord(active: ActiveTask | undefined, id: string): OccurrenceRecord | undefined {
    if (active?.changing !== true) return undefined;
    return active.draft?.changed.find((record) => record.id === id);
  }

  answer(job: Job, active: ActiveTask | undefined, outcome: Outcome): void {
    this.answers.push({ job, active, outcome });
  }

  /** What became of the commit of `units`. */
  refuse(refusals: readonly Refusal[]): void {
    for (const refusal of refusals) {
      const active = this.changes[refusal.unit];
      if (active !== undefined) this.refused.set(active, refusal);
    }
  }

  /** Nothing of it comes about: callers are told. */
  fail(error: unknown): void {
    for (const { job } of this.answers) job.group.settle(job.index, { kind: 'failed', error });
    this.answers.length = 0;
  }

  units(): Unit[] {
    const units = this.changes.map((active) => active.unit());
    if (this.settings.length > 0) units.push({ taskId: '', settings: this.settings });
    return units;
  }
}
