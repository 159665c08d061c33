/**
 * From ready to running and back: claims what fairness picks for the free slots, hands it to the executor once
 * the claim is committed, enforces timeouts, and turns the executor's reports into events.
 */
import { AbortedError, type AbortReason, LeaseLostError, toStoredError } from '../core/errors.js';
import type { AttemptEvent } from '../core/event.js';
import type { ReadyQueue } from '../core/ready-queue.js';
import { removeItem } from '../core/small-list.js';
import type { Executor, Report, Run } from '../execution/executor.js';
import { AloneThread } from './alone.js';
import type { Batch } from './batch.js';
import { Deadlines } from './deadlines.js';
import type { StoredValues } from './engine.js';
import { Leases } from './leases.js';
import { type ActiveRun, Runs } from './runs.js';

export interface DispatchOptions {
  readonly executor: Executor;
  readonly ready: ReadyQueue<ActiveRun>;
  readonly leaseDurationMs: number;
  /** Others may have the store open: renewals are written, for them to see. */
  readonly isShared: boolean;
  readonly timeoutGraceMs: number;
  readonly random: () => number;
  readonly nextToken: () => number;
  readonly values: StoredValues;
  /** For a run that must not be given to the executor: its end, told by ourselves. */
  readonly report: (reports: readonly Report[]) => void;
  readonly latestVersion: (handler: string) => number | undefined;
  /** An attempt entered its handler this late. */
  readonly onEntered: (latenessMs: number, ordinary: boolean) => void;
  /** Progress that could not be sealed is dropped; the heartbeat counts. */
  readonly onUnsealed: (error: unknown, occurrenceId: string) => void;
  /** A report came after its attempt had been given up. */
  readonly onRefused: (error: LeaseLostError) => void;
}

/** What a claim must know of an item besides its records. */
export interface ClaimJudge {
  readonly awayUntilOf: (run: ActiveRun) => number;
  /** It was taken from its lane and not claimed: its task is to be placed anew. */
  readonly onUnclaimed: (run: ActiveRun) => void;
}

export class Dispatch {
  readonly runs = new Runs();
  readonly #options: DispatchOptions;
  readonly #deadlines = new Deadlines();
  #toStart: ActiveRun[] = [];
  /** The one of them that has a thread for itself. */
  #aloneToStart: ActiveRun | undefined;
  readonly #leases: Leases;
  readonly #aloneThread: AloneThread;
  /** Reports of attempts that were given up before: refused, nothing changed. */
  lateReports = 0;

  constructor(options: DispatchOptions) {
    this.#options = options;
    const { leaseDurationMs, isShared, executor } = options;
    this.#leases = new Leases({ durationMs: leaseDurationMs, isShared }, this.runs, executor);
    this.#aloneThread = new AloneThread(executor);
  }

  /** Monotonic time at which something must be looked at; Infinity when nothing runs. */
  get nextDeadlineMs(): number {
    return Math.min(this.#deadlines.nextMs, this.#leases.nextMs);
  }

  /** Monotonic time at which a claim is to ask for a thread again; Infinity when none is waited for. */
  get nextAskMs(): number {
    return this.#aloneThread.nextMs;
  }

  /** Another turn is needed: in it a thread is asked for, before others are claimed for its slots. */
  get wantsTurn(): boolean {
    return this.#aloneThread.isNews(this.#options.ready.wantsAlone);
  }

  /** A slot is free. */
  get hasRoom(): boolean {
    return this.room > 0;
  }

  /** Runs that could be claimed now. */
  get room(): number {
    const given = this.#toStart.length - (this.#aloneToStart === undefined ? 0 : 1);
    return Math.max(0, this.#options.executor.capacity() - given);
  }

  /** Claims, in the batch, what starts next; `start` hands it over once the batch is visible. */
  claim(batch: Batch, judge: ClaimJudge): void {
    const { ready } = this.#options;
    this.#claimAlone(batch, judge);
    for (;;) {
      if (ready.size === 0) return;
      const free = this.room;
      const items = free === 0 ? [] : ready.take(batch.monotonicMs, free);
      if (items.length === 0) return;
      for (const run of items) this.#claimTaken(batch, run, judge);
    }
  }

  /** What must run alone is claimed only when a thread has been emptied for it: until then it waits, and others do not. */
  #claimAlone(batch: Batch, judge: ClaimJudge): void {
    const { ready } = this.#options;
    while (this.#aloneThread.ask(ready.wantsAlone, batch.monotonicMs)) {
      const run = ready.takeAlone(batch.monotonicMs);
      if (run === undefined || !this.#claimTaken(batch, run, judge)) continue;
      this.#aloneThread.taken();
      return;
    }
  }

  /** False when it is not claimed after all. */
  #claimTaken(batch: Batch, run: ActiveRun, judge: ClaimJudge): boolean {
    const { ready } = this.#options;
    removeItem(run.active.ready, run);
    // Due is compared with the wall clock once more: it may have gone back.
    const isEarly = run.dueAt > batch.facts.nowMs;
    if (!isEarly && this.#claimOne(batch, run, judge.awayUntilOf(run))) {
      this.#toStart.push(run);
      if (run.alone) this.#aloneToStart = run;
      return true;
    }
    ready.undo(run);
    batch.touched.push(run.active);
    // Missed at the last moment, it lets others of its task go on.
    if (isEarly || run.active.find(run.occurrenceId)?.state !== 'ready') {
      judge.onUnclaimed(run);
    }
    return false;
  }

  #claimOne(batch: Batch, run: ActiveRun, awayUntilMs: number): boolean {
    const { active, occurrenceId } = run;
    const before = active.find(occurrenceId);
    const task = active.draft?.task;
    if (before === undefined || task === undefined) return false;
    const handlerVersion = before.handlerVersion ?? this.#options.latestVersion(task.handler);
    if (handlerVersion === undefined) return false;
    const token = this.#options.nextToken();
    const leaseUntil = batch.facts.nowMs + this.#options.leaseDurationMs;
    batch.decide(
      active,
      { kind: 'claim', occurrenceId, token, leaseUntil, handlerVersion },
      awayUntilMs,
    );
    const claimed = active.find(occurrenceId);
    if (claimed?.state !== 'running' || claimed.token !== token) return false;
    run.claim(this.runs.nextId(), task, claimed);
    this.#leases.grant(run, batch.facts.nowMs, batch.monotonicMs);
    this.runs.add(run);
    return true;
  }

  /** The run as the executor gets it; undefined when its stored bytes cannot be read: then it has failed. */
  #opened(run: Run, nowMs: number): Run | undefined {
    const { values } = this.#options;
    try {
      const payload = values.open(run.payload) as Uint8Array;
      const progress = values.open(run.progress);
      // Without a codec of the caller's nothing was opened.
      if (payload === run.payload && progress === run.progress) return run;
      return { ...run, taskId: run.taskId, payload, progress };
    } catch (thrown) {
      // One bad record never blocks others.
      this.#options.report([
        {
          kind: 'failed',
          runId: run.runId,
          atMs: nowMs,
          error: toStoredError(thrown),
          unrecoverable: true,
          retryAfterMs: undefined,
        },
      ]);
      return undefined;
    }
  }

  /** The claims are visible: start them. */
  start(nowMs: number, monotonicMs: number): void {
    if (this.#toStart.length === 0) return;
    const runs: Run[] = [];
    let isAloneGiven = this.#aloneToStart === undefined;
    for (const run of this.#toStart) {
      if (run.ended) continue;
      const opened = this.#opened(run.toRun(), nowMs);
      if (opened !== undefined) {
        runs.push(opened);
        if (opened.alone) isAloneGiven = true;
      }
      run.given = true;
    }
    this.#toStart = [];
    this.#aloneToStart = undefined;
    if (!isAloneGiven) this.#aloneThread.letGo();
    this.#leases.arm(monotonicMs);
    this.#options.executor.start(runs);
  }

  /** The claims could not be committed: as if they had never been picked. */
  dropClaims(isDropped: (run: ActiveRun) => boolean): void {
    const kept: ActiveRun[] = [];
    for (const run of this.#toStart) {
      if (!isDropped(run)) kept.push(run);
      else {
        this.runs.remove(run);
        this.#options.ready.undo(run);
        if (run === this.#aloneToStart) {
          this.#aloneToStart = undefined;
          this.#aloneThread.letGo();
        }
      }
    }
    this.#toStart = kept;
  }

  /** To be called first in a turn: see Leases. */
  noticeAway(monotonicMs: number): void {
    this.#leases.noticeAway(monotonicMs);
  }

  /** Aborts runs whose timeout has come, ends those whose grace is over. */
  enforce(monotonicMs: number): void {
    for (;;) {
      const deadline = this.#deadlines.take(monotonicMs);
      if (deadline === undefined) return;
      const { run, kind } = deadline;
      if (kind === 'grace') {
        this.#options.executor.end(run.runId);
      } else if (kind === 'heartbeat' && run.silentAtMs > monotonicMs) {
        this.#deadlines.add(run.silentAtMs, 'heartbeat', run, this.runs.size);
      } else if (run.abortWhy === undefined) {
        const policies = run.active.draft?.task.policies;
        const message =
          kind === 'timeout'
            ? `timed out after ${policies?.timeoutMs} ms`
            : `timed out: no heartbeat for ${policies?.heartbeatTimeoutMs} ms`;
        this.abort(run, 'timedOut', message, monotonicMs);
      }
    }
  }

  /** Aborts the run's signal; when the grace has passed the run is ended by force. */
  abort(run: ActiveRun, why: AbortReason, message: string, monotonicMs: number): void {
    if (run.ended || run.abortWhy !== undefined) return;
    run.abortWhy = why;
    run.abortMessage = message;
    const { timeoutGraceMs, executor } = this.#options;
    this.#deadlines.add(monotonicMs + timeoutGraceMs, 'grace', run, this.runs.size);
    executor.abort(run.runId, why, message);
  }

  /** Renewals that are due, and attempts whose lease has run out, as events. */
  leaseEvents(nowMs: number, monotonicMs: number): [ActiveRun, AttemptEvent][] {
    return this.#leases.events(nowMs, monotonicMs, (run) => this.#expire(run, nowMs));
  }

  /** Its worker was not heard of for a whole lease: whatever it still reports comes too late. */
  #expire(run: ActiveRun, nowMs: number): AttemptEvent {
    this.#drop(run);
    this.#options.executor.end(run.runId);
    if (run.abortWhy === 'timedOut') return this.#timedOut(run, nowMs);
    const { occurrenceId, fencingToken: token } = run;
    if (run.abortWhy === 'shutdown') return { kind: 'released', occurrenceId, token };
    return this.leaseEnded(occurrenceId, token);
  }

  #drop(run: ActiveRun): void {
    this.runs.remove(run);
    this.#options.ready.finished(run);
    if (this.runs.size === 0) this.#leases.disarm();
  }

  /** Its occurrence does not run under its token: its signal is aborted, and it is not listened to any more. */
  giveUp(run: ActiveRun): void {
    this.#drop(run);
    const { executor } = this.#options;
    executor.abort(run.runId, 'leaseLost', 'another attempt has taken its place');
    executor.end(run.runId);
  }

  /** The lease of a running attempt has run out. */
  leaseEnded(occurrenceId: string, token: number): AttemptEvent {
    const { leaseDurationMs, values, random } = this.#options;
    const message = `its worker was not heard of for a lease of ${leaseDurationMs} ms`;
    const error = values.encodeError({ name: 'LeaseLostError', message });
    const random01 = random();
    return { kind: 'crashed', occurrenceId, token, leaseExpired: true, error, random01 };
  }

  /**
   * An entry that came with its end, where the two must be told apart: the end of an attempt that was aborted
   * may be another than it says.
   */
  entryApart(report: Report): Report | undefined {
    if (report.kind !== 'succeeded' && report.kind !== 'failed') return undefined;
    const { runId, enteredAtMs: atMs, workerId } = report;
    const run = atMs === undefined ? undefined : this.runs.get(runId);
    if (run === undefined || run.entered || run.abortWhy === undefined) return undefined;
    return { kind: 'entered', runId, atMs: atMs as number, workerId: workerId as string };
  }

  /** What the report means for its attempt; undefined: nothing to decide, or the run is not ours any more. */
  eventOf(report: Report, batch: Batch): [ActiveRun, AttemptEvent] | undefined {
    const run = this.runs.get(report.runId);
    if (run === undefined) {
      const { kind } = report;
      if (kind === 'succeeded' || kind === 'failed' || kind === 'progress') this.#refuse(report);
      return undefined;
    }
    switch (report.kind) {
      case 'entered':
        return [run, this.#entered(run, report, batch)];
      case 'progress':
        return this.#progress(run, report.progress, batch);
      default:
        this.runs.remove(run);
        // Nothing runs: nothing is to be renewed, and nobody woken for it.
        if (this.runs.size === 0) this.#leases.disarm();
        if (report.kind === 'returned') this.#options.ready.undo(run);
        else this.#options.ready.finished(run);
        return [run, this.#endOf(run, report, batch)];
    }
  }

  /** A heartbeat without progress leaves what was reported before. */
  #progress(
    run: ActiveRun,
    reported: Uint8Array | undefined,
    batch: Batch,
  ): [ActiveRun, AttemptEvent] | undefined {
    this.#heard(run, batch.monotonicMs);
    const leaseUntil = this.#leases.grant(run, batch.facts.nowMs, batch.monotonicMs);
    const { occurrenceId, fencingToken: token } = run;
    if (reported !== undefined) {
      try {
        const progress = this.#options.values.seal(reported);
        return [run, { kind: 'progress', occurrenceId, token, leaseUntil, progress }];
      } catch (error) {
        this.#options.onUnsealed(error, occurrenceId);
      }
    }
    return this.#options.isShared
      ? [run, { kind: 'renew', occurrenceId, token, leaseUntil }]
      : undefined;
  }

  /** Told once its attempt had ended otherwise: as under an old token, nothing is changed. */
  #refuse({ kind, runId }: Report): void {
    this.lateReports++;
    this.#options.onRefused(new LeaseLostError(`run ${runId} has ended: its '${kind}' is refused`));
  }

  #entered(
    run: ActiveRun,
    report: Extract<Report, { kind: 'entered' }>,
    batch: Batch,
  ): AttemptEvent {
    const policies = run.active.draft?.task.policies;
    if (policies?.timeoutMs !== undefined) {
      const atMs = batch.monotonicMs + policies.timeoutMs;
      this.#deadlines.add(atMs, 'timeout', run, this.runs.size);
    }
    if (policies?.heartbeatTimeoutMs !== undefined) {
      this.#heard(run, batch.monotonicMs);
      this.#deadlines.add(run.silentAtMs, 'heartbeat', run, this.runs.size);
    }
    this.#noteEntry(run, report.atMs);
    const { occurrenceId, fencingToken: token } = run;
    const { atMs, workerId } = report;
    return { kind: 'entered', occurrenceId, token, atMs, workerId };
  }

  #noteEntry(run: ActiveRun, atMs: number): void {
    run.entered = true;
    const occurrence = run.active.find(run.occurrenceId);
    if (occurrence === undefined) return;
    const { kind, catchup, dueAt } = occurrence;
    const ordinary = !catchup && !run.throttled && (kind === 'nominal' || kind === 'sequence');
    this.#options.onEntered(Math.max(0, atMs - dueAt), ordinary);
  }

  #heard(run: ActiveRun, monotonicMs: number): void {
    const timeoutMs = run.active.draft?.task.policies.heartbeatTimeoutMs;
    if (timeoutMs !== undefined) run.silentAtMs = monotonicMs + timeoutMs;
  }

  #endOf(
    run: ActiveRun,
    report: Extract<Report, { kind: 'succeeded' | 'failed' | 'returned' | 'lost' }>,
    batch: Batch,
  ): AttemptEvent {
    const { occurrenceId, fencingToken: token } = run;
    const base = { occurrenceId, token };
    const isWhole = report.kind === 'succeeded' || report.kind === 'failed';
    const enteredAtMs = isWhole && !run.entered ? report.enteredAtMs : undefined;
    const workerId = isWhole ? report.workerId : undefined;
    if (enteredAtMs !== undefined) this.#noteEntry(run, enteredAtMs);
    // After a timeout the late end is refused, whatever it is.
    if (run.abortWhy === 'timedOut' && report.kind !== 'returned') {
      return this.#timedOut(run, batch.facts.nowMs);
    }
    switch (report.kind) {
      case 'returned':
        return { kind: 'returned', ...base };
      case 'succeeded':
        return this.#succeeded(run, report, enteredAtMs);
      case 'failed': {
        if (run.abortWhy === 'shutdown') return { kind: 'released', ...base };
        const { atMs, unrecoverable, retryAfterMs } = report;
        return {
          kind: 'failed',
          ...base,
          enteredAtMs,
          workerId,
          atMs,
          error: this.#options.values.encodeError(report.error),
          timedOut: false,
          unrecoverable,
          retryAfterMs,
          random01: this.#options.random(),
        };
      }
      default:
        return this.#lost(run, report);
    }
  }

  /** A result that the caller's codec cannot seal fails the attempt, as one that cannot be encoded. */
  #succeeded(
    run: ActiveRun,
    report: Extract<Report, { kind: 'succeeded' }>,
    enteredAtMs: number | undefined,
  ): AttemptEvent {
    const { occurrenceId, fencingToken: token } = run;
    const { atMs, workerId } = report;
    const { values, random } = this.#options;
    try {
      const result = values.seal(report.result);
      return { kind: 'succeeded', occurrenceId, token, enteredAtMs, workerId, atMs, result };
    } catch (thrown) {
      return {
        kind: 'failed',
        occurrenceId,
        token,
        enteredAtMs,
        workerId,
        atMs,
        error: values.encodeError(toStoredError(thrown)),
        timedOut: false,
        unrecoverable: false,
        retryAfterMs: undefined,
        random01: random(),
      };
    }
  }

  #timedOut(run: ActiveRun, nowMs: number): AttemptEvent {
    const error = new AbortedError(run.abortMessage, { why: 'timedOut' });
    return {
      kind: 'failed',
      occurrenceId: run.occurrenceId,
      token: run.fencingToken,
      atMs: nowMs,
      error: this.#options.values.encodeError(toStoredError(error)),
      timedOut: true,
      unrecoverable: false,
      retryAfterMs: undefined,
      random01: this.#options.random(),
    };
  }

  #lost(run: ActiveRun, report: Extract<Report, { kind: 'lost' }>): AttemptEvent {
    const { occurrenceId, fencingToken: token } = run;
    const base = { occurrenceId, token };
    if (!report.entered) return { kind: 'returned', ...base };
    if (run.abortWhy === 'shutdown') return { kind: 'released', ...base };
    const error = this.#options.values.encodeError(report.error);
    const random01 = this.#options.random();
    switch (report.blame) {
      case 'displaced':
        return { kind: 'displaced', ...base };
      case 'suspect':
        return { kind: 'suspected', ...base, error };
      default:
        // `ended` without a timeout: a cancelled run whose grace was over.
        return { kind: 'crashed', ...base, leaseExpired: false, error, random01 };
    }
  }
}
