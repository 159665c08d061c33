/** Wires the loop and its parts, and what is done to them from outside: submit, start, shut down, look. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Clock, ClockParticipant } from '../clock/clock.js';
import { sleepOn } from '../clock/system.js';
import { type StoredError, StoreUnavailableError, TickwheelError } from '../core/errors.js';
import { type GateStats, type LaneLimits, ReadyQueue } from '../core/ready-queue.js';
import type { Executor, Report } from '../execution/executor.js';
import type { Hub } from '../observe/hub.js';
import type { Logger } from '../observe/log.js';
import type { Retention, StoreSession } from '../store/store.js';
import { TimerWheel } from '../wheel/timer-wheel.js';
import { Admission } from './admission.js';
import { Backlog, LaneTable } from './backlog.js';
import { Dispatch } from './dispatch.js';
import { Inbox } from './inbox.js';
import { JobGroup, type Outcome, type Work, type WorkSource, worksOf } from './job.js';
import { Loader } from './loader.js';
import { Loop } from './loop.js';
import { NearTable } from './near-table.js';
import type { EngineParts } from './parts.js';
import { Pruning } from './pruning.js';
import type { Repairs } from './reconcile.js';
import type { ActiveRun } from './runs.js';
import { type Limits, Scopes } from './scopes.js';
import { Timing } from './timing.js';
import { WorkingSet } from './working-set.js';

export interface EngineOptions {
  readonly clock: Clock;
  readonly session: StoreSession;
  /** Other processes may have the store open (StoreCapabilities). */
  readonly isShared: boolean;
  /** Absent for a producer. */
  readonly executor: Executor | undefined;
  readonly hub: Hub;
  readonly log: Logger;
  readonly random: () => number;
  readonly tenants: Readonly<Record<string, Limits>>;
  readonly handlerLimits: Readonly<Record<string, LaneLimits>>;
  readonly retention: Retention;
  readonly maxReady: number;
  readonly maxUnflushedBytes: number;
  readonly leaseDurationMs: number;
  readonly timeoutGraceMs: number;
  readonly values: StoredValues;
  /** Absent: `TimerWheel.create`. */
  readonly makeWheel?: ((startTick: number) => Promise<TimerWheel>) | undefined;
  /** Absent: what the loader takes to be a good bound. */
  readonly windowMax?: number | undefined;
  readonly onFailure: (error: Error) => void;
}

/** Values on their way to and from the store. */
export interface StoredValues {
  readonly encodeError: (error: StoredError) => Uint8Array;
  readonly seal: (bytes: Uint8Array | undefined) => Uint8Array | undefined;
  readonly open: (bytes: Uint8Array | undefined) => Uint8Array | undefined;
}

export interface LatenessStats {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly count: number;
}

export interface ShutdownResult {
  /** Attempts that ended by themselves during the drain. */
  readonly finished: number;
  /** Attempts put back, to run after the next start. */
  readonly released: number;
  /** Attempts whose signal was aborted because time was up. */
  readonly aborted: number;
}

/** Work that changes nothing: done when all before it is. */
const NOTHING: Work = { kind: 'settings', settings: [], apply: () => () => {} };

const SCAN_CHUNK = 1000;
const TWO_32 = 2 ** 32;

export class Engine implements ClockParticipant {
  readonly #options: EngineOptions;
  readonly #parts: EngineParts;
  readonly #loop: Loop;
  readonly #lateness: RecordableHistogram = createHistogram({ figures: 3 });
  #tokens = 0;
  /** The wheel's module is being loaded, the store scanned: a virtual clock waits for it. */
  #starting = false;
  readonly #onDrained: (() => void)[] = [];
  readonly #ended = { finished: 0, released: 0 };

  static async open(options: EngineOptions): Promise<Engine> {
    const [settings, counts] = await Promise.all([
      options.session.settings(),
      options.session.counts(),
    ]);
    const engine = new Engine(
      options,
      [...counts.tenants].map(([tenant, count]) => [tenant, count.openTasks] as const),
    );
    engine.#parts.scopes.restore(settings);
    return engine;
  }

  private constructor(options: EngineOptions, openTasks: readonly (readonly [string, number])[]) {
    this.#options = options;
    const { clock, session, executor } = options;
    const ready = new ReadyQueue<ActiveRun>({ maxReady: options.maxReady });
    for (const [handler, limits] of Object.entries(options.handlerLimits)) {
      ready.setHandlerLimits(handler, limits);
    }
    const scopes = new Scopes(ready, options.tenants);
    if (executor !== undefined)
      ready.setRunnable((handler, version) => runs(executor, handler, version));
    this.#parts = {
      clock,
      session,
      log: options.log,
      inbox: new Inbox(),
      working: new WorkingSet(session, options.maxReady),
      admission: new Admission(
        {
          maxUnflushedBytes: options.maxUnflushedBytes,
          maxPendingOf: (tenant) => scopes.limitsOf(tenant).maxPending,
          unflushedBytes: () => session.unflushedBytes,
        },
        openTasks,
      ),
      scopes,
      pruning: new Pruning({
        session,
        clock,
        retention: options.retention,
        wake: () => this.#loop.wake(),
        fail: (error) => this.#fail(error),
      }),
      ready,
      hub: options.hub,
      latestVersion: (handler) => executor?.handlers.get(handler)?.at(-1),
      awayAfterMs: options.leaseDurationMs,
      timing: undefined,
      dispatch: undefined,
      loader: undefined,
      holding: false,
      draining: false,
      failure: undefined,
      onRunReport: (_run, event) => this.#countEnd(event.kind),
      fail: (error) => this.#fail(error),
      wake: () => this.#loop.wake(),
    };
    this.#loop = new Loop(this.#parts);
  }

  get failure(): Error | undefined {
    return this.#parts.failure;
  }

  get admission(): Admission {
    return this.#parts.admission;
  }

  get scopes(): Scopes {
    return this.#parts.scopes;
  }

  /** Hands calls to the loop; resolves with the outcomes, in order, once all of it is durable. */
  submit(works: readonly Work[]): Promise<readonly Outcome[]> {
    const group = new JobGroup(works.length);
    this.#parts.inbox.addCalls(works, group);
    return this.#submitted(group);
  }

  /** As `submit`, of creates, which are made when their turn has come. */
  submitCreates(source: WorkSource): Promise<readonly Outcome[]> {
    const group = new JobGroup(source.size);
    this.#parts.inbox.addCreates(source, group);
    return this.#submitted(group);
  }

  #submitted({ done }: JobGroup): Promise<readonly Outcome[]> {
    const { failure, inbox } = this.#parts;
    if (failure !== undefined) inbox.fail(failure);
    this.#loop.wake();
    return done;
  }

  /** Resolves when all creates that were submitted before this call are decided and durable. */
  async settled(): Promise<void> {
    await this.submitCreates(worksOf([NOTHING]));
  }

  /** Resolves when everything visible now is durable. */
  async durable(): Promise<void> {
    await this.#loop.durable;
  }

  /**
   * Resolves when of the runs that match none is on its way to its handler: what was handed over before a pause
   * has entered or was taken back.
   */
  async startsEnded(matches: (run: ActiveRun) => boolean): Promise<void> {
    const parts = this.#parts;
    const isUnderWay = (): boolean => {
      for (const run of parts.dispatch?.runs.all() ?? []) {
        if (!run.entered && matches(run)) return true;
      }
      return false;
    };
    if (!isUnderWay()) return;
    this.#options.executor?.recall();
    while (isUnderWay() && parts.failure === undefined) await this.#loop.rest();
  }

  /** Lets other work of this thread have its turn. */
  rest(): Promise<void> {
    return this.#loop.rest();
  }

  /** Begins execution: finds in the store what is pending and what a dead process left running. */
  async start(): Promise<void> {
    const { executor } = this.#options;
    if (executor === undefined) return;
    this.#starting = true;
    try {
      await this.#begin(executor);
    } finally {
      this.#starting = false;
    }
  }

  async #begin(executor: Executor): Promise<void> {
    const { clock } = this.#options;
    const parts = this.#parts;
    parts.dispatch = new Dispatch({
      executor,
      ready: parts.ready,
      leaseDurationMs: this.#options.leaseDurationMs,
      isShared: this.#options.isShared,
      timeoutGraceMs: this.#options.timeoutGraceMs,
      random: this.#options.random,
      nextToken: () => this.#options.session.epoch * TWO_32 + ++this.#tokens,
      values: this.#options.values,
      report: (reports) => this.report(reports),
      latestVersion: parts.latestVersion,
      onUnsealed: (error, occurrenceId) =>
        this.#options.log.error({ err: error, occurrenceId }, 'progress could not be stored'),
      onRefused: (error) => this.#options.log.warn({ code: error.code }, error.message),
      onEntered: (latenessMs, ordinary) => {
        // The histogram starts at 1.
        if (ordinary) this.#lateness.record(latenessMs + 1);
      },
    });
    const near = new NearTable();
    const timing = await Timing.create(
      {
        makeWheel: this.#options.makeWheel ?? ((startTick) => TimerWheel.create({ startTick })),
        near,
        backlog: new Backlog(near),
        lanes: new LaneTable(),
        roomOf: (tenant, handler, version) =>
          parts.scopes.isPaused(tenant, handler) ? 0 : parts.ready.room(tenant, handler, version),
        isOpen: (tenant, handler, version) =>
          !parts.scopes.isPaused(tenant, handler) && parts.ready.isOpen(tenant, handler, version),
      },
      clock.now(),
    );
    parts.holding = true;
    parts.timing = timing;
    const { due } = this.#options.session;
    if (due !== undefined) {
      parts.loader = new Loader({
        window: due,
        timing,
        log: this.#options.log,
        isParked: ({ tenant, handler, handlerVersion: version }) =>
          parts.scopes.isPaused(tenant, handler) || !runs(executor, handler, version),
        isLimited: ({ tenant, handler }) => parts.ready.isLimited(tenant, handler),
        windowMax: this.#options.windowMax,
      });
    }
    const orphans = due === undefined ? await this.#scan(timing) : new Set(due.runningTasks());
    this.#loop.beginAway();
    parts.holding = false;
    await this.#recover(orphans);
    parts.pruning.noteEnd(Number.NEGATIVE_INFINITY);
    this.#loop.wake();
  }

  /** Times every live occurrence; the tasks that have one recorded as running. */
  async #scan(timing: Timing): Promise<Set<string>> {
    const { session } = this.#options;
    const orphans = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await session.scanLive({ limit: SCAN_CHUNK, cursor });
      for (const entry of page.items) {
        if (entry.state === 'running' || entry.state === 'cancel-requested') {
          orphans.add(entry.taskId);
        } else if (!entry.held) timing.place(entry);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    return orphans;
  }

  /** Attempts that ran when their process died. The store's lock proves that it is dead. */
  async #recover(orphans: ReadonlySet<string>): Promise<void> {
    const error = this.#options.values.encodeError({
      name: 'Error',
      message: 'the process ended while this attempt was running',
    });
    const views = await this.#options.session.views([...orphans]);
    for (const view of views) {
      for (const { state, id: occurrenceId, token, taskId } of view?.live ?? []) {
        if (state !== 'running' && state !== 'cancel-requested') continue;
        const random01 = this.#options.random();
        const event = { kind: 'orphaned', occurrenceId, token, error, random01 } as const;
        this.#parts.inbox.addRedo({ taskId, event });
      }
    }
  }

  /** The executor's reports: only enqueued here. */
  report(reports: readonly Report[]): void {
    this.#parts.inbox.addReports(reports);
    this.#loop.wake();
  }

  #countEnd(kind: string): void {
    const parts = this.#parts;
    if (!parts.draining) return;
    if (kind === 'returned' || kind === 'released') this.#ended.released++;
    else if (kind === 'succeeded' || kind === 'failed' || kind === 'crashed')
      this.#ended.finished++;
    if (parts.dispatch?.runs.size === 0) for (const drained of this.#onDrained) drained();
  }

  /**
   * Stops timing and claiming, lets what runs end (its leases renewed) until `timeoutMs` has passed, aborts
   * the rest, ends the threads, flushes.
   */
  async shutdown(options: { drain: boolean; timeoutMs: number }): Promise<ShutdownResult> {
    const parts = this.#parts;
    const { executor, clock, timeoutGraceMs } = this.#options;
    parts.draining = true;
    this.#loop.wake();
    let aborted = 0;
    executor?.recall();
    if (parts.failure === undefined && parts.dispatch !== undefined) {
      if (options.drain) await this.#drained(options.timeoutMs);
      const monotonicMs = clock.monotonic();
      for (const run of parts.dispatch.runs.all()) {
        if (run.abortWhy === undefined) aborted++;
        parts.dispatch.abort(run, 'shutdown', 'the scheduler shuts down', monotonicMs);
      }
      this.#loop.wake();
      if (aborted > 0) await this.#drained(timeoutGraceMs);
    }
    await executor?.close();
    await this.#quiet();
    this.#loop.close();
    parts.timing?.close();
    return { ...this.#ended, aborted };
  }

  /** Until nothing runs, or time is up. */
  async #drained(timeoutMs: number): Promise<void> {
    if (this.#parts.dispatch?.runs.size === 0) return;
    const timer = new AbortController();
    await Promise.race([
      new Promise<void>((resolve) => this.#onDrained.push(resolve)),
      sleepOn(this.#options.clock, timeoutMs, timer.signal).catch(() => {}),
    ]);
    timer.abort();
  }

  /** Until the loop has nothing left to do. */
  async #quiet(): Promise<void> {
    while (this.#loop.busy && this.#parts.failure === undefined) await this.#loop.rest();
  }

  #fail(error: unknown): void {
    const parts = this.#parts;
    if (parts.failure !== undefined) return;
    const failure =
      error instanceof TickwheelError
        ? error
        : new StoreUnavailableError('the scheduler has stopped', { cause: error });
    parts.failure = failure;
    parts.inbox.fail(failure);
    for (const drained of this.#onDrained) drained();
    this.#options.onFailure(parts.failure);
  }

  /** For a virtual clock: work under way that needs no time to pass. */
  busy(): boolean {
    if (this.#options.session.waitsForClock || this.#parts.failure !== undefined) return false;
    const isLoading = this.#options.executor?.loading === true;
    return this.#starting || this.#loop.busy || this.#parts.hub.busy || isLoading;
  }

  unsettledHandlers(): number {
    return this.#options.executor?.unsettledHandlers() ?? 0;
  }

  giveUpOnHandlers(): void {
    this.#options.executor?.giveUpOnHandlers();
  }

  lateness(): LatenessStats {
    const h = this.#lateness;
    const at = (percentile: number): number => (h.count === 0 ? 0 : h.percentile(percentile) - 1);
    const max = h.count === 0 ? 0 : h.max - 1;
    return { p50: at(50), p99: at(99), p999: at(99.9), max, count: h.count };
  }

  /** Exact time of the next timer, epoch ms. */
  get nextDueMs(): number | undefined {
    const { timing, session } = this.#parts;
    return timing?.nextDueMs ?? session.due?.earliestMs();
  }

  /** Those with something between due and end, and those whose tasks are counted against a quota. */
  #tenantBounds(gates: readonly GateStats[]): Record<string, GateBounds> {
    const { admission, scopes } = this.#parts;
    const bounds = boundsOf(gates);
    for (const [tenant, current] of admission.open) {
      const limit = scopes.limitsOf(tenant).maxPending;
      const before = bounds.get(tenant);
      if (limit === undefined && before === undefined) continue;
      bounds.set(tenant, { ...before, pending: { current, limit } });
    }
    return Object.fromEntries(bounds);
  }

  get figures(): EngineFigures {
    const { ready, timing, dispatch, admission, loader } = this.#parts;
    const bounds = ready.bounds();
    return {
      timed: timing?.size ?? 0,
      timedMax: loader?.windowMax,
      overdue: timing?.overdue ?? 0,
      ready: ready.size,
      running: dispatch?.runs.size ?? 0,
      unflushedBytes: admission.unflushedBytes,
      slots: this.#options.executor?.slots,
      tenants: this.#tenantBounds(bounds.tenants),
      handlers: Object.fromEntries(boundsOf(bounds.handlers)),
      waitingVersions: ready.waitingVersions(),
      zombies: this.#options.executor?.zombies ?? 0,
      lateReports: dispatch?.lateReports ?? 0,
      repairs: this.#loop.reconcile.repairs,
      memoryBytes: timing?.memoryBytes ?? 0,
    };
  }
}

export interface EngineFigures {
  /** Occurrences in the wheel or overdue in the backlog. */
  readonly timed: number;
  readonly timedMax: number | undefined;
  readonly overdue: number;
  readonly ready: number;
  readonly running: number;
  readonly unflushedBytes: number;
  readonly slots: number | undefined;
  readonly tenants: Readonly<Record<string, GateBounds>>;
  readonly handlers: Readonly<Record<string, GateBounds>>;
  readonly waitingVersions: ReadonlyMap<string, number>;
  readonly zombies: number;
  readonly lateReports: number;
  readonly repairs: Repairs;
  readonly memoryBytes: number;
}

/** What waits and runs of a tenant or handler, against its limits. */
export type GateBounds = Readonly<
  Record<string, { readonly current: number; readonly limit: number | undefined }>
>;

function boundsOf(gates: readonly GateStats[]): Map<string, GateBounds> {
  return new Map(
    gates.map((gate) => [
      gate.name,
      {
        waiting: { current: gate.waiting, limit: undefined },
        running: { current: gate.running, limit: gate.maxConcurrency },
        startsPerSecond: { current: gate.recentStarts, limit: gate.maxRatePerSecond },
      },
    ]),
  );
}

function runs(executor: Executor, handler: string, version: number | undefined): boolean {
  const versions = executor.handlers.get(handler);
  if (versions === undefined) return false;
  return version === undefined ? versions.length > 0 : versions.includes(version);
}
