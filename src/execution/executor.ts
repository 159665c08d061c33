/**
 * The Executor protocol: runs attempts that the engine has claimed and committed. It decides nothing about
 * tasks; it starts handlers, aborts them, ends threads, and reports. Reports come in any order across
 * runs, in order within one, and never from inside a call to the executor (so the engine only enqueues them).
 *
 * Life of a run: start → (entered → progress* → succeeded | failed) | returned | lost; a short one's entry may be
 * reported with its end (`enteredAtMs`).
 * 1. Every started run is reported at its end exactly once: succeeded, failed, returned or lost.
 * 2. `returned`: the handler was not entered and will not be. `lost`: its thread is gone.
 * 3. A run that was taken back or lost never enters afterwards, and nothing more is reported of it.
 */
import type { AbortReason, StoredError } from '../core/errors.js';
import type { Logger } from '../observe/log.js';

export interface Executor {
  /** Names and versions that can run here; asked once, after `open`. */
  readonly handlers: ReadonlyMap<string, readonly number[]>;
  /** Runs that may be entered at once, over all threads. */
  readonly slots: number;
  /** Loads the handlers; the first runs may be given once this has resolved. */
  open(host: ExecutorHost): Promise<void>;
  /** How many more runs it would take now; may exceed the free slots a little (see design section 6). */
  capacity(): number;
  /** Takes claimed runs, `capacity()` at most, and besides an `alone` one for which `reserve` has said true. */
  start(runs: readonly Run[]): void;
  /** Threads of handlers: with one, nothing else runs while it is reserved. */
  readonly threads: number;
  /**
   * While a thread is wanted for an `alone` run, one takes nothing new, and is not counted in `capacity`. True: it is
   * empty, the run may be started; until then ask again when something was reported. Starting it ends the wish.
   */
  reserve(isWanted: boolean): boolean;
  /** Aborts the run's signal with an AbortedError; the handler may go on. */
  abort(runId: number, why: AbortReason, message: string): void;
  /**
   * Ends a run whose grace is over. Pool: its thread is ended and replaced; the run itself and all that
   * shared the thread are reported `lost`. In-process: not possible; the run becomes a zombie, is reported
   * `lost`, its slot is freed, its late end is dropped.
   */
  end(runId: number): void;
  /**
   * False: the run's worker was not heard of lately, so its lease is not renewed; when it has run out, `end` is called
   * and nothing more of the run is listened to. Absent: the workers live and die with this process.
   */
  vouchesFor?(runId: number): boolean;
  /** Runs that were given up but still hold a handler in this process. */
  readonly zombies: number;
  /** Takes back what has not entered (reported `returned`), without ending anything. */
  recall(): void;
  /** Handlers entered that have neither ended nor wait on the injected clock (see ClockParticipant). */
  unsettledHandlers(): number;
  /** A thread is being made, or reads what it was sent, and will take runs soon: a clock that is driven by hand waits for it. */
  readonly loading?: boolean;
  /** Leave those running and count them no more. */
  giveUpOnHandlers(): void;
  /** Ends all threads. What still runs is reported lost. Idempotent. */
  close(): Promise<void>;
}

/** One claimed attempt: what the handler's context needs. */
export interface Run {
  /** The engine's number for this attempt; never reused in this process. */
  readonly runId: number;
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number;
  readonly attempt: number;
  readonly retriesLeft: number;
  readonly fencingToken: number;
  readonly nominalAt: number;
  readonly dueAt: number;
  /** What the last attempt reported, encoded. */
  readonly progress: Uint8Array | undefined;
  /** Encoded; forwarded unopened to the thread that runs it. */
  readonly payload: Uint8Array;
  /** It must not share its thread. */
  readonly alone: boolean;
}

/** One that was entered and ended within one report: its entry was not reported apart. */
interface EnteredBefore {
  enteredAtMs?: number | undefined;
  workerId?: string | undefined;
}

export type Report =
  /** The handler was entered at `atMs` (wall clock). */
  | { kind: 'entered'; runId: number; atMs: number; workerId: string }
  | { kind: 'progress'; runId: number; progress: Uint8Array | undefined }
  | (EnteredBefore & {
      kind: 'succeeded';
      runId: number;
      atMs: number;
      result: Uint8Array | undefined;
    })
  | (EnteredBefore & {
      kind: 'failed';
      runId: number;
      atMs: number;
      error: StoredError;
      /** From UnrecoverableError. */
      unrecoverable: boolean;
      /** From RetryAfterError. */
      retryAfterMs: number | undefined;
    })
  | { kind: 'returned'; runId: number }
  | {
      kind: 'lost';
      runId: number;
      entered: boolean;
      /**
       * `ended`: end() was called on this very run. `culprit`: known to have killed its thread.
       * `suspect`: on a thread that died, culprit unknown. `displaced`: its thread was ended because of another.
       */
      blame: 'ended' | 'culprit' | 'suspect' | 'displaced';
      error: StoredError;
    };

export interface ExecutorHost {
  /** The injected clock; a virtual one is asked through messages from threads. */
  readonly clock: import('../clock/clock.js').Clock;
  readonly codec: PayloadCodec;
  readonly log: Logger;
  /** An empty batch says that `capacity()` has changed without a run's end: look at it again. */
  report(reports: readonly Report[]): void;
  /** `ctx.schedule` of a handler: same arguments and result as Scheduler.schedule, results as plain data. */
  schedule(request: {
    taskId: string;
    tenant: string;
    handler: string;
    payload: unknown;
    options: unknown;
  }): Promise<unknown>;
}

/** What turns payloads, results and progress into bytes and back. */
export interface PayloadCodec {
  /** @throws PayloadNotSerializableError, PayloadTooLargeError */
  encode(value: unknown, what: string): Uint8Array;
  /** What `decode` makes of `bytes`, which `encode` made of the value just now. */
  copy(value: unknown, bytes: Uint8Array): unknown;
  decode(bytes: Uint8Array): unknown;
}
