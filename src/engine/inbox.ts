/** What the outside world has told the loop and it has not looked at yet. Callbacks only enqueue here. */
import type { AttemptEvent } from '../core/event.js';
import type { Report } from '../execution/executor.js';
import type { JobBounds } from './bounds.js';
import type { Job } from './job.js';

/** An event of an attempt whose commit failed: it must not be lost. */
export interface Redo {
  readonly taskId: string;
  readonly event: AttemptEvent;
}

/** It creates a task that could start now. */
function isDueAtOnce({ work }: Job, nowMs: number): boolean {
  if (work.kind !== 'task' || work.event.kind !== 'create') return false;
  const { schedule } = work.event.task;
  return schedule.kind === 'once' && schedule.at <= nowMs;
}

const COMPACT_MIN = 1024;

export class Inbox {
  #jobs: Job[] = [];
  /** Jobs before this one were taken. */
  #head = 0;
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
    return this.jobs + this.#reports.length + this.#redos.length + this.#reloads.length;
  }

  /** Jobs that wait. */
  get jobs(): number {
    return this.#jobs.length - this.#head;
  }

  addJob(job: Job): void {
    this.#jobs.push(job);
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

  /** Jobs in the order in which they came, as far as the bounds allow it. */
  takeJobs({ all, dueAtOnce }: JobBounds, nowMs: number): Job[] {
    const most = Math.min(this.#jobs.length, this.#head + all);
    let end = this.#head;
    for (let dueLeft = dueAtOnce; end < most; end++) {
      if (isDueAtOnce(this.#jobs[end] as Job, nowMs) && --dueLeft < 0) break;
    }
    const taken = this.#jobs.slice(this.#head, end);
    this.#head = end;
    if (end === this.#jobs.length) {
      this.#jobs = [];
      this.#head = 0;
    } else if (end >= COMPACT_MIN && end * 2 >= this.#jobs.length) {
      // Moved only when half is gone, so that a long queue costs O(1) a job.
      this.#jobs = this.#jobs.slice(end);
      this.#head = 0;
    }
    return taken;
  }

  takeAllJobs(): Job[] {
    const jobs = this.#jobs.slice(this.#head);
    this.#jobs = [];
    this.#head = 0;
    return jobs;
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
