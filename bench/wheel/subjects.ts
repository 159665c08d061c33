/** What is measured, behind one face: the wheel in batches, the wheel call by call, and the heap. */
import type { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { must } from '../lib/report.js';
import type { LazyHeap } from './heap.js';

/** Operations over many timers; `refs[i]` is i. None checks anything: that is the workloads' work. */
export interface Subject {
  readonly name: string;
  readonly size: number;
  /** Leaves a handle for each. */
  insertAll(dueTicks: Float64Array, refs: Uint32Array, handles: Float64Array): void;
  /** How many were live. */
  cancelAll(handles: Float64Array): number;
  /** Expires what is due at `nowTick` into `into` from `at` on; how many. */
  expire(nowTick: number, into: Uint32Array, at: number): number;
}

/** As many as a host that gathers its work hands over at once. */
const BATCH = 4096;

export function batched(wheel: TimerWheel): Subject {
  return {
    name: 'wheel, batched',
    get size() {
      return wheel.size;
    },
    insertAll(dueTicks, refs, handles) {
      for (let from = 0; from < dueTicks.length; from += BATCH) {
        const to = from + BATCH;
        wheel.insertMany(
          dueTicks.subarray(from, to),
          refs.subarray(from, to),
          handles.subarray(from, to),
        );
      }
    },
    cancelAll(handles) {
      let live = 0;
      for (let from = 0; from < handles.length; from += BATCH) {
        live += wheel.cancelMany(handles.subarray(from, from + BATCH));
      }
      return live;
    },
    expire: (nowTick, into, at) => expireWheel(wheel, nowTick, into, at),
  };
}

export function oneCallEach(wheel: TimerWheel): Subject {
  return {
    name: 'wheel, one call each',
    get size() {
      return wheel.size;
    },
    insertAll(dueTicks, refs, handles) {
      for (let i = 0; i < dueTicks.length; i++) handles[i] = wheel.insert(dueTicks[i]!, refs[i]!);
    },
    cancelAll(handles) {
      let live = 0;
      for (let i = 0; i < handles.length; i++) if (wheel.cancel(handles[i]!)) live += 1;
      return live;
    },
    expire: (nowTick, into, at) => expireWheel(wheel, nowTick, into, at),
  };
}

function expireWheel(wheel: TimerWheel, nowTick: number, into: Uint32Array, at: number): number {
  let count = 0;
  for (;;) {
    const { refs, more } = wheel.advance(nowTick);
    into.set(refs, at + count);
    count += refs.length;
    if (!more) return count;
  }
}

/**
 * Each insert takes an id that was not used before, of `capacity` ids in all: a cancelled timer
 * keeps its own until it leaves the heap. The ids' refs are the subject's to know.
 */
export function heapOf(heap: LazyHeap, capacity: number): Subject {
  const refOf = new Uint32Array(capacity).fill(1);
  let next = 0;
  return {
    name: 'typed-array heap',
    get size() {
      return heap.size;
    },
    insertAll(dueTicks, refs, handles) {
      for (let i = 0; i < dueTicks.length; i++) {
        const id = next;
        next = id + 1 === capacity ? 0 : id + 1;
        refOf[id] = refs[i]!;
        must(heap.insert(dueTicks[i]!, id), 'the heap has an id to spare');
        handles[i] = id;
      }
    },
    cancelAll(handles) {
      let live = 0;
      for (let i = 0; i < handles.length; i++) if (heap.cancel(handles[i]!)) live += 1;
      return live;
    },
    expire(nowTick, into, at) {
      const count = heap.advance(nowTick, into, at);
      for (let i = at; i < at + count; i++) into[i] = refOf[into[i]!]!;
      return count;
    },
  };
}
