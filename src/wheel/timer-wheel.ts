import { optionsOf } from '../core/arguments.js';
import { InvalidArgumentError, WheelFullError } from '../core/errors.js';
import { describe } from '../core/units.js';
import {
  closedNativeWheel,
  FAR,
  FULL,
  loadNativeWheel,
  type NativeWheel,
  RECORDS_MAX,
} from './native.js';
import { OverflowHeap } from './overflow-heap.js';

/**
 * Names a timer. A safe integer ≥ 2²⁷; stale for good once the timer has expired or was cancelled.
 */
export type TimerHandle = number;

export interface TimerWheelOptions {
  /** Where the wheel's time begins: a tick, 0 to `Number.MAX_SAFE_INTEGER`; default 0. */
  readonly startTick?: number;
  /** Live timers at most: 1 to 2²⁷ (134,217,728); default 100 million. */
  readonly maxTimers?: number;
}

export interface Expired {
  /** Expired refs in order of due tick, no order within a tick; valid until the next call. */
  readonly refs: Uint32Array;
  /** Whether more may be due at the same `nowTick`: call again. */
  readonly more: boolean;
}

/** What the last `advance` did; each at most `max` or 4096, whichever is more. */
export interface AdvanceWork {
  readonly expiries: number;
  /** Timers moved from a slot to a finer one, or from the overflow heap into the wheel. */
  readonly cascadeMoves: number;
}

const MAX_TIMERS_DEFAULT = 100_000_000;
const EXPIRIES_MAX_DEFAULT = 4096;
/** A small `max` still cascades this many, so that it does not starve behind a full slot. */
const CASCADE_MOVES_MIN = 4096;
const OPTIONS = new Set(['startTick', 'maxTimers'] as const);
const NO_REFS = new Uint32Array(0);

/**
 * A hierarchical timing wheel in WebAssembly: up to 100 million timers of 20 bytes each. It knows
 * no clock: a tick is whatever the caller says it is, and nothing happens but in `advance`.
 *
 * Timers within 34 years after the last `advance` are in the wheel: insert, cancel and reschedule
 * are O(1). Those due later, and those inserted due before it, are in heaps beside it: O(log n), 12
 * bytes more each.
 *
 * Every method throws `SchedulerStateError` after `close`.
 */
export class TimerWheel {
  #native: NativeWheel;
  #nowTick: number;
  readonly #maxTimers: number;
  /** Due before the wheel's cursor when they were inserted, so due before all in the wheel. */
  #overdue: OverflowHeap;
  /**
   * Due beyond the wheel's range. They enter it as they come within range, at the latest when due.
   */
  #far: OverflowHeap;
  readonly #batchMax: number;
  readonly #expiredMax: number;
  // Views of the scratch area; growing the memory detaches them, which shows in a length of 0.
  #scratchTicks = new Float64Array(0);
  #scratchRefs = NO_REFS;
  #scratchExpired = NO_REFS;
  #refs = NO_REFS;
  #expiries = 0;
  #cascadeMoves = 0;

  private constructor(native: NativeWheel, startTick: number, maxTimers: number) {
    this.#native = native;
    this.#nowTick = startTick;
    this.#maxTimers = maxTimers;
    const onPlace = (record: number, place: number) => native.setPlace(record, place);
    this.#overdue = new OverflowHeap(onPlace);
    this.#far = new OverflowHeap(onPlace);
    native.setUp(startTick, maxTimers);
    this.#batchMax = native.batchMax();
    this.#expiredMax = native.expiredMax();
  }

  /**
   * A new, empty wheel of about 384 KiB; memory grows with the timers.
   * @throws InvalidArgumentError for an option outside its range
   */
  static async create(options: TimerWheelOptions = {}): Promise<TimerWheel> {
    return TimerWheel.createOn(await loadNativeWheel({ debug: false }), options);
  }

  /** Over a given instance, which tests keep to look inside. */
  static createOn(native: NativeWheel, options: TimerWheelOptions = {}): TimerWheel {
    optionsOf(options, 'TimerWheel options', OPTIONS);
    const { startTick = 0, maxTimers = MAX_TIMERS_DEFAULT } = options;
    if (!isTick(startTick)) throw invalidTick('startTick', startTick);
    if (!Number.isInteger(maxTimers) || maxTimers < 1 || maxTimers > RECORDS_MAX) {
      throw new InvalidArgumentError(
        `maxTimers is ${describe(maxTimers)}; allowed: an integer from 1 to ${RECORDS_MAX}`,
      );
    }
    return new TimerWheel(native, startTick, maxTimers);
  }

  /** Live timers. */
  get size(): number {
    return this.#native.size();
  }

  /** Bytes of every buffer, WebAssembly's and JavaScript's. */
  get memoryBytes(): number {
    return (
      this.#native.memory.buffer.byteLength +
      this.#overdue.memoryBytes +
      this.#far.memoryBytes +
      this.#refs.byteLength
    );
  }

  /** What the last `advance` did, for tests and metrics. */
  get lastAdvance(): AdvanceWork {
    return { expiries: this.#expiries, cascadeMoves: this.#cascadeMoves };
  }

  /**
   * Makes room for `timers` more and touches that memory, so that no insert has to wait for it.
   * @throws WheelFullError when `maxTimers` or the machine does not allow that many
   */
  reserve(timers: number): void {
    if (!Number.isInteger(timers) || timers < 0) {
      throw new InvalidArgumentError(`timers is ${describe(timers)}; allowed: an integer ≥ 0`);
    }
    this.#reserve(timers);
    this.#native.touch(timers);
  }

  /**
   * A timer due at `dueTick`, any safe integer ≥ 0; one at or before now expires on the next
   * `advance`. `ref` is the caller's, an integer from 0 to 2³² − 1.
   * @throws InvalidArgumentError, WheelFullError
   */
  insert(dueTick: number, ref: number): TimerHandle {
    if (!isTick(dueTick)) throw invalidTick('dueTick', dueTick);
    if (typeof ref !== 'number' || ref >>> 0 !== ref) throw invalidRef('ref', ref);
    const handle = this.#native.insert(dueTick, ref);
    return handle > 0 ? handle : this.#insertOutside(dueTick, ref, handle);
  }

  /**
   * `insert` for each pair, all or nothing; handles in the same order. They are written into
   * `handles` when it is given, as long as `dueTicks`: a host that inserts millions then reuses an
   * array, where each new one may cost page faults (docs/adr/0009).
   * @throws InvalidArgumentError, WheelFullError, having inserted none
   */
  insertMany(dueTicks: Float64Array, refs: Uint32Array, handles?: Float64Array): Float64Array {
    checkBatch(dueTicks, refs);
    if (handles !== undefined) checkHandles(handles, dueTicks.length);
    const count = dueTicks.length;
    this.#reserve(count);
    const into = handles ?? new Float64Array(count);
    for (let from = 0; from < count; from += this.#batchMax) {
      const to = Math.min(from + this.#batchMax, count);
      into.set(this.#insertBatch(dueTicks.subarray(from, to), refs.subarray(from, to)), from);
    }
    return into;
  }

  /** True when the timer was live; false, and nothing happens, for any other number. */
  cancel(handle: TimerHandle): boolean {
    if (typeof handle !== 'number') throw invalidHandle(handle);
    const outcome = this.#native.cancel(handle);
    if (outcome > 1) this.#heapOf(outcome).removeAt(placeOf(outcome));
    return outcome !== 0;
  }

  /** `cancel` for each; how many were live. */
  cancelMany(handles: Float64Array): number {
    if (!(handles instanceof Float64Array)) {
      throw new InvalidArgumentError(`handles is ${describe(handles)}; allowed: a Float64Array`);
    }
    let live = 0;
    for (let from = 0; from < handles.length; from += this.#batchMax) {
      const batch = handles.subarray(from, from + this.#batchMax);
      this.#refreshViews();
      this.#scratchTicks.set(batch);
      let done = this.#native.cancelMany(0, batch.length);
      // It stops before each parked timer: the places of those change with every one that leaves.
      while (done < batch.length) {
        if (this.cancel(batch[done]!)) live += 1;
        done = this.#native.cancelMany(done + 1, batch.length);
      }
      live += this.#native.cancelled();
    }
    return live;
  }

  /**
   * Gives a live timer another due tick under the same handle; false when the handle is stale.
   * Moving it to later is cheaper than a cancel: its due is rewritten where it is.
   * @throws InvalidArgumentError
   */
  reschedule(handle: TimerHandle, dueTick: number): boolean {
    if (!isTick(dueTick)) throw invalidTick('dueTick', dueTick);
    if (typeof handle !== 'number') throw invalidHandle(handle);
    const outcome = this.#native.reschedule(handle, dueTick);
    if (outcome === 2) this.#rescheduleOutside(handle, dueTick);
    return outcome !== 0;
  }

  /**
   * Expires timers due at or before `nowTick`, in order of due tick: at most `max` of them, and at
   * most `max` or 4096 cascade moves, so a call's time is bounded whatever is due. With `more`,
   * call again; timers inserted, cancelled and rescheduled in between are taken into account. An
   * earlier tick than before does nothing. A jump over idle time, of whatever length, is O(levels).
   * @throws InvalidArgumentError
   */
  advance(nowTick: number, max: number = EXPIRIES_MAX_DEFAULT): Expired {
    if (!isTick(nowTick)) throw invalidTick('nowTick', nowTick);
    if (!Number.isSafeInteger(max) || max < 1) {
      throw new InvalidArgumentError(`max is ${describe(max)}; allowed: an integer ≥ 1`);
    }
    this.#expiries = 0;
    this.#cascadeMoves = 0;
    if (nowTick < this.#nowTick) return { refs: NO_REFS, more: false };
    this.#nowTick = nowTick;
    const refs = this.#refsFor(max);
    const movesMax = Math.max(max, CASCADE_MOVES_MIN);
    let more = this.#expireOverdue(refs, max);
    if (!more) more = this.#advanceWheel(refs, max, movesMax);
    return { refs: refs.subarray(0, this.#expiries), more };
  }

  /** The exact due tick of the earliest timer. Cached; else scans the first occupied slot. */
  nextExpiry(): number | undefined {
    return this.#earliestWith(this.#native.nextExpiry());
  }

  /** A tick at or before the earliest timer's due, after the last finished `advance`. O(levels). */
  nextWake(): number | undefined {
    return this.#earliestWith(this.#native.nextWake());
  }

  /** Gives the memory back. Closing twice is allowed. */
  close(): void {
    this.#native = closedNativeWheel();
    this.#nowTick = 0; // No tick is earlier, so `advance` too gets as far as the closed instance.
    this.#overdue = new OverflowHeap(() => {});
    this.#far = new OverflowHeap(() => {});
    this.#refs = NO_REFS;
    this.#scratchTicks = new Float64Array(0);
    this.#scratchRefs = NO_REFS;
    this.#scratchExpired = NO_REFS;
  }

  #earliestWith(wheelTick: number): number | undefined {
    const parkedTick = Math.min(this.#overdue.earliestTick, this.#far.earliestTick);
    if (wheelTick < 0) return parkedTick === Number.POSITIVE_INFINITY ? undefined : parkedTick;
    return Math.min(wheelTick, parkedTick);
  }

  #reserve(count: number): void {
    if (count > this.#maxTimers - this.size || !this.#native.reserve(count))
      throw this.#full(count);
  }

  #full(count: number): WheelFullError {
    return new WheelFullError(
      `the wheel holds ${this.size} of at most ${this.#maxTimers} timers; no room for ${count}`,
    );
  }

  /** Inserts what fits into the scratch area; gives a view of the handles there. */
  #insertBatch(dues: Float64Array, refs: Uint32Array): Float64Array {
    this.#refreshViews();
    this.#scratchTicks.set(dues);
    this.#scratchRefs.set(refs);
    let done = this.#native.insertMany(0, dues.length);
    while (done < dues.length) {
      const handle = this.insert(dues[done]!, refs[done]!);
      this.#refreshViews();
      this.#scratchTicks[done] = handle;
      done = this.#native.insertMany(done + 1, dues.length);
    }
    this.#refreshViews();
    return this.#scratchTicks.subarray(0, dues.length);
  }

  #insertOutside(dueTick: number, ref: number, why: number): TimerHandle {
    if (why === FULL) throw this.#full(1);
    const far = why === FAR;
    const handle = this.#native.insertParked(ref, far);
    if (handle === FULL) throw this.#full(1);
    (far ? this.#far : this.#overdue).insert(recordOf(handle), dueTick);
    return handle;
  }

  /** The timer is live, and it is parked or will be. */
  #rescheduleOutside(handle: TimerHandle, dueTick: number): void {
    const record = recordOf(handle);
    const state = this.#native.stateOf(handle);
    if (state > 1) this.#heapOf(state).removeAt(placeOf(state));
    const outside = this.#native.reach(dueTick);
    if (outside === 0) {
      this.#native.enter(record, dueTick);
      return;
    }
    const far = outside === FAR;
    this.#native.park(record, far);
    (far ? this.#far : this.#overdue).insert(record, dueTick);
  }

  /** Expires from the heap of overdue timers; true when some are left. */
  #expireOverdue(refs: Uint32Array, max: number): boolean {
    while (this.#overdue.size > 0 && this.#expiries < max) {
      refs[this.#expiries] = this.#native.expireParked(this.#overdue.pop());
      this.#expiries += 1;
    }
    return this.#overdue.size > 0;
  }

  /**
   * Never beyond the earliest far timer: at that tick, at the latest, it enters the wheel and takes
   * its place in the order.
   */
  #advanceWheel(refs: Uint32Array, max: number, movesMax: number): boolean {
    for (;;) {
      this.#enterFar(movesMax);
      const targetTick = Math.min(this.#nowTick, this.#far.earliestTick);
      const expiriesMax = Math.min(max - this.#expiries, this.#expiredMax);
      const outcome = this.#native.advance(targetTick, expiriesMax, movesMax - this.#cascadeMoves);
      const count = outcome >>> 1;
      if (count > 0) this.#takeExpired(refs, count);
      this.#cascadeMoves += this.#native.cascadeMoves();
      const more = (outcome & 1) === 1 || this.#far.earliestTick <= this.#nowTick;
      if (!more) return false;
      if (this.#expiries === max || this.#cascadeMoves === movesMax) return true;
    }
  }

  #takeExpired(refs: Uint32Array, count: number): void {
    this.#refreshViews();
    refs.set(this.#scratchExpired.subarray(0, count), this.#expiries);
    this.#expiries += count;
  }

  /** Moves far timers that have come within range into the wheel. */
  #enterFar(movesMax: number): void {
    while (this.#far.size > 0 && this.#cascadeMoves < movesMax) {
      const dueTick = this.#far.earliestTick;
      if (this.#native.reach(dueTick) !== 0) return;
      this.#native.enter(this.#far.pop(), dueTick);
      this.#cascadeMoves += 1;
    }
  }

  /** Room for the refs of one advance; kept for the next one unless it is large. */
  #refsFor(max: number): Uint32Array {
    if (max <= this.#refs.length) return this.#refs;
    if (max > this.#expiredMax) return new Uint32Array(Math.min(max, this.size));
    this.#refs = new Uint32Array(max);
    return this.#refs;
  }

  /** `state` is as the native `cancel` tells it: 2 + place × 2 + (1 if far). */
  #heapOf(state: number): OverflowHeap {
    return (state & 1) === 1 ? this.#far : this.#overdue;
  }

  #refreshViews(): void {
    if (this.#scratchTicks.length > 0) return;
    const native = this.#native;
    const { buffer } = native.memory;
    const at = native.scratchAt();
    this.#scratchTicks = new Float64Array(buffer, at, this.#batchMax);
    this.#scratchRefs = new Uint32Array(buffer, native.scratchRefsAt(), this.#batchMax);
    this.#scratchExpired = new Uint32Array(buffer, at, this.#expiredMax);
  }
}

function placeOf(state: number): number {
  return (state - 2) >>> 1;
}

function recordOf(handle: TimerHandle): number {
  return handle % RECORDS_MAX;
}

function isTick(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function checkBatch(dueTicks: Float64Array, refs: Uint32Array): void {
  if (!(dueTicks instanceof Float64Array) || !(refs instanceof Uint32Array)) {
    throw new InvalidArgumentError(
      `dueTicks is ${describe(dueTicks)}, refs is ${describe(refs)}; ` +
        'allowed: a Float64Array and a Uint32Array',
    );
  }
  if (dueTicks.length !== refs.length) {
    throw new InvalidArgumentError(
      `dueTicks has ${dueTicks.length} entries and refs ${refs.length}; allowed: as many of each`,
    );
  }
  for (let i = 0; i < dueTicks.length; i++) {
    const dueTick = dueTicks[i]!;
    // Math.floor is one instruction; an infinity fails the comparison, NaN both.
    if (!(dueTick >= 0 && dueTick <= Number.MAX_SAFE_INTEGER && Math.floor(dueTick) === dueTick)) {
      throw invalidTick(`dueTicks[${i}]`, dueTick);
    }
  }
}

function checkHandles(handles: unknown, count: number): void {
  if (handles instanceof Float64Array && handles.length === count) return;
  const given = handles instanceof Float64Array ? `${handles.length} entries` : describe(handles);
  throw new InvalidArgumentError(
    `handles is ${given}; allowed: a Float64Array of ${count} entries, as many as dueTicks has`,
  );
}

function invalidTick(name: string, value: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `${name} is ${describe(value)}; allowed: an integer from 0 to ${Number.MAX_SAFE_INTEGER}`,
  );
}

function invalidHandle(handle: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `handle is ${describe(handle)}; allowed: a number that insert returned`,
  );
}

function invalidRef(name: string, value: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `${name} is ${describe(value)}; allowed: an integer from 0 to ${0xffff_ffff}`,
  );
}
