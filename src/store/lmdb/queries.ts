/** What a session reads: what is visible, in one go, a bounded number of records a call. */
import {
  type AttemptRecord,
  copyOfOccurrence,
  copyOfTask,
  isTerminal,
  type OccurrenceRecord,
  parseOccurrenceId,
  type TaskView,
} from '../../core/model.js';
import type { DeadLetterQuery, LiveEntry, Page, PageQuery, TaskQuery } from '../store.js';
import { Reader } from './bytes.js';
import type { Environment } from './environment.js';
import { ID_BYTES, idText, Key, readId, readU64 } from './keys.js';
import type { Records } from './records.js';
import { isHeldBack, type Row, type StoredOccurrence } from './row.js';

/** Records looked at for one page: a filter makes it short, never slow. */
const LOOKS_MAX = 1000;
const id = new Uint8Array(ID_BYTES);

export class Queries {
  readonly #env: Environment;
  readonly #records: Records;

  constructor(env: Environment, records: Records) {
    this.#env = env;
    this.#records = records;
  }

  views(ids: readonly string[], places?: number[]): (TaskView | undefined)[] {
    return ids.map((taskId) => {
      const row = isId(taskId) ? this.#records.visibleRow(taskId) : undefined;
      places?.push(row === undefined ? 0 : row.slot);
      return row && viewOf(row);
    });
  }

  occurrence(occurrenceId: string): OccurrenceRecord | undefined {
    const record = this.#locate(occurrenceId)?.stored.record;
    return record && copyOfOccurrence(record);
  }

  attempts(occurrenceId: string): readonly AttemptRecord[] {
    const found = this.#locate(occurrenceId);
    return found === undefined ? [] : this.#records.attempts(found.row, found.stored);
  }

  #locate(occurrenceId: string): { row: Row; stored: StoredOccurrence } | undefined {
    const identity = parseOccurrenceId(occurrenceId);
    const row = identity && this.#records.visibleRow(identity.taskId);
    const stored = row && this.#records.visibleById(row, occurrenceId);
    return row && stored && { row, stored };
  }

  /** In the order of ids, which is that of creation. */
  listTasks(query: TaskQuery): Page<TaskView> {
    const items: TaskView[] = [];
    const looksMax = Math.max(LOOKS_MAX, query.limit);
    let looks = 0;
    let last: string | undefined;
    for (const row of this.#tasksFrom(query.cursor, true)) {
      if (matches(row.task, query)) items.push(viewOf(row));
      last = row.id;
      if (items.length === query.limit || ++looks === looksMax) return { items, cursor: last };
    }
    return { items };
  }

  #tasksFrom(taskId: string | undefined, isExclusive: boolean): Iterable<Row> {
    const start = new Key();
    if (taskId === undefined || !start.id(taskId)) start.clear().byte(0);
    else if (isExclusive) start.byte(0);
    return this.#records.visibleRows(start);
  }

  /** Newest first. The cursor is the serial of the last one read. */
  listOccurrences(taskId: string, { limit, cursor }: PageQuery): Page<OccurrenceRecord> {
    const row = isId(taskId) ? this.#records.visibleRow(taskId) : undefined;
    if (row === undefined) return { items: [] };
    const before = cursor === undefined ? row.nextSerial : Number(cursor);
    const found = row.occurrences.filter(({ serial }) => serial < before);
    if (row.history > 0) found.push(...this.#records.listHistory(taskId, before, limit + 1));
    found.sort((a, b) => b.serial - a.serial);
    const page = found.slice(0, limit);
    const items = page.map(({ record }) => copyOfOccurrence(record));
    const isWhole = found.length <= limit;
    return isWhole ? { items } : { items, cursor: String(page.at(-1)?.serial) };
  }

  listDeadLetters(query: DeadLetterQuery): Page<OccurrenceRecord> {
    const start = new Key().u64(query.cursor === undefined ? 0 : Number(query.cursor) + 1);
    const end = new Key().u32(0xffff_ffff);
    const items: OccurrenceRecord[] = [];
    const looksMax = Math.max(LOOKS_MAX, query.limit);
    const found: { number: number; taskId: string; serial: number }[] = [];
    for (const { key, value } of this.#env.db.dead.getRange({ start, end, limit: looksMax })) {
      const reader = new Reader(value, 0, value.length);
      reader.into(id, ID_BYTES);
      found.push({ number: readU64(key, 0), taskId: idText(id), serial: reader.varint() });
    }
    for (const { number, taskId, serial } of found) {
      const row = this.#records.visibleRow(taskId);
      const stored =
        row?.occurrences.find((other) => other.serial === serial) ??
        this.#records.visibleAt(taskId, serial);
      // The list may be of a commit that the log of tasks in memory has not heard of yet.
      if (stored?.dead === number && matches(stored.record, query)) {
        items.push(copyOfOccurrence(stored.record));
      }
      if (items.length === query.limit) return { items, cursor: String(number) };
    }
    const last = found.at(-1);
    return found.length < looksMax || last === undefined
      ? { items }
      : { items, cursor: String(last.number) };
  }

  /** The cursor is a task's id and the serial of its last occurrence that was read. */
  scanLive({ limit, cursor }: PageQuery): Page<LiveEntry> {
    const [from, serial] = cursor?.split(' ') ?? [];
    const after = serial === undefined ? 0 : Number(serial);
    const looksMax = Math.max(LOOKS_MAX, limit);
    const items: LiveEntry[] = [];
    let looks = 0;
    for (const row of this.#tasksFrom(from, false)) {
      for (const stored of row.occurrences) {
        if (isTerminal(stored.record.state)) continue;
        if (row.id === from && stored.serial <= after) continue;
        items.push(entryOf(row, stored.record));
        if (items.length === limit) return { items, cursor: `${row.id} ${stored.serial}` };
      }
      if (++looks === looksMax) return { items, cursor: `${row.id} ${row.nextSerial}` };
    }
    return { items };
  }
}

function viewOf({ task, occurrences }: Row): TaskView {
  const live: OccurrenceRecord[] = [];
  for (const { record } of occurrences) {
    if (!isTerminal(record.state)) live.push(copyOfOccurrence(record));
  }
  return { task: copyOfTask(task), live };
}

function entryOf({ task }: Row, record: OccurrenceRecord): LiveEntry {
  return {
    taskId: task.id,
    occurrenceId: record.id,
    tenant: record.tenant,
    handler: record.handler,
    handlerVersion: record.handlerVersion,
    priority: task.priority,
    dueAt: record.dueAt,
    state: record.state,
    held: isHeldBack(task, record),
  };
}

function isId(text: string): boolean {
  return readId(text, id, 0);
}

function matches(
  { tenant, handler }: { readonly tenant: string; readonly handler: string },
  query: TaskQuery,
): boolean {
  return (
    (query.tenant === undefined || query.tenant === tenant) &&
    (query.handler === undefined || query.handler === handler)
  );
}
