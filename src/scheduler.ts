/** Composition: which store, which executor, start and stop order; and the calls of the public API. */
import {
  EVENT_TYPES,
  ON,
  type Page,
  type PageOptions,
  reasonOf,
  SHUTDOWN,
  scopeOf,
  VERSION,
} from './call-arguments.js';
import { functionOf, integerOf, oneOf, optionsOf, refuse, signalOf, textOf } from './check.js';
import {
  OccurrenceNotFoundError,
  SchedulerStateError,
  StoreUnavailableError,
  TaskNotFoundError,
  type TickwheelError,
  UnknownHandlerError,
} from './core/errors.js';
import type { CallEvent, TaskPatch } from './core/event.js';
import { createIdSource } from './core/id.js';
import { isTerminal, type TaskView } from './core/model.js';
import { scheduleKey } from './core/schedule.js';
import { type Duration, parseDurationMs } from './core/units.js';
import { Creation } from './creation.js';
import { Engine, type EngineOptions, type ShutdownResult } from './engine/engine.js';
import type { Outcome } from './engine/job.js';
import { limitsSetting, pauseSetting, type Scope } from './engine/scopes.js';
import type { Executor } from './execution/executor.js';
import type { HandlerMap, HandlersOf } from './execution/handler.js';
import { InProcessExecutor } from './execution/in-process.js';
import { type ListOptions, Looking } from './looking.js';
import { Hub } from './observe/hub.js';
import { OneByOne } from './one-by-one.js';
import {
  type OpenOptions,
  type ResolvedOptions,
  resolveOptions,
  type TenantLimits,
  tenantLimitsOf,
} from './options.js';
import {
  type Attempt,
  type Event,
  type EventOf,
  type EventType,
  type Occurrence,
  presentEvent,
  presentOccurrence,
  type Task,
} from './present.js';
import { assertAllowed } from './read-only.js';
import { type UpdateOptions, updateRequest } from './request.js';
import { type Stats, statsOf } from './stats.js';
import type { Setting, StoreSession } from './store/store.js';
import type { NameOf, PayloadOf, ScheduleArguments, ScheduleItem, TaskRef } from './types.js';
import { Values } from './values.js';
import { Waiters } from './waiters.js';

export type { ListOptions, Page, PageOptions };
export type SchedulerState = 'open' | 'running' | 'draining' | 'closed';

export interface ShutdownOptions {
  /** Let running handlers end; default true. */
  drain?: boolean;
  /** For how long; default `shutdownTimeout`. */
  timeout?: Duration;
}

interface Wiring {
  readonly options: ResolvedOptions;
  readonly session: StoreSession;
  readonly engine: Engine;
  readonly executor: Executor | undefined;
  readonly hub: Hub<Event>;
  readonly waiters: Waiters;
  readonly values: Values;
}

/** @internal What the simulator puts in the place of ours: workers that die on demand, wheels that are there at once. */
export interface OwnParts {
  /** Undefined for a producer. */
  readonly executor: Executor | undefined;
  readonly makeWheel?: EngineOptions['makeWheel'];
  readonly windowMax?: EngineOptions['windowMax'];
}

/** @internal As `Scheduler.open`. */
export let openWith: (options: OpenOptions, parts: OwnParts) => Promise<Scheduler>;

/**
 * A scheduler of one process. Everything but execution works from `open` on; `start` begins execution.
 * Every promise of a change resolves when the change is durable.
 */
export class Scheduler<H extends object = HandlerMap> {
  readonly #wiring: Wiring;
  readonly #creation: Creation;
  readonly #looking: Looking;
  readonly #updates = new OneByOne();
  #state: SchedulerState = 'open';
  #shutdown: Promise<ShutdownResult> | undefined;
  #detach: (() => void) | undefined;

  /**
   * An object of handlers runs in this process; the URL of a module runs on worker threads; neither: a
   * producer, which runs nothing and accepts any handler name.
   * @throws InvalidArgumentError, StoreLockedError, StoreCorruptError, StoreVersionError, StoreUnavailableError
   */
  static open<M extends object = HandlerMap>(
    options: OpenOptions & { handlers?: URL },
  ): Promise<Scheduler<HandlersOf<M>>>;
  static open<H extends HandlerMap>(options: OpenOptions & { handlers: H }): Promise<Scheduler<H>>;
  static async open(given: unknown): Promise<Scheduler> {
    const options = resolveOptions(given);
    return Scheduler.#open(options, { executor: await executorOf(options) });
  }

  static {
    openWith = (given, parts) => Scheduler.#open(resolveOptions(given), parts);
  }

  static async #open(options: ResolvedOptions, parts: OwnParts): Promise<Scheduler> {
    const values = new Values(options.maxPayloadBytes, options.payloadCodec);
    const { clock, retention } = options;
    const session = await options.store.open({ clock, retention });
    try {
      return await Scheduler.#wire(options, values, parts, session);
    } catch (error) {
      await parts.executor?.close();
      await session.close();
      throw error;
    }
  }

  static async #wire(
    options: ResolvedOptions,
    values: Values,
    { executor, makeWheel, windowMax }: OwnParts,
    session: StoreSession,
  ): Promise<Scheduler> {
    const { clock, logger } = options;
    const hub = new Hub<Event>({
      present: (event) => presentEvent(event, values.decode),
      onError: (error, source) => tellError(options, error, source),
    });
    const waiters = new Waiters(session, clock);
    hub.tap((taskId) => waiters.heard(taskId));
    // The host is given before the scheduler exists; handlers call it only after `start`.
    const late: { scheduler?: Scheduler; engine?: Engine } = {};
    await executor?.open({
      clock,
      codec: values.codec,
      log: logger,
      report: (reports) => late.engine?.report(reports),
      schedule: (request) => (late.scheduler as Scheduler).#scheduleFor(request),
    });
    const engine = await Engine.open({
      clock,
      session,
      isShared: options.store.capabilities.shared,
      executor,
      hub: hub as Hub,
      log: logger,
      random: options.random,
      tenants: options.tenants,
      handlerLimits: options.handlerLimits,
      retention: options.retention,
      maxReady: options.maxReady,
      maxUnflushedBytes: options.maxUnflushedBytes,
      leaseDurationMs: options.leaseDurationMs,
      timeoutGraceMs: options.timeoutGraceMs,
      values,
      makeWheel,
      windowMax,
      onFailure: (error) => {
        const failure =
          error instanceof StoreUnavailableError
            ? error
            : new StoreUnavailableError('the scheduler has stopped', { cause: error });
        waiters.failAll(failure);
        tellError(options, error, 'engine');
      },
    });
    late.engine = engine;
    late.scheduler = new Scheduler({ options, session, engine, executor, hub, waiters, values });
    return late.scheduler;
  }

  private constructor(wiring: Wiring) {
    this.#wiring = wiring;
    const { options, engine, session, values, executor } = wiring;
    this.#looking = new Looking(wiring);
    const ids = createIdSource({ random: options.random, nowMs: () => options.clock.now() });
    this.#creation = new Creation({
      engine,
      session,
      values,
      nextId: () => ids.next(),
      nowMs: () => options.clock.now(),
      checkHandler: (handler, version) => checkHandler(executor, handler, version),
    });
    this.#detach = options.clock.attach?.(engine);
  }

  get state(): SchedulerState {
    return this.#state;
  }

  /**
   * Begins execution.
   * @throws SchedulerStateError when it was started before
   */
  async start(): Promise<void> {
    this.#assertUsable('start');
    if (this.#state !== 'open') {
      throw new SchedulerStateError(
        `start: the scheduler is ${this.#state}; allowed: once, when open`,
      );
    }
    this.#state = 'running';
    await this.#wiring.engine.start();
  }

  /**
   * Stops timing first, lets running handlers end (or aborts them, with `drain: false` or past the timeout),
   * flushes, and gives the store free. Final and idempotent: again gives the same promise.
   */
  shutdown(options?: ShutdownOptions): Promise<ShutdownResult> {
    if (this.#shutdown === undefined) {
      const { drain, timeout } = optionsOf(options, 'shutdown options', SHUTDOWN);
      if (drain !== undefined && typeof drain !== 'boolean') refuse('drain', drain, 'a boolean');
      const timeoutMs =
        timeout === undefined
          ? this.#wiring.options.shutdownTimeoutMs
          : parseDurationMs(timeout, 'shutdown timeout');
      this.#shutdown = this.#shutDown({ drain: drain ?? true, timeoutMs });
    }
    return this.#shutdown;
  }

  async #shutDown(options: { drain: boolean; timeoutMs: number }): Promise<ShutdownResult> {
    const { engine, session, waiters } = this.#wiring;
    this.#state = 'draining';
    try {
      return await engine.shutdown(options);
    } finally {
      this.#state = 'closed';
      this.#detach?.();
      waiters.failAll(new SchedulerStateError('the scheduler was shut down'));
      await session.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown();
  }

  // --- scheduling ------------------------------------------------------------------------------------

  /**
   * Hands over work. Resolves when it is durable.
   * @throws InvalidArgumentError, InvalidScheduleError, UnknownHandlerError, PayloadNotSerializableError,
   *   PayloadTooLargeError, IdempotencyConflictError, OverloadedError, QuotaExceededError, StoreUnavailableError
   */
  async schedule<N extends NameOf<H>>(
    handler: N,
    ...args: ScheduleArguments<H[N]>
  ): Promise<Task<PayloadOf<H[N]>> & { created: boolean }> {
    this.#assertUsable('schedule');
    const [payload, options] = args as [unknown?, unknown?];
    const [result] = await this.#creation.create([{ handler, payload, options }]);
    if (result instanceof Error || result === undefined) throw result;
    return result as Task<PayloadOf<H[N]>> & { created: boolean };
  }

  /**
   * As `schedule`, for many at once: the results are in order, each a task or the error that refused it. Of more than
   * 1,000 items the later ones are read while the first are written: leave them as they are until it resolves.
   */
  async scheduleMany(
    items: readonly ScheduleItem<H>[],
  ): Promise<((Task & { created: boolean }) | TickwheelError)[]> {
    this.#assertUsable('scheduleMany');
    if (!Array.isArray(items)) refuse('items', items, 'an array of { handler, payload, options? }');
    return this.#creation.create(items);
  }

  async #scheduleFor(request: {
    tenant: string;
    handler: string;
    payload: unknown;
    options: unknown;
  }): Promise<unknown> {
    this.#assertUsable('ctx.schedule');
    const { handler, payload, tenant } = request;
    const given = request.options === undefined ? {} : request.options;
    const options = typeof given === 'object' ? { tenant, ...given } : given;
    const [result] = await this.#creation.create([{ handler, payload, options }]);
    if (result instanceof Error || result === undefined) throw result;
    return result;
  }

  // --- looking ---------------------------------------------------------------------------------------

  async get(ref: TaskRef): Promise<Task | undefined> {
    this.#assertUsable('get');
    return this.#looking.get(ref);
  }

  /**
   * The task's latest occurrence, once it has ended.
   * @throws TaskNotFoundError, WaitTimeoutError, the signal's reason
   */
  async wait(
    ref: TaskRef,
    options?: { timeout?: Duration; signal?: AbortSignal },
  ): Promise<Occurrence> {
    this.#assertUsable('wait');
    return this.#looking.wait(ref, options);
  }

  /** In creation order; a page may be short, even empty, while there is a cursor. */
  async list(options?: ListOptions): Promise<Page<Task>> {
    this.#assertUsable('list');
    return this.#looking.list(options);
  }

  /** A task's occurrences, newest first. @throws TaskNotFoundError */
  async occurrences(ref: TaskRef, options?: PageOptions): Promise<Page<Occurrence>> {
    this.#assertUsable('occurrences');
    return this.#looking.occurrences(ref, options);
  }

  async occurrence(id: string): Promise<Occurrence | undefined> {
    this.#assertUsable('occurrence');
    return this.#looking.occurrence(id);
  }

  /** Oldest first, the running one included. @throws OccurrenceNotFoundError */
  async attempts(occurrenceId: string): Promise<Attempt[]> {
    this.#assertUsable('attempts');
    return this.#looking.attempts(occurrenceId);
  }

  /** Occurrences dead or quarantined and not redriven, in the order in which they ended. */
  async deadLetters(
    options?: PageOptions & { tenant?: string; handler?: string },
  ): Promise<Page<Occurrence>> {
    this.#assertUsable('deadLetters');
    return this.#looking.deadLetters(options);
  }

  async stats(): Promise<Stats> {
    this.#assertUsable('stats');
    const { engine, hub, options } = this.#wiring;
    return statsOf(await this.#looking.counts(), engine, hub.drops, options);
  }

  /**
   * Calls the listener for each event of the type on this node, after its commit, in order, at most once. Not
   * awaited; one that is 10,000 events behind loses the newer ones (`listenerDrops` in stats counts them).
   * @returns what takes the listener off again
   */
  on<T extends EventType | '*'>(
    type: T,
    listener: (event: T extends EventType ? EventOf<T> : Event) => void,
    options?: { signal?: AbortSignal },
  ): () => void {
    this.#assertUsable('on');
    oneOf(type, 'type', EVENT_TYPES);
    functionOf(listener, 'listener');
    const signal = signalOf(optionsOf(options, 'on options', ON).signal);
    if (signal?.aborted) return () => {};
    const off = this.#wiring.hub.on(type, listener as (event: Event) => void);
    signal?.addEventListener('abort', off, { once: true });
    return off;
  }

  // --- changing --------------------------------------------------------------------------------------

  /**
   * Changes a task that has not ended. A new schedule drops the occurrence that has not started.
   * @throws TaskNotFoundError, TaskEndedError, VersionConflictError, and what `schedule` throws
   */
  async update(ref: TaskRef, patch: UpdateOptions, options?: { version?: number }): Promise<Task> {
    this.#assertUsable('update');
    const { version } = optionsOf(options, 'update options', VERSION);
    if (version !== undefined) integerOf(version, 'version', 1, Number.MAX_SAFE_INTEGER);
    const { options: resolved, values, executor } = this.#wiring;
    const request = updateRequest(patch, resolved.clock.now());
    const payload = request.hasPayload ? values.encode(request.payload, 'payload') : undefined;
    const id = await this.#looking.require(ref, 'update');
    // In a row: two at once would each find that the other has changed the policies it had read.
    return this.#updates.run(id, async () => {
      for (;;) {
        const view = await this.#looking.view(id);
        if (view === undefined) throw new TaskNotFoundError(`update: no task ${id}`);
        const { task } = view;
        if (request.handlerVersion !== undefined) {
          checkHandler(executor, task.handler, request.handlerVersion);
        }
        const { schedule } = request;
        const rescheduled =
          schedule !== undefined && scheduleKey(schedule) !== scheduleKey(task.schedule);
        const change: TaskPatch = {
          policies: request.policies(task.policies, schedule ?? task.schedule),
          ...(payload === undefined ? {} : { payload }),
          ...(rescheduled ? { schedule } : {}),
          ...(request.priority === undefined ? {} : { priority: request.priority }),
          ...(request.handlerVersion === undefined
            ? {}
            : { handlerVersion: request.handlerVersion }),
        };
        const expectedVersion = (version as number | undefined) ?? task.version;
        const outcome = await this.#submit(id, { kind: 'update', patch: change, expectedVersion });
        // The policies were read before: another caller's change in between means to read them again.
        if (version === undefined && isConflict(outcome)) continue;
        return this.#looking.present(this.#viewOf(outcome, id, 'update'));
      }
    });
  }

  /** True: nothing of it starts again, what runs is signalled. False: it had ended. @throws TaskNotFoundError */
  async cancel(ref: TaskRef, options?: { reason?: string }): Promise<boolean> {
    this.#assertUsable('cancel');
    const reason = reasonOf(options);
    const id = await this.#looking.require(ref, 'cancel');
    return this.#done(await this.#submit(id, { kind: 'cancel', reason }), id, 'cancel').changed;
  }

  /**
   * Durable. When it has resolved nothing of the task, tenant or handler starts until `resume`.
   * @throws TaskNotFoundError, TaskEndedError
   */
  async pause(target: TaskRef | Scope): Promise<void> {
    this.#assertUsable('pause');
    const { engine, options } = this.#wiring;
    const scope = scopeOf(target);
    if (scope === undefined) {
      const id = await this.#looking.require(target as TaskRef, 'pause');
      this.#done(await this.#submit(id, { kind: 'pause' }), id, 'pause');
      await engine.startsEnded((run) => run.active.id === id);
      return;
    }
    await this.#settings([pauseSetting(scope, options.clock.now())], () =>
      engine.scopes.pause(scope),
    );
    await engine.startsEnded((run) =>
      'tenant' in scope ? run.tenant === scope.tenant : run.handler === scope.handler,
    );
  }

  /** Times that passed meanwhile follow the catch-up policy. @throws TaskNotFoundError, TaskEndedError */
  async resume(target: TaskRef | Scope): Promise<void> {
    this.#assertUsable('resume');
    const scope = scopeOf(target);
    if (scope === undefined) {
      const id = await this.#looking.require(target as TaskRef, 'resume');
      this.#done(await this.#submit(id, { kind: 'resume' }), id, 'resume');
      return;
    }
    const { engine, options } = this.#wiring;
    await this.#settings([pauseSetting(scope, undefined)], () =>
      engine.scopes.resume(scope, options.clock.now()),
    );
  }

  /** One run now, also while paused, outside the schedule and its limit. @throws TaskNotFoundError, TaskEndedError */
  async trigger(ref: TaskRef): Promise<Occurrence> {
    this.#assertUsable('trigger');
    const id = await this.#looking.require(ref, 'trigger');
    const { subject } = this.#done(await this.#submit(id, { kind: 'trigger' }), id, 'trigger');
    if (subject === undefined) throw new TaskNotFoundError(`trigger: no task ${id}`);
    return presentOccurrence(subject, this.#wiring.values.decode);
  }

  /** True: it will not start, or was signalled. False: it had ended. @throws OccurrenceNotFoundError */
  async cancelOccurrence(id: string, options?: { reason?: string }): Promise<boolean> {
    this.#assertUsable('cancelOccurrence');
    const reason = reasonOf(options);
    const record = await this.#looking.requireOccurrence(id, 'cancelOccurrence');
    if (isTerminal(record.state)) return false;
    const event = { kind: 'cancelOccurrence', occurrenceId: id, reason } as const;
    const outcome = await this.#submit(record.taskId, event);
    // It ended between the look and the call.
    if (outcome.kind === 'failed' && outcome.error instanceof OccurrenceNotFoundError) return false;
    this.#done(outcome, record.taskId, 'cancelOccurrence');
    return true;
  }

  /**
   * A new occurrence for one in the dead letters, linked to it; once each: again gives the same one.
   * @throws OccurrenceNotFoundError, InvalidArgumentError, TaskEndedError
   */
  async redrive(occurrenceId: string): Promise<Occurrence> {
    this.#assertUsable('redrive');
    const { values } = this.#wiring;
    for (;;) {
      const dead = await this.#looking.requireOccurrence(occurrenceId, 'redrive');
      if (dead.redrivenAs !== undefined) {
        const made = await this.#looking.requireOccurrence(dead.redrivenAs, 'redrive');
        await this.#wiring.engine.durable();
        return presentOccurrence(made, values.decode);
      }
      const outcome = await this.#submit(dead.taskId, { kind: 'redrive', occurrence: dead });
      const { subject } = this.#done(outcome, dead.taskId, 'redrive');
      if (subject !== undefined) return presentOccurrence(subject, values.decode);
    }
  }

  /** Removes an ended task and its history. False: there was none. @throws InvalidArgumentError when it lives */
  async delete(ref: TaskRef): Promise<boolean> {
    this.#assertUsable('delete');
    const id = await this.#looking.find(ref);
    if (id === undefined) return false;
    const outcome = await this.#submit(id, { kind: 'delete' });
    if (outcome.kind === 'absent') return false;
    return this.#done(outcome, id, 'delete').changed;
  }

  /** Durable; overrides what `open` was given. @throws InvalidArgumentError */
  async setTenantLimits(tenant: string, limits: TenantLimits): Promise<void> {
    this.#assertUsable('setTenantLimits');
    textOf(tenant, 'tenant', 256);
    if (limits === undefined) refuse('limits', limits, 'an object');
    const checked = tenantLimitsOf(limits, 'limits');
    const { engine } = this.#wiring;
    await this.#settings([limitsSetting(tenant, checked)], () =>
      engine.scopes.setLimits(tenant, checked),
    );
  }

  // --- within ----------------------------------------------------------------------------------------

  #assertUsable(call: string): void {
    if (this.#state === 'closed') {
      throw new SchedulerStateError(`${call}: the scheduler was shut down`);
    }
    assertAllowed(call, this.#wiring.options.store);
    const { failure } = this.#wiring.engine;
    if (failure !== undefined && call !== 'shutdown') {
      if (failure instanceof StoreUnavailableError) throw failure;
      throw new StoreUnavailableError(`${call}: the scheduler has stopped`, { cause: failure });
    }
  }

  async #submit(taskId: string, event: CallEvent): Promise<Outcome> {
    const [outcome] = await this.#wiring.engine.submit([{ kind: 'task', taskId, event }]);
    return outcome as Outcome;
  }

  async #settings(
    settings: readonly (readonly [string, Setting | undefined])[],
    apply: () => () => void,
  ): Promise<void> {
    const [outcome] = await this.#wiring.engine.submit([{ kind: 'settings', settings, apply }]);
    if (outcome?.kind === 'failed') throw outcome.error;
  }

  #done(outcome: Outcome, id: string, call: string): Extract<Outcome, { kind: 'done' }> {
    if (outcome.kind === 'failed') throw outcome.error;
    if (outcome.kind !== 'done') throw new TaskNotFoundError(`${call}: no task ${id}`);
    return outcome;
  }

  #viewOf(outcome: Outcome, id: string, call: string): TaskView {
    const { view } = this.#done(outcome, id, call);
    if (view === undefined) throw new TaskNotFoundError(`${call}: no task ${id}`);
    return view;
  }
}

async function executorOf(options: ResolvedOptions): Promise<Executor | undefined> {
  const { handlers, threads, concurrency } = options;
  if (handlers === undefined) return undefined;
  if (handlers instanceof URL) {
    // Only those who run threads load the pool.
    const { PoolExecutor } = await import('./execution/pool/pool.js');
    const { maxPayloadBytes } = options;
    return new PoolExecutor({ module: handlers, threads, concurrency, maxPayloadBytes });
  }
  return new InProcessExecutor({ handlers, slots: concurrency });
}

/** @throws UnknownHandlerError unless this process has it, or has none at all */
function checkHandler(
  executor: Executor | undefined,
  handler: string,
  version: number | undefined,
) {
  if (executor === undefined) return;
  const versions = executor.handlers.get(handler);
  if (versions === undefined) {
    const names = [...executor.handlers.keys()].map((name) => `'${name}'`);
    const known = names.length > 0 ? names.join(', ') : 'none, as handlers is empty';
    throw new UnknownHandlerError(`handler '${handler}' is unknown; allowed: ${known}`);
  }
  if (version !== undefined && !versions.includes(version)) {
    throw new UnknownHandlerError(
      `handler '${handler}' has no version ${version}; allowed: ${versions.join(', ')}`,
    );
  }
}

function tellError(options: ResolvedOptions, error: unknown, source: string): void {
  try {
    options.onError(error, { source });
  } catch (thrown) {
    options.logger.error({ source, err: thrown }, 'onError threw');
  }
}

function isConflict(outcome: Outcome): boolean {
  return (
    outcome.kind === 'failed' &&
    (outcome.error as { code?: unknown }).code === 'TICKWHEEL_VERSION_CONFLICT'
  );
}
