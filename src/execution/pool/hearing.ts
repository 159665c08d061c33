/** Reads what a thread tells, and says it to whom it concerns. */
import type { StoredError } from '../../core/errors.js';
import type { Failure } from '../failure.js';
import { ENDED_RUN, TOLD, TOLD_FIELDS, UNKNOWN_RUN, unpack } from './protocol.js';

export interface Hearing {
  entered(runId: number, atMs: number): void;
  succeeded(
    runId: number,
    enteredAtMs: number | undefined,
    atMs: number,
    result: Uint8Array | undefined,
  ): void;
  failed(runId: number, enteredAtMs: number | undefined, atMs: number, failure: Failure): void;
  progress(runId: number, progress: Uint8Array | undefined): void;
  /** runId undefined: nobody knows which; null: one that had ended. */
  crashed(runId: number | undefined | null, replace: boolean, error: StoredError): void;
  settled(runId: number): void;
  call(call: HandlerCall): void;
}

/** What a handler asks of main. */
export type HandlerCall =
  | { kind: 'sleep'; runId: number; callId: number; ms: number }
  | { kind: 'wake'; runId: number; callId: number }
  | {
      kind: 'schedule';
      runId: number;
      callId: number;
      handler: string;
      payload: Uint8Array;
      options: Uint8Array;
    }
  | { kind: 'log'; level: string; entry: Uint8Array }
  /** An error of a run that had ended, or of nobody's. */
  | { kind: 'stray'; error: StoredError };

export function hear(bytes: Uint8Array, hearing: Hearing): void {
  const told = unpack(bytes);
  for (let at = 0; at < told.length; ) {
    const kind = told[at] as number;
    hearOne(kind, told, at + 1, hearing);
    at += 1 + (TOLD_FIELDS[kind] as number);
  }
}

function hearOne(kind: number, told: readonly unknown[], at: number, hearing: Hearing): void {
  const runId = told[at] as number;
  switch (kind) {
    case TOLD.entered:
      hearing.entered(runId, told[at + 1] as number);
      return;
    case TOLD.succeeded:
      hearing.succeeded(
        runId,
        told[at + 1] as number | undefined,
        told[at + 2] as number,
        told[at + 3] as Uint8Array | undefined,
      );
      return;
    case TOLD.failed:
      hearing.failed(runId, told[at + 1] as number | undefined, told[at + 2] as number, {
        error: told[at + 3] as StoredError,
        unrecoverable: told[at + 4] as boolean,
        retryAfterMs: told[at + 5] as number | undefined,
      });
      return;
    case TOLD.progress:
      hearing.progress(runId, told[at + 1] as Uint8Array | undefined);
      return;
    case TOLD.crashed:
      hearing.crashed(culpritOf(runId), told[at + 1] as boolean, told[at + 2] as StoredError);
      return;
    case TOLD.settled:
      hearing.settled(runId);
      return;
    default:
      hearCall(kind, told, at, hearing);
  }
}

function culpritOf(runId: number): number | undefined | null {
  if (runId === UNKNOWN_RUN) return undefined;
  return runId === ENDED_RUN ? null : runId;
}

function hearCall(kind: number, told: readonly unknown[], at: number, hearing: Hearing): void {
  const runId = told[at] as number;
  const callId = told[at + 1] as number;
  switch (kind) {
    case TOLD.sleep:
      hearing.call({ kind: 'sleep', runId, callId, ms: told[at + 2] as number });
      return;
    case TOLD.wake:
      hearing.call({ kind: 'wake', runId, callId });
      return;
    case TOLD.schedule:
      hearing.call({
        kind: 'schedule',
        runId,
        callId,
        handler: told[at + 2] as string,
        payload: told[at + 3] as Uint8Array,
        options: told[at + 4] as Uint8Array,
      });
      return;
    case TOLD.log:
      hearing.call({
        kind: 'log',
        level: told[at + 1] as string,
        entry: told[at + 2] as Uint8Array,
      });
      return;
    default:
      // TOLD.nothing: that the batch was read is in shared memory.
      return;
  }
}
