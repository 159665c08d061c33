/**
 * The tasks that something is happening to: those with ready or running occurrences, and those that the turn
 * at hand touches. Bounded by `maxReady`, the slots and the size of a turn; all others live in the store alone.
 */
import type { OccurrenceRecord, TaskView } from '../core/model.js';
import type { ReadyEntry } from '../core/ready-queue.js';
import type { StoreSession } from '../store/store.js';
import type { Change } from './batch.js';
import type { ActiveRun } from './runs.js';

/** A ready occurrence in its lane. */
export interface ReadyItem extends ReadyEntry {
  readonly occurrenceId: string;
  readonly active: ActiveTask;
}

export class ActiveTask {
  readonly id: string;
  /** As last decided; what is visible once the turn's commit is. Undefined before `create` was decided. */
  view: TaskView | undefined;
  /** What the turn at hand changes. */
  change: Change | undefined;
  readonly ready: ReadyItem[] = [];
  readonly runs: ActiveRun[] = [];

  constructor(id: string, view: TaskView | undefined) {
    this.id = id;
    this.view = view;
  }

  find(occurrenceId: string): OccurrenceRecord | undefined {
    const live = this.view?.live;
    if (live !== undefined) {
      for (const occurrence of live) if (occurrence.id === occurrenceId) return occurrence;
    }
    return undefined;
  }
}

export class WorkingSet {
  readonly #tasks = new Map<string, ActiveTask>();
  readonly #session: StoreSession;
  readonly #keptMax: number;

  constructor(session: StoreSession, keptMax: number) {
    this.#session = session;
    this.#keptMax = keptMax;
  }

  get size(): number {
    return this.#tasks.size;
  }

  get(id: string): ActiveTask | undefined {
    return this.#tasks.get(id);
  }

  /** A task about to be created. */
  add(id: string): ActiveTask {
    const active = new ActiveTask(id, undefined);
    this.#tasks.set(id, active);
    return active;
  }

  /** Reads those of the tasks that are not here yet, in one call of the store. */
  async load(ids: readonly string[]): Promise<void> {
    const missing: string[] = [];
    for (const id of ids) if (!this.#tasks.has(id)) missing.push(id);
    if (missing.length > 0) await this.refresh(missing);
  }

  /** Reads the tasks, also those that are here. */
  async refresh(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const views = await this.#session.views(ids);
    for (const [index, view] of views.entries()) {
      const id = ids[index] as string;
      if (view === undefined) continue;
      const known = this.#tasks.get(id);
      if (known === undefined) this.#tasks.set(id, new ActiveTask(id, view));
      else known.view = view;
    }
  }

  /**
   * Forgets the task unless something of it is ready or runs. One that is due at once may be kept, so that
   * it need not be read again in the next turn.
   */
  release(active: ActiveTask, dueAtOnce: boolean): void {
    if (active.ready.length > 0 || active.runs.length > 0 || active.change !== undefined) return;
    if (dueAtOnce && this.#tasks.size <= this.#keptMax) return;
    this.#tasks.delete(active.id);
  }

  /** Its records are not what was believed: read it again when it is next needed. */
  forget(active: ActiveTask): void {
    if (this.#tasks.get(active.id) === active) this.#tasks.delete(active.id);
  }
}
