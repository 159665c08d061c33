/** Jobs in the order in which they came; until its turn comes a job is an index of its source. */
import type { JobBounds } from './bounds.js';
import { type Job, type JobGroup, type WorkSource, worksOf } from './job.js';

/** Works that were submitted together, as far as they were not taken. */
interface Waiting {
  readonly source: WorkSource;
  readonly group: JobGroup;
  /** In the group, the index of the source's first. */
  readonly first: number;
  next: number;
}

const COMPACT_MIN = 1024;

export class JobQueue {
  #waiting: (Waiting | undefined)[] = [];
  /** Those before this one were taken whole. */
  #head = 0;
  /** Jobs that wait. */
  size = 0;

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
    this.size += waiting.source.size;
  }

  /** Appends to `taken`, as far as the bounds allow it. */
  take({ all, dueAtOnce }: JobBounds, nowMs: number, taken: Job[]): void {
    let left = all;
    let dueLeft = dueAtOnce;
    for (let first = this.#first; first !== undefined; first = this.#first) {
      const { source, group } = first;
      for (; first.next < source.size; left--) {
        if (left === 0) return;
        if (source.isDueAtOnce(first.next, nowMs) && --dueLeft < 0) return;
        const index = first.next++;
        this.size--;
        taken.push({ work: source.work(index), group, index: first.first + index });
      }
      this.#dropFirst();
    }
  }

  get #first(): Waiting | undefined {
    return this.#waiting[this.#head];
  }

  #dropFirst(): void {
    this.#first?.source.taken?.();
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

  /** Nothing more is done: all that wait have failed. */
  fail(error: unknown): void {
    for (let first = this.#first; first !== undefined; first = this.#first) {
      for (; first.next < first.source.size; first.next++) {
        first.group.settle(first.first + first.next, { kind: 'failed', error });
      }
      this.#dropFirst();
    }
    this.size = 0;
  }
}
