/** What must be done once the changes are committed. Where each occurrence waits follows from its record. */
import type { AbortReason } from './errors.js';

export type TaskEventType =
  | 'scheduled'
  | 'started'
  | 'progress'
  | 'succeeded'
  | 'retrying'
  | 'deadLettered'
  | 'quarantined'
  | 'cancelled'
  | 'skipped'
  | 'missed'
  | 'leaseExpired'
  | 'paused'
  | 'resumed'
  /** A record and this process disagreed, and it was put right: a fault somewhere. */
  | 'repaired';

/** An event as listeners will be told it, values still encoded. */
export interface TaskEvent {
  readonly type: TaskEventType;
  readonly at: number;
  readonly taskId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly occurrenceId: string | undefined;
  readonly attempt: number | undefined;
  readonly details: TaskEventDetails;
}

export interface TaskEventDetails {
  readonly dueAt?: number;
  readonly latenessMs?: number;
  readonly workerId?: string | undefined;
  readonly progress?: Uint8Array | undefined;
  readonly result?: Uint8Array | undefined;
  readonly durationMs?: number;
  readonly error?: Uint8Array | undefined;
  readonly retryAt?: number;
  readonly crashes?: number;
  readonly reason?: string | undefined;
  readonly count?: number;
  readonly from?: number;
  readonly to?: number;
}

export type Effect =
  | { readonly kind: 'tell'; readonly event: TaskEvent }
  | {
      readonly kind: 'abort';
      readonly occurrenceId: string;
      readonly token: number;
      readonly why: AbortReason;
      readonly message: string;
    };
