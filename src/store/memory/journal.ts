/**
 * How a commit that is visible and not yet durable is taken back: for each task that it touches, the task as it
 * was before, with all of it. Kept only where a test has flushes take time or fail (memory-store.ts), because
 * a task's whole history is copied.
 */
import type { AttemptRecord, OccurrenceRecord, TaskRecord } from '../../core/model.js';
import type { Setting } from '../store.js';
import type { Pruner } from './pruner.js';
import type { Records } from './records.js';

interface OccurrenceImage {
  readonly record: OccurrenceRecord;
  readonly serial: number;
  readonly deadSeq: number;
  readonly attempts: readonly AttemptRecord[];
}

interface TaskImage {
  readonly record: TaskRecord;
  readonly seq: number;
  readonly keyed: boolean;
  /** Oldest first. */
  readonly occurrences: readonly OccurrenceImage[];
}

/** One commit's. */
export class Journal {
  readonly #records: Records;
  readonly #images = new Map<string, TaskImage | undefined>();
  #settings: ReadonlyMap<string, Setting> | undefined;

  constructor(records: Records) {
    this.#records = records;
  }

  /** To be called before a task changes; only the first call for it counts. */
  keepTask(taskId: string): void {
    if (this.#images.has(taskId)) return;
    const row = this.#records.findTask(taskId);
    this.#images.set(taskId, row === 0 ? undefined : imageOf(this.#records, row, taskId));
  }

  keepSettings(): void {
    this.#settings ??= this.#records.settings;
  }

  /** Later commits must have been taken back before. */
  takeBack(pruner: Pruner): void {
    const records = this.#records;
    for (const taskId of this.#images.keys()) {
      const row = records.findTask(taskId);
      if (row !== 0) records.removeTask(row);
    }
    for (const image of this.#images.values())
      if (image !== undefined) restore(records, image, pruner);
    if (this.#settings !== undefined) records.settings = this.#settings;
  }
}

function imageOf(records: Records, row: number, taskId: string): TaskImage {
  const { occurrences, tasks } = records;
  const images: OccurrenceImage[] = [];
  for (let at = tasks.newest(row); at !== 0; at = occurrences.older(at)) {
    const record = occurrences.read(at, taskId);
    images.push({
      record,
      serial: occurrences.serial(at),
      deadSeq: occurrences.deadSeq(at),
      attempts: occurrences.readAttempts(at, record.id),
    });
  }
  return {
    record: records.readTask(row, taskId),
    seq: tasks.seq(row),
    keyed: tasks.isKeyed(row),
    occurrences: images.reverse(),
  };
}

function restore(records: Records, image: TaskImage, pruner: Pruner): void {
  const row = records.addTask(image.record, image.keyed, image.seq);
  for (const { record, serial, deadSeq, attempts } of image.occurrences) {
    const at = records.addOccurrence(row, record, serial);
    if (!Number.isNaN(deadSeq)) records.restoreDeadSeq(at, deadSeq);
    for (const attempt of attempts) records.appendAttempt(at, attempt);
  }
  records.writeLast(row, image.record.id, image.record.lastOccurrenceId);
  pruner.noteTask(row, Number.NaN);
  pruner.noteRevived(row);
}
