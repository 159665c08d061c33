/** What happened: everything that `decide` can be told about one task. Times are epoch milliseconds. */
import type { TaskEventType } from './effect.js';
import type { OccurrenceRecord, Policies } from './model.js';
import type { Schedule } from './schedule.js';

export interface NewTask {
  readonly id: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number | undefined;
  readonly payload: Uint8Array;
  readonly schedule: Schedule;
  readonly policies: Policies;
  readonly priority: number;
  readonly idempotencyKey: string | undefined;
  readonly definition: string | undefined;
  readonly createdAt: number;
}

/** What an update changes; absent fields stay. */
export interface TaskPatch {
  readonly payload?: Uint8Array;
  readonly schedule?: Schedule;
  readonly priority?: number;
  readonly policies?: Policies;
  readonly handlerVersion?: number;
  readonly definition?: string;
}

/** Calls by users of the library. */
export type CallEvent =
  | { readonly kind: 'create'; readonly task: NewTask }
  | {
      readonly kind: 'update';
      readonly patch: TaskPatch;
      readonly expectedVersion: number | undefined;
    }
  | { readonly kind: 'cancel'; readonly reason: string | undefined }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'trigger' }
  | {
      readonly kind: 'cancelOccurrence';
      readonly occurrenceId: string;
      readonly reason: string | undefined;
    }
  | { readonly kind: 'redrive'; readonly occurrence: OccurrenceRecord }
  | { readonly kind: 'delete' };

/** The time of an occurrence has come. */
export interface DueEvent {
  readonly kind: 'due';
  readonly occurrenceId: string;
}

/** A slot is free and fairness chose this occurrence. */
export interface ClaimEvent {
  readonly kind: 'claim';
  readonly occurrenceId: string;
  readonly token: number;
  readonly leaseUntil: number;
  readonly handlerVersion: number;
}

/** The end of an attempt tells of its entry too, when that was not told before: both or neither. */
interface EnteredBefore {
  readonly enteredAtMs?: number | undefined;
  readonly workerId?: string | undefined;
}

/** From the attempt that runs under `token`; under another token refused with LeaseLostError. */
export type AttemptEvent = { readonly occurrenceId: string; readonly token: number } & (
  | { readonly kind: 'entered'; readonly atMs: number; readonly workerId: string }
  | { readonly kind: 'renew'; readonly leaseUntil: number }
  | {
      readonly kind: 'progress';
      readonly leaseUntil: number;
      readonly progress: Uint8Array | undefined;
    }
  | (EnteredBefore & {
      readonly kind: 'succeeded';
      readonly atMs: number;
      readonly result: Uint8Array | undefined;
    })
  | (EnteredBefore & {
      readonly kind: 'failed';
      readonly atMs: number;
      readonly error: Uint8Array;
      readonly timedOut: boolean;
      readonly unrecoverable: boolean;
      readonly retryAfterMs: number | undefined;
      /** For the backoff's jitter, in [0, 1). */
      readonly random01: number;
    })
  /** Claimed but never entered: as if it had not been claimed. */
  | { readonly kind: 'returned' }
  /** Its thread was ended because of another run. */
  | { readonly kind: 'displaced' }
  /** Given up at shutdown. */
  | { readonly kind: 'released' }
  /** Its thread died and nobody knows whose fault it was. */
  | { readonly kind: 'suspected'; readonly error: Uint8Array }
  /** The whole process died while it ran. */
  | { readonly kind: 'orphaned'; readonly error: Uint8Array; readonly random01: number }
  /** It killed its thread, or its lease expired. */
  | {
      readonly kind: 'crashed';
      readonly leaseExpired: boolean;
      readonly error: Uint8Array;
      readonly random01: number;
    }
);

export type CoreEvent = CallEvent | DueEvent | ClaimEvent | AttemptEvent;

/** What a decision may know besides the task and the event. */
export interface Facts {
  readonly nowMs: number;
  /**
   * Nominal times before this passed while nobody could run them: the scheduler was down or asleep, or the
   * tenant or handler paused. They are a matter of catch-up.
   */
  readonly awayUntilMs: number;
  /** The highest version of a handler that this process has; undefined for a producer. */
  readonly latestVersion: (handler: string) => number | undefined;
  /** Whether anybody would be told an event of this type; absent: yes. */
  readonly tells?: (type: TaskEventType) => boolean;
}
