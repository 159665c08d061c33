/**
 * What main and one thread share without messages, so that it holds also while the thread does not answer.
 *
 *   words  │ acknowledged │ … │ state of slot 0, 1, … │ abort flag of slot 0, 1, … │
 *   times  │ service time, heap used, heap limit │ … │ entered at 0, 1, … │ ended at 0, 1, … │
 *
 *   state word = use (28 bits) | state (3 bits)          abort flag = use | reason
 *
 *   FREE ─ main ─→ SENT ─ thread ─→ ENTERED ─ thread ─→ ENDED, or ENDED_VOID when there is no result
 *                   └──── main ───→ WITHDRAWN
 *
 * 1. SENT → ENTERED and SENT → WITHDRAWN are compare-and-exchange: exactly one of the two wins.
 * 2. A slot's `use` grows with each run that is put in it, so a slot may be used again at once: the thread's
 *    exchange for the run before finds another word and fails.
 * 3. Times are written before the state that makes them valid.
 */
import type { AbortReason } from '../../core/errors.js';

export const SENT = 1;
export const ENTERED = 2;
export const WITHDRAWN = 3;
/** A message tells how it ended. */
export const ENDED = 4;
/** It returned nothing, which may be told without its message. */
export const ENDED_VOID = 5;

const STATE_BITS = 3;
const STATE_MASK = (1 << STATE_BITS) - 1;
const USE_MASK = (1 << 28) - 1;
const HEADER = 8;
const ACKNOWLEDGED = 0;
const SERVICE_TIME = 0;
const HEAP_USED = 1;
const HEAP_LIMIT = 2;

/** By their number in an abort flag; 0 is none. */
const REASONS: readonly (AbortReason | undefined)[] = [
  undefined,
  'cancelled',
  'timedOut',
  'shutdown',
  'leaseLost',
];

/** The memory itself, as it is handed to a thread. */
export interface SharedMemory {
  readonly words: SharedArrayBuffer;
  readonly times: SharedArrayBuffer;
  readonly count: number;
}

function word(use: number, state: number): number {
  return (use << STATE_BITS) | state;
}

export class SharedSlots {
  readonly memory: SharedMemory;
  readonly count: number;
  readonly #words: Int32Array;
  readonly #times: Float64Array;

  constructor(memory: SharedMemory) {
    this.memory = memory;
    this.count = memory.count;
    this.#words = new Int32Array(memory.words);
    this.#times = new Float64Array(memory.times);
  }

  static create(count: number): SharedSlots {
    const cells = HEADER + 2 * count;
    return new SharedSlots({
      words: new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT),
      times: new SharedArrayBuffer(cells * Float64Array.BYTES_PER_ELEMENT),
      count,
    });
  }

  /** Main puts a run in a slot whose run before has ended or was withdrawn. Returns its use. */
  send(slot: number): number {
    const use = ((Atomics.load(this.#words, HEADER + slot) >>> STATE_BITS) + 1) & USE_MASK;
    Atomics.store(this.#words, HEADER + slot, word(use, SENT));
    return use;
  }

  /** Main takes a run back; false when the thread was first. */
  withdraw(slot: number, use: number): boolean {
    const sent = word(use, SENT);
    return Atomics.compareExchange(this.#words, HEADER + slot, sent, word(use, WITHDRAWN)) === sent;
  }

  /** The thread enters a run; false when main was first, or has used the slot again since. */
  enter(slot: number, use: number, atMs: number): boolean {
    const sent = word(use, SENT);
    if (Atomics.load(this.#words, HEADER + slot) !== sent) return false;
    this.#times[HEADER + slot] = atMs;
    return Atomics.compareExchange(this.#words, HEADER + slot, sent, word(use, ENTERED)) === sent;
  }

  /** The thread's handler has ended. */
  end(slot: number, use: number, state: typeof ENDED | typeof ENDED_VOID, atMs: number): void {
    this.#times[HEADER + this.count + slot] = atMs;
    Atomics.store(this.#words, HEADER + slot, word(use, state));
  }

  state(slot: number): number {
    return Atomics.load(this.#words, HEADER + slot) & STATE_MASK;
  }

  /** Valid from ENTERED on. */
  enteredAt(slot: number): number {
    return this.#times[HEADER + slot] as number;
  }

  /** Valid from ENDED on. */
  endedAt(slot: number): number {
    return this.#times[HEADER + this.count + slot] as number;
  }

  abort(slot: number, use: number, why: AbortReason): void {
    const flag = word(use, REASONS.indexOf(why));
    Atomics.store(this.#words, HEADER + this.count + slot, flag);
  }

  /** Why the run in the slot was aborted, if it was. */
  abortReason(slot: number, use: number): AbortReason | undefined {
    const flag = Atomics.load(this.#words, HEADER + this.count + slot);
    return flag >>> STATE_BITS === use ? REASONS[flag & STATE_MASK] : undefined;
  }

  /** The number of the last batch that the thread has read. */
  get acknowledged(): number {
    return Atomics.load(this.#words, ACKNOWLEDGED);
  }

  acknowledge(batch: number): void {
    Atomics.store(this.#words, ACKNOWLEDGED, batch);
  }

  /** From a handler's entry to its end, ms, an average that follows; 0: not measured yet. */
  get serviceTimeMs(): number {
    return this.#times[SERVICE_TIME] as number;
  }

  set serviceTimeMs(ms: number) {
    this.#times[SERVICE_TIME] = ms;
  }

  /** Of the thread's heap, bytes: used when it last looked, and at most. 0: it has not looked yet. */
  get heap(): { readonly used: number; readonly limit: number } {
    return {
      used: this.#times[HEAP_USED] as number,
      limit: this.#times[HEAP_LIMIT] as number,
    };
  }

  setHeap(used: number, limit: number): void {
    this.#times[HEAP_USED] = used;
    this.#times[HEAP_LIMIT] = limit;
  }
}
