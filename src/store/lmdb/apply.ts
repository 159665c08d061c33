/**
 * Units: their guards, judged over all commits given before, and the changes that they make when all guards hold.
 * Records given are written over those of the row. Those of a new task become its row's until their commit is visible, for
 * many tasks are not looked at again for long.
 */
import {
  copyOccurrenceInto,
  copyOfOccurrence,
  copyTaskInto,
  isTerminal,
  type OccurrenceRecord,
  type TaskRecord,
} from '../../core/model.js';
import { withItem } from '../../core/small-list.js';
import type { Guarded, Refusal, Unit } from '../store.js';
import { type Counts, countedAs, type Place } from './counts.js';
import type { CommitContext } from './due/commit-context.js';
import type { DueIndex, TimedAs } from './due/due-index.js';
import type { KeyHolders } from './key-holders.js';
import type { StoredKeys } from './key-index.js';
import { keyHash } from './keys/hash.js';
import { ID_BYTES, readId } from './keys.js';
import type { Records } from './records.js';
import { type Ends, FAILED, SUCCEEDED } from './retention.js';
import { hasEnded, hasLive, own, type Row, type StoredOccurrence } from './row.js';
import type { RowCache } from './row-cache.js';
import type { Settings } from './settings.js';

export interface ApplyParts {
  readonly records: Records;
  readonly cache: RowCache;
  readonly counts: Counts;
  readonly due: DueIndex;
  readonly ends: Ends;
  readonly keys: StoredKeys;
  readonly holders: KeyHolders;
  readonly settings: Settings;
}

/** Dead letters of one commit, numbered behind its own number. */
const DEAD_A_COMMIT = 2 ** 20;
const ID = new Uint8Array(ID_BYTES);

/** Of the task as the unit found it. */
interface TaskBefore {
  state: TaskRecord['state'];
  priority: number;
  lastOccurrenceId: string | undefined;
}

/** Of the occurrence as the unit found it. */
interface OccurrenceBefore extends TimedAs {
  dueAt: number;
  handler: string;
  handlerVersion: number | undefined;
}

export class Applier {
  readonly #parts: ApplyParts;
  /** Tasks that the commit at hand changes. */
  #touched: Row[] = [];
  #dead = 0;
  /** Of the unit at hand, found when its guards were judged. */
  readonly #found: (StoredOccurrence | undefined)[] = [];
  // One of each is enough: they are read before the next is judged.
  readonly #before: OccurrenceBefore = { dueAt: 0, handler: '', handlerVersion: undefined };

  constructor(parts: ApplyParts) {
    this.#parts = parts;
  }

  /** In the order given, each unit all or nothing. The refused, ascending. */
  apply(units: readonly Unit[], context: CommitContext): readonly Refusal[] {
    const refusals: Refusal[] = [];
    for (let index = 0; index < units.length; index++) {
      const unit = units[index];
      const row = this.#parts.records.row(unit.taskId, unit.at?.place);
      if (!this.#isAsExpected(unit, row)) {
        refusals.push({ unit: index, reason: 'revision' });
        continue;
      }
      const holder = this.#keyHolder(unit, context.nowMs);
      if (holder !== undefined) {
        refusals.push({ unit: index, reason: 'key', holder });
        continue;
      }
      this.#applyUnit(unit, row, context);
    }
    return refusals;
  }

  /** Queues the puts of the tasks that were changed. */
  finish(context: CommitContext): void {
    const { records } = this.#parts;
    const { number } = context;
    for (const row of this.#touched) {
      if (row.isRemoved) records.removeRow(row.id, number);
      else records.putRow(row, number);
    }
    records.finish(context);
    this.#parts.cache.give(number, this.#touched);
    this.#touched = [];
    this.#dead = number * DEAD_A_COMMIT;
  }

  /** After a failed commit. */
  clear(): void {
    this.#touched = [];
  }

  // --- guards ----------------------------------------------------------------------------------------

  #isAsExpected(unit: Unit, row: Row | undefined): boolean {
    const revision = row?.task.revision ?? 0;
    if (unit.task !== undefined && unit.task.expected !== revision) return false;
    if (unit.remove !== undefined && unit.remove.revision !== revision) return false;
    const changes = unit.occurrences;
    if (changes !== undefined && changes.length > 0) {
      // What belongs to a task that is not there, and is not made by this unit, has nowhere to go.
      if (row === undefined && unit.task === undefined) return false;
      for (let i = 0; i < changes.length; i++) {
        const { record, expected } = changes[i];
        const found = row === undefined ? undefined : this.#parts.records.find(row, record);
        if ((found?.record.revision ?? 0) !== expected) return false;
        this.#found[i] = found;
      }
    }
    return unit.attempts === undefined || this.#haveOccurrences(unit, row);
  }

  #haveOccurrences(unit: Unit, row: Row | undefined): boolean {
    for (const { occurrenceId } of unit.attempts ?? []) {
      if (unit.occurrences?.some(({ record }) => record.id === occurrenceId)) continue;
      if (row === undefined || this.#parts.records.findById(row, occurrenceId) === undefined) {
        return false;
      }
    }
    return true;
  }

  #keyHolder({ task }: Unit, nowMs: number): string | undefined {
    const key = task?.expected === 0 ? task.record.idempotencyKey : undefined;
    if (task === undefined || key === undefined) return undefined;
    return this.#parts.holders.holderOf(task.record.tenant, key, nowMs);
  }

  // --- changes ---------------------------------------------------------------------------------------

  #applyUnit(unit: Unit, found: Row | undefined, context: CommitContext): void {
    if (unit.settings !== undefined) this.#parts.settings.apply(unit.settings);
    if (unit.remove !== undefined) {
      if (found !== undefined) this.removeTask(found, context);
      return;
    }
    const taskBefore = found && this.#noteTaskBefore(found);
    const endBefore = found && endOf(found);
    const row = unit.task === undefined ? found : this.#writeTask(unit.task, found);
    if (row === undefined) return;
    this.touch(row, context);
    if (unit.at !== undefined) unit.at.place = row.slot;
    const priorityBefore = taskBefore === undefined ? row.task.priority : taskBefore.priority;
    const ended = this.#writeOccurrences(unit.occurrences ?? [], row, priorityBefore, context);
    if (taskBefore !== undefined && unit.task !== undefined) {
      const { state, priority } = row.task;
      const moved = taskBefore.state !== state || taskBefore.priority !== priority;
      if (moved) this.#settleAll(row, taskBefore.priority, context);
    }
    this.#appendAttempts(unit, row, context);
    this.#noteEnds(row, taskBefore, endBefore, ended);
    this.#retire(row, context);
  }

  #noteTaskBefore(row: Row): TaskBefore {
    own(row);
    const { state, priority, lastOccurrenceId } = row.task;
    return { state, priority, lastOccurrenceId };
  }

  /** The row changes with the commit at hand. */
  touch(row: Row, { number }: CommitContext): void {
    if (row.commit === number) return;
    row.commit = number;
    this.#touched.push(row);
    this.#parts.cache.setRow(row);
  }

  #writeTask({ record }: Guarded<TaskRecord>, row: Row | undefined): Row {
    const { counts, keys } = this.#parts;
    if (row !== undefined) {
      const wasOpen = !hasEnded(row.task);
      if (wasOpen) counts.add(row.task.tenant, 'openTasks', -1);
      if (!hasEnded(record)) counts.add(record.tenant, 'openTasks', 1);
      copyTaskInto(row.task, record);
      return row;
    }
    if (!hasEnded(record)) counts.add(record.tenant, 'openTasks', 1);
    if (record.idempotencyKey !== undefined) {
      readId(record.id, ID, 0);
      keys.add(keyHash(record.tenant, record.idempotencyKey), ID);
    }
    return {
      id: record.id,
      task: record,
      isBorrowed: true,
      occurrences: [],
      nextSerial: 1,
      history: 0,
      commit: 0,
      isStored: false,
      slot: 0,
      isRemoved: false,
    };
  }

  /** @returns those that ended */
  #writeOccurrences(
    changes: readonly Guarded<OccurrenceRecord>[],
    row: Row,
    priorityBefore: number,
    context: CommitContext,
  ): readonly StoredOccurrence[] {
    let ended: StoredOccurrence[] | undefined;
    for (let i = 0; i < changes.length; i++) {
      const { record } = changes[i];
      const stored = this.#found[i];
      const wasLive = stored === undefined || !isTerminal(stored.record.state);
      const written =
        stored === undefined
          ? this.#addOccurrence(row, record, context)
          : this.#changeOccurrence(row, stored, record, priorityBefore, context);
      if (!wasLive || !isTerminal(record.state)) continue;
      if (ended === undefined) ended = [written];
      else ended.push(written);
    }
    return ended ?? NONE;
  }

  #addOccurrence(row: Row, record: OccurrenceRecord, context: CommitContext): StoredOccurrence {
    const stored: StoredOccurrence = {
      record: row.isBorrowed ? record : copyOfOccurrence(record),
      serial: row.nextSerial,
      attempts: 0,
      dead: 0,
      place: 0,
    };
    row.nextSerial += 1;
    row.occurrences = withItem(row.occurrences, stored);
    this.#count(row, stored, undefined, context);
    this.#parts.due.settle(row, stored, undefined, row.task.priority, context);
    return stored;
  }

  #changeOccurrence(
    row: Row,
    stored: StoredOccurrence,
    record: OccurrenceRecord,
    priorityBefore: number,
    context: CommitContext,
  ): StoredOccurrence {
    const { records, due } = this.#parts;
    const before = this.#before;
    before.dueAt = stored.record.dueAt;
    before.handler = stored.record.handler;
    before.handlerVersion = stored.record.handlerVersion;
    const countedBefore = countedAs(stored.record);
    copyOccurrenceInto(stored.record, record);
    this.#count(row, stored, countedBefore, context);
    if (!row.occurrences.includes(stored)) {
      if (isTerminal(record.state)) {
        records.putHistory(row, stored, context.number);
        return stored;
      }
      // It lives again.
      records.leaveHistory(row, stored, context.number);
      row.occurrences.push(stored);
      row.occurrences.sort((a, b) => a.serial - b.serial);
    }
    due.settle(row, stored, before, priorityBefore, context);
    return stored;
  }

  /** Keeps the counts and the dead letters in step. */
  #count(
    row: Row,
    stored: StoredOccurrence,
    was: Place | undefined,
    { number }: CommitContext,
  ): void {
    const { counts, records } = this.#parts;
    const { record } = stored;
    const is = countedAs(record);
    counts.add(record.tenant, was, -1);
    counts.add(record.tenant, is, 1);
    if (is === 'deadLetters' && was !== is) {
      this.#dead = Math.max(this.#dead, number * DEAD_A_COMMIT) + 1;
      stored.dead = this.#dead;
      records.putDead(row, stored);
    } else if (was === 'deadLetters' && is !== was) {
      records.removeDead(stored.dead);
      stored.dead = 0;
    }
  }

  /** Those whose time now counts in another way, or no more. */
  #settleAll(row: Row, priorityBefore: number, context: CommitContext): void {
    for (const stored of row.occurrences) {
      if (isTerminal(stored.record.state)) continue;
      this.#parts.due.settle(row, stored, stored.record, priorityBefore, context);
    }
  }

  #appendAttempts({ attempts }: Unit, row: Row, { number }: CommitContext): void {
    if (attempts === undefined) return;
    const { records } = this.#parts;
    for (const attempt of attempts) {
      const stored = records.findById(row, attempt.occurrenceId);
      if (stored === undefined) continue;
      records.appendAttempt(row, stored, attempt);
      if (!row.occurrences.includes(stored)) records.putHistory(row, stored, number);
    }
  }

  /** What has ended and is not the newest goes into the history. */
  #retire(row: Row, { number }: CommitContext): void {
    const { occurrences } = row;
    for (let i = occurrences.length - 2; i >= 0; i--) {
      const stored = occurrences[i];
      if (!isTerminal(stored.record.state)) continue;
      occurrences.splice(i, 1);
      if (row.isBorrowed) stored.record = copyOfOccurrence(stored.record);
      this.#parts.records.enterHistory(row, stored, number);
    }
  }

  // --- ends ------------------------------------------------------------------------------------------

  #noteEnds(
    row: Row,
    taskBefore: TaskBefore | undefined,
    endBefore: number | undefined,
    ended: readonly StoredOccurrence[],
  ): void {
    const { task } = row;
    if (hasEnded(task)) {
      const end = endOf(row);
      if (end !== undefined && end !== endBefore) this.noteTask(row);
    } else if (taskBefore !== undefined && hasEnded(taskBefore)) {
      // What of it ended was not noted while the task counted as a whole.
      this.#noteAll(row);
    } else {
      for (const stored of ended) this.noteOccurrence(row, stored);
      const last = taskBefore?.lastOccurrenceId;
      if (last === undefined || last === task.lastOccurrenceId) return;
      const passed = this.#parts.records.findById(row, last);
      if (passed !== undefined) this.noteOccurrence(row, passed);
    }
  }

  noteTask({ id, task }: Row): void {
    const of = task.lastEnd === 'succeeded' ? SUCCEEDED : FAILED;
    this.#parts.ends.note(of, { at: task.endedAt as number, taskId: id, serial: 0 });
  }

  noteOccurrence(row: Row, { record, serial }: StoredOccurrence): void {
    const { state, endedAt, id } = record;
    if (!isTerminal(state) || endedAt === undefined || row.task.lastOccurrenceId === id) return;
    const of = state === 'succeeded' ? SUCCEEDED : FAILED;
    this.#parts.ends.note(of, { at: endedAt, taskId: row.id, serial });
  }

  #noteAll(row: Row): void {
    for (const stored of row.occurrences) this.noteOccurrence(row, stored);
    if (row.history === 0) return;
    const { records } = this.#parts;
    const newest = row.nextSerial;
    for (const stored of records.scanHistory(row.id, 0, newest)) this.noteOccurrence(row, stored);
  }

  // --- removal ---------------------------------------------------------------------------------------

  /** The task with all of it. Its history must be visible. O(its occurrences). */
  removeTask(row: Row, context: CommitContext): void {
    const { counts, keys } = this.#parts;
    this.touch(row, context);
    row.isRemoved = true;
    for (const stored of row.occurrences) this.#forget(row, stored, context);
    if (row.history > 0) {
      const history = this.#parts.records.scanHistory(row.id, 0, row.nextSerial);
      for (const stored of history) this.#forgetHistory(row, stored, context);
    }
    const { tenant, idempotencyKey } = row.task;
    if (!hasEnded(row.task)) counts.add(tenant, 'openTasks', -1);
    if (idempotencyKey === undefined) return;
    readId(row.id, ID, 0);
    keys.remove(keyHash(tenant, idempotencyKey), ID);
  }

  /** An ended occurrence by itself. Its task's history must be visible. */
  removeOccurrence(row: Row, stored: StoredOccurrence, context: CommitContext): void {
    this.touch(row, context);
    const at = row.occurrences.indexOf(stored);
    if (at < 0) this.#forgetHistory(row, stored, context);
    else {
      this.#forget(row, stored, context);
      row.occurrences.splice(at, 1);
    }
  }

  #forgetHistory(row: Row, stored: StoredOccurrence, context: CommitContext): void {
    this.#forget(row, stored, context);
    this.#parts.records.leaveHistory(row, stored, context.number);
  }

  #forget(row: Row, stored: StoredOccurrence, context: CommitContext): void {
    const { records, counts, due } = this.#parts;
    counts.add(stored.record.tenant, countedAs(stored.record), -1);
    if (stored.dead !== 0) records.removeDead(stored.dead);
    records.removeAttempts(row, stored);
    due.remove(stored, stored.record, row.task.priority, context);
  }
}

const NONE: readonly StoredOccurrence[] = [];

/** When the task as a whole ended; undefined while something of it lives. Tells successes apart. */
function endOf(row: Row): number | undefined {
  const { task } = row;
  if (!hasEnded(task) || task.endedAt === undefined || hasLive(row)) return undefined;
  return task.lastEnd === 'succeeded' ? task.endedAt : -task.endedAt - 1;
}
