/** Which task holds an idempotency key: what the index finds, judged by the task's own record. */
import type { TaskRecord } from '../../core/model.js';
import type { StoredKeys } from './key-index.js';
import { keyHash } from './keys/hash.js';
import { idText } from './keys.js';
import type { Records } from './records.js';
import { hasEnded, type Row } from './row.js';

export class KeyHolders {
  readonly #keys: StoredKeys;
  readonly #records: Records;

  constructor(keys: StoredKeys, records: Records) {
    this.#keys = keys;
    this.#records = records;
  }

  /** The task that holds the key now. */
  holderOf(tenant: string, key: string, nowMs: number): string | undefined {
    const row = this.#newestOf(tenant, key);
    return row !== undefined && keyUntil(row.task) > nowMs ? row.id : undefined;
  }

  /** Until when the task holds its key; −Infinity: it has none, or it passed to another. */
  until({ id, task }: Row): number {
    const { idempotencyKey, tenant } = task;
    if (idempotencyKey === undefined) return Number.NEGATIVE_INFINITY;
    const newest = this.#newestOf(tenant, idempotencyKey);
    return newest?.id === id ? keyUntil(task) : Number.NEGATIVE_INFINITY;
  }

  #newestOf(tenant: string, key: string): Row | undefined {
    const id = this.#keys.find(keyHash(tenant, key));
    if (id === undefined) return undefined;
    const row = this.#records.row(idText(id));
    // Another hash may have met this one, and a task of that id may have been made anew.
    const isIts = row?.task.idempotencyKey === key && row.task.tenant === tenant;
    return isIts ? row : undefined;
  }
}

export function keyUntil(task: TaskRecord): number {
  if (!hasEnded(task)) return Number.POSITIVE_INFINITY;
  return (task.endedAt ?? 0) + task.policies.idempotencyTtlMs;
}
