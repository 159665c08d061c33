/**
 * What has outlived its retention. Ends are noted in a heap by the time at which they are due to go; an entry
 * is only a hint, judged by the row as it stands when its time has come: a redrive may have revived the task.
 *
 * An ended task goes with all of it; an ended occurrence goes by itself while its task lives on, unless it is
 * the task's last.
 */
import type { Retention } from '../store.js';
import { isEndedCode, isLiveCode, OCCURRENCE_CODE } from './codes.js';
import type { Records } from './records.js';
import { TimeHeap } from './time-heap.js';

export class Pruner {
  readonly #records: Records;
  /** References: row × 2, + 1 for an occurrence. */
  readonly #heap = new TimeHeap();
  #retention: Retention = { succeededMs: Number.NaN, failedMs: Number.NaN };

  constructor(records: Records) {
    this.#records = records;
  }

  get bytes(): number {
    return this.#heap.bytes;
  }

  /** Every end is looked at again when the retention is another than before. O(records) then. */
  setRetention(retention: Retention): void {
    const before = this.#retention;
    const same =
      before.succeededMs === retention.succeededMs && before.failedMs === retention.failedMs;
    if (same) return;
    this.#retention = { succeededMs: retention.succeededMs, failedMs: retention.failedMs };
    this.#heap.clear();
    const { tasks, occurrences } = this.#records;
    for (let row = 1; row < tasks.rows.end; row++) {
      if (tasks.state(row) !== 0) this.noteTask(row, Number.NaN);
    }
    for (let row = 1; row < occurrences.rows.end; row++) {
      if (occurrences.state(row) !== 0) this.noteOccurrence(row);
    }
  }

  /** When the task is due to go, NaN while it must stay. */
  taskDueAt(row: number): number {
    const { tasks } = this.#records;
    if (!isEndedCode(tasks.state(row)) || tasks.liveFirst(row) !== 0) return Number.NaN;
    const { succeededMs, failedMs } = this.#retention;
    const keptUntil = tasks.endedAt(row) + (tasks.hasSucceeded(row) ? succeededMs : failedMs);
    return Math.max(keptUntil, this.#records.keyUntil(row));
  }

  /** When the occurrence is due to go by itself, NaN while it must stay. */
  occurrenceDueAt(row: number): number {
    const { tasks, occurrences } = this.#records;
    const state = occurrences.state(row);
    const task = occurrences.task(row);
    if (isLiveCode(state) || isEndedCode(tasks.state(task)) || tasks.last(task) === row) {
      return Number.NaN;
    }
    const { succeededMs, failedMs } = this.#retention;
    const succeeded = state === OCCURRENCE_CODE.succeeded;
    return occurrences.endedAt(row) + (succeeded ? succeededMs : failedMs);
  }

  /** Notes when the task goes, unless that is what was noted before the change. */
  noteTask(row: number, dueBefore: number): void {
    const dueAt = this.taskDueAt(row);
    if (!Number.isNaN(dueAt) && dueAt !== dueBefore) this.#heap.push(dueAt, row * 2);
  }

  noteOccurrence(row: number): void {
    const dueAt = this.occurrenceDueAt(row);
    if (!Number.isNaN(dueAt)) this.#heap.push(dueAt, row * 2 + 1);
  }

  /** A task that lives again: what of it ended was not noted while the task counted as a whole. */
  noteRevived(task: number): void {
    const { tasks, occurrences } = this.#records;
    for (let row = tasks.newest(task); row !== 0; row = occurrences.older(row)) {
      this.noteOccurrence(row);
    }
  }

  /** @param onRemove is told the row of each task that is about to lose something */
  prune(
    nowMs: number,
    max: number,
    onRemove: (task: number) => void,
  ): { removed: number; nextAtMs: number | undefined } {
    const heap = this.#heap;
    let removed = 0;
    // Hints that came to nothing are work too.
    let looksLeft = max * 2 + 16;
    for (; looksLeft > 0 && removed < max; looksLeft--) {
      const earliest = heap.earliest;
      if (earliest === undefined || earliest > nowMs) break;
      const reference = heap.pop();
      const row = reference >>> 1;
      removed +=
        (reference & 1) === 0
          ? this.#pruneTask(row, nowMs, max - removed, onRemove)
          : this.#pruneOccurrence(row, nowMs, onRemove);
    }
    return { removed, nextAtMs: heap.earliest };
  }

  #pruneOccurrence(row: number, nowMs: number, onRemove: (task: number) => void): number {
    const { occurrences } = this.#records;
    if (occurrences.state(row) === 0 || !(this.occurrenceDueAt(row) <= nowMs)) return 0;
    onRemove(occurrences.task(row));
    this.#records.removeOccurrence(row);
    return 1;
  }

  /** A long history goes first, `max` at a time. */
  #pruneTask(row: number, nowMs: number, max: number, onRemove: (task: number) => void): number {
    const { tasks, occurrences } = this.#records;
    if (tasks.state(row) === 0) return 0;
    const dueAt = this.taskDueAt(row);
    if (!(dueAt <= nowMs)) return 0;
    onRemove(row);
    let removed = 0;
    let next = tasks.newest(row);
    while (next !== 0) {
      const at = next;
      next = occurrences.older(at);
      if (at === tasks.newest(row) || at === tasks.last(row)) continue;
      if (removed === max - 1) {
        this.#heap.push(dueAt, row * 2);
        return removed;
      }
      this.#records.removeOccurrence(at);
      removed += 1;
    }
    this.#records.removeTask(row);
    return removed + 1;
  }
}
