import { assert } from '../core/assert.js';

/**
 * A 4-ary min-heap of wheel records by due tick, on typed arrays: the timers whose due lies outside
 * the wheel's range. 12 bytes a timer. Insert, pop and remove are O(log n).
 *
 * 1. No entry is due before its parent, the entry at (place − 1) >> 2.
 * 2. `onPlace` has been told the place of every entry, so `removeAt` finds one by its record.
 */
export class OverflowHeap {
  #dueTicks = new Float64Array(0);
  #records = new Uint32Array(0);
  #size = 0;
  readonly #onPlace: (record: number, place: number) => void;

  constructor(onPlace: (record: number, place: number) => void) {
    this.#onPlace = onPlace;
  }

  get size(): number {
    return this.#size;
  }

  get memoryBytes(): number {
    return this.#dueTicks.byteLength + this.#records.byteLength;
  }

  /** The earliest due tick, `Infinity` when empty. */
  get earliestTick(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#dueTicks[0]!;
  }

  insert(record: number, dueTick: number): void {
    if (this.#size === this.#records.length) this.#resize(Math.ceil(this.#size * 1.25) + 16);
    this.#size += 1;
    this.#siftUp(this.#size - 1, record, dueTick);
  }

  /** Removes the earliest entry and gives its record. */
  pop(): number {
    assert(this.#size > 0, 'pop from an empty overflow heap');
    const record = this.#records[0]!;
    this.removeAt(0);
    return record;
  }

  removeAt(place: number): void {
    assert(place < this.#size, 'an overflow place outside the heap');
    this.#size -= 1;
    const last = this.#size;
    if (place !== last) {
      const record = this.#records[last]!;
      const dueTick = this.#dueTicks[last]!;
      const parent = (place - 1) >> 2;
      if (place > 0 && dueTick < this.#dueTicks[parent]!) this.#siftUp(place, record, dueTick);
      else this.#siftDown(place, record, dueTick);
    }
    if (this.#size * 4 < this.#records.length - 64) this.#resize(this.#size * 2);
  }

  #siftUp(from: number, record: number, dueTick: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      if (this.#dueTicks[parent]! <= dueTick) break;
      this.#put(place, this.#records[parent]!, this.#dueTicks[parent]!);
      place = parent;
    }
    this.#put(place, record, dueTick);
  }

  #siftDown(from: number, record: number, dueTick: number): void {
    let place = from;
    for (;;) {
      const child = this.#earliestChild(place);
      if (child < 0 || this.#dueTicks[child]! >= dueTick) break;
      this.#put(place, this.#records[child]!, this.#dueTicks[child]!);
      place = child;
    }
    this.#put(place, record, dueTick);
  }

  #earliestChild(place: number): number {
    const first = place * 4 + 1;
    const end = Math.min(first + 4, this.#size);
    let best = -1;
    for (let child = first; child < end; child++) {
      if (best < 0 || this.#dueTicks[child]! < this.#dueTicks[best]!) best = child;
    }
    return best;
  }

  #put(place: number, record: number, dueTick: number): void {
    this.#records[place] = record;
    this.#dueTicks[place] = dueTick;
    this.#onPlace(record, place);
  }

  #resize(length: number): void {
    const dueTicks = new Float64Array(length);
    const records = new Uint32Array(length);
    dueTicks.set(this.#dueTicks.subarray(0, this.#size));
    records.set(this.#records.subarray(0, this.#size));
    this.#dueTicks = dueTicks;
    this.#records = records;
  }
}
