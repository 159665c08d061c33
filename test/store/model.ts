/** A store as one would write it with nothing but Maps and no thought of cost: what the others are compared with. */
import {
  type AttemptRecord,
  isTerminal,
  type OccurrenceRecord,
  type TaskRecord,
  type TaskView,
} from '../../src/core/model.js';
import type {
  LiveEntry,
  Refusal,
  Setting,
  StateCounts,
  StoreCounts,
  Unit,
} from '../../src/store/store.js';
import { isLive } from './builders.js';
import { RETENTION } from './trial.js';

interface Task {
  record: TaskRecord;
  /** In the order of creation. */
  readonly occurrences: Map<string, OccurrenceRecord>;
  readonly attempts: Map<string, AttemptRecord[]>;
}

type TenantCounts = StateCounts & { openTasks: number };
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const hasEnded = (task: TaskRecord): boolean =>
  task.state === 'completed' || task.state === 'cancelled';

const keyOf = (tenant: string, key: string): string => JSON.stringify([tenant, key]);

const isDeadLetter = (record: OccurrenceRecord): boolean =>
  (record.state === 'dead' || record.state === 'quarantined') && record.redrivenAs === undefined;

export class Model {
  /** In the order of creation. */
  readonly tasks = new Map<string, Task>();
  readonly settings = new Map<string, Setting>();
  /** The task that a key was given to last, as long as that exists. */
  readonly #keys = new Map<string, string>();
  /** In the order in which they ended. */
  #deadLetters: string[] = [];

  copy(): Model {
    const copy = new Model();
    for (const [id, { record, occurrences, attempts }] of this.tasks) {
      copy.tasks.set(id, {
        record,
        occurrences: new Map(occurrences),
        attempts: new Map(attempts),
      });
    }
    for (const [key, value] of this.settings) copy.settings.set(key, value);
    for (const [key, holder] of this.#keys) copy.#keys.set(key, holder);
    copy.#deadLetters = [...this.#deadLetters];
    return copy;
  }

  commit(units: readonly Unit[], nowMs: number): Refusal[] {
    const refusals: Refusal[] = [];
    for (const [index, unit] of units.entries()) {
      const refusal = this.#refusal(unit, nowMs);
      if (refusal === undefined) this.#apply(unit);
      else refusals.push({ unit: index, ...refusal });
    }
    return refusals;
  }

  #refusal(unit: Unit, nowMs: number): Omit<Refusal, 'unit'> | undefined {
    const task = this.tasks.get(unit.taskId);
    const revision = task?.record.revision ?? 0;
    if (unit.task !== undefined && unit.task.expected !== revision) return { reason: 'revision' };
    if (unit.remove !== undefined && unit.remove.revision !== revision) {
      return { reason: 'revision' };
    }
    const changes = unit.occurrences ?? [];
    if (changes.length > 0 && task === undefined && unit.task === undefined) {
      return { reason: 'revision' };
    }
    for (const { record, expected } of changes) {
      if ((task?.occurrences.get(record.id)?.revision ?? 0) !== expected) {
        return { reason: 'revision' };
      }
    }
    const created = unit.task?.expected === 0 ? unit.task.record : undefined;
    if (created?.idempotencyKey === undefined) return undefined;
    const holder = this.taskIdOfKey(created.tenant, created.idempotencyKey, nowMs);
    return holder === undefined ? undefined : { reason: 'key', holder };
  }

  #apply(unit: Unit): void {
    for (const [key, value] of unit.settings ?? []) {
      if (value === undefined) this.settings.delete(key);
      else this.settings.set(key, value);
    }
    if (unit.remove !== undefined) {
      this.#remove(unit.taskId);
      return;
    }
    if (unit.task !== undefined) {
      const { record } = unit.task;
      const task = this.tasks.get(record.id);
      if (task !== undefined) {
        task.record = record;
      } else {
        this.tasks.set(record.id, { record, occurrences: new Map(), attempts: new Map() });
        const { idempotencyKey, tenant } = record;
        if (idempotencyKey !== undefined) this.#keys.set(keyOf(tenant, idempotencyKey), record.id);
      }
    }
    const task = this.tasks.get(unit.taskId);
    for (const { record } of unit.occurrences ?? []) {
      task?.occurrences.set(record.id, record);
      const known = this.#deadLetters.includes(record.id);
      if (isDeadLetter(record) && !known) this.#deadLetters.push(record.id);
      if (!isDeadLetter(record) && known) this.#forgetDeadLetter(record.id);
    }
    for (const attempt of unit.attempts ?? []) {
      const list = task?.attempts.get(attempt.occurrenceId) ?? [];
      task?.attempts.set(attempt.occurrenceId, [...list, attempt]);
    }
  }

  #remove(taskId: string): void {
    for (const id of this.tasks.get(taskId)?.occurrences.keys() ?? []) this.#forgetDeadLetter(id);
    this.tasks.delete(taskId);
    for (const [key, holder] of this.#keys) if (holder === taskId) this.#keys.delete(key);
  }

  #forgetDeadLetter(id: string): void {
    this.#deadLetters = this.#deadLetters.filter((other) => other !== id);
  }

  taskIdOfKey(tenant: string, key: string, nowMs: number): string | undefined {
    const id = this.#keys.get(keyOf(tenant, key));
    return id !== undefined && this.#keyUntil(id) > nowMs ? id : undefined;
  }

  #keyUntil(taskId: string): number {
    const record = this.tasks.get(taskId)?.record;
    const key = record?.idempotencyKey;
    if (record === undefined || key === undefined) return Number.NEGATIVE_INFINITY;
    if (this.#keys.get(keyOf(record.tenant, key)) !== taskId) return Number.NEGATIVE_INFINITY;
    if (!hasEnded(record)) return Number.POSITIVE_INFINITY;
    return (record.endedAt as number) + record.policies.idempotencyTtlMs;
  }

  prune(nowMs: number): void {
    const keptFor = (end: OccurrenceRecord['state'] | undefined): number =>
      end === 'succeeded' ? RETENTION.succeededMs : RETENTION.failedMs;
    for (const [id, { record, occurrences }] of [...this.tasks]) {
      const all = [...occurrences.values()];
      if (hasEnded(record)) {
        const dueAt = (record.endedAt as number) + keptFor(record.lastEnd);
        const due = Math.max(dueAt, this.#keyUntil(id)) <= nowMs;
        if (due && !all.some(isLive)) this.#remove(id);
        continue;
      }
      for (const { id: occurrence, state, endedAt } of all) {
        if (!isTerminal(state) || occurrence === record.lastOccurrenceId) continue;
        if ((endedAt as number) + keptFor(state) > nowMs) continue;
        occurrences.delete(occurrence);
        this.#forgetDeadLetter(occurrence);
      }
    }
  }

  view(id: string): TaskView | undefined {
    const task = this.tasks.get(id);
    return task && { task: task.record, live: [...task.occurrences.values()].filter(isLive) };
  }

  deadLetters(): OccurrenceRecord[] {
    return this.#deadLetters.map((id) => {
      const task = this.tasks.get(id.slice(0, 36)) as Task;
      return task.occurrences.get(id) as OccurrenceRecord;
    });
  }

  live(): LiveEntry[] {
    const entries: LiveEntry[] = [];
    for (const { record: task, occurrences } of this.tasks.values()) {
      for (const record of [...occurrences.values()].filter(isLive)) {
        const { id, taskId, tenant, handler, handlerVersion, dueAt, state } = record;
        const isPaused = task.state === 'paused' && !(record.kind === 'trigger' && record.catchup);
        const held = isPaused || record.waiting;
        const { priority } = task;
        entries.push({
          taskId,
          occurrenceId: id,
          tenant,
          handler,
          handlerVersion,
          priority,
          dueAt,
          state,
          held,
        });
      }
    }
    return entries;
  }

  counts(): Omit<StoreCounts, 'bytes'> {
    const none = (): Mutable<TenantCounts> => ({
      pending: 0,
      ready: 0,
      running: 0,
      deadLetters: 0,
      openTasks: 0,
    });
    const totals = none();
    const tenants = new Map<string, Mutable<TenantCounts>>();
    const add = (tenant: string, place: keyof TenantCounts): void => {
      const counts = tenants.get(tenant) ?? none();
      tenants.set(tenant, counts);
      counts[place] += 1;
      totals[place] += 1;
    };
    for (const { record: task, occurrences } of this.tasks.values()) {
      if (!hasEnded(task)) add(task.tenant, 'openTasks');
      for (const record of occurrences.values()) {
        const place = placeOf(record);
        if (place !== undefined) add(record.tenant, place);
      }
    }
    return { ...totals, tenants };
  }
}

function placeOf(record: OccurrenceRecord): keyof StateCounts | undefined {
  if (isDeadLetter(record)) return 'deadLetters';
  if (record.state === 'scheduled' || record.state === 'retry-wait') return 'pending';
  if (record.state === 'ready') return 'ready';
  if (record.state === 'running' || record.state === 'cancel-requested') return 'running';
  return undefined;
}
