/** Records as callers see them: Dates, decoded values, derived statuses. New objects each time. */
import type { TaskEvent, TaskEventType } from './core/effect.js';
import type { AbortReason, StoredError } from './core/errors.js';
import type {
  AttemptOutcome,
  AttemptRecord,
  Catchup,
  OccurrenceRecord,
  Overlap,
  Policies,
  TaskView,
} from './core/model.js';
import type { Schedule } from './core/schedule.js';
import {
  nextRunAt,
  type OccurrenceStatus,
  occurrenceStatus,
  type TaskStatus,
  taskStatus,
} from './core/status.js';

export type { AbortReason, OccurrenceStatus, TaskStatus };

/** The policies of a task, every default filled in; durations in ms. */
export interface TaskOptions {
  readonly retry: {
    readonly maxAttempts: number;
    readonly initialBackoff: number;
    readonly multiplier: number;
    readonly maxBackoff: number;
    readonly jitter: number;
  };
  readonly timeout: number | undefined;
  readonly heartbeatTimeout: number | undefined;
  readonly ttl: number | undefined;
  readonly maxCrashes: number;
  readonly overlap: Overlap;
  readonly catchup: Catchup;
  readonly catchupWindow: number;
  readonly onExhausted: 'continue' | 'stop';
  readonly idempotencyTtl: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a payload of unknown type is the caller's to assert
export interface Task<P = any> {
  readonly id: string;
  readonly tenant: string;
  readonly handler: string;
  /** Pinned, or taken by a one-off at its creation. */
  readonly handlerVersion: number | undefined;
  readonly payload: P;
  readonly schedule: Schedule;
  readonly options: TaskOptions;
  readonly priority: number;
  readonly status: TaskStatus;
  /** Counts callers' changes only. */
  readonly version: number;
  /** Counts changes of the schedule. */
  readonly generation: number;
  readonly nextRunAt: Date | undefined;
  readonly lastOccurrenceId: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
  readonly endReason: string | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: a result of unknown type is the caller's to assert
export interface Occurrence<R = any> {
  readonly id: string;
  readonly taskId: string;
  readonly tenant: string;
  readonly nominalAt: Date;
  readonly dueAt: Date;
  readonly status: OccurrenceStatus;
  /** Attempts begun. */
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  readonly progress: unknown;
  readonly result: R | undefined;
  readonly error: StoredError | undefined;
  readonly reason: string | undefined;
  /** Skipped, missed: how many consecutive nominal times this stands for. */
  readonly count: number | undefined;
  /** Skipped, missed: the last nominal time it stands for. */
  readonly untilAt: Date | undefined;
  readonly cancelRequestedAt: Date | undefined;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly redriveOf: string | undefined;
}

export interface Attempt {
  readonly occurrenceId: string;
  readonly attempt: number;
  readonly fencingToken: number;
  readonly workerId: string | undefined;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly progress: unknown;
  /** Absent while it runs. */
  readonly outcome: AttemptOutcome | undefined;
  readonly error: StoredError | undefined;
}

interface EventBase {
  readonly at: Date;
  readonly taskId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly occurrenceId?: string;
  readonly attempt?: number;
}

interface Passed {
  readonly reason: string;
  readonly count: number;
  readonly from: Date;
  readonly to: Date;
}

/** What each type of event tells besides task, tenant, handler, occurrence and attempt. */
export interface EventDetails {
  scheduled: { readonly dueAt: Date };
  started: { readonly latenessMs: number; readonly workerId: string };
  progress: { readonly progress: unknown };
  succeeded: { readonly result: unknown; readonly durationMs: number };
  retrying: { readonly error: StoredError; readonly retryAt: Date };
  deadLettered: { readonly error: StoredError };
  quarantined: { readonly error: StoredError; readonly crashes: number };
  cancelled: { readonly reason: string };
  skipped: Passed;
  missed: Passed;
  leaseExpired: { readonly workerId: string | undefined };
  paused: object;
  resumed: object;
  /** `overdue`, `ready`, `running` or `lease`: see `stats().repairs`. */
  repaired: { readonly reason: string };
}

export type EventType = TaskEventType;
export type EventOf<T extends EventType> = EventBase & { readonly type: T } & EventDetails[T];
export type Event = { [T in EventType]: EventOf<T> }[EventType];

export type Open = (bytes: Uint8Array | undefined) => unknown;

/** Stands for a value whose stored bytes cannot be read: one bad record must not hide the others of a list. */
class Unreadable {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

function reveal(open: Open, bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  try {
    return open(bytes);
  } catch (error) {
    return new Unreadable(error);
  }
}

/** Of what cannot be read, reading the property throws the reason. */
function guarded<T extends object>(presented: T, names: readonly (keyof T)[]): T {
  for (const name of names) {
    const value: unknown = presented[name];
    if (!(value instanceof Unreadable)) continue;
    const get = (): never => {
      throw value.error;
    };
    Object.defineProperty(presented, name, { get, enumerable: true, configurable: true });
  }
  return presented;
}

function dateOf(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}

/** Policies are few and shared: so are their public forms. */
const optionsOf = new WeakMap<Policies, TaskOptions>();

function taskOptions(policies: Policies): TaskOptions {
  let options = optionsOf.get(policies);
  if (options === undefined) {
    options = Object.freeze({
      retry: Object.freeze({
        maxAttempts: policies.maxAttempts,
        initialBackoff: policies.initialBackoffMs,
        multiplier: policies.backoffMultiplier,
        maxBackoff: policies.maxBackoffMs,
        jitter: policies.backoffJitter,
      }),
      timeout: policies.timeoutMs,
      heartbeatTimeout: policies.heartbeatTimeoutMs,
      ttl: policies.ttlMs,
      maxCrashes: policies.maxCrashes,
      overlap: policies.overlap,
      catchup: policies.catchup,
      catchupWindow: policies.catchupWindowMs,
      onExhausted: policies.onExhausted,
      idempotencyTtl: policies.idempotencyTtlMs,
    });
    optionsOf.set(policies, options);
  }
  return options;
}

/** @param payload the decoded payload, where it is at hand: a value of the caller's own from then on */
export function presentTask(
  view: TaskView,
  open: Open,
  payload?: { readonly value: unknown },
): Task {
  const { task } = view;
  const presented: Task = {
    id: task.id,
    tenant: task.tenant,
    handler: task.handler,
    handlerVersion: task.handlerVersion,
    payload: payload === undefined ? reveal(open, task.payload) : payload.value,
    schedule: task.schedule.kind === 'once' ? { ...task.schedule } : task.schedule,
    options: taskOptions(task.policies),
    priority: task.priority,
    status: taskStatus(view),
    version: task.version,
    generation: task.generation,
    nextRunAt: dateOf(nextRunAt(view)),
    lastOccurrenceId: task.lastOccurrenceId,
    idempotencyKey: task.idempotencyKey,
    createdAt: new Date(task.createdAt),
    endedAt: dateOf(task.endedAt),
    endReason: task.endReason,
  };
  return guarded(presented, PAYLOAD);
}

export function presentOccurrence(record: OccurrenceRecord, open: Open): Occurrence {
  const presented: Occurrence = {
    id: record.id,
    taskId: record.taskId,
    tenant: record.tenant,
    nominalAt: new Date(record.nominalAt),
    dueAt: new Date(record.dueAt),
    status: occurrenceStatus(record),
    attempt: record.attempt,
    failures: record.failures,
    crashes: record.crashes,
    progress: reveal(open, record.progress),
    result: reveal(open, record.result),
    error: reveal(open, record.error) as StoredError | undefined,
    reason: record.reason,
    count: record.count,
    untilAt: dateOf(record.untilAt),
    cancelRequestedAt: dateOf(record.cancelRequestedAt),
    startedAt: dateOf(record.startedAt),
    endedAt: dateOf(record.endedAt),
    redriveOf: record.redriveOf,
  };
  return guarded(presented, OUTCOME);
}

export function presentAttempt(record: AttemptRecord, open: Open): Attempt {
  const presented: Attempt = {
    occurrenceId: record.occurrenceId,
    attempt: record.attempt,
    fencingToken: record.fencingToken,
    workerId: record.workerId,
    startedAt: dateOf(record.startedAt),
    endedAt: dateOf(record.endedAt),
    progress: reveal(open, record.progress),
    outcome: record.outcome,
    error: reveal(open, record.error) as StoredError | undefined,
  };
  return guarded(presented, REPORTED);
}

/** All attempts, the newest included: it lives in its occurrence. */
export function attemptsOf(
  occurrence: OccurrenceRecord,
  kept: readonly AttemptRecord[],
): AttemptRecord[] {
  const attempts = kept.slice();
  const newestKept = attempts.at(-1)?.attempt ?? 0;
  if (occurrence.attempt > newestKept) {
    attempts.push({
      occurrenceId: occurrence.id,
      attempt: occurrence.attempt,
      fencingToken: occurrence.token,
      workerId: occurrence.workerId,
      startedAt: occurrence.startedAt,
      endedAt: occurrence.endedAt,
      progress: occurrence.progress,
      outcome: occurrence.outcome,
      error: occurrence.error,
    });
  }
  return attempts;
}

export function presentEvent(event: TaskEvent, open: Open): Event {
  const { details } = event;
  const presented: Record<string, unknown> = {
    type: event.type,
    at: new Date(event.at),
    taskId: event.taskId,
    tenant: event.tenant,
    handler: event.handler,
  };
  if (event.occurrenceId !== undefined) presented.occurrenceId = event.occurrenceId;
  if (event.attempt !== undefined) presented.attempt = event.attempt;
  for (const name in details) {
    const value: unknown = details[name as keyof typeof details];
    if (DATES.has(name)) presented[name] = dateOf(value as number);
    else presented[name] = ENCODED.has(name) ? reveal(open, value as Uint8Array) : value;
  }
  // Of one event all listeners are told the same object.
  return Object.freeze(guarded(presented, OUTCOME)) as unknown as Event;
}

const PAYLOAD = ['payload'] as const;
const OUTCOME = ['progress', 'result', 'error'] as const;
const REPORTED = ['progress', 'error'] as const;

const DATES = new Set(['dueAt', 'retryAt', 'from', 'to']);
const ENCODED = new Set(['progress', 'result', 'error']);
