/**
 * The main loop. It never polls: idle means one armed alarm. Everything that happens outside only enqueues an
 * event and wakes it; one turn at a time, one commit of its own in flight, and what comes meanwhile joins the next. Creates in
 * bulk go beside (bulk.ts).
 *
 * Invariants
 * 1. Commit, then act: timers are set, handlers started and callers answered only for what is committed.
 * 2. A turn is bounded: in jobs, in due timers, in claims.
 * 3. An occurrence is ready or running in at most one place of this process.
 */
import { nextTurn } from '../clock/turn.js';
import { TickwheelError } from '../core/errors.js';
import type { AttemptEvent, Facts } from '../core/event.js';
import {
  copyOfOccurrence,
  copyOfTask,
  type OccurrenceRecord,
  type TaskView,
} from '../core/model.js';
import type { Report } from '../execution/executor.js';
import type { Commit } from '../store/store.js';
import { Apply, timedOf } from './apply.js';
import { Batch } from './batch.js';
import { aimOf, createsOf, DUE_MAX, startable } from './bounds.js';
import { Bulk, isForLater, laterOf } from './bulk.js';
import type { Dispatch } from './dispatch.js';
import type { Job, Outcome, TaskJob } from './job.js';
import type { EngineParts } from './parts.js';
import { Reconcile } from './reconcile.js';
import type { ActiveTask } from './working-set.js';

/**
 * Of so many jobs in a turn, one-offs that are due start in the turn that creates them: two commits a task instead
 * of three, a third more throughput. Of fewer, a caller hears of its task before that starts, and may still stop it.
 */
const BURST_MIN = 32;
/** Of so much in the inbox a turn's own costs are little. */
const PLENTY = 64;
/** A wall clock that goes back by more than this makes the wheel be built anew. */
const BACK_JUMP_MS = 1000;

export class Loop {
  readonly #parts: EngineParts;
  readonly #apply: Apply;
  readonly #bulk: Bulk;
  readonly reconcile: Reconcile;
  #turning = false;
  /** Woken since the claims of the turn under way: perhaps by a slot that came free, of which the inbox knows nothing. */
  #isWoken = false;
  /** Ends the gathering that is under way. */
  #gathering: (() => void) | undefined;
  #closed = false;
  #disarm: (() => void) | undefined;
  /** Monotonic time at which the last turn began. */
  #beganMs = Number.NEGATIVE_INFINITY;
  #lastNowMs: number;
  /** Wall clock time up to which nominal times passed while this loop was not there to run them. */
  #awayUntilMs: number;
  /** Runs that the last turn claimed. */
  #claimedLast = 0;
  #armedWallMs = Number.POSITIVE_INFINITY;
  #armedMonotonicMs = Number.POSITIVE_INFINITY;
  /** Jobs taken from the inbox by the turn at hand. */
  #inHand: readonly Job[] = [];

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#lastNowMs = parts.clock.now();
    this.#awayUntilMs = this.#lastNowMs;
    this.reconcile = new Reconcile(parts);
    this.#apply = new Apply(parts, (error) => this.#fail(error));
    this.#bulk = new Bulk(parts, this.#apply, () => this.#bulkIsOver());
  }

  /** True while a turn is under way or about to be, or something committed has not been told. */
  get busy(): boolean {
    const isUnderWay = this.#turning || this.#bulk.isOpen || this.#apply.unsettled > 0;
    return isUnderWay || this.#parts.pruning.busy;
  }

  /** Nominal times before now passed without us: the scheduler has just begun. */
  beginAway(): void {
    this.#awayUntilMs = this.#parts.clock.now();
  }

  /** Something was enqueued, or a slot came free: have a turn soon. */
  wake(): void {
    if (this.#gathering !== undefined && this.#parts.inbox.size >= PLENTY) this.#gathering();
    this.#isWoken = true;
    if (this.#turning || this.#closed || this.#parts.failure !== undefined) return;
    this.#turning = true;
    this.#disarm?.();
    this.#disarm = undefined;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts;
    try {
      do {
        await this.#gather();
        this.#beganMs = clock.monotonic();
        await this.#turn();
      } while (this.#hasMoreWork() && this.#parts.failure === undefined);
      this.#bulk.apply();
    } catch (error) {
      this.#fail(error);
    }
    this.#turning = false;
    if (this.#parts.failure !== undefined) return;
    this.#sleepUntilNextExpiry();
    // A callback may have enqueued between the last look and here.
    if (this.#isWoken || !this.#parts.inbox.isEmpty) this.wake();
  }

  /** A busy thread lets work come together before it has a turn, until it is plenty. */
  async #gather(): Promise<void> {
    const { clock, inbox } = this.#parts;
    if (clock.pace === undefined || inbox.size >= PLENTY) {
      await nextTurn();
      return;
    }
    const plenty = new Promise<void>((resolve) => {
      this.#gathering = resolve;
    });
    await Promise.race([clock.pace(this.#beganMs), plenty]);
    this.#gathering = undefined;
  }

  /** The paragraph: read the clock, take what happened and what is due, decide, commit, apply, dispatch. */
  async #turn(): Promise<void> {
    const { clock, dispatch } = this.#parts;
    await this.#bulk.makeRoom();
    const nowMs = await this.#readClock();
    const batch = new Batch(this.#facts(nowMs), clock.monotonic());
    dispatch?.noticeAway(batch.monotonicMs);
    const reloads = await this.#reload();
    await this.#decideReports(batch);
    // After the reports: an end that is here already came before the deadline is judged.
    dispatch?.enforce(batch.monotonicMs);
    const later = await this.#decideJobs(batch);
    this.#placeReloaded(batch, reloads);
    await this.#decideDue(batch);
    this.#isWoken = false;
    this.#claimReady(batch);
    const committed = this.#commit(batch);
    if (later !== undefined) this.#commitBeside(later);
    const commit = await committed;
    this.#apply.applyTo(batch);
    this.#apply.settleWhenDurable(batch, commit);
    dispatch?.start(nowMs, batch.monotonicMs);
    await this.#tidy(nowMs, batch.monotonicMs);
    this.#inHand = [];
  }

  /** What nobody waits for: retention, loading what comes near, looking for what is amiss, giving memory back. */
  async #tidy(nowMs: number, monotonicMs: number): Promise<void> {
    const { pruning, loader, timing, draining } = this.#parts;
    if (!draining) pruning.prune(nowMs, (timing?.behind ?? 0) > 0);
    const loads = this.#executes() && (!this.#bulk.isOpen || loader?.isWanted(nowMs) === true);
    if (loads || this.reconcile.isDue(monotonicMs)) await this.#bulk.applyAll();
    if (loads) await loader?.load(nowMs);
    await this.reconcile.step(nowMs, monotonicMs);
    await timing?.shrink(nowMs, nextTurn);
  }

  #facts(nowMs: number): Facts {
    const { latestVersion, hub } = this.#parts;
    return { nowMs, awayUntilMs: this.#awayUntilMs, latestVersion, tells: hub.wants };
  }

  /** Notices when the loop was away (asleep, stopped), and when the wall clock went back. */
  async #readClock(): Promise<number> {
    const { clock, timing, awayAfterMs } = this.#parts;
    const nowMs = clock.now();
    const expectedMs = Math.min(this.#armedWallMs, nowMs);
    if (nowMs - Math.max(expectedMs, this.#lastNowMs) > awayAfterMs) this.#awayUntilMs = nowMs;
    if (timing !== undefined && nowMs < this.#lastNowMs - BACK_JUMP_MS) {
      await timing.rebuild(nowMs, nextTurn);
    }
    this.#lastNowMs = nowMs;
    return nowMs;
  }

  /** Tasks of which a commit failed, as they are stored: before anything of this turn is decided on them. */
  async #reload(): Promise<readonly string[]> {
    const { inbox, working } = this.#parts;
    const reloads = inbox.takeReloads();
    await working.refresh(reloads);
    return reloads;
  }

  #placeReloaded(batch: Batch, reloads: readonly string[]): void {
    for (const id of reloads) {
      const active = this.#parts.working.get(id);
      if (active?.draft === undefined) continue;
      this.#apply.placeReady(active, batch);
      batch.reloaded.push(active);
    }
  }

  async #decideReports(batch: Batch): Promise<void> {
    const { inbox, dispatch, working } = this.#parts;
    const redos = inbox.takeRedos();
    await working.load(redos.map((redo) => redo.taskId));
    for (const { taskId, event } of redos) {
      const active = working.get(taskId);
      if (active?.draft !== undefined) this.#decideAttempt(batch, active, event);
    }
    if (dispatch === undefined) return;
    for (const report of inbox.takeReports()) this.#decideReport(batch, report);
    for (const [run, event] of dispatch.leaseEvents(batch.facts.nowMs, batch.monotonicMs)) {
      this.#decideAttempt(batch, run.active, event);
      if (run.ended) this.#parts.onRunReport(run, event);
    }
  }

  #decideReport(batch: Batch, report: Report): void {
    const { dispatch } = this.#parts;
    const entry = dispatch?.entryApart(report);
    if (entry !== undefined) this.#decideReport(batch, entry);
    const found = dispatch?.eventOf(report, batch);
    if (found === undefined) return;
    const [run, event] = found;
    this.#decideAttempt(batch, run.active, event);
    this.#parts.onRunReport(run, event);
  }

  #decideAttempt(batch: Batch, active: ActiveTask, event: AttemptEvent): void {
    if (active.draft === undefined) {
      this.#parts.log.warn({ taskId: active.id }, 'an attempt of a task that is gone has reported');
      return;
    }
    try {
      batch.decide(active, event, this.#awayUntilOf(active));
      batch.attemptEvents.push({ taskId: active.id, event });
      this.#apply.placeReady(active, batch);
    } catch (error) {
      if (!(error instanceof TickwheelError)) throw error;
      // A stale token: whoever holds the newer one is right, and what goes on under it here is stopped.
      const stale = active.runs.find(({ fencingToken }) => fencingToken === event.token);
      if (stale !== undefined) this.#parts.dispatch?.giveUp(stale);
      this.#parts.log.warn({ taskId: active.id, code: error.code }, error.message);
    }
  }

  /** @returns creates that need not be part of this turn's own commit, if there are many */
  async #decideJobs(batch: Batch): Promise<Batch | undefined> {
    const { inbox, working, timing, dispatch, ready } = this.#parts;
    const behind = timing?.behind ?? 0;
    const canStart = this.#executes() ? startable(dispatch as Dispatch, ready, behind) : 0;
    if (timing !== undefined) timing.offersMax = canStart;
    // Held before anything is made of them: should that throw, their callers are told.
    const jobs: Job[] = [];
    this.#inHand = jobs;
    inbox.takeJobs(createsOf(behind, canStart), batch.facts.nowMs, jobs);
    if (jobs.length === 0) return undefined;
    const ids: string[] = [];
    for (const { work } of jobs) {
      if (work.kind === 'task' && work.event.kind !== 'create') ids.push(work.taskId);
    }
    if (ids.some((id) => this.#bulk.holds(id))) await this.#bulk.applyAll();
    await working.load(ids);
    const later = laterOf(jobs, batch);
    for (const job of jobs) {
      const dead = deadLetterOf(job);
      const to = later !== undefined && isForLater(job, batch.facts.nowMs) ? later : batch;
      this.#decideJob(to, dead === undefined ? job : await this.#upToDate(batch, job, dead));
    }
    return later;
  }

  /** A dead letter is no live record of its task: as it stands now, or as this turn leaves it. */
  async #upToDate(batch: Batch, job: Job, dead: OccurrenceRecord): Promise<Job> {
    const { working, session } = this.#parts;
    const changed = batch.changedRecord(working.get(dead.taskId), dead.id);
    const occurrence = changed ?? (await session.occurrence(dead.id)) ?? dead;
    const event = { kind: 'redrive', occurrence } as const;
    return { ...job, work: { kind: 'task', taskId: dead.taskId, event } };
  }

  #decideJob(batch: Batch, job: Job): void {
    const { working } = this.#parts;
    const { work } = job;
    if (work.kind === 'settings') {
      for (const setting of work.settings) batch.settings.push(setting);
      batch.reverts.push(work.apply());
      const done: Outcome = { kind: 'done', view: undefined, subject: undefined, changed: true };
      batch.answer(job, undefined, done);
      return;
    }
    if (work.event.kind === 'create') {
      this.#decideCreate(batch, job, work);
      return;
    }
    const active = working.get(work.taskId);
    if (active?.draft === undefined) {
      batch.answer(job, undefined, { kind: 'absent' });
      return;
    }
    try {
      const changed = batch.decide(active, work.event, this.#awayUntilOf(active));
      const { draft } = active;
      const { subject } = draft;
      batch.answer(job, active.changing ? active : undefined, {
        kind: 'done',
        view: asItIs(draft),
        subject: subject && copyOfOccurrence(subject),
        changed,
      });
      this.#apply.placeReady(active, batch);
      batch.touched.push(active);
    } catch (error) {
      batch.answer(job, undefined, { kind: 'failed', error });
      if (!(error instanceof TickwheelError)) throw error;
    }
  }

  /** A task that is due at once may come due in the turn that creates it. */
  #decideCreate(batch: Batch, job: Job, work: TaskJob): void {
    const { working, timing } = this.#parts;
    const active = working.add(work.taskId);
    try {
      batch.decide(active, work.event, this.#awayUntilMs);
    } catch (error) {
      working.forget(active);
      batch.answer(job, undefined, { kind: 'failed', error });
      if (!(error instanceof TickwheelError)) throw error;
      return;
    }
    const { task, live } = active.draft as TaskView;
    work.decided?.({ task, live });
    batch.answer(job, active, CREATED);
    if (batch.isBeside) return;
    const first = live[0];
    const isBurst = this.#inHand.length >= BURST_MIN && task.schedule.kind === 'once';
    if (isBurst && first !== undefined && this.#executes()) {
      timing?.offer(timedOf(task, first), task.id, batch.facts.nowMs);
    }
  }

  async #decideDue(batch: Batch): Promise<void> {
    const { timing, working, dispatch, ready } = this.#parts;
    if (timing === undefined || dispatch === undefined || !this.#executes()) return;
    ready.aim = aimOf(dispatch, this.#claimedLast);
    const due = timing.take(batch.facts.nowMs, DUE_MAX);
    if (due.length === 0) return;
    await working.load(due.map((admitted) => admitted.taskId));
    for (const { taskId, occurrenceId } of due) {
      const active = working.get(taskId);
      if (active?.draft === undefined) continue;
      batch.decide(active, { kind: 'due', occurrenceId }, this.#awayUntilOf(active));
      this.#apply.placeReady(active, batch);
      if (active.changing && !active.isNew) active.admittedId = occurrenceId;
      this.#apply.placeEarly(active, occurrenceId, batch.facts.nowMs);
      batch.touched.push(active);
    }
  }

  #awayUntilOf(active: ActiveTask): number {
    const task = active.draft?.task;
    if (task === undefined) return this.#awayUntilMs;
    const scopesMs = this.#parts.scopes.resumedAt(task.tenant, task.handler);
    return Math.max(this.#awayUntilMs, scopesMs);
  }

  #claimReady(batch: Batch): void {
    if (!this.#executes()) return;
    const { dispatch } = this.#parts;
    const runningBefore = dispatch?.runs.size ?? 0;
    dispatch?.claim(batch, {
      awayUntilOf: (run) => this.#awayUntilOf(run.active),
      onUnclaimed: (run) => this.#apply.placeReady(run.active, batch),
    });
    this.#claimedLast = (dispatch?.runs.size ?? 0) - runningBefore;
  }

  /** Waits for visible, never for a flush; answers and events follow when the flush is done. */
  async #commit(batch: Batch): Promise<Commit | undefined> {
    if (batch.isEmpty) return undefined;
    this.reconcile.noteCommit(batch.monotonicMs);
    const commit: Commit = this.#parts.session.commit(batch.units());
    commit.durable.catch(() => {});
    try {
      batch.refuse(await commit.visible);
      return commit;
    } catch (error) {
      this.#apply.undo(batch, error);
      return undefined;
    }
  }

  /** Behind this turn's own commit; it is applied when it is visible. */
  #commitBeside(later: Batch): void {
    if (later.isEmpty) {
      this.#apply.settleWhenDurable(later, undefined);
      return;
    }
    this.reconcile.noteCommit(later.monotonicMs);
    const commit = this.#parts.session.commit(later.units());
    commit.durable.catch(() => {});
    this.#bulk.add(later, commit);
  }

  /** Creates in bulk are to be applied: by the turn that is under way, or now. */
  #bulkIsOver(): void {
    this.#gathering?.();
    if (this.#turning) return;
    try {
      this.#bulk.apply();
    } catch (error) {
      this.#fail(error);
    }
    if (this.#parts.failure === undefined && !this.#closed) this.#sleepUntilNextExpiry();
  }

  /** False before `start`, while the store is being scanned, and from shutdown on. */
  #executes(): boolean {
    const { timing, dispatch, holding, draining } = this.#parts;
    return timing !== undefined && dispatch !== undefined && !holding && !draining;
  }

  #hasMoreWork(): boolean {
    const { clock, inbox, timing, loader, dispatch } = this.#parts;
    if (this.#isWoken || !inbox.isEmpty) return true;
    if (!this.#executes()) return false;
    if (loader?.hasMore || dispatch?.wantsTurn) return true;
    return timing !== undefined && (timing.isDue(clock.now()) || timing.canAdmit());
  }

  /** One alarm for everything that time alone can bring about, and that a turn would act on: else the loop would spin. */
  #sleepUntilNextExpiry(): void {
    const { clock, timing, dispatch, ready, pruning, loader, draining } = this.#parts;
    this.#disarm?.();
    const executes = this.#executes();
    this.#armedWallMs = Math.min(
      executes && timing !== undefined ? timing.nextWakeMs : Number.POSITIVE_INFINITY,
      executes && loader !== undefined ? loader.nextAtMs : Number.POSITIVE_INFINITY,
      draining ? Number.POSITIVE_INFINITY : pruning.nextAtMs,
    );
    // Without a free slot no token helps: the end of a run wakes the loop.
    const awaitsToken = executes && dispatch?.hasRoom === true;
    this.#armedMonotonicMs = Math.min(
      dispatch?.nextDeadlineMs ?? Number.POSITIVE_INFINITY,
      executes && dispatch !== undefined ? dispatch.nextAskMs : Number.POSITIVE_INFINITY,
      executes ? this.reconcile.wakeAtMs : Number.POSITIVE_INFINITY,
      awaitsToken ? Math.ceil(ready.nextTokenAt(clock.monotonic())) : Number.POSITIVE_INFINITY,
    );
    this.#disarm = clock.arm(
      { wallMs: this.#armedWallMs, monotonicMs: this.#armedMonotonicMs },
      () => {
        this.#disarm = undefined;
        this.wake();
      },
    );
  }

  /** The store is gone or an invariant is broken: nothing more is begun, everybody waiting is told. */
  #fail(error: unknown): void {
    this.#parts.fail(error);
    const told = { kind: 'failed', error: this.#parts.failure ?? error } as const;
    for (const { group, index } of this.#inHand) group.settle(index, told);
    this.#bulk.fail(this.#parts.failure ?? error);
    this.#inHand = [];
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** Resolves when all that was visible before is durable. */
  get durable(): Promise<unknown> {
    return this.#apply.durable;
  }

  /** Resolves a little later, for one who waits until the loop is not busy. */
  rest(): Promise<void> {
    return nextTurn();
  }

  /** Stops for good: the store is about to be closed, so what still calls from outside comes too late. */
  close(): void {
    this.#closed = true;
    this.#disarm?.();
    this.#disarm = undefined;
  }
}

/** A caller is told what its call led to, not what else this turn makes of it. */
function asItIs(view: TaskView): TaskView {
  return { task: copyOfTask(view.task), live: view.live.map(copyOfOccurrence) };
}

/** Its caller was told as it was decided. */
const CREATED: Outcome = { kind: 'done', view: undefined, subject: undefined, changed: true };

/** What a redrive is asked of. */
function deadLetterOf({ work }: Job): OccurrenceRecord | undefined {
  return work.kind === 'task' && work.event.kind === 'redrive' ? work.event.occurrence : undefined;
}
