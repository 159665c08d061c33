/**
 * Runs handlers on worker threads, which are piscina's: one task as long as the thread's life each, with a
 * MessagePort and shared memory of ours.
 *
 *   start → queue ── batch ──→ thread (entered, or waiting there) ──→ told → report
 *             └─ alone ─→ a thread that was reserved and has drained takes it by itself
 *
 * 1. A thread that has not read its last batch is sent nothing: what is ready goes to those that answer.
 * 2. What has not entered within 5 ms is taken back and reported `returned`; only `alone` runs wait longer.
 * 3. Reports leave in one batch a microtask, never from inside a call. An empty batch says that capacity is back.
 */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { Disarm } from '../../clock/clock.js';
import { afterRealMs, realNowMs } from '../../clock/real-time.js';
import { assert } from '../../core/assert.js';
import { type AbortReason, InvalidArgumentError } from '../../core/errors.js';
import type { Executor, ExecutorHost, Report, Run } from '../executor.js';
import { createPayloadCodec } from '../payload.js';
import { HandlerCalls } from './calls.js';
import type { HandlerCall } from './hearing.js';
import type { Hello, ThreadStart } from './protocol.js';
import {
  type Death,
  ENTER_WITHIN_MS,
  PoolThread,
  type SentRecord,
  type ThreadOwner,
} from './thread.js';

export interface PoolOptions {
  /** The handlers' module. */
  readonly module: URL;
  /** ≥ 1. */
  readonly threads: number;
  /** Handlers entered at once on one thread, ≥ 1. */
  readonly concurrency: number;
  /** Of results and progress; default 256 KiB. */
  readonly maxPayloadBytes?: number;
  /** Of each thread: heap sizes in MiB, as `new Worker` takes them. */
  readonly resourceLimits?: {
    readonly maxOldGenerationSizeMb?: number;
    readonly maxYoungGenerationSizeMb?: number;
    readonly codeRangeSizeMb?: number;
    readonly stackSizeMb?: number;
  };
}

/** Pauses between tries when a replacement's module does not load any more. */
const RELOAD_PAUSE_MS = 100;
const RELOAD_PAUSE_MAX_MS = 30_000;
/** A thread that takes longer to load its module, or to read what it was sent, is not waited for. */
const LOADING_MAX_MS = 5_000;

interface Queued {
  readonly run: Run;
  readonly atMs: number;
}

/** The compiled entry, also when this file runs from its TypeScript source. */
const WORKER_FILE = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../../dist/execution/pool/worker.js' : './worker.js',
    import.meta.url,
  ),
);

export class PoolExecutor implements Executor, ThreadOwner {
  readonly concurrency: number;
  readonly slots: number;
  readonly threads: number;
  readonly #options: PoolOptions;
  #handlers: ReadonlyMap<string, readonly number[]> = new Map();
  #piscina: Piscina | undefined;
  #host: ExecutorHost | undefined;
  #calls: HandlerCalls | undefined;
  #opening: { resolve: () => void; reject: (error: Error) => void } | undefined;
  readonly #threads: PoolThread[] = [];
  #threadsMade = 0;
  #addedAtMs = 0;
  #queue: Queued[] = [];
  #aloneQueue: Run[] = [];
  /** It drains for an `alone` run, or has one. */
  #reserved: PoolThread | undefined;
  #isWanted = false;
  #aloneSent = false;
  #reports: Report[] = [];
  #flushQueued = false;
  #disarmSweep: Disarm | undefined;
  #reloadPauseMs = RELOAD_PAUSE_MS;
  readonly #reloads = new Set<Disarm>();
  #closed: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.concurrency = options.concurrency;
    this.threads = options.threads;
    this.slots = options.threads * options.concurrency;
  }

  get handlers(): ReadonlyMap<string, readonly number[]> {
    return this.#handlers;
  }

  /** Resolves when one thread serves. @throws InvalidArgumentError when the module does not load */
  async open(host: ExecutorHost): Promise<void> {
    this.#host = host;
    this.#calls = new HandlerCalls(host);
    const { threads, resourceLimits } = this.#options;
    this.#piscina = new Piscina({
      filename: WORKER_FILE,
      name: 'runThread',
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // Its threads wait for tasks with Atomics.wait otherwise; ours have one task for ever.
      atomics: 'disabled',
      recordTiming: false,
      ...(resourceLimits === undefined ? {} : { resourceLimits: { ...resourceLimits } }),
    });
    this.#piscina.on('error', (error: unknown) => {
      host.log.error({ error: String(error) }, 'a thread failed outside of its task');
    });
    const opened = new Promise<void>((resolve, reject) => {
      this.#opening = { resolve, reject };
    });
    for (let i = 0; i < threads; i++) this.#addThread();
    try {
      await opened;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #addThread(): void {
    this.#addedAtMs = realNowMs();
    this.#threads.push(new PoolThread(++this.#threadsMade, this));
  }

  // What the threads need of the pool.

  get virtualTime(): boolean {
    return this.#host?.clock.attach !== undefined;
  }

  nowMs(): number {
    return (this.#host as ExecutorHost).clock.now();
  }

  launch(
    start: Omit<ThreadStart, 'moduleUrl' | 'maxPayloadBytes'>,
    signal: AbortSignal,
  ): Promise<void> {
    assert(this.#piscina !== undefined, 'threads are launched while the pool is open');
    const { module, maxPayloadBytes = 256 * 1024 } = this.#options;
    const task: ThreadStart = { ...start, moduleUrl: module.href, maxPayloadBytes };
    return this.#piscina.run(task, { transferList: [start.port], signal }) as Promise<void>;
  }

  report(report: Report): void {
    this.#reports.push(report);
    this.#queueFlush();
  }

  onRoom(): void {
    this.#queueFlush();
  }

  onCall(thread: PoolThread, call: HandlerCall): void {
    this.#calls?.handle(thread, call);
  }

  onHello(thread: PoolThread, hello: Hello): void {
    if (hello.kind === 'broken') {
      this.#failOpening(createPayloadCodec({ maxPayloadBytes: 1 }).decode(hello.error));
      return;
    }
    this.#reloadPauseMs = RELOAD_PAUSE_MS;
    if (this.#opening !== undefined) {
      this.#handlers = new Map(hello.handlers);
      this.#opening.resolve();
      this.#opening = undefined;
    }
    this.#host?.log.debug({ workerId: thread.workerId }, 'a thread serves');
    this.#queueFlush();
  }

  #failOpening(cause: unknown): void {
    const message = cause instanceof Error ? cause.message : String(cause);
    const text = `the handlers' module ${this.#options.module.href} does not load: ${message}`;
    if (this.#opening === undefined) this.#host?.log.error({}, text);
    this.#opening?.reject(new InvalidArgumentError(text, { cause }));
    this.#opening = undefined;
  }

  onDeath(thread: PoolThread, death: Death): void {
    this.#threads.splice(this.#threads.indexOf(thread), 1);
    if (this.#reserved === thread) {
      this.#reserved = undefined;
      this.#aloneSent = false;
    }
    if (this.#closed !== undefined || death.kind === 'closed') return;
    const { workerId } = thread;
    this.#host?.log.warn(
      { workerId, error: death.error },
      'a thread has ended; another takes its place',
    );
    if (thread.hasServed) {
      this.#addThread();
      this.#queueFlush();
      return;
    }
    if (this.#opening !== undefined) this.#failOpening(new Error(death.error.message));
    else this.#reloadLater();
  }

  #reloadLater(): void {
    const disarm = afterRealMs(this.#reloadPauseMs, () => {
      this.#reloads.delete(disarm);
      this.#addThread();
    });
    this.#reloads.add(disarm);
    this.#reloadPauseMs = Math.min(this.#reloadPauseMs * 2, RELOAD_PAUSE_MAX_MS);
  }

  // What the engine asks of the pool.

  capacity(): number {
    if (this.#closed !== undefined) return 0;
    let room = 0;
    for (const thread of this.#threads) {
      if (thread !== this.#reserved && thread.isResponsive) room += thread.room;
    }
    return Math.max(0, room - this.#queue.length);
  }

  reserve(isWanted: boolean): boolean {
    this.#isWanted = isWanted && this.#closed === undefined;
    if (this.#isWanted) this.#pickReserved();
    else this.#release();
    return this.#isWanted && !this.#aloneSent && this.#isEmptied;
  }

  /** The one with the least to do, of those that answer. */
  #pickReserved(): void {
    this.#reserved ??= this.#threads
      .filter((thread) => thread.state === 'serving')
      .sort((a, b) => Number(b.isResponsive) - Number(a.isResponsive) || a.load - b.load)[0];
  }

  get #isEmptied(): boolean {
    return this.#reserved?.load === 0 && this.#reserved.isResponsive;
  }

  /** Unless an `alone` run is on it, or about to be. */
  #release(): void {
    if (this.#isWanted || this.#aloneSent || this.#aloneQueue.length > 0) return;
    this.#reserved = undefined;
  }

  start(runs: readonly Run[]): void {
    const atMs = realNowMs();
    for (const run of runs) {
      if (run.alone) {
        this.#aloneQueue.push(run);
        this.#isWanted = false;
      } else this.#queue.push({ run, atMs });
    }
    this.#queueFlush();
  }

  abort(runId: number, why: AbortReason, message: string): void {
    const found = this.#find(runId);
    if (found === undefined) this.#takeBack((run) => run.runId === runId);
    else found.thread.abort(found.record, why, message);
  }

  end(runId: number): void {
    const found = this.#find(runId);
    if (found === undefined) this.#takeBack((run) => run.runId === runId);
    else found.thread.end(found.record);
  }

  #find(runId: number): { thread: PoolThread; record: SentRecord } | undefined {
    for (const thread of this.#threads) {
      const record = thread.runs.get(runId);
      if (record !== undefined) return { thread, record };
    }
    return undefined;
  }

  recall(): void {
    this.#takeBack(() => true);
    for (const thread of this.#threads) thread.recall();
  }

  /** Of the runs that no thread was sent. */
  #takeBack(which: (run: Run) => boolean): void {
    const keep = (run: Run): boolean => {
      if (which(run)) this.report({ kind: 'returned', runId: run.runId });
      else return true;
      return false;
    };
    this.#queue = this.#queue.filter((queued) => keep(queued.run));
    this.#aloneQueue = this.#aloneQueue.filter(keep);
  }

  get zombies(): number {
    let zombies = 0;
    for (const thread of this.#threads) zombies += thread.zombies;
    return zombies;
  }

  unsettledHandlers(): number {
    let unsettled = this.#queue.length + this.#aloneQueue.length;
    for (const thread of this.#threads) {
      for (const record of thread.runs.values()) {
        if (!record.uncounted && record.sleeps === 0) unsettled++;
      }
    }
    return unsettled;
  }

  get loading(): boolean {
    const nowMs = realNowMs();
    const mayLoad = nowMs - this.#addedAtMs < LOADING_MAX_MS;
    // What it was sent may have been taken back, on a busy machine: then it is unheard of, and will be given more.
    return this.#threads.some(
      (thread) =>
        (mayLoad && thread.state === 'loading') || thread.isUnheard(nowMs, LOADING_MAX_MS),
    );
  }

  giveUpOnHandlers(): void {
    for (const thread of this.#threads) {
      for (const record of thread.runs.values()) {
        if (record.sleeps === 0) record.uncounted = true;
      }
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // `#closed` is set before anything is ended.
    await Promise.resolve();
    this.#disarmSweep?.();
    for (const disarm of this.#reloads) disarm();
    this.#takeBack(() => true);
    const error = { name: 'Error', message: 'the scheduler stopped: its threads were ended' };
    for (const thread of [...this.#threads]) thread.die({ kind: 'closed', runId: null, error });
    await this.#piscina?.destroy();
  }

  // Dispatch.

  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#flushQueued = false;
    if (this.#closed === undefined) this.#dispatch();
    const reports = this.#reports;
    this.#reports = [];
    this.#host?.report(reports);
  }

  /** First what may share a thread, then `alone` runs: so that neither kind starves the other. */
  #dispatch(): void {
    if (this.#reserved?.load === 0) {
      const goesOn = this.#isWanted || (!this.#aloneSent && this.#aloneQueue.length > 0);
      if (!goesOn) this.#reserved = undefined;
      this.#aloneSent = false;
    }
    if (this.#queue.length > 0) this.#sendQueued();
    if (this.#aloneQueue.length > 0) this.#sendAlone();
    this.#armSweep(ENTER_WITHIN_MS);
  }

  /** Shares the queue among the threads that answer, those with the least to do first. */
  #sendQueued(): void {
    const open = this.#threads.filter(
      (thread) => thread !== this.#reserved && thread.isResponsive && thread.room > 0,
    );
    // Equal ones take turns.
    this.#threads.push(this.#threads.shift() as PoolThread);
    open.sort((a, b) => a.load - b.load);
    let sent = 0;
    for (let i = 0; i < open.length && sent < this.#queue.length; i++) {
      const thread = open[i] as PoolThread;
      const share = Math.ceil((this.#queue.length - sent) / (open.length - i));
      const until = sent + Math.min(share, thread.room);
      thread.send(this.#queue.slice(sent, until).map((queued) => queued.run));
      sent = until;
    }
    this.#queue.splice(0, sent);
  }

  #sendAlone(): void {
    // The one that was reserved may have died since.
    this.#pickReserved();
    if (this.#aloneSent || !this.#isEmptied) return;
    this.#aloneSent = true;
    this.#reserved?.send([this.#aloneQueue.shift() as Run]);
  }

  /** Armed only while something has not entered. */
  #armSweep(afterMs: number): void {
    if (this.#disarmSweep !== undefined) return;
    if (this.#queue.length === 0 && !this.#threads.some((thread) => thread.isAwaited)) return;
    this.#disarmSweep = afterRealMs(afterMs, () => {
      this.#disarmSweep = undefined;
      this.#sweep();
    });
  }

  #sweep(): void {
    const nowMs = realNowMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const thread of [...this.#threads]) nextMs = Math.min(nextMs, thread.sweep(nowMs));
    // In order of arrival: those that have waited too long come first.
    let expired = 0;
    while (expired < this.#queue.length) {
      const { run, atMs } = this.#queue[expired] as Queued;
      nextMs = Math.min(nextMs, atMs + ENTER_WITHIN_MS);
      if (atMs + ENTER_WITHIN_MS > nowMs) break;
      this.report({ kind: 'returned', runId: run.runId });
      expired++;
    }
    this.#queue.splice(0, expired);
    if (nextMs < Number.POSITIVE_INFINITY) this.#armSweep(Math.max(1, nextMs - nowMs));
  }
}
