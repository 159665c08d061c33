/** Work that callers hand to the loop, and how they hear of its outcome. */
import type { CallEvent } from '../core/event.js';
import type { OccurrenceRecord, TaskView } from '../core/model.js';
import type { Setting } from '../store/store.js';

/** What became of one job. */
export type Outcome =
  | {
      readonly kind: 'done';
      /** The task afterwards; undefined for settings and for a create, which was told as `decided`. */
      readonly view: TaskView | undefined;
      /** The occurrence that a trigger or redrive made. */
      readonly subject: OccurrenceRecord | undefined;
      /** False when there was nothing to do. */
      readonly changed: boolean;
    }
  /** The idempotency key of the task to create is held by another. */
  | { readonly kind: 'held'; readonly holder: string }
  /** No such task. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** A change of one task. */
export interface TaskJob {
  readonly kind: 'task';
  readonly taskId: string;
  readonly event: CallEvent;
  /**
   * A create was decided: the task as its caller is told of it, once that is durable. To be looked at now, for
   * the same turn may go on with it.
   */
  readonly decided?: (view: TaskView) => void;
}

export interface SettingsJob {
  readonly kind: 'settings';
  readonly settings: readonly (readonly [string, Setting | undefined])[];
  /** Takes effect in the loop when the change is made, before anything else is claimed. Returns what undoes it. */
  readonly apply: () => () => void;
}

export type Work = TaskJob | SettingsJob;

/**
 * Works in order, each made when its turn has come: what waits in a queue of tens of thousands must be few objects, for the
 * garbage collector copies them again and again.
 */
export interface WorkSource {
  readonly size: number;
  /** Asked once of each. */
  work(index: number): Work;
  /** It creates a task that is due by now. */
  isDueAtOnce(index: number, nowMs: number): boolean;
  /** All were asked for, or have failed. */
  taken?(): void;
}

/** Works that are there already, and create nothing. */
export function worksOf(works: readonly Work[]): WorkSource {
  return {
    size: works.length,
    work: (index) => works[index] as Work,
    isDueAtOnce: () => false,
  };
}

/** Jobs submitted together; resolves once all of them are durable, outcomes in order. */
export class JobGroup {
  readonly outcomes: Outcome[];
  readonly done: Promise<readonly Outcome[]>;
  #left: number;
  #resolve!: (outcomes: readonly Outcome[]) => void;

  constructor(count: number) {
    this.outcomes = new Array(count);
    this.#left = count;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The first outcome stays. */
  settle(index: number, outcome: Outcome): void {
    if (this.outcomes[index] !== undefined) return;
    this.outcomes[index] = outcome;
    if (--this.#left === 0) this.#resolve(this.outcomes);
  }
}

export interface Job {
  readonly work: Work;
  readonly group: JobGroup;
  readonly index: number;
}
