/**
 * Looks for what must not be and puts it right, through the same guarded transitions as everything else: a bounded step
 * of the store's live occurrences at a time, each held against what this process has in its wheel, lanes and runs.
 *
 * It is a net under the engine, not a part of it: each repair is logged as an error, told as an event and counted, and a
 * count that is not 0 means a fault somewhere. A pass goes past any number of healthy records and is taken up where the
 * last step ended. It is armed while attempts run, and for one pass after anything was committed; an idle scheduler is
 * not woken for it.
 */
import type { OccurrenceRecord } from '../core/model.js';
import { runsBesides } from '../core/running.js';
import type { LiveEntry } from '../store/store.js';
import type { EngineParts } from './parts.js';

/** Records looked at in one step. */
const STEP_MAX = 1000;
/** Between two steps of a pass (ms): 10,000 records a second. */
const STEP_EVERY_MS = 100;
/** From the end of one pass to the beginning of the next (ms). */
const PASS_EVERY_MS = 30_000;
/** What is overdue by less than this may be on its way (ms). */
const OVERDUE_MS = 1000;

/** How often each was found and repaired since this process began. */
export interface Repairs {
  /** Overdue, and neither in the wheel nor in the backlog. */
  overdue: number;
  /** Ready, and in no lane. */
  ready: number;
  /** Recorded as running, but no attempt of this process, and its lease has run out. */
  running: number;
  /** An attempt of this process whose occurrence does not run under its token. */
  lease: number;
  /** A tenant's count of open tasks was not what the store says. */
  counters: number;
}

export class Reconcile {
  readonly #parts: EngineParts;
  readonly repairs: Repairs = { overdue: 0, ready: 0, running: 0, lease: 0, counters: 0 };
  /** Monotonic time of the next step; Infinity while there is nothing to watch. */
  nextAtMs = Number.POSITIVE_INFINITY;
  /** Of the pass under way. */
  #cursor: string | undefined;
  /** Attempts looked at by the passes before, of those there are. */
  #runsSeen = 0;
  /** Something was committed since the pass began. */
  #isDirty = false;

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  /** Something was committed: there is something to watch. */
  noteCommit(monotonicMs: number): void {
    this.#isDirty = true;
    if (this.nextAtMs === Number.POSITIVE_INFINITY) this.nextAtMs = monotonicMs + PASS_EVERY_MS;
  }

  /** To be asked before the loop sleeps. */
  get wakeAtMs(): number {
    const { admission, dispatch } = this.#parts;
    // Every task has ended, and what ended them knows nothing of wheel and lanes.
    const isOver = !admission.hasOpen && (dispatch?.runs.size ?? 0) === 0;
    return isOver ? Number.POSITIVE_INFINITY : this.nextAtMs;
  }

  isDue(monotonicMs: number): boolean {
    return monotonicMs >= this.nextAtMs;
  }

  /** To be called at the end of a turn, when all that was decided is applied. */
  async step(nowMs: number, monotonicMs: number): Promise<void> {
    if (!this.isDue(monotonicMs)) return;
    const { dispatch, timing, inbox, holding, draining, session } = this.#parts;
    if (dispatch === undefined || timing === undefined || holding || draining) {
      this.nextAtMs = Number.POSITIVE_INFINITY;
      return;
    }
    this.nextAtMs = monotonicMs + STEP_EVERY_MS;
    // What waits in the inbox is on its way to be put right.
    if (!inbox.isEmpty || inbox.postponed > 0) return;
    if (this.#cursor === undefined) {
      this.#isDirty = false;
      await this.#checkRuns();
      await this.#checkCounters();
    }
    const page = await session.scanLive({ limit: STEP_MAX, cursor: this.#cursor });
    const running: LiveEntry[] = [];
    const lost: LiveEntry[] = [];
    for (const entry of page.items) {
      if (entry.state === 'running' || entry.state === 'cancel-requested') running.push(entry);
      else if (!entry.held && !this.#isPlaced(entry, nowMs)) lost.push(entry);
    }
    await this.#placeAnew(lost);
    await this.#checkRunning(running, nowMs);
    this.#cursor = page.cursor;
    if (page.cursor !== undefined) return;
    const isWatching = this.#isDirty || dispatch.runs.size > 0 || this.#parts.ready.size > 0;
    this.nextAtMs = isWatching ? monotonicMs + PASS_EVERY_MS : Number.POSITIVE_INFINITY;
  }

  /** What waits for its time, or for a slot, is where it is waited for. */
  #isPlaced(entry: LiveEntry, nowMs: number): boolean {
    const { taskId, occurrenceId, state, dueAt } = entry;
    const { timing, working, loader } = this.#parts;
    // It has not come near yet, or is about to be told: the store keeps it until then.
    if (loader?.isTold(entry, dueAt) === false) return true;
    if (timing?.has(occurrenceId) === true) return true;
    if (state !== 'ready' && dueAt > nowMs - OVERDUE_MS) return true;
    const active = working.get(taskId);
    return active?.ready.some((run) => run.occurrenceId === occurrenceId) === true;
  }

  async #placeAnew(entries: readonly LiveEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { inbox, session } = this.#parts;
    const views = await session.views(entries.map(({ taskId }) => taskId));
    for (const [index, entry] of entries.entries()) {
      const view = views[index];
      // It was picked while another of its task runs, and is placed again when that one ends.
      if (entry.state === 'ready' && view !== undefined && runsBesides(view)) continue;
      // Its records say where it belongs.
      inbox.addReload(entry.taskId);
      this.#repaired(entry.state === 'ready' ? 'ready' : 'overdue', entry);
    }
  }

  /** Recorded as running: an attempt of ours, or what nobody runs any more. */
  async #checkRunning(entries: readonly LiveEntry[], nowMs: number): Promise<void> {
    const { dispatch, working, session, inbox } = this.#parts;
    const lost = entries.filter(({ taskId, occurrenceId }) => {
      const runs = working.get(taskId)?.runs ?? [];
      return !runs.some((run) => run.occurrenceId === occurrenceId && !run.ended);
    });
    if (lost.length === 0 || dispatch === undefined) return;
    const views = await session.views(lost.map(({ taskId }) => taskId));
    for (const [index, entry] of lost.entries()) {
      const { taskId, occurrenceId } = entry;
      const record = views[index]?.live.find(({ id }) => id === occurrenceId);
      if (record === undefined || !isRunning(record)) continue;
      // Somebody else may hold it, until its lease has run out.
      if (record.leaseUntil !== undefined && record.leaseUntil > nowMs) continue;
      inbox.addRedo({ taskId, event: dispatch.leaseEnded(occurrenceId, record.token) });
      this.#repaired('running', entry);
    }
  }

  /** Attempts of ours, against what the store has of their occurrences: in each pass the next of them. */
  async #checkRuns(): Promise<void> {
    const { dispatch, session, inbox } = this.#parts;
    if (dispatch === undefined || dispatch.runs.size === 0) return;
    if (this.#runsSeen >= dispatch.runs.size) this.#runsSeen = 0;
    const runs = [...dispatch.runs.all()].slice(this.#runsSeen, this.#runsSeen + STEP_MAX);
    this.#runsSeen += STEP_MAX;
    const views = await session.views(runs.map(({ taskId }) => taskId));
    for (const [index, run] of runs.entries()) {
      const record = views[index]?.live.find(({ id }) => id === run.occurrenceId);
      if (record !== undefined && isRunning(record) && record.token === run.fencingToken) continue;
      dispatch.giveUp(run);
      inbox.addReload(run.taskId);
      this.#repaired('lease', run);
    }
  }

  async #checkCounters(): Promise<void> {
    const { admission, session } = this.#parts;
    // A create that is on its way is counted here, and not there.
    if (!admission.isSettled) return;
    const counts = await session.counts();
    if (!admission.isSettled) return;
    for (const tenant of admission.correct(counts.tenants)) {
      this.#parts.log.error({ tenant }, 'reconciled: the count of open tasks had drifted');
      this.repairs.counters++;
    }
  }

  #repaired(what: keyof Repairs, of: RepairOf): void {
    const { taskId, occurrenceId, tenant, handler } = of;
    const { log, hub, clock } = this.#parts;
    this.repairs[what]++;
    log.error({ what, taskId, occurrenceId }, 'reconciled: a record and this process disagreed');
    hub.tell({
      type: 'repaired',
      at: clock.now(),
      taskId,
      tenant,
      handler,
      occurrenceId,
      attempt: undefined,
      details: { reason: what },
    });
  }
}

type RepairOf = Pick<LiveEntry, 'taskId' | 'occurrenceId' | 'tenant' | 'handler'>;

function isRunning({ state }: OccurrenceRecord): boolean {
  return state === 'running' || state === 'cancel-requested';
}
