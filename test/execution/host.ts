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
    expect(this.#inCall, 'a report from inside a call').toBe(false);
    this.batches++;
    for (const report of reports) this.#hear(report);
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  #hear(report: Report): void {
    const known = this.runs.get(report.runId);
    expect(known, `a report of run ${report.runId}, which was never started`).toBeDefined();
    if (known === undefined) return;
    expect(known.end, `${report.kind} after the end of run ${report.runId}`).toBeUndefined();
    switch (report.kind) {
      case 'entered':
        expect(known.entered, 'entered twice').toBeUndefined();
        known.entered = report;
        return;
      case 'progress': {
        const { progress } = report;
        known.progress.push(progress === undefined ? undefined : this.codec.decode(progress));
        return;
      }
      case 'returned':
        expect(known.entered, 'returned after it had entered').toBeUndefined();
        known.end = report;
        return;
      case 'lost':
        expect(report.entered).toBe(known.entered !== undefined);
        known.end = report;
        return;
      default:
        expect(known.entered, `${report.kind} without having entered`).toBeDefined();
        known.end = report;
    }
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

  give(runs: readonly Run[]): void {
    for (const run of runs) {
      this.runs.set(run.runId, { entered: undefined, end: undefined, progress: [] });
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

  /**
   * Gives runs as the executor takes them, those that come back again, until each has ended. Resolves with
   * their ends, in the order of `runs`.
   */
  async drive(runs: readonly Run[]): Promise<Ended[]> {
    const todo = [...runs].reverse();
    const given = new Map<number, Run>();
    const original = new Map<number, number>();
    const ends = new Map<number, Ended>();
    const collect = (): void => {
      for (const [runId, run] of given) {
        const { end } = this.known(runId);
        if (end === undefined) continue;
        given.delete(runId);
        this.runs.delete(runId);
        const first = original.get(runId) ?? runId;
        original.delete(runId);
        if (end.kind !== 'returned') ends.set(first, end);
        else {
          const again = { ...run, runId: ++this.#lastRunId };
          original.set(again.runId, first);
          todo.push(again);
        }
      }
    };
    while (ends.size < runs.length) {
      const batch = todo.splice(-Math.max(1, Math.min(todo.length, this.executor.capacity())));
      if (this.executor.capacity() > 0 && batch.length > 0) {
        for (const run of batch) given.set(run.runId, run);
        this.give(batch);
      } else {
        todo.push(...batch);
      }
      const { batches } = this;
      await this.until(() => this.batches > batches);
      collect();
    }
    return runs.map((run) => ends.get(run.runId) as Ended);
  }
}
