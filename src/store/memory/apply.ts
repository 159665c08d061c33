/** Units: their guards, and the changes that they make to the records when all guards hold. */
import { isTerminal, parseOccurrenceId } from '../../core/model.js';
import type { Refusal, Setting, Unit } from '../store.js';
import { isEndedCode, isLiveCode } from './codes.js';
import type { Journal } from './journal.js';
import type { Pruner } from './pruner.js';
import type { Records } from './records.js';

export class Applier {
  readonly #records: Records;
  readonly #pruner: Pruner;
  /** Rows of the occurrences of the unit at hand, found when its guards were judged; 0: to be made. */
  #rows = new Uint32Array(16);
  #endedCount = 0;
  /** The row of the unit's `lastOccurrenceId`, when it is among the unit's occurrences. */
  #lastRow = 0;

  constructor(records: Records, pruner: Pruner) {
    this.#records = records;
    this.#pruner = pruner;
  }

  /** In the order given, each unit all or nothing. The refused, ascending. */
  apply(units: readonly Unit[], nowMs: number, journal: Journal | undefined): readonly Refusal[] {
    const refusals: Refusal[] = [];
    for (let index = 0; index < units.length; index++) {
      const unit = units[index];
      const task = this.#records.findTask(unit.taskId, unit.at?.place);
      if (!this.#isAsExpected(unit, task)) {
        refusals.push({ unit: index, reason: 'revision' });
        continue;
      }
      const holder = this.#keyHolder(unit, nowMs);
      if (holder !== 0) {
        const holderId = this.#records.tasks.id(holder);
        refusals.push({ unit: index, reason: 'key', holder: holderId });
        continue;
      }
      if (journal !== undefined) this.#keep(unit, journal);
      this.#applyUnit(unit, task);
    }
    return refusals;
  }

  #isAsExpected(unit: Unit, task: number): boolean {
    const { tasks, occurrences } = this.#records;
    const revision = task === 0 ? 0 : tasks.revision(task);
    if (unit.task !== undefined && unit.task.expected !== revision) return false;
    if (unit.remove !== undefined && unit.remove.revision !== revision) return false;
    const changes = unit.occurrences;
    if (changes !== undefined && changes.length > 0) {
      // What belongs to a task that is not there, and is not made by this unit, has nowhere to go.
      if (task === 0 && unit.task === undefined) return false;
      if (changes.length > this.#rows.length) this.#rows = new Uint32Array(changes.length * 2);
      for (let i = 0; i < changes.length; i++) {
        const { record, expected } = changes[i];
        const row = task === 0 ? 0 : this.#records.findOccurrence(task, record);
        if ((row === 0 ? 0 : occurrences.revision(row)) !== expected) return false;
        this.#rows[i] = row;
      }
    }
    return unit.attempts === undefined || this.#haveOccurrences(unit, task);
  }

  /** Attempts belong to an occurrence that is there, or made by the same unit. */
  #haveOccurrences(unit: Unit, task: number): boolean {
    for (const attempt of unit.attempts ?? []) {
      const isOfUnit = unit.occurrences?.some(({ record }) => record.id === attempt.occurrenceId);
      if (!isOfUnit && this.#occurrenceRow(task, attempt.occurrenceId) === 0) return false;
    }
    return true;
  }

  #occurrenceRow(task: number, id: string): number {
    const identity = task === 0 ? undefined : parseOccurrenceId(id);
    return identity === undefined ? 0 : this.#records.findOccurrence(task, identity);
  }

  #keyHolder(unit: Unit, nowMs: number): number {
    if (unit.task === undefined || unit.task.expected !== 0) return 0;
    const { idempotencyKey, tenant } = unit.task.record;
    if (idempotencyKey === undefined) return 0;
    return this.#records.findHolder(tenant, idempotencyKey, nowMs);
  }

  #keep(unit: Unit, journal: Journal): void {
    if (unit.taskId !== '') journal.keepTask(unit.taskId);
    if (unit.settings !== undefined) journal.keepSettings();
    const key = unit.task?.expected === 0 ? unit.task.record.idempotencyKey : undefined;
    if (unit.task === undefined || key === undefined) return;
    // The task from which the key passes to this one changes too.
    const before = this.#records.findKeyed(unit.task.record.tenant, key);
    if (before !== 0) journal.keepTask(this.#records.tasks.id(before));
  }

  #applyUnit(unit: Unit, found: number): void {
    const records = this.#records;
    const { tasks, occurrences } = records;
    if (unit.settings !== undefined) this.#applySettings(unit.settings);
    if (unit.remove !== undefined) {
      if (found !== 0) records.removeTask(found);
      return;
    }
    const dueBefore = found === 0 ? Number.NaN : this.#pruner.taskDueAt(found);
    const wasEnded = found !== 0 && isEndedCode(tasks.state(found));
    const lastBefore = found === 0 ? 0 : tasks.last(found);

    let task = found;
    if (unit.task !== undefined) {
      const { record } = unit.task;
      if (task === 0) {
        task = records.addTask(record, true);
        if (unit.at !== undefined) unit.at.place = task;
      } else records.writeTask(task, record);
    }
    if (task === 0) return;
    this.#applyOccurrences(unit, task);
    if (unit.task !== undefined) {
      const { record } = unit.task;
      records.writeLast(task, record.id, record.lastOccurrenceId, this.#lastRow);
    }
    if (unit.attempts !== undefined) {
      for (const attempt of unit.attempts) {
        records.appendAttempt(this.#occurrenceRow(task, attempt.occurrenceId), attempt);
      }
    }

    if (isEndedCode(tasks.state(task))) {
      this.#pruner.noteTask(task, dueBefore);
    } else if (wasEnded) {
      this.#pruner.noteRevived(task);
    } else {
      for (let i = 0; i < this.#endedCount; i++) this.#pruner.noteOccurrence(this.#rows[i]);
      const passed = lastBefore !== 0 && tasks.last(task) !== lastBefore;
      if (passed && !isLiveCode(occurrences.state(lastBefore))) {
        this.#pruner.noteOccurrence(lastBefore);
      }
    }
  }

  /** Afterwards the first of `#rows`, `#endedCount` of them, are those that ended in this unit. */
  #applyOccurrences(unit: Unit, task: number): void {
    const records = this.#records;
    const lastId = unit.task?.record.lastOccurrenceId;
    const changes = unit.occurrences;
    this.#endedCount = 0;
    this.#lastRow = 0;
    if (changes === undefined) return;
    for (let i = 0; i < changes.length; i++) {
      const { record } = changes[i];
      let row = this.#rows[i];
      const wasLive = row === 0 || isLiveCode(records.occurrences.state(row));
      if (row === 0) row = records.addOccurrence(task, record);
      else records.writeOccurrence(row, record);
      if (record.id === lastId) this.#lastRow = row;
      if (wasLive && isTerminal(record.state)) this.#rows[this.#endedCount++] = row;
    }
  }

  #applySettings(changes: NonNullable<Unit['settings']>): void {
    // A new map each time: those given out before never change.
    const settings = new Map<string, Setting>(this.#records.settings);
    for (const [key, value] of changes) {
      if (value === undefined) settings.delete(key);
      else settings.set(key, structuredClone(value));
    }
    this.#records.settings = settings;
  }
}
