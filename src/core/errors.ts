/**
 * Operational errors: every one a class with a stable code. Bugs are assertions (assert.ts), never these.
 * The table in docs/errors.md and this file are held together by a test.
 */

import { parseDurationMs } from './units.js';

export interface ErrorOptionsWithCause {
  readonly cause?: unknown;
}

/** Base of every operational error. `code` is `TICKWHEEL_` and the name in capitals; it never changes. */
export abstract class TickwheelError extends Error {
  abstract readonly code: string;
  constructor(message: string, options?: ErrorOptionsWithCause) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
  }
}

/** An argument has a wrong type or lies outside its range. */
export class InvalidArgumentError extends TickwheelError {
  readonly code = 'TICKWHEEL_INVALID_ARGUMENT';
}

/** A schedule is malformed or can never fire. */
export class InvalidScheduleError extends TickwheelError {
  readonly code = 'TICKWHEEL_INVALID_SCHEDULE';
}

/** The handler's name, or that version of it, is not among this process's handlers. */
export class UnknownHandlerError extends TickwheelError {
  readonly code = 'TICKWHEEL_UNKNOWN_HANDLER';
}

/** No task has this id or idempotency key (never created, or its retention has passed). */
export class TaskNotFoundError extends TickwheelError {
  readonly code = 'TICKWHEEL_TASK_NOT_FOUND';
}

/** No occurrence has this id. */
export class OccurrenceNotFoundError extends TickwheelError {
  readonly code = 'TICKWHEEL_OCCURRENCE_NOT_FOUND';
}

/** The task has already ended, so it can't be changed. */
export class TaskEndedError extends TickwheelError {
  readonly code = 'TICKWHEEL_TASK_ENDED';
}

/** The task's `version` is not the one that the update expected. */
export class VersionConflictError extends TickwheelError {
  readonly code = 'TICKWHEEL_VERSION_CONFLICT';
}

/** The idempotency key belongs to a task with another definition. */
export class IdempotencyConflictError extends TickwheelError {
  readonly code = 'TICKWHEEL_IDEMPOTENCY_CONFLICT';
}

/** The encoded payload (or result) is longer than `limits.maxPayloadBytes`. */
export class PayloadTooLargeError extends TickwheelError {
  readonly code = 'TICKWHEEL_PAYLOAD_TOO_LARGE';
}

/** The payload holds a value that would not come back equal: a function, a symbol, a cycle, a class instance. */
export class PayloadNotSerializableError extends TickwheelError {
  readonly code = 'TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE';
}

/** Where none is given. */
const RETRY_AFTER_MS = 1000;

/** Too many bytes await their flush; nothing was written. Try again after `retryAfterMs`. */
export class OverloadedError extends TickwheelError {
  readonly code = 'TICKWHEEL_OVERLOADED';
  /** Milliseconds after which a new try is likely to pass; default 1000. */
  readonly retryAfterMs: number;
  constructor(message: string, options: ErrorOptionsWithCause & { retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? RETRY_AFTER_MS;
  }
}

/** The tenant holds `maxPending` tasks that have not ended; nothing was written. */
export class QuotaExceededError extends TickwheelError {
  readonly code = 'TICKWHEEL_QUOTA_EXCEEDED';
  /** Milliseconds after which a new try is likely to pass; default 1000. */
  readonly retryAfterMs: number;
  constructor(message: string, options: ErrorOptionsWithCause & { retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? RETRY_AFTER_MS;
  }
}

/** A completion or heartbeat came under a fencing token that is no longer the current one. */
export class LeaseLostError extends TickwheelError {
  readonly code = 'TICKWHEEL_LEASE_LOST';
}

export type AbortReason = 'cancelled' | 'timedOut' | 'shutdown' | 'leaseLost';

/** What a handler's `signal` is aborted with; `why` tells the reason apart. */
export class AbortedError extends TickwheelError {
  readonly code = 'TICKWHEEL_ABORTED';
  /** Default `'cancelled'`. */
  readonly why: AbortReason;
  constructor(message: string, options: ErrorOptionsWithCause & { why?: AbortReason } = {}) {
    super(message, options);
    this.why = options.why ?? 'cancelled';
  }
}

/** `wait` reached its timeout before the occurrence ended. */
export class WaitTimeoutError extends TickwheelError {
  readonly code = 'TICKWHEEL_WAIT_TIMEOUT';
}

/** The scheduler is not in a state that allows this call: started twice, or used after shutdown. */
export class SchedulerStateError extends TickwheelError {
  readonly code = 'TICKWHEEL_SCHEDULER_STATE';
}

/** Another process, or another scheduler in this one, has the store open. */
export class StoreLockedError extends TickwheelError {
  readonly code = 'TICKWHEEL_STORE_LOCKED';
}

/** A file of the store is damaged. */
export class StoreCorruptError extends TickwheelError {
  readonly code = 'TICKWHEEL_STORE_CORRUPT';
}

/** The store was written in a format that this version does not know. */
export class StoreVersionError extends TickwheelError {
  readonly code = 'TICKWHEEL_STORE_VERSION';
}

/** No space is left for the store; this batch was not written. */
export class StoreFullError extends TickwheelError {
  readonly code = 'TICKWHEEL_STORE_FULL';
}

/** The store failed; whether the change was kept is unknown. Repeat it with the same idempotency key. */
export class StoreUnavailableError extends TickwheelError {
  readonly code = 'TICKWHEEL_STORE_UNAVAILABLE';
}

/** The wheel holds `maxTimers` timers. It stays usable. */
export class WheelFullError extends TickwheelError {
  readonly code = 'TICKWHEEL_WHEEL_FULL';
}

/** Thrown by a handler: no retry will help, the occurrence is dead at once. */
export class UnrecoverableError extends TickwheelError {
  readonly code = 'TICKWHEEL_UNRECOVERABLE';
}

/** Thrown by a handler: failed, and the next attempt is due after `delayMs` instead of the policy's backoff. */
export class RetryAfterError extends TickwheelError {
  readonly code = 'TICKWHEEL_RETRY_AFTER';
  readonly delayMs: number;
  constructor(delay: number | string, options?: ErrorOptionsWithCause & { message?: string }) {
    const delayMs = parseDurationMs(delay, 'RetryAfterError delay');
    super(options?.message ?? `retry after ${delayMs} ms`, options);
    this.delayMs = delayMs;
  }
}

/** An error as it is stored and told: plain data. */
export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly cause?: StoredError;
}

/** Causes followed when an error is stored; deeper ones are cut, so that a cycle of causes ends. */
const CAUSES_MAX = 8;

/** Any thrown value as plain data. Never throws, also not on hostile getters. */
export function toStoredError(thrown: unknown, depth = 0): StoredError {
  try {
    if (typeof thrown === 'object' && thrown !== null && 'message' in thrown) {
      const error = thrown as Partial<
        Record<'name' | 'message' | 'stack' | 'code' | 'cause', unknown>
      >;
      return {
        name: typeof error.name === 'string' ? error.name : 'Error',
        message: String(error.message),
        ...(typeof error.stack === 'string' ? { stack: error.stack } : {}),
        ...(typeof error.code === 'string' || typeof error.code === 'number'
          ? { code: String(error.code) }
          : {}),
        ...(error.cause !== undefined && depth < CAUSES_MAX
          ? { cause: toStoredError(error.cause, depth + 1) }
          : {}),
      };
    }
    return { name: 'Error', message: typeof thrown === 'string' ? thrown : String(thrown) };
  } catch {
    return { name: 'Error', message: 'a thrown value that cannot be read' };
  }
}
