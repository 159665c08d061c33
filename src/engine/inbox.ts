/** What the outside world has told the loop and it has not looked at yet. Callbacks only enqueue here. */
import type { AttemptEvent } from '../core/event.js';
import type { Report } from '../execution/executor.js';
import type { Job } from './job.js';

/** An event of an attempt whose commit failed: it must not be lost. */
export interface Redo {
  readonly taskId: string;
  readonly event: AttemptEvent;
}

export class Inbox {
  #jobs: Job[] = [];
  #reports: Report[] = [];
  #redos: Redo[] = [];
  /** Tasks to read again and to place by what their records say. */
  #reloads: string[] = [];

  get isEmpty(): boolean {
    return (
      this.#jobs.length === 0 &&
      this.#reports.length === 0 &&
      this.#redos.length === 0 &&
      this.#reloads.length === 0
    );
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

  /** Jobs in the order in which they came, `max` at most. */
  takeJobs(max: number): Job[] {
    if (this.#jobs.length <= max) {
      const all = this.#jobs;
      this.#jobs = [];
      return all;
    }
    return this.#jobs.splice(0, max);
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
