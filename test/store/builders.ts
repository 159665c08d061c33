/** Records and units for tests of stores. */

import {
  type AttemptRecord,
  isTerminal,
  type OccurrenceRecord,
  occurrenceId,
  type Policies,
  type TaskRecord,
} from '../../src/core/model.js';
import { DEFAULT_POLICIES } from '../../src/request.js';
import type { Unit } from '../../src/store/store.js';

export const START_MS = Date.UTC(2026, 0, 1);
export const HOUR_MS = 3_600_000;

/** A UUIDv7 of the n-th task. */
export function idOf(n: number): string {
  const time = (START_MS + n).toString(16).padStart(12, '0');
  const rest = (Math.imul(n + 1, 0x9e37_79b1) >>> 0).toString(16).padStart(8, '0');
  const node = n.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-a${rest.slice(3, 6)}-${node}`;
}

export function bytes(length: number, seed = 1): Uint8Array {
  const made = new Uint8Array(length);
  for (let i = 0; i < length; i++) made[i] = i * 31 + seed;
  return made;
}

export function policies(patch: Partial<Policies> = {}): Policies {
  return { ...DEFAULT_POLICIES, ...patch };
}

/** A pending one-off, due in an hour. */
export function taskOf(n: number, patch: Partial<TaskRecord> = {}): TaskRecord {
  const at = START_MS + HOUR_MS + n;
  return {
    id: idOf(n),
    tenant: 'acme',
    handler: 'send',
    handlerVersion: 1,
    payload: bytes(20, n),
    schedule: { kind: 'once', at },
    policies: policies(),
    priority: 5,
    state: 'active',
    pausedAt: undefined,
    version: 1,
    generation: 1,
    revision: 1,
    idempotencyKey: undefined,
    definition: undefined,
    createdAt: START_MS,
    endedAt: undefined,
    endReason: undefined,
    anchorAt: at,
    cursorAt: undefined,
    taken: 0,
    extras: 0,
    lastOccurrenceId: occurrenceId(idOf(n), 1, 'nominal', at),
    lastEnd: undefined,
    ...patch,
  };
}

/** A scheduled occurrence of the task; by default the one that its `once` schedule names. */
export function occurrenceOf(
  task: TaskRecord,
  patch: Partial<OccurrenceRecord> = {},
): OccurrenceRecord {
  const { generation = task.generation, kind = 'nominal' } = patch;
  const at = task.schedule.kind === 'once' ? task.schedule.at : START_MS;
  const { ordinal = at } = patch;
  return {
    id: occurrenceId(task.id, generation, kind, ordinal),
    taskId: task.id,
    tenant: task.tenant,
    handler: task.handler,
    generation,
    kind,
    ordinal,
    nominalAt: at,
    dueAt: at,
    state: 'scheduled',
    revision: 1,
    handlerVersion: task.handlerVersion,
    attempt: 0,
    failures: 0,
    crashes: 0,
    displacements: 0,
    deaths: 0,
    alone: false,
    waiting: false,
    catchup: false,
    token: 0,
    leaseUntil: undefined,
    workerId: undefined,
    progress: undefined,
    result: undefined,
    error: undefined,
    outcome: undefined,
    reason: undefined,
    count: undefined,
    untilAt: undefined,
    cancelRequestedAt: undefined,
    startedAt: undefined,
    endedAt: undefined,
    redriveOf: undefined,
    redrivenAs: undefined,
    ...patch,
  };
}

export function attemptOf(occurrence: OccurrenceRecord, attempt: number): AttemptRecord {
  return {
    occurrenceId: occurrence.id,
    attempt,
    fencingToken: 2 ** 32 + attempt,
    workerId: 'worker-1',
    startedAt: START_MS + attempt,
    endedAt: START_MS + attempt + 1,
    progress: attempt % 2 === 0 ? undefined : bytes(attempt),
    outcome: 'failed',
    error: bytes(9, attempt),
  };
}

/** A record changed once. */
export function next<T extends { readonly revision: number }>(record: T, patch: Partial<T>): T {
  return { ...record, ...patch, revision: record.revision + 1 };
}

/** An occurrence at its end, as it is after a run. */
export function ended(
  occurrence: OccurrenceRecord,
  state: OccurrenceRecord['state'],
  endedAt: number,
): OccurrenceRecord {
  return next(occurrence, { state, endedAt, attempt: 1, token: 2 ** 32 + 1 });
}

/** A one-off at its end. */
export function completed(
  task: TaskRecord,
  lastEnd: NonNullable<TaskRecord['lastEnd']>,
  endedAt: number,
): TaskRecord {
  return next(task, { state: 'completed', lastEnd, endedAt, endReason: lastEnd });
}

/** The unit that creates a task with its occurrences. */
export function creating(task: TaskRecord, ...occurrences: OccurrenceRecord[]): Unit {
  return {
    taskId: task.id,
    task: { record: task, expected: 0 },
    occurrences: occurrences.map((record) => ({ record, expected: 0 })),
  };
}

export function createOneOff(n: number, patch: Partial<TaskRecord> = {}): Unit {
  const task = taskOf(n, patch);
  return creating(task, occurrenceOf(task));
}

/** The unit that writes records whose revision follows the stored one. */
export function writing(
  task: TaskRecord | undefined,
  ...occurrences: readonly OccurrenceRecord[]
): Unit {
  return {
    taskId: task?.id ?? (occurrences[0] as OccurrenceRecord).taskId,
    ...(task === undefined ? {} : { task: { record: task, expected: task.revision - 1 } }),
    occurrences: occurrences.map((record) => ({ record, expected: record.revision - 1 })),
  };
}

/** The unit that ends a one-off as `createOneOff` made it. */
export function endOneOff(n: number, state: OccurrenceRecord['state'], atMs: number): Unit {
  const task = taskOf(n);
  return writing(completed(task, state, atMs), ended(occurrenceOf(task), state, atMs));
}

export function isLive(occurrence: OccurrenceRecord): boolean {
  return !isTerminal(occurrence.state);
}

/** Every field has a value that is not its default. */
export function fullTask(n: number): TaskRecord {
  return taskOf(n, {
    tenant: 'Büro 東京',
    handler: 'nightly/rollup',
    handlerVersion: 7,
    payload: bytes(300),
    schedule: {
      kind: 'cron',
      expression: '*/5 * * * *',
      timezone: 'Europe/Berlin',
      endAt: START_MS + 9 * HOUR_MS,
      limit: 12,
      jitterMs: 250,
    },
    policies: policies({ timeoutMs: 5, heartbeatTimeoutMs: 6, ttlMs: 7, backoffJitter: 0.25 }),
    priority: 9,
    state: 'paused',
    pausedAt: START_MS + 5,
    version: 3,
    generation: 2,
    revision: 11,
    idempotencyKey: 'nightly é 中 🙂',
    definition: '0123456789abcdef0123456789abcdef',
    endedAt: START_MS + 8,
    endReason: 'because of\nlines',
    anchorAt: START_MS - 1,
    cursorAt: START_MS + 60_000,
    taken: 4,
    extras: 2,
    lastEnd: 'missed',
  });
}

export function fullOccurrence(task: TaskRecord): OccurrenceRecord {
  return occurrenceOf(task, {
    ordinal: START_MS + 60_000,
    nominalAt: START_MS + 60_000,
    dueAt: START_MS + 60_100,
    state: 'cancel-requested',
    revision: 8,
    handlerVersion: 7,
    attempt: 3,
    failures: 1,
    crashes: 1,
    displacements: 2,
    deaths: 1,
    alone: true,
    waiting: true,
    catchup: true,
    token: 5 * 2 ** 32 + 17,
    leaseUntil: START_MS + 70_000,
    workerId: 'worker-3',
    progress: bytes(5),
    result: bytes(0),
    error: bytes(2000),
    outcome: 'leaseExpired',
    reason: 'asked for',
    count: 3,
    untilAt: START_MS + 180_000,
    cancelRequestedAt: START_MS + 69_000,
    startedAt: START_MS + 61_000,
    endedAt: START_MS + 69_500,
    redriveOf: `${task.id}.1.${START_MS}`,
    redrivenAs: `${task.id}.2.r2`,
  });
}
