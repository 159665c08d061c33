/**
 * The tasks that something is happening to: those with ready or running occurrences, and those that the turn
 * at hand touches. Bounded by `maxReady`, the slots and the size of a turn; all others live in the store alone.
 */
import { assert } from '../core/assert.js';
import { decideOn, draftOf } from '../core/decide.js';
import { Draft } from '../core/draft.js';
import type { CoreEvent, Facts } from '../core/event.js';
import { FlatMap } from '../core/flat-map.js';
import type { OccurrenceRecord, TaskState, TaskView } from '../core/model.js';
import { hashOfUuid } from '../core/uuid.js';
import type { Guarded, Placed, StoreSession, Unit } from '../store/store.js';
import type { ActiveRun } from './runs.js';

/** Of a draft that no turn has begun with. */
const UNDECIDED: Facts = { nowMs: 0, awayUntilMs: 0, latestVersion: () => undefined };

/** A task at hand. Its records are ours, and written to in place: what the store has is read again after a failure. */
export class ActiveTask {
  readonly id: string;
  readonly at: Placed = { place: 0 };
  /** As last decided; what is visible once the turn's commit is. Undefined before `create` was decided. */
  draft: Draft | undefined;
  /** Ready and in their lanes. */
  ready: ActiveRun[] = [];
  runs: ActiveRun[] = [];
  /** The turn at hand changes it. */
  changing = false;
  /** It is being created beside the turns (bulk.ts). */
  inBulk = false;

  // How the turn at hand found it.
  isNew = false;
  stateBefore: TaskState = 'active';
  priorityBefore = 0;
  revisionBefore = 0;
  /** The occurrence that came due in this turn: timing has let it go. */
  admittedId: string | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** As read from the store. */
  is(view: TaskView | undefined, place = 0): void {
    this.at.place = place;
    this.draft = view && new Draft(view.task, view.live, UNDECIDED, true);
  }

  find(occurrenceId: string): OccurrenceRecord | undefined {
    return this.draft?.find(occurrenceId);
  }

  /**
   * Lets `decide` judge the event on the task as it stands in this turn.
   * @returns false when there was nothing to do
   * @throws what `decide` throws; nothing is changed then
   */
  decide(event: CoreEvent, facts: Facts): boolean {
    const { draft } = this;
    if (draft === undefined) {
      this.isNew = true;
      this.revisionBefore = 0;
      this.draft = draftOf(undefined, event, facts, true);
      return true;
    }
    if (!this.changing) {
      const { state, priority, revision } = draft.task;
      this.isNew = false;
      this.stateBefore = state;
      this.priorityBefore = priority;
      this.revisionBefore = revision;
      this.admittedId = undefined;
      draft.begin(facts);
    } else draft.facts = facts;
    const { moves } = draft;
    try {
      return decideOn(draft, event);
    } catch (error) {
      assert(draft.moves === moves, 'an event that is refused changes nothing');
      throw error;
    }
  }

  /** What this turn has changed. A record is changed once a turn, so the revision before is one less. */
  unit(): Unit {
    const { id: taskId } = this;
    const draft = this.draft as Draft;
    if (draft.remove) return { taskId, at: this.at, remove: { revision: this.revisionBefore } };
    const { attempts, changed } = draft;
    const occurrences =
      changed.length === 1 ? [guarded(changed[0] as OccurrenceRecord)] : changed.map(guarded);
    return draft.taskChanged
      ? { taskId, at: this.at, task: guarded(draft.task), occurrences, attempts }
      : { taskId, at: this.at, occurrences, attempts };
  }
}

function guarded<T extends { readonly revision: number }>(record: T): Guarded<T> {
  return { record, expected: record.revision - 1 };
}

export class WorkingSet {
  readonly #tasks = new FlatMap<string, ActiveTask>(hashOfUuid);
  /** Those whose records are not what the store has. */
  readonly #stale = new Set<ActiveTask>();
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
    const active = new ActiveTask(id);
    this.#tasks.set(id, active);
    return active;
  }

  /** Reads those of the tasks that are not here yet, in one call of the store. */
  async load(ids: readonly string[]): Promise<void> {
    const missing: string[] = [];
    for (const id of ids) if (!this.#tasks.has(id)) missing.push(id);
    if (missing.length > 0) await this.#read(missing);
  }

  /** Reads the tasks, also those that are here, and all that are stale. */
  async refresh(ids: readonly string[]): Promise<void> {
    if (ids.length === 0 && this.#stale.size === 0) return;
    const stale = Array.from(this.#stale, (active) => active.id);
    this.#stale.clear();
    await this.#read(stale.length === 0 ? ids : [...new Set([...stale, ...ids])]);
  }

  async #read(ids: readonly string[]): Promise<void> {
    const places: number[] = [];
    const views = await this.#session.views(ids, places);
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i] as string;
      const view = views[i];
      const known = this.#tasks.get(id);
      if (known !== undefined) known.is(view, places[i]);
      else if (view !== undefined) this.add(id).is(view, places[i]);
    }
  }

  /** Its records are not what was believed: they are read again before anything more is decided on it. */
  setStale(active: ActiveTask): void {
    this.#stale.add(active);
  }

  /**
   * Forgets the task unless something of it is ready or runs. One that is due at once may be kept, so that
   * it need not be read again in the next turn.
   */
  release(active: ActiveTask, dueAtOnce: boolean): void {
    if (active.ready.length > 0 || active.runs.length > 0 || active.changing) return;
    if (dueAtOnce && this.#tasks.size <= this.#keptMax) return;
    this.forget(active);
  }

  forget(active: ActiveTask): void {
    if (this.#tasks.get(active.id) !== active) return;
    this.#tasks.delete(active.id);
    this.#stale.delete(active);
  }
}
