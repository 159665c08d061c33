/**
 * Worker threads as the engine sees them, on the world's clock: handlers that end, fail, hang, kill their thread, report
 * twice, or report after they were given up. It tells the oracle what really happened.
 */
import type { AbortReason } from '../../src/core/errors.js';
import type { Executor, ExecutorHost, Report, Run } from '../../src/execution/executor.js';
import type { Dice } from './dice.js';
import { calmPlan, type Plan, planOf, type SimPayload } from './plans.js';

/** How an attempt came to its end, as the world knows it. */
export type Truth =
  | 'succeeded'
  | 'failed'
  | 'culprit'
  | 'suspect'
  | 'displaced'
  | 'ended'
  | 'returned';

export interface ExecutorObserver {
  entered(run: Run, payload: unknown): void;
  /** Reported to the engine. `result` is of a success. */
  ended(run: Run, truth: Truth, result: Uint8Array | undefined): void;
  aborted(run: Run, why: AbortReason): void;
  /** The worker is not heard of any more. */
  silent(run: Run): void;
  fault(name: string): void;
  /** The engine did what the protocol forbids. */
  broke(text: string): void;
}

export interface SimExecutorOptions {
  readonly handlers: ReadonlyMap<string, readonly number[]>;
  readonly threads: number;
  readonly slotsAThread: number;
  readonly dice: Dice;
  readonly observer: ExecutorObserver;
  readonly calm: () => boolean;
  /** How long a run waits at its thread before it enters. */
  readonly entryMs: () => number;
}

interface Attempt {
  readonly run: Run;
  readonly thread: Thread;
  plan: Plan;
  state: 'queued' | 'entered' | 'over';
  silent: boolean;
}

interface Thread {
  readonly name: string;
  readonly attempts: Set<Attempt>;
}

export class SimExecutor implements Executor {
  readonly handlers: ReadonlyMap<string, readonly number[]>;
  readonly slots: number;
  readonly threads: number;
  readonly zombies = 0;
  readonly #options: SimExecutorOptions;
  readonly #all: Thread[] = [];
  readonly #attempts = new Map<number, Attempt>();
  /** It takes nothing new, for a run that is to have it for itself. */
  #reserved: Thread | undefined;
  #host!: ExecutorHost;
  #reports: Report[] = [];
  #isFlushing = false;
  #dead = false;
  #threadCount = 0;

  constructor(options: SimExecutorOptions) {
    this.#options = options;
    this.handlers = options.handlers;
    this.threads = options.threads;
    this.slots = options.threads * options.slotsAThread;
    for (let i = 0; i < options.threads; i++) this.#all.push(this.#newThread());
  }

  #newThread(): Thread {
    return { name: `thread-${++this.#threadCount}`, attempts: new Set() };
  }

  open(host: ExecutorHost): Promise<void> {
    this.#host = host;
    return Promise.resolve();
  }

  /** Attempts that the engine was not told the end of. */
  get held(): number {
    return this.#attempts.size;
  }

  holds(occurrenceId: string): boolean {
    for (const { run } of this.#attempts.values())
      if (run.occurrenceId === occurrenceId) return true;
    return false;
  }

  /** The process dies. */
  kill(): void {
    this.#dead = true;
    this.#attempts.clear();
  }

  vouchesFor(runId: number): boolean {
    return this.#attempts.get(runId)?.silent !== true;
  }

  capacity(): number {
    if (this.#dead) return 0;
    let free = 0;
    for (const thread of this.#all) free += this.#freeOf(thread);
    return free;
  }

  reserve(isWanted: boolean): boolean {
    if (!isWanted || this.#dead) this.#reserved = undefined;
    else this.#reserved ??= this.#emptiest();
    return this.#reserved?.attempts.size === 0;
  }

  #emptiest(): Thread | undefined {
    const shared = this.#all.filter(({ attempts }) => ![...attempts].some(({ run }) => run.alone));
    return shared.sort((a, b) => a.attempts.size - b.attempts.size)[0];
  }

  #freeOf(thread: Thread): number {
    const { attempts } = thread;
    if (thread === this.#reserved) return 0;
    for (const { run } of attempts) if (run.alone) return 0;
    return this.#options.slotsAThread - attempts.size;
  }

  start(runs: readonly Run[]): void {
    if (this.#dead) return;
    for (const run of runs) {
      const thread = run.alone ? this.#takeReserved() : this.#roomiest();
      if (thread === undefined) this.#tell({ kind: 'returned', runId: run.runId });
      else this.#place(run, thread);
    }
  }

  #takeReserved(): Thread | undefined {
    const reserved = this.#reserved;
    this.#reserved = undefined;
    if (reserved?.attempts.size === 0) return reserved;
    this.#options.observer.broke('an alone run was started without an empty thread');
    return undefined;
  }

  #roomiest(): Thread | undefined {
    let best: Thread | undefined;
    let most = 0;
    for (const thread of this.#all) {
      const free = this.#freeOf(thread);
      if (free > most) [best, most] = [thread, free];
    }
    return best;
  }

  #place(run: Run, thread: Thread): void {
    const attempt: Attempt = { run, thread, plan: calmPlan(), state: 'queued', silent: false };
    this.#attempts.set(run.runId, attempt);
    thread.attempts.add(attempt);
    this.#after(this.#options.entryMs(), () => {
      if (attempt.state === 'queued') this.#enter(attempt);
    });
  }

  #after(ms: number, go: () => void): void {
    const alive = (): void => {
      if (!this.#dead) go();
    };
    if (ms <= 0) {
      queueMicrotask(alive);
      return;
    }
    const monotonicMs = this.#host.clock.monotonic() + ms;
    this.#host.clock.arm({ wallMs: Number.POSITIVE_INFINITY, monotonicMs }, alive);
  }

  #enter(attempt: Attempt): void {
    const { run, thread } = attempt;
    const { observer, dice, calm } = this.#options;
    attempt.state = 'entered';
    const payload = this.#host.codec.decode(run.payload) as SimPayload;
    attempt.plan = calm() ? calmPlan() : planOf(payload.mood, dice);
    const atMs = this.#host.clock.now();
    this.#tell({ kind: 'entered', runId: run.runId, atMs, workerId: thread.name });
    observer.entered(run, payload);
    this.#act(attempt);
  }

  #act(attempt: Attempt): void {
    const { plan, run } = attempt;
    const { observer } = this.#options;
    if (plan.muteAfterMs !== undefined) {
      this.#after(plan.muteAfterMs, () => {
        if (attempt.state !== 'entered') return;
        attempt.silent = true;
        observer.silent(run);
      });
      this.#after(60_000, () => this.#tellLate(attempt, 'succeeded'));
      return;
    }
    if (plan.beatMs > 0) this.#after(plan.beatMs, () => this.#beat(attempt, 1));
    if (plan.child) this.#schedule(run);
    if (plan.ending === 'hang') {
      observer.fault('handler hangs');
      return;
    }
    this.#after(plan.afterMs, () => {
      if (attempt.state === 'entered') this.#finish(attempt);
      else this.#tellLate(attempt, 'succeeded');
    });
  }

  #schedule({ taskId, tenant }: Run): void {
    const payload: SimPayload = { mood: 'quick', call: 0 };
    const request = { taskId, tenant, handler: 'mail', payload, options: { delay: 50 } };
    this.#host.schedule(request).catch(() => {});
  }

  #beat(attempt: Attempt, count: number): void {
    if (attempt.state !== 'entered') return;
    const progress = count % 2 === 0 ? undefined : this.#host.codec.encode(count, 'progress');
    this.#tell({ kind: 'progress', runId: attempt.run.runId, progress });
    this.#after(attempt.plan.beatMs, () => this.#beat(attempt, count + 1));
  }

  #finish(attempt: Attempt): void {
    const { plan } = attempt;
    const { observer } = this.#options;
    switch (plan.ending) {
      case 'succeed':
        this.#end(attempt, 'succeeded');
        break;
      case 'culprit':
      case 'unknown':
        this.#crash(attempt, plan.ending);
        return;
      default:
        observer.fault(`handler fails: ${plan.ending}`);
        this.#end(attempt, 'failed', plan.ending);
    }
    if (plan.againMs === undefined) return;
    this.#after(plan.againMs, () => {
      observer.fault('reports twice');
      this.#tell(this.#success(attempt.run));
    });
  }

  /** The attempt was given up, and its handler reports all the same. */
  #tellLate(attempt: Attempt, truth: 'succeeded'): void {
    if (attempt.state !== 'over' && !attempt.silent) return;
    this.#options.observer.fault('reports late');
    this.#tell(truth === 'succeeded' ? this.#success(attempt.run) : this.#failure(attempt.run));
    if (attempt.state !== 'over') this.#forget(attempt);
  }

  #success(run: Run): Report {
    const result = this.#host.codec.encode({ by: run.fencingToken }, 'result');
    return { kind: 'succeeded', runId: run.runId, atMs: this.#host.clock.now(), result };
  }

  #failure(run: Run, how: Plan['ending'] = 'fail'): Report {
    return {
      kind: 'failed',
      runId: run.runId,
      atMs: this.#host.clock.now(),
      error: { name: 'Error', message: `simulated: ${how}` },
      unrecoverable: how === 'unrecoverable',
      retryAfterMs: how === 'retryAfter' ? 700 : undefined,
    };
  }

  #end(attempt: Attempt, truth: 'succeeded' | 'failed', how?: Plan['ending']): void {
    const { run } = attempt;
    const report = truth === 'succeeded' ? this.#success(run) : this.#failure(run, how);
    this.#forget(attempt);
    this.#options.observer.ended(
      run,
      truth,
      report.kind === 'succeeded' ? report.result : undefined,
    );
    this.#tell(report);
  }

  #forget(attempt: Attempt): void {
    attempt.state = 'over';
    this.#attempts.delete(attempt.run.runId);
    attempt.thread.attempts.delete(attempt);
  }

  /** The attempt's thread dies of it; a new one takes its place. */
  #crash(attempt: Attempt, how: 'culprit' | 'unknown'): void {
    const { thread } = attempt;
    const others = [...thread.attempts].filter((other) => other !== attempt);
    // Alone on its thread, there is nobody else that it could have been.
    const known = how === 'culprit' || others.every(({ state }) => state === 'queued');
    this.#options.observer.fault(known ? 'thread dies, culprit known' : 'thread dies, all suspect');
    this.#replace(thread);
    this.#lose(attempt, known ? 'culprit' : 'suspect');
    for (const other of others) this.#lose(other, known ? 'displaced' : 'suspect');
  }

  #replace(thread: Thread): void {
    const other = this.#newThread();
    this.#all[this.#all.indexOf(thread)] = other;
    if (this.#reserved === thread) this.#reserved = other;
  }

  #lose(attempt: Attempt, blame: 'culprit' | 'suspect' | 'displaced' | 'ended'): void {
    const { run } = attempt;
    const entered = attempt.state === 'entered';
    this.#forget(attempt);
    this.#options.observer.ended(run, entered ? blame : 'returned', undefined);
    const error = { name: 'Error', message: `simulated: thread lost, ${blame}`, code: 'EXIT_134' };
    this.#tell({ kind: 'lost', runId: run.runId, entered, blame, error });
  }

  #return(attempt: Attempt): void {
    this.#options.observer.fault('run taken back before entry');
    this.#options.observer.ended(attempt.run, 'returned', undefined);
    this.#forget(attempt);
    this.#tell({ kind: 'returned', runId: attempt.run.runId });
  }

  abort(runId: number, why: AbortReason, _message: string): void {
    const attempt = this.#attempts.get(runId);
    if (attempt === undefined) return;
    this.#options.observer.aborted(attempt.run, why);
    if (attempt.state === 'queued') {
      this.#return(attempt);
      return;
    }
    const { onAbort, abortLagMs } = attempt.plan;
    if (onAbort === 'ignore' || attempt.silent) {
      this.#options.observer.fault('handler ignores its abort');
      return;
    }
    this.#after(abortLagMs, () => {
      if (attempt.state !== 'entered') return;
      if (onAbort === 'succeed') this.#options.observer.fault('succeeds after its abort');
      this.#end(attempt, onAbort === 'succeed' ? 'succeeded' : 'failed', 'fail');
    });
  }

  end(runId: number): void {
    const attempt = this.#attempts.get(runId);
    if (attempt === undefined) return;
    if (attempt.state === 'queued') {
      this.#return(attempt);
      return;
    }
    this.#options.observer.fault('thread ended by force');
    const { thread } = attempt;
    const others = [...thread.attempts].filter((other) => other !== attempt);
    this.#replace(thread);
    this.#lose(attempt, 'ended');
    for (const other of others) this.#lose(other, 'displaced');
    const { againMs } = attempt.plan;
    if (againMs !== undefined) this.#after(againMs, () => this.#tellLate(attempt, 'succeeded'));
  }

  recall(): void {
    for (const attempt of [...this.#attempts.values()]) {
      if (attempt.state === 'queued') this.#return(attempt);
    }
  }

  #tell(given: Report): void {
    const report = this.#withEntry(given);
    this.#reports.push(report);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      const reports = this.#reports;
      this.#reports = [];
      if (!this.#dead) this.#host.report(reports);
    });
  }

  /** A short run's entry is told with its end, as often as not. */
  #withEntry(report: Report): Report {
    if (report.kind !== 'succeeded' && report.kind !== 'failed') return report;
    const at = this.#reports.findIndex(
      ({ kind, runId }) => kind === 'entered' && runId === report.runId,
    );
    const entry = this.#reports[at];
    if (entry?.kind !== 'entered' || this.#options.dice.chance(0.5)) return report;
    this.#reports.splice(at, 1);
    return { ...report, enteredAtMs: entry.atMs, workerId: entry.workerId };
  }

  unsettledHandlers(): number {
    return 0;
  }

  giveUpOnHandlers(): void {}

  async close(): Promise<void> {
    this.recall();
    for (const attempt of [...this.#attempts.values()]) this.#lose(attempt, 'displaced');
    await Promise.resolve();
    await Promise.resolve();
    this.#dead = true;
  }
}
