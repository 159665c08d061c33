/**
 * What one would write in JavaScript instead: a 4-ary min-heap on typed arrays, 12 bytes a timer and
 * one for its state. A cancel only marks the timer; it leaves when it comes to the top.
 */
const FREE = 0;
const LIVE = 1;
const CANCELLED = 2;

export class LazyHeap {
  readonly #dueTicks: Float64Array;
  readonly #refs: Uint32Array;
  /** By ref, which is the handle: the caller uses each for one timer at a time. */
  readonly #states: Uint8Array;
  #size = 0;
  #live = 0;

  constructor(capacity: number) {
    // Filled, so that no operation pays for a first touch of the memory.
    this.#dueTicks = new Float64Array(capacity).fill(1);
    this.#refs = new Uint32Array(capacity).fill(1);
    this.#states = new Uint8Array(capacity).fill(1).fill(FREE);
  }

  get size(): number {
    return this.#live;
  }

  /** Without cancelled timers as well. */
  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** False while the ref's cancelled timer has not left. */
  insert(dueTick: number, ref: number): boolean {
    if (this.#states[ref] !== FREE) return false;
    this.#states[ref] = LIVE;
    this.#live += 1;
    const dueTicks = this.#dueTicks;
    const refs = this.#refs;
    let place = this.#size++;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      const parentDue = dueTicks[parent]!;
      if (parentDue <= dueTick) break;
      dueTicks[place] = parentDue;
      refs[place] = refs[parent]!;
      place = parent;
    }
    dueTicks[place] = dueTick;
    refs[place] = ref;
    return true;
  }

  cancel(ref: number): boolean {
    if (this.#states[ref] !== LIVE) return false;
    this.#states[ref] = CANCELLED;
    this.#live -= 1;
    return true;
  }

  /** Puts expired refs into `into` from `at` on; how many. */
  advance(nowTick: number, into: Uint32Array, at: number): number {
    let count = 0;
    while (this.#size > 0 && this.#dueTicks[0]! <= nowTick) {
      const ref = this.#refs[0]!;
      if (this.#states[ref] === LIVE) {
        into[at + count] = ref;
        count += 1;
      }
      this.#states[ref] = FREE;
      this.#removeFirst();
    }
    this.#live -= count;
    return count;
  }

  #removeFirst(): void {
    const dueTicks = this.#dueTicks;
    const refs = this.#refs;
    const last = --this.#size;
    const dueTick = dueTicks[last]!;
    const ref = refs[last]!;
    let place = 0;
    for (;;) {
      const first = place * 4 + 1;
      if (first >= last) break;
      let child = first;
      let childDue = dueTicks[first]!;
      const end = Math.min(first + 4, last);
      for (let other = first + 1; other < end; other++) {
        const otherDue = dueTicks[other]!;
        if (otherDue < childDue) {
          child = other;
          childDue = otherDue;
        }
      }
      if (childDue >= dueTick) break;
      dueTicks[place] = childDue;
      refs[place] = refs[child]!;
      place = child;
    }
    dueTicks[place] = dueTick;
    refs[place] = ref;
  }
}
