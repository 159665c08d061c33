/** What the outside world has told the loop and it has not looked at yet. Callbacks only enqueue here. */
import type { AttemptEvent } from '../core/event.js';
import type { Report } from '../execution/executor.js';
import type { JobBounds } from './bounds.js';
import { type Job, type JobGroup, type WorkSource, worksOf } from './job.js';

/** An event of an attempt whose commit failed: it must not be lost. */
export interface Redo {
  readonly taskId: string;
  readonly event: AttemptEvent;
}

/** Works that were submitted together, as far as they were not taken. */
interface Waiting {
  readonly source: WorkSource;
  readonly group: JobGroup;
  /** In the group, the index of the source's first. */
  readonly first: number;
  next: number;
}

const COMPACT_MIN = 1024;

export class Inbox {
  #waiting: (Waiting | undefined)[] = [];
  /** Those before this one were taken whole. */
  #head = 0;
  /** Jobs that wait. */
  jobs = 0;
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

  add(source: WorkSource, group: JobGroup): void {
    this.#add({ source, group, first: 0, next: 0 });
  }

  /** One that was taken before. */
  addAgain({ work, group, index }: Job): void {
    this.#add({ source: worksOf([work]), group, first: index, next: 0 });
  }

  #add(waiting: Waiting): void {
    if (waiting.source.size === 0) return;
    this.#waiting.push(waiting);
    this.jobs += waiting.source.size;
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
    const taken: Job[] = [];
    let dueLeft = dueAtOnce;
    for (let first = this.#first; first !== undefined; first = this.#first) {
      const { source, group } = first;
      while (first.next < source.size) {
        if (taken.length === all) return this.#noteTaken(taken);
        if (source.isDueAtOnce(first.next, nowMs) && --dueLeft < 0) return this.#noteTaken(taken);
        const index = first.next++;
        taken.push({ work: source.work(index), group, index: first.first + index });
      }
      this.#dropFirst();
    }
    return this.#noteTaken(taken);
  }

  #noteTaken(taken: Job[]): Job[] {
    this.jobs -= taken.length;
    return taken;
  }

  get #first(): Waiting | undefined {
    return this.#waiting[this.#head];
  }

  #dropFirst(): void {
    this.#waiting[this.#head++] = undefined;
    if (this.#head === this.#waiting.length) {
      this.#waiting = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_MIN && this.#head * 2 >= this.#waiting.length) {
      // Moved only when half is gone, so that a long queue costs O(1) a job.
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Nothing more is done: all jobs that wait have failed. */
  fail(error: unknown): void {
    for (let first = this.#first; first !== undefined; first = this.#first) {
      for (; first.next < first.source.size; first.next++) {
        first.group.settle(first.first + first.next, { kind: 'failed', error });
      }
      this.#dropFirst();
    }
    this.jobs = 0;
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
