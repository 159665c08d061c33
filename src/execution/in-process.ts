/**
 * Runs handlers as functions in this process, on its one thread.
 *
 *   start → queued ──→ entered ──→ ended
 *              │           └─ end() ─→ zombie: reported lost, slot freed, its late end is dropped
 *              └─ recall() ─→ returned
 *
 * 1. `entered ≤ slots`; zombies hold no slot, but with as many of them as slots nothing starts. Handlers that end
 *    before they return, within a millisecond for all of them, are taken ahead beyond the slots; one that does not
 *    find a slot after all is returned at once.
 * 2. An `alone` run enters when nothing else is entered, and nothing else enters until it has ended: there is one thread.
 *    While it is reserved for one, nothing more is taken.
 * 3. Reports leave in one batch a microtask, never from inside a call. An empty batch says that capacity is back.
 */
import type { Clock } from '../clock/clock.js';
import { realNowMs } from '../clock/real-time.js';
import { type AbortReason, LeaseLostError, UnknownHandlerError } from '../core/errors.js';
import { FlatMap, hashOfNumber } from '../core/flat-map.js';
import type { Duration } from '../core/units.js';
import { RunContext, type Surroundings } from './context.js';
import type { Executor, ExecutorHost, Report, Run } from './executor.js';
import { failureOf } from './failure.js';
import { type HandlerMap, HandlerTable } from './handler.js';
import { MAIN_WORKER_ID } from './worker-id.js';

export interface InProcessOptions {
  readonly handlers: HandlerMap;
  /** Handlers entered at once, ≥ 1. */
  readonly slots: number;
}

/** Handlers taken ahead at most, and the time that they may take together. */
const AHEAD_MAX = 1024;
const AHEAD_MS = 1;

class Entered {
  readonly ctx: RunContext;
  /** Calls of ctx.sleep that have not ended. */
  sleeps = 0;
  /** Counts no more towards the unsettled: ended, given up, or a zombie. */
  uncounted = false;
  state: 'running' | 'zombie' | 'ended' = 'running';

  /** When, as long as that has not been told. */
  enteredAtMs: number | undefined;

  constructor(ctx: RunContext, enteredAtMs: number) {
    this.ctx = ctx;
    this.enteredAtMs = enteredAtMs;
  }
}

export class InProcessExecutor implements Executor {
  readonly handlers: ReadonlyMap<string, readonly number[]>;
  readonly slots: number;
  readonly threads = 1;
  readonly #table: HandlerTable;
  readonly #surroundings = new InProcessSurroundings(this);
  #host: ExecutorHost | undefined;
  readonly #queue: Run[] = [];
  /** Runs before this one were taken from the queue. */
  #head = 0;
  readonly #entered = new FlatMap<number, Entered>(hashOfNumber);
  /** Waits until nothing else is entered, or is. */
  #alone: Run | undefined;
  #isReserved = false;
  #zombies = 0;
  /** Nothing starts until a zombie ends; logged once. */
  #blocked = false;
  #unsettled = 0;
  /** All pending calls of ctx.sleep, which the clock counts as sleepers too. */
  #sleeps = 0;
  /** From entry to end of those handlers that end before they return: ms, an average that follows. */
  #serviceMs = Number.POSITIVE_INFINITY;
  #reports: Report[] = [];
  #flushQueued = false;
  #closed = false;

  /** @throws InvalidArgumentError */
  constructor(options: InProcessOptions) {
    this.#table = new HandlerTable(options.handlers);
    this.handlers = this.#table.list();
    this.slots = options.slots;
  }

  open(host: ExecutorHost): Promise<void> {
    this.#host = host;
    this.#surroundings.open(host);
    return Promise.resolve();
  }

  get zombies(): number {
    return this.#zombies;
  }

  capacity(): number {
    if (this.#closed || this.#zombies >= this.slots) return 0;
    if (this.#alone !== undefined || this.#isReserved) return 0;
    const ahead = Math.min(AHEAD_MAX, Math.floor(AHEAD_MS / this.#serviceMs));
    return Math.max(0, this.slots + ahead - this.#entered.size - this.#queued);
  }

  get #queued(): number {
    return this.#queue.length - this.#head;
  }

  reserve(isWanted: boolean): boolean {
    this.#isReserved = isWanted;
    const isFree = !this.#closed && this.#zombies < this.slots && this.#alone === undefined;
    return isWanted && isFree && this.#entered.size + this.#queued === 0;
  }

  start(runs: readonly Run[]): void {
    for (const run of runs) {
      this.#queue.push(run);
      if (run.alone) this.#isReserved = false;
    }
    this.#queueFlush();
  }

  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    void FLUSH.then(this.#flush);
  }

  /** Enters what is queued, then reports. A handler may call back: `recall` empties the queue at once. */
  readonly #flush = (): void => {
    const queue = this.#queue;
    this.#enterAlone();
    const beganMs = realNowMs();
    const entered = this.#entered.size;
    let count = 0;
    for (; this.#head < queue.length; count++) {
      const run = queue[this.#head++] as Run;
      if (!this.#mayEnter) this.#return(run);
      else if (run.alone) {
        this.#alone = run;
        this.#enterAlone();
      } else this.#enter(run);
    }
    queue.length = 0;
    this.#head = 0;
    if (count > 0) this.#noteService((realNowMs() - beganMs) / count, this.#entered.size - entered);
    this.#flushQueued = false;
    const reports = this.#reports;
    this.#reports = [];
    this.#host?.report(reports);
  };

  get #mayEnter(): boolean {
    const isFree = this.#zombies < this.slots && this.#entered.size < this.slots;
    return isFree && !this.#closed && this.#alone === undefined;
  }

  #enterAlone(): void {
    if (this.#alone !== undefined && this.#entered.size === 0) this.#enter(this.#alone);
  }

  /** Its slot is free, and with it perhaps the thread. */
  #leave(runId: number): void {
    this.#entered.delete(runId);
    if (this.#alone?.runId === runId) this.#alone = undefined;
    else if (this.#alone !== undefined && this.#entered.size === 0) this.#queueFlush();
  }

  /** One handler that goes on after it has returned, and nothing is taken ahead until others have shown to be short. */
  #noteService(ms: number, left: number): void {
    const before = this.#serviceMs;
    // Under a clock that is driven by hand nothing may depend on how fast the machine is.
    const isVirtual = this.#host?.clock.attach !== undefined;
    if (left > 0 || isVirtual) this.#serviceMs = Number.POSITIVE_INFINITY;
    else this.#serviceMs = before === Number.POSITIVE_INFINITY ? ms : before + (ms - before) / 8;
  }

  #return(run: Run): void {
    this.#reports.push({ kind: 'returned', runId: run.runId });
  }

  #enter(run: Run): void {
    const host = this.#host as ExecutorHost;
    const { runId } = run;
    const ctx = new RunContext(run, this.#surroundings);
    const entered = new Entered(ctx, host.clock.now());
    this.#entered.set(runId, entered);
    this.#unsettled++;
    try {
      const handler = this.#table.get(run.handler, run.handlerVersion);
      if (handler === undefined) {
        throw new UnknownHandlerError(
          `handler '${run.handler}' version ${run.handlerVersion} is not among this process's handlers`,
        );
      }
      const result: unknown = handler(host.codec.decode(run.payload), ctx);
      if (isThenable(result)) {
        this.#tellEntry(runId, entered);
        Promise.resolve(result).then(
          (value) => this.#succeed(runId, entered, value),
          (error) => this.#fail(runId, entered, error),
        );
      } else {
        this.#succeed(runId, entered, result);
      }
    } catch (error) {
      this.#fail(runId, entered, error);
    }
  }

  /** Before anything else is told of the run; the entry of one that ends at once is told with its end. */
  #tellEntry(runId: number, entered: Entered): void {
    const { enteredAtMs: atMs } = entered;
    if (atMs === undefined) return;
    entered.enteredAtMs = undefined;
    this.#reports.push({ kind: 'entered', runId, atMs, workerId: MAIN_WORKER_ID });
    this.#queueFlush();
  }

  #succeed(runId: number, entered: Entered, value: unknown): void {
    const host = this.#host as ExecutorHost;
    let result: Uint8Array | undefined;
    try {
      if (value !== undefined) result = host.codec.encode(value, 'result');
    } catch (error) {
      this.#fail(runId, entered, error);
      return;
    }
    if (!this.#settle(runId, entered)) return;
    const { enteredAtMs } = entered;
    const atMs = host.clock.now();
    const workerId = MAIN_WORKER_ID;
    this.#report({ kind: 'succeeded', runId, enteredAtMs, workerId, atMs, result });
  }

  #fail(runId: number, entered: Entered, thrown: unknown): void {
    if (!this.#settle(runId, entered)) return;
    const { enteredAtMs } = entered;
    const atMs = (this.#host as ExecutorHost).clock.now();
    const workerId = MAIN_WORKER_ID;
    this.#report({ kind: 'failed', runId, enteredAtMs, workerId, atMs, ...failureOf(thrown) });
  }

  #report(report: Report): void {
    this.#reports.push(report);
    this.#queueFlush();
  }

  /** The handler has ended; false when nobody asks any more. */
  #settle(runId: number, entered: Entered): boolean {
    this.#uncount(entered);
    const { state } = entered;
    entered.state = 'ended';
    if (state === 'running') {
      this.#leave(runId);
      return true;
    }
    this.#zombies--;
    if (this.#zombies < this.slots && this.#blocked) {
      this.#blocked = false;
      this.#queueFlush();
    }
    return false;
  }

  #uncount(entered: Entered): void {
    if (entered.uncounted) return;
    entered.uncounted = true;
    if (entered.sleeps === 0) this.#unsettled--;
  }

  abort(runId: number, why: AbortReason, message: string): void {
    const entered = this.#entered.get(runId);
    if (entered !== undefined) entered.ctx.abort(why, message);
    else this.#takeBack((run) => run.runId === runId);
  }

  end(runId: number): void {
    const entered = this.#entered.get(runId);
    if (entered === undefined) {
      this.#takeBack((run) => run.runId === runId);
      return;
    }
    this.#giveUp(
      runId,
      entered,
      'ended',
      'its grace is over, and a handler in-process cannot be ended',
    );
    if (this.#zombies < this.slots || this.#blocked) return;
    this.#blocked = true;
    const { log } = this.#host as ExecutorHost;
    log.error(
      { zombies: this.#zombies, slots: this.slots },
      'as many handlers were given up as there are slots: nothing starts until one of them ends',
    );
  }

  #giveUp(runId: number, entered: Entered, blame: 'ended' | 'displaced', why: string): void {
    this.#tellEntry(runId, entered);
    this.#leave(runId);
    this.#uncount(entered);
    entered.state = 'zombie';
    this.#zombies++;
    const message = `the run was given up: ${why}`;
    const error = { name: 'Error', message };
    this.#report({ kind: 'lost', runId, entered: true, blame, error });
  }

  recall(): void {
    this.#takeBack(() => true);
  }

  #takeBack(which: (run: Run) => boolean): void {
    const alone = this.#alone;
    if (alone !== undefined && !this.#entered.has(alone.runId) && which(alone)) {
      this.#alone = undefined;
      this.#return(alone);
      this.#queueFlush();
    }
    const queue = this.#queue.splice(this.#head);
    const before = queue.length;
    for (const run of queue) {
      if (which(run)) this.#return(run);
      else this.#queue.push(run);
    }
    if (this.#queued < before) this.#queueFlush();
  }

  /** Handlers that sleep on the clock itself, not by ctx.sleep, are known by the clock's own count alone. */
  unsettledHandlers(): number {
    const clock = this.#host?.clock as (Clock & { readonly sleepers?: number }) | undefined;
    const sleepers = Math.max(0, (clock?.sleepers ?? 0) - this.#sleeps);
    return Math.max(0, this.#unsettled - sleepers) + this.#queued;
  }

  giveUpOnHandlers(): void {
    for (const entered of this.#entered.values()) {
      if (entered.sleeps === 0) this.#uncount(entered);
    }
  }

  /** @internal A call of ctx.sleep begins (+1) or ends (−1). */
  countSleep(ctx: RunContext, change: 1 | -1): void {
    this.#sleeps += change;
    const entered = this.#entered.get(ctx.run.runId);
    if (entered === undefined || entered.ctx !== ctx) return;
    const before = entered.sleeps;
    entered.sleeps += change;
    if (entered.uncounted) return;
    if (before === 0) this.#unsettled--;
    else if (entered.sleeps === 0) this.#unsettled++;
  }

  /** @internal */
  heartbeat(ctx: RunContext, progress: unknown): void {
    const host = this.#host as ExecutorHost;
    const bytes = progress === undefined ? undefined : host.codec.encode(progress, 'progress');
    const { runId } = ctx.run;
    const entered = this.#entered.get(runId);
    if (entered?.ctx !== ctx) throw new LeaseLostError('heartbeat: the attempt has ended');
    this.#tellEntry(runId, entered);
    this.#report({ kind: 'progress', runId, progress: bytes });
  }

  /** Handlers cannot be ended; those that still run become zombies, and are reported lost, as displaced. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.recall();
    for (const entered of [...this.#entered.values()]) {
      this.#giveUp(entered.ctx.run.runId, entered, 'displaced', 'the scheduler stopped');
    }
    // The reports leave in a microtask that was queued before this one.
    await Promise.resolve();
  }
}

/** Resolved: `queueMicrotask` makes an async resource each time. */
const FLUSH = Promise.resolve();

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (typeof value !== 'object' && typeof value !== 'function') return false;
  return value !== null && typeof (value as { then?: unknown }).then === 'function';
}

class InProcessSurroundings implements Surroundings {
  readonly #executor: InProcessExecutor;
  #host: ExecutorHost | undefined;

  constructor(executor: InProcessExecutor) {
    this.#executor = executor;
  }

  open(host: ExecutorHost): void {
    this.#host = host;
  }

  get log(): ExecutorHost['log'] {
    return this.#opened.log;
  }

  get #opened(): ExecutorHost {
    return this.#host as ExecutorHost;
  }

  clockOf(): Clock {
    return this.#opened.clock;
  }

  async sleep(ctx: RunContext, duration: Duration): Promise<void> {
    this.#executor.countSleep(ctx, 1);
    try {
      await this.#opened.clock.sleep(duration, { signal: ctx.signal });
    } finally {
      this.#executor.countSleep(ctx, -1);
    }
  }

  heartbeat(ctx: RunContext, progress: unknown): void {
    this.#executor.heartbeat(ctx, progress);
  }

  schedule(
    ctx: RunContext,
    handler: string,
    payload: unknown,
    options: object | undefined,
  ): Promise<unknown> {
    const { taskId, tenant } = ctx.run;
    return this.#opened.schedule({ taskId, tenant, handler, payload, options });
  }

  decode(bytes: Uint8Array): unknown {
    return this.#opened.codec.decode(bytes);
  }
}
