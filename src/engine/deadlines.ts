/** Deadlines of running attempts on monotonic time: a binary heap, bounded by what runs. */
import type { ActiveRun } from './runs.js';

export type DeadlineKind = 'timeout' | 'heartbeat' | 'grace';

interface Deadline {
  readonly atMs: number;
  readonly kind: DeadlineKind;
  readonly run: ActiveRun;
}

/** Below this many, deadlines of ended runs are left where they are. */
const COMPACT_MIN = 1024;

export class Deadlines {
  #heap: Deadline[] = [];

  /** The earliest deadline; Infinity when none. May be of a run that has ended: then one look is in vain. */
  get nextMs(): number {
    this.#dropEnded();
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** O(log n) amortised. `running` bounds what is kept: deadlines of ended runs are thrown out in time. */
  add(atMs: number, kind: DeadlineKind, run: ActiveRun, running: number): void {
    if (this.#heap.length > COMPACT_MIN && this.#heap.length > 8 * running) this.#compact();
    this.#push({ atMs, kind, run });
  }

  #compact(): void {
    const kept = this.#heap.filter((deadline) => !deadline.run.ended);
    this.#heap = [];
    for (const deadline of kept) this.#push(deadline);
  }

  #push(deadline: Deadline): void {
    const heap = this.#heap;
    const { atMs } = deadline;
    let index = heap.length;
    heap.push(deadline);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((heap[parent] as Deadline).atMs <= atMs) break;
      heap[index] = heap[parent] as Deadline;
      index = parent;
    }
    heap[index] = deadline;
  }

  /** The next deadline at or before `nowMs`, of a run that has not ended; removed. */
  take(nowMs: number): Deadline | undefined {
    this.#dropEnded();
    const first = this.#heap[0];
    if (first === undefined || first.atMs > nowMs) return undefined;
    this.#removeFirst();
    return first;
  }

  #dropEnded(): void {
    while (this.#heap[0]?.run.ended) this.#removeFirst();
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && right.atMs < (heap[child] as Deadline).atMs) child++;
      if ((heap[child] as Deadline).atMs >= last.atMs) break;
      heap[index] = heap[child] as Deadline;
      index = child;
    }
    heap[index] = last;
  }
}
