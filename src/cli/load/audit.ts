/**
 * The audit: every accepted task, by its id, against what the handlers saw and what the store holds
 * at the end. Nine bytes a task besides the board's, so that it does not weigh on the memory that
 * is measured.
 *
 * 1. A task is started when the handler was entered under the id that the scheduler gave when it
 *    accepted the task; finished when the handler also ended and the store does not still hold the
 *    task as open.
 * 2. Lost: due by the end and not finished, or due later, not finished and absent from the store.
 * 3. Duplicated: entered more than once. Early: entered before its due time.
 * 4. A task that was refused, or whose acceptance is unknown, is none of these. Should it run all
 *    the same, or a task run under another's id, it is `stray`.
 */
import { assert } from '../../core/assert.js';
import { type Board, fingerprint } from './board.js';

export interface Tally {
  readonly accepted: number;
  readonly rejected: number;
  readonly started: number;
  readonly finished: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly early: number;
  readonly stray: number;
}

/** Bits of a task's state. */
const ACCEPTED = 1;
const REJECTED = 2;
/** The store was seen to hold it, not ended. */
const HELD_OPEN = 4;

/** Due times are kept in ms from the audit's origin, those over 49 days cut: far beyond any run. */
const DUE_OFFSET_MAX_MS = 2 ** 32 - 1;

export class Audit {
  readonly #board: Board;
  readonly #originMs: number;
  readonly #states: Uint8Array;
  readonly #ids: Uint32Array;
  readonly #dueOffsets: Uint32Array;
  #accepted = 0;
  #rejected = 0;

  /**
   * `originMs`: an epoch time at or before every due time. The board bounds the number of tasks.
   */
  constructor(board: Board, originMs: number) {
    this.#board = board;
    this.#originMs = originMs;
    const tasks = board.starts.length;
    this.#states = new Uint8Array(tasks);
    this.#ids = new Uint32Array(tasks);
    this.#dueOffsets = new Uint32Array(tasks);
  }

  get accepted(): number {
    return this.#accepted;
  }

  get rejected(): number {
    return this.#rejected;
  }

  /** The scheduler has acknowledged the task under this id. */
  accept(seq: number, task: { readonly id: string; readonly dueAt: number }): void {
    assert(this.#states[seq] === 0, `task ${seq} was answered twice`);
    this.#states[seq] = ACCEPTED;
    this.#ids[seq] = fingerprint(task.id);
    const offsetMs = Math.max(0, task.dueAt - this.#originMs);
    this.#dueOffsets[seq] = Math.min(offsetMs, DUE_OFFSET_MAX_MS);
    this.#accepted += 1;
  }

  /** The scheduler has refused the task, or its answer is unknown. */
  reject(seq: number): void {
    assert(this.#states[seq] === 0, `task ${seq} was answered twice`);
    this.#states[seq] = REJECTED;
    this.#rejected += 1;
  }

  /**
   * The store holds task `seq` under this id, ended or not. Tasks of others (another id) are
   * ignored.
   */
  seenInStore(seq: number, task: { readonly id: string; readonly open: boolean }): void {
    if (!this.#isAccepted(seq) || this.#ids[seq] !== fingerprint(task.id)) return;
    const state = this.#states[seq] as number;
    this.#states[seq] = task.open ? state | HELD_OPEN : state & ~HELD_OPEN;
  }

  /** The handler has ended, the store has not (yet) taken note: to be looked at again. */
  isHeldThoughFinished(seq: number): boolean {
    return ((this.#states[seq] as number) & HELD_OPEN) !== 0 && this.#hasEnded(seq);
  }

  /**
   * The first task from `fromSeq` on that was accepted, is due by `untilMs` (epoch) and whose
   * handler has not ended. Asked again from where it was found, it costs one pass over all tasks.
   */
  nextOutstanding(untilMs: number, fromSeq: number): number | undefined {
    const untilOffset = untilMs - this.#originMs;
    for (let seq = fromSeq; seq < this.#states.length; seq += 1) {
      if (!this.#isAccepted(seq) || (this.#dueOffsets[seq] as number) > untilOffset) continue;
      if (!this.#hasEnded(seq)) return seq;
    }
    return undefined;
  }

  /** The verdict; `untilMs`: the end, epoch ms. One pass over all tasks. */
  tally(untilMs: number): Tally {
    const untilOffset = untilMs - this.#originMs;
    let started = 0;
    let finished = 0;
    let lost = 0;
    let duplicated = 0;
    let stray = 0;
    for (let seq = 0; seq < this.#states.length; seq += 1) {
      const entries = this.#board.starts[seq] as number;
      if (!this.#isAccepted(seq)) {
        if (entries > 0) stray += 1;
        continue;
      }
      const ranAsItself = entries > 0 && this.#board.marks[seq] === this.#ids[seq];
      if (ranAsItself) started += 1;
      else if (entries > 0) stray += 1;
      if (entries > 1) duplicated += 1;

      const held = ((this.#states[seq] as number) & HELD_OPEN) !== 0;
      if (ranAsItself && this.#hasEnded(seq) && !held) finished += 1;
      else if ((this.#dueOffsets[seq] as number) <= untilOffset || !held) lost += 1;
    }
    const early = this.#board.total('early');
    return {
      accepted: this.#accepted,
      rejected: this.#rejected,
      started,
      finished,
      lost,
      duplicated,
      early,
      stray,
    };
  }

  #isAccepted(seq: number): boolean {
    return ((this.#states[seq] as number) & ACCEPTED) !== 0;
  }

  #hasEnded(seq: number): boolean {
    return (this.#board.ends[seq] as number) > 0;
  }
}
