/** What the outside world has told the loop and it has not looked at yet. Callbacks only enqueue here. */
import type { AttemptEvent } from '../core/event.js';
import type { Report } from '../execution/executor.js';
import { CALL_BOUNDS, type JobBounds } from './bounds.js';
import { type Job, type JobGroup, type Work, type WorkSource, worksOf } from './job.js';
import { JobQueue } from './job-queue.js';

/** An event of an attempt whose commit failed: it must not be lost. */
export interface Redo {
  readonly taskId: string;
  readonly event: AttemptEvent;
}

export class Inbox {
  readonly #creates = new JobQueue();
  /** All other jobs: a cancel does not wait behind a flood of creates. */
  readonly #calls = new JobQueue();
  #reports: Report[] = [];
  #redos: Redo[] = [];
  /** Turns that a full store refused, and that will be given here again. */
  postponed = 0;
  /** Tasks to read again and to place by what their records say. */
  #reloads: string[] = [];

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** All that waits. */
  get size(): number {
    return this.#jobs + this.#reports.length + this.#redos.length + this.#reloads.length;
  }

  get #jobs(): number {
    return this.#creates.size + this.#calls.size;
  }

  addCreates(source: WorkSource, group: JobGroup): void {
    this.#creates.add(source, group);
  }

  addCalls(works: readonly Work[], group: JobGroup): void {
    this.#calls.add(worksOf(works), group);
  }

  /** One that was taken before. */
  addAgain(job: Job): void {
    const isCreate = job.work.kind === 'task' && job.work.event.kind === 'create';
    (isCreate ? this.#creates : this.#calls).addAgain(job);
  }

  addReports(reports: readonly Report[]): void {
    for (const report of reports) this.#reports.push(report);
  }

  addRedo(redo: Redo): void {
    this.#redos.push(redo);
  }

  addReload(taskId: string): void {
    this.#reloads.push(taskId);
  }

  /** Calls, then creates as far as the bounds allow it: appended to `taken`. */
  takeJobs(creates: JobBounds, nowMs: number, taken: Job[]): void {
    this.#calls.take(CALL_BOUNDS, nowMs, taken);
    this.#creates.take(creates, nowMs, taken);
  }

  /** Nothing more is done: all jobs that wait have failed. */
  fail(error: unknown): void {
    this.#calls.fail(error);
    this.#creates.fail(error);
  }

  takeReports(): Report[] {
    const reports = this.#reports;
    this.#reports = [];
    return reports;
  }

  takeRedos(): Redo[] {
    const redos = this.#redos;
    this.#redos = [];
    return redos;
  }

  takeReloads(): string[] {
    const reloads = this.#reloads;
    this.#reloads = [];
    return reloads;
  }
}
