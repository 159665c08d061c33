/** A tiny engine: gives runs to an executor, collects what it reports, holds it to the protocol. */
import { expect } from 'vitest';
import type { Clock } from '../../src/clock/clock.js';
import { systemClock } from '../../src/clock/system.js';
import type { Executor, ExecutorHost, Report, Run } from '../../src/execution/executor.js';
import { createPayloadCodec } from '../../src/execution/payload.js';
import type { Logger } from '../../src/observe/log.js';

export type Ended = Extract<Report, { kind: 'succeeded' | 'failed' | 'returned' | 'lost' }>;
type ScheduleRequest = Parameters<ExecutorHost['schedule']>[0];

interface Known {
  readonly run: Run;
  entered: Report | undefined;
  end: Ended | undefined;
  readonly progress: unknown[];
}

export class TinyHost implements ExecutorHost {
  readonly codec = createPayloadCodec({ maxPayloadBytes: 64 * 1024 });
  readonly clock: Clock;
  readonly logged: { level: string; fields: object | string; message: string | undefined }[] = [];
  readonly scheduled: ScheduleRequest[] = [];
  onSchedule: (request: ScheduleRequest) => unknown = () => ({ id: 'child', created: true });
  /** Batches of reports, empty ones too. */
  batches = 0;
  readonly runs = new Map<number, Known>();
  executor!: Executor;
  /**
   * Runs that end when they are returned. All others are given once more, under their own number: a pool takes back
   * what has not entered in time, which happens to any run where the machine is busy.
   */
  readonly #once = new Set<number>();
  #again: Run[] = [];
  #ended = 0;
  #lastRunId = 0;
  #inCall = false;
  #waiters: (() => void)[] = [];

  constructor(clock: Clock = systemClock()) {
    this.clock = clock;
  }

  async open(executor: Executor): Promise<this> {
    this.executor = executor;
    await executor.open(this);
    return this;
  }

  readonly log: Logger = {
    debug: (fields, message) => this.#log('debug', fields, message),
    info: (fields, message) => this.#log('info', fields, message),
    warn: (fields, message) => this.#log('warn', fields, message),
    error: (fields, message) => this.#log('error', fields, message),
  };

  #log(level: string, fields: object | string, message: string | undefined): void {
    this.logged.push({ level, fields, message });
  }

  report(reports: readonly Report[]): void {
    check(!this.#inCall, 'a report from inside a call');
    this.batches++;
    for (const report of reports) this.#hear(report);
    if (this.#again.length > 0) setImmediate(() => this.#giveAgain());
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  #giveAgain(): void {
    const runs = this.#again.splice(0, this.executor.capacity());
    if (runs.length > 0) this.give(runs);
  }

  #hear(report: Report): void {
    const { kind, runId } = report;
    const known = this.runs.get(runId);
    if (known === undefined) expect.fail(`a report of run ${runId}, which was never started`);
    check(known.end === undefined, `${kind} after the end of run ${runId}`);
    switch (report.kind) {
      case 'entered':
        check(known.entered === undefined, 'entered twice');
        known.entered = report;
        return;
      case 'progress': {
        const { progress } = report;
        known.progress.push(progress === undefined ? undefined : this.codec.decode(progress));
        return;
      }
      case 'returned':
        check(known.entered === undefined, 'returned after it had entered');
        if (this.#once.has(runId)) this.#end(known, report);
        else this.#again.push(known.run);
        return;
      case 'lost':
        check(report.entered === (known.entered !== undefined), 'lost, and wrong about its entry');
        this.#end(known, report);
        return;
      default:
        if (report.enteredAtMs !== undefined) this.#enteredAtEnd(known, report);
        check(known.entered !== undefined, `${kind} without having entered`);
        this.#end(known, report);
    }
  }

  #enteredAtEnd(known: Known, report: Extract<Report, { kind: 'succeeded' | 'failed' }>): void {
    const { runId, enteredAtMs, workerId } = report;
    check(known.entered === undefined, 'entered twice');
    check(typeof workerId === 'string', 'an entry names its worker');
    const atMs = enteredAtMs as number;
    known.entered = { kind: 'entered', runId, atMs, workerId: workerId as string };
  }

  #end(known: Known, report: Ended): void {
    known.end = report;
    this.#ended++;
  }

  schedule(request: ScheduleRequest): Promise<unknown> {
    this.scheduled.push(request);
    return Promise.resolve().then(() => this.onSchedule(request));
  }

  makeRun(handler: string, payload?: unknown, more: Partial<Run> = {}): Run {
    const runId = ++this.#lastRunId;
    return {
      runId,
      taskId: `task-${runId}`,
      occurrenceId: `occurrence-${runId}`,
      tenant: 'acme',
      handler,
      handlerVersion: 1,
      attempt: 1,
      retriesLeft: 2,
      fencingToken: 2 ** 32 + runId,
      nominalAt: 1_000,
      dueAt: 1_001,
      progress: undefined,
      payload: this.codec.encode(payload, 'payload'),
      alone: false,
      ...more,
    };
  }

  /** Those named in `once` are not given again: if they are returned, they have ended. */
  give(runs: readonly Run[], once: readonly number[] = []): void {
    for (const runId of once) this.#once.add(runId);
    for (const run of runs) {
      this.runs.set(run.runId, { run, entered: undefined, end: undefined, progress: [] });
    }
    this.call(() => this.executor.start(runs));
  }

  /** Calls the executor; nothing may be reported before the call has returned. */
  call(run: () => void): void {
    this.#inCall = true;
    run();
    this.#inCall = false;
  }

  start(handler: string, payload?: unknown, more: Partial<Run> = {}): number {
    const run = this.makeRun(handler, payload, more);
    this.give([run]);
    return run.runId;
  }

  /** None of them is given again. */
  giveOnce(runs: readonly Run[]): void {
    this.give(
      runs,
      runs.map(({ runId }) => runId),
    );
  }

  /** As `start`, and if it is returned it has ended. */
  startOnce(handler: string, payload?: unknown, more: Partial<Run> = {}): number {
    const run = this.makeRun(handler, payload, more);
    this.giveOnce([run]);
    return run.runId;
  }

  known(runId: number): Known {
    return this.runs.get(runId) as Known;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  async entered(runId: number): Promise<Extract<Report, { kind: 'entered' }>> {
    await this.until(() => this.known(runId).entered !== undefined);
    return this.known(runId).entered as Extract<Report, { kind: 'entered' }>;
  }

  async ended(runId: number): Promise<Ended> {
    await this.until(() => this.known(runId).end !== undefined);
    return this.known(runId).end as Ended;
  }

  /** Started and ended. */
  async run(handler: string, payload?: unknown, more: Partial<Run> = {}): Promise<Ended> {
    return await this.ended(this.start(handler, payload, more));
  }

  /** The decoded result of a run that succeeds. */
  async resultOf(handler: string, payload?: unknown, more: Partial<Run> = {}): Promise<unknown> {
    const end = await this.run(handler, payload, more);
    expect(end).toMatchObject({ kind: 'succeeded' });
    const { result } = end as Extract<Report, { kind: 'succeeded' }>;
    return result === undefined ? undefined : this.codec.decode(result);
  }

  /** Gives runs as the executor takes them, until each has ended. Resolves with their ends, in order. */
  async drive(runs: readonly Run[]): Promise<Ended[]> {
    const until = this.#ended + runs.length;
    let given = 0;
    while (this.#ended < until) {
      const room = this.executor.capacity() - this.#again.length;
      if (room > 0 && given < runs.length) {
        this.give(runs.slice(given, given + room));
        given += room;
      }
      const { batches } = this;
      await this.until(() => this.batches > batches);
    }
    return runs.map((run) => this.known(run.runId).end as Ended);
  }
}

/** `expect` is too slow for every report of 100,000 runs. */
function check(condition: boolean, message: string): void {
  if (!condition) expect.fail(message);
}
