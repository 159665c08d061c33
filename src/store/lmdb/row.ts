/** A task as the store has it in memory: its record, and those of its occurrences that are stored with it. */
import { isHeld } from '../../core/ending.js';
import {
  copyOfOccurrence,
  copyOfTask,
  isTerminal,
  type Mutable,
  type OccurrenceRecord,
  type TaskRecord,
} from '../../core/model.js';

export interface StoredOccurrence {
  record: Mutable<OccurrenceRecord>;
  /** Counts the task's occurrences as they were made, from 1. */
  readonly serial: number;
  /** Attempts that were appended. */
  attempts: number;
  /** Its number among the dead letters; 0: it is none. */
  dead: number;
  /** Where it stands in the due index (due/place.ts); 0: nowhere. */
  place: number;
}

export interface Row {
  readonly id: string;
  task: Mutable<TaskRecord>;
  /** Its records are those of a caller, to whom they belong again once their commit is visible: not to be written to. */
  isBorrowed: boolean;
  /** All that live, and the newest; by serial. */
  occurrences: StoredOccurrence[];
  nextSerial: number;
  /** Ended occurrences that are not the newest, in a database of their own. */
  history: number;
  /** The newest commit that changed it since it was read; 0: none. */
  commit: number;
  /** It is in the tree of tasks, in whatever version (row-log.ts). */
  isStored: boolean;
  /** Where the cache has it; 0: nowhere. */
  slot: number;
  /** By its newest commit. */
  isRemoved: boolean;
}

/** Makes the row's records its own. */
export function own(row: Row): void {
  if (!row.isBorrowed) return;
  row.isBorrowed = false;
  row.task = copyOfTask(row.task);
  for (const stored of row.occurrences) stored.record = copyOfOccurrence(stored.record);
}

export function findOccurrence(row: Row, id: string): StoredOccurrence | undefined {
  for (const stored of row.occurrences) if (stored.record.id === id) return stored;
  return undefined;
}

export function hasLive(row: Row): boolean {
  for (const { record } of row.occurrences) if (!isTerminal(record.state)) return true;
  return false;
}

export function hasEnded({ state }: Pick<TaskRecord, 'state'>): boolean {
  return state === 'completed' || state === 'cancelled';
}

export function isRunning({ state }: OccurrenceRecord): boolean {
  return state === 'running' || state === 'cancel-requested';
}

/** Must not be timed: a pause or a sibling holds it. */
export function isHeldBack(task: TaskRecord, record: OccurrenceRecord): boolean {
  return record.waiting || isHeld(task, record);
}
