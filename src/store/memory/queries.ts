/** What a session reads: each call looks at a bounded number of rows, in one go. */
import {
  type AttemptRecord,
  type OccurrenceRecord,
  parseOccurrenceId,
  type TaskView,
} from '../../core/model.js';
import type {
  DeadLetterQuery,
  LiveEntry,
  Page,
  PageQuery,
  StateCounts,
  StoreCounts,
  TaskQuery,
} from '../store.js';
import { isEndedCode, isLiveCode, KIND_CODE, OCCURRENCE_STATES, TASK_CODE } from './codes.js';
import {
  countedAs,
  DEAD_LETTERS,
  type Lane,
  OPEN_TASKS,
  PENDING,
  READY,
  RUNNING,
  UNCOUNTED,
} from './lanes.js';
import type { Records } from './records.js';

/** Rows looked at for one page: filters and holes make it short, never slow. */
const LOOKS_MAX = 4096;

export class Queries {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  views(ids: readonly string[], places?: number[]): (TaskView | undefined)[] {
    const records = this.#records;
    const rows = places ?? [];
    // Found first, then read: the processor fetches the rows of several at once.
    for (const id of ids) rows.push(records.findTask(id));
    return ids.map((id, i) => {
      const row = rows[i];
      return row === 0 ? undefined : records.readView(row, id);
    });
  }

  taskIdOfKey(tenant: string, key: string, nowMs: number): string | undefined {
    const row = this.#records.findHolder(tenant, key, nowMs);
    return row === 0 ? undefined : this.#records.tasks.id(row);
  }

  occurrence(id: string): OccurrenceRecord | undefined {
    const found = this.#locate(id);
    return found && this.#records.occurrences.read(found.row, found.taskId);
  }

  attempts(id: string): readonly AttemptRecord[] {
    const found = this.#locate(id);
    return found === undefined ? [] : this.#records.occurrences.readAttempts(found.row, id);
  }

  #locate(id: string): { row: number; taskId: string } | undefined {
    const identity = parseOccurrenceId(id);
    if (identity === undefined) return undefined;
    const { taskId } = identity;
    const task = this.#records.findTask(taskId);
    const row = task === 0 ? 0 : this.#records.findOccurrence(task, identity);
    return row === 0 ? undefined : { row, taskId };
  }

  listTasks(query: TaskQuery): Page<TaskView> {
    const { tasks, pools, created } = this.#records;
    const items: TaskView[] = [];
    const next = created.scan(cursorOf(query), looksFor(query), (row) => {
      if (matches(pools.lanes.at(tasks.lane(row)), query)) {
        items.push(this.#records.readView(row, tasks.id(row)));
      }
      return items.length < query.limit;
    });
    return next < 0 ? { items } : { items, cursor: String(next) };
  }

  listDeadLetters(query: DeadLetterQuery): Page<OccurrenceRecord> {
    const { tasks, occurrences, pools, deadLetters } = this.#records;
    const items: OccurrenceRecord[] = [];
    const next = deadLetters.scan(cursorOf(query), looksFor(query), (row) => {
      if (matches(pools.lanes.at(occurrences.lane(row)), query)) {
        items.push(occurrences.read(row, tasks.id(occurrences.task(row))));
      }
      return items.length < query.limit;
    });
    return next < 0 ? { items } : { items, cursor: String(next) };
  }

  /** The cursor names the last row read and its serial: the row may be gone when the next page is read. */
  listOccurrences(taskId: string, query: PageQuery): Page<OccurrenceRecord> {
    const { tasks, occurrences } = this.#records;
    const task = this.#records.findTask(taskId);
    const items: OccurrenceRecord[] = [];
    if (task === 0) return { items };
    let row = query.cursor === undefined ? tasks.newest(task) : this.#after(task, query.cursor);
    let last = 0;
    for (; row !== 0 && items.length < query.limit; row = occurrences.older(row)) {
      items.push(occurrences.read(row, taskId));
      last = row;
    }
    if (row === 0) return { items };
    return { items, cursor: `${last}.${occurrences.serial(last)}` };
  }

  #after(task: number, cursor: string): number {
    const { tasks, occurrences } = this.#records;
    const [row, serial] = cursor.split('.').map(Number);
    const there = row > 0 && row < occurrences.rows.end && occurrences.state(row) !== 0;
    if (there && occurrences.task(row) === task && occurrences.serial(row) === serial) {
      return occurrences.older(row);
    }
    let at = tasks.newest(task);
    // By difference: serials count modulo 2³².
    while (at !== 0 && ((occurrences.serial(at) - serial) | 0) >= 0) at = occurrences.older(at);
    return at;
  }

  scanLive(query: PageQuery): Page<LiveEntry> {
    const { occurrences } = this.#records;
    const items: LiveEntry[] = [];
    const { end } = occurrences.rows;
    let row = Math.max(1, cursorOf(query));
    const until = Math.min(end, row + looksFor(query));
    for (; row < until && items.length < query.limit; row++) {
      if (isLiveCode(occurrences.state(row))) items.push(this.#liveEntry(row));
    }
    return row < end ? { items, cursor: String(row) } : { items };
  }

  #liveEntry(row: number): LiveEntry {
    const { tasks, occurrences, pools } = this.#records;
    const task = occurrences.task(row);
    const taskId = tasks.id(task);
    const lane = pools.lanes.at(occurrences.lane(row));
    // A run that was triggered during the pause is not held by it (`catchup` on a trigger says so).
    const isFree = occurrences.kind(row) === KIND_CODE.trigger && occurrences.isCatchup(row);
    const isPaused = tasks.state(task) === TASK_CODE.paused && !isFree;
    return {
      taskId,
      occurrenceId: this.#records.occurrenceIdOf(row, taskId),
      tenant: lane.tenant.name,
      handler: lane.handler,
      handlerVersion: lane.version,
      priority: tasks.priority(task),
      dueAt: occurrences.dueAt(row),
      state: OCCURRENCE_STATES[occurrences.state(row)] as LiveEntry['state'],
      held: isPaused || occurrences.isWaiting(row),
    };
  }

  counts(bytes: number): StoreCounts {
    const { lanes } = this.#records.pools;
    const tenants = new Map<string, CountsOfTenant>();
    for (const { name, counts } of lanes.tenants.values()) {
      if (counts.some((count) => count !== 0)) tenants.set(name, toCounts(counts));
    }
    return { ...toCounts(lanes.totals), tenants, bytes };
  }

  /** `counts`, from the rows themselves: a test's check that no change went uncounted. O(rows). */
  recount(bytes: number): StoreCounts {
    const { tasks, occurrences, pools } = this.#records;
    const totals = [0, 0, 0, 0, 0];
    const byTenant = new Map<string, number[]>();
    const add = (laneIndex: number, place: number): void => {
      const { name } = pools.lanes.at(laneIndex).tenant;
      const counts = byTenant.get(name) ?? [0, 0, 0, 0, 0];
      byTenant.set(name, counts);
      counts[place] += 1;
      totals[place] += 1;
    };
    for (let row = 1; row < tasks.rows.end; row++) {
      const state = tasks.state(row);
      if (state !== 0 && !isEndedCode(state)) add(tasks.lane(row), OPEN_TASKS);
    }
    for (let row = 1; row < occurrences.rows.end; row++) {
      const state = OCCURRENCE_STATES[occurrences.state(row)];
      if (state === undefined) continue;
      const place = countedAs(state, occurrences.isRedriven(row));
      if (place !== UNCOUNTED) add(occurrences.lane(row), place);
    }
    const tenants = new Map([...byTenant].map(([name, counts]) => [name, toCounts(counts)]));
    return { ...toCounts(totals), tenants, bytes };
  }
}

type CountsOfTenant = StateCounts & { readonly openTasks: number };

function toCounts(counts: readonly number[]): CountsOfTenant {
  return {
    pending: counts[PENDING],
    ready: counts[READY],
    running: counts[RUNNING],
    deadLetters: counts[DEAD_LETTERS],
    openTasks: counts[OPEN_TASKS],
  };
}

function cursorOf(query: PageQuery): number {
  return query.cursor === undefined ? 0 : Number(query.cursor);
}

function looksFor(query: PageQuery): number {
  return Math.max(LOOKS_MAX, query.limit);
}

function matches(lane: Lane, query: TaskQuery): boolean {
  return (
    (query.tenant === undefined || lane.tenant.name === query.tenant) &&
    (query.handler === undefined || lane.handler === query.handler)
  );
}
