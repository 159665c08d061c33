/**
 * What main and a thread say to each other over their MessagePort. What is frequent travels as one flat, packed
 * array a message (a message costs 25 µs however little it carries); what is rare as a plain object.
 */
import type { MessagePort } from 'node:worker_threads';
import { Packr } from 'msgpackr';
import type { AbortReason } from '../../core/errors.js';
import type { RunFacts } from '../context.js';
import type { Run } from '../executor.js';
import type { SharedMemory } from './slots.js';

/** What a thread is started with. */
export interface ThreadStart {
  readonly port: MessagePort;
  readonly memory: SharedMemory;
  /** The module that holds the handlers. */
  readonly moduleUrl: string;
  /** Handlers entered at once. */
  readonly concurrency: number;
  readonly maxPayloadBytes: number;
  /** The scheduler's clock is moved by hand: the thread asks main for the time. */
  readonly virtualTime: boolean;
}

/** The thread's first message. */
export type Hello =
  | { readonly kind: 'hello'; readonly handlers: readonly [string, readonly number[]][] }
  /** The module could not be loaded; the error, encoded. */
  | { readonly kind: 'broken'; readonly error: Uint8Array };

/** Main to thread, rare. */
export type Control =
  | { readonly kind: 'abort'; readonly runId: number; why: AbortReason; message: string }
  | {
      readonly kind: 'answer';
      readonly callId: number;
      readonly ok: boolean;
      /** The result or the error, encoded. */
      readonly bytes: Uint8Array | undefined;
      readonly nowMs: number;
    };

const packr = new Packr({ useRecords: false, variableMapSize: true });

/** Exactly as long as its content: a message copies the whole buffer that a view is on. */
function pack(values: readonly unknown[]): Uint8Array {
  return Uint8Array.prototype.slice.call(packr.pack(values));
}

export function unpack(bytes: Uint8Array): unknown[] {
  return packr.unpack(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as unknown[];
}

/** A run as the thread sees it. */
export interface SentRun {
  readonly slot: number;
  readonly use: number;
  readonly facts: RunFacts;
  readonly payload: Uint8Array;
}

/** Gathers runs into one message: [batch, now, (15 fields of a run)*]. */
export class BatchWriter {
  readonly #values: unknown[];

  constructor(batch: number, nowMs: number) {
    this.#values = [batch, nowMs];
  }

  add(slot: number, use: number, run: Run): void {
    this.#values.push(
      slot,
      use,
      run.runId,
      run.taskId,
      withoutTask(run.occurrenceId, run.taskId),
      run.tenant,
      run.handler,
      run.handlerVersion,
      run.attempt,
      run.retriesLeft,
      run.fencingToken,
      run.nominalAt,
      run.dueAt,
      run.progress,
      run.payload,
    );
  }

  pack(): Uint8Array {
    return pack(this.#values);
  }
}

const FIELDS_A_RUN = 15;
const BEHIND_TASK = '.';

/** An occurrence's id begins with its task's, which is sent as well: packing long strings is what a run costs here. */
function withoutTask(occurrenceId: string, taskId: string): string {
  const { length } = taskId;
  return occurrenceId[length] === BEHIND_TASK && occurrenceId.startsWith(taskId)
    ? occurrenceId.slice(length)
    : occurrenceId;
}

function withTask(rest: string, taskId: string): string {
  return rest.startsWith(BEHIND_TASK) ? taskId + rest : rest;
}

export function readBatch(bytes: Uint8Array): { batch: number; nowMs: number; runs: SentRun[] } {
  const values = unpack(bytes);
  const [batch, nowMs] = values as [number, number];
  const runs: SentRun[] = [];
  for (let at = 2; at < values.length; at += FIELDS_A_RUN) {
    const taskId = values[at + 3] as string;
    runs.push({
      slot: values[at] as number,
      use: values[at + 1] as number,
      facts: {
        runId: values[at + 2] as number,
        taskId,
        occurrenceId: withTask(values[at + 4] as string, taskId),
        tenant: values[at + 5] as string,
        handler: values[at + 6] as string,
        handlerVersion: values[at + 7] as number,
        attempt: values[at + 8] as number,
        retriesLeft: values[at + 9] as number,
        fencingToken: values[at + 10] as number,
        nominalAt: values[at + 11] as number,
        dueAt: values[at + 12] as number,
        progress: values[at + 13] as Uint8Array | undefined,
      },
      payload: values[at + 14] as Uint8Array,
    });
  }
  return { batch, nowMs, runs };
}

/** Thread to main. Each is followed by its fields, in the order of the comment; all but the last two by a run. */
export const TOLD = {
  /** runId, atMs */
  entered: 0,
  /** runId, enteredAtMs or undefined when that was told, atMs, result */
  succeeded: 1,
  /** runId, enteredAtMs or undefined when that was told, atMs, error, unrecoverable, retryAfterMs */
  failed: 2,
  /** runId, progress */
  progress: 3,
  /** runId, callId, ms: sleep on main's clock, then answer */
  sleep: 4,
  /** runId, callId: the sleep was given up */
  wake: 5,
  /** runId, callId, handler, payload, options */
  schedule: 6,
  /** runId, level, [fields, message] encoded */
  log: 7,
  /** runId, UNKNOWN_RUN or ENDED_RUN; whether the thread must be replaced; error */
  crashed: 8,
  /** runId: a handler that was given up has ended after all */
  settled: 9,
  /** runId 0: a batch was read of which nothing was entered */
  nothing: 10,
} as const;

/** Nobody knows which run crashed the thread. */
export const UNKNOWN_RUN = 0;
/** It was a run that had ended before: none of those entered. */
export const ENDED_RUN = -1;

/** Fields after the kind. */
export const TOLD_FIELDS: readonly number[] = [2, 4, 6, 2, 3, 2, 5, 3, 3, 1, 1];

/** Gathers what a thread has to tell. */
export class TellingWriter {
  #values: unknown[] = [];

  get isEmpty(): boolean {
    return this.#values.length === 0;
  }

  add(kind: number, ...fields: readonly unknown[]): void {
    this.#values.push(kind, ...fields);
  }

  /** What was gathered, packed; then it is empty. */
  take(): Uint8Array {
    const values = this.#values;
    this.#values = [];
    return pack(values);
  }
}
