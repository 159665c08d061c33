/**
 * The board: memory shared by the main thread and the handlers on their threads. A handler marks
 * there what it saw, at the place that the task's sequence number names, so a mark outlives the
 * thread that made it and no message can be lost on the way.
 *
 * 1. starts[seq] counts entries of the handler, ends[seq] its ends; both stop at 255.
 * 2. marks[seq] is the fingerprint of the task id under which it was entered first; 0: not entered.
 * 3. Lateness is recorded for tasks due from `recordFromMs` on (what came due while a preload was
 *    being stored says nothing about the load); early starts are counted always and recorded as 1
 *    µs.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * What threads are handed: plain shared memory, and a histogram whose clones share their counts.
 */
export interface BoardMemory {
  readonly starts: SharedArrayBuffer;
  readonly ends: SharedArrayBuffer;
  readonly marks: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  readonly recordFromMs: SharedArrayBuffer;
  readonly lateness: RecordableHistogram;
  readonly workMs: number;
}

/** Totals over all threads, by index in `counters`. */
export const Counter = { started: 0, finished: 1, early: 2 } as const;
const COUNTERS = Object.keys(Counter).length;

/**
 * Environment data is inherited by every thread that is started later, so a replaced thread has it
 * too.
 */
const ENVIRONMENT_KEY = 'tickwheel.load-test.board';
const SEEN_MAX = 255;
/** Lateness is kept in microseconds, 1 to a day, to three figures. */
const LATENESS_MAX_US = 86_400_000_000;
export const LATENESS_HISTOGRAM = { lowest: 1, highest: LATENESS_MAX_US, figures: 3 } as const;

export class Board {
  readonly memory: BoardMemory;
  readonly starts: Uint8Array;
  readonly ends: Uint8Array;
  readonly marks: Uint32Array;
  readonly #counters: Int32Array;
  readonly #recordFromMs: Float64Array;

  constructor(memory: BoardMemory) {
    this.memory = memory;
    this.starts = new Uint8Array(memory.starts);
    this.ends = new Uint8Array(memory.ends);
    this.marks = new Uint32Array(memory.marks);
    this.#counters = new Int32Array(memory.counters);
    this.#recordFromMs = new Float64Array(memory.recordFromMs);
  }

  /** `tasks`: how many there can be. Pages are only touched where a task starts. */
  static create(options: { readonly tasks: number; readonly workMs: number }): Board {
    const board = new Board({
      starts: new SharedArrayBuffer(options.tasks),
      ends: new SharedArrayBuffer(options.tasks),
      marks: new SharedArrayBuffer(options.tasks * Uint32Array.BYTES_PER_ELEMENT),
      counters: new SharedArrayBuffer(COUNTERS * Int32Array.BYTES_PER_ELEMENT),
      recordFromMs: new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT),
      lateness: createHistogram(LATENESS_HISTOGRAM),
      workMs: options.workMs,
    });
    board.recordFrom(Number.POSITIVE_INFINITY);
    return board;
  }

  /** Hands the board to the threads started from now on, until `withdraw`. */
  publish(): void {
    setEnvironmentData(ENVIRONMENT_KEY, this.memory as never);
  }

  withdraw(): void {
    setEnvironmentData(ENVIRONMENT_KEY, undefined as never);
  }

  /** In a thread: the board that the main thread published before it started this thread. */
  static attach(): Board | undefined {
    const memory = getEnvironmentData(ENVIRONMENT_KEY) as BoardMemory | undefined;
    return memory === undefined ? undefined : new Board(memory);
  }

  get lateness(): RecordableHistogram {
    return this.memory.lateness;
  }

  /** Epoch milliseconds. */
  recordFrom(epochMs: number): void {
    this.#recordFromMs[0] = epochMs;
  }

  total(counter: keyof typeof Counter): number {
    return Atomics.load(this.#counters, Counter[counter]);
  }

  /**
   * The handler was entered. `wallMs` is the scheduler's clock, `fineMs` the same with fractions.
   */
  entered(
    seq: number,
    entry: {
      readonly taskId: string;
      readonly dueAt: number;
      readonly wallMs: number;
      readonly fineMs: number;
    },
  ): void {
    if (countUp(this.starts, seq)) Atomics.store(this.marks, seq, fingerprint(entry.taskId));
    Atomics.add(this.#counters, Counter.started, 1);
    if (entry.wallMs < entry.dueAt) Atomics.add(this.#counters, Counter.early, 1);
    if (entry.dueAt >= (this.#recordFromMs[0] as number)) {
      const latenessUs = Math.round((entry.fineMs - entry.dueAt) * 1000);
      this.memory.lateness.record(Math.min(Math.max(latenessUs, 1), LATENESS_MAX_US));
    }
  }

  /** The handler is about to return. */
  left(seq: number): void {
    countUp(this.ends, seq);
    Atomics.add(this.#counters, Counter.finished, 1);
  }
}

/** True when it was the first. */
function countUp(seen: Uint8Array, seq: number): boolean {
  const before = Atomics.add(seen, seq, 1);
  if (before === SEEN_MAX) Atomics.store(seen, seq, SEEN_MAX);
  return before === 0;
}

/** 32 bits of a task id (FNV-1a), never 0: enough to tell whether a task ran under its own id. */
export function fingerprint(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) {
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0 || 1;
}

/**
 * The wall clock with fractions of a millisecond: the high-resolution time, held within the
 * millisecond that the wall clock names (the two drift apart when the clock is set or slewed).
 */
export function fineNowMs(wallMs: number): number {
  const fine = performance.timeOrigin + performance.now();
  return Math.min(Math.max(fine, wallMs), wallMs + 1);
}
