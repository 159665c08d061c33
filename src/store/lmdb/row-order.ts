/**
 * Tasks in the order of their ids, made ready a piece at a time: to sort the 32,768 of a generation with a function that
 * compares took 23 ms, in which nothing could start. An id begins with a time, and an array of numbers sorts itself (4 ms), so
 * each task is one number, of time and place. Those of one unit of time are in the order in which they came: neighbours share
 * their page of the tree, and that is all the order is for.
 */

/** Ids before this (2020) are all first, and those after 2089 all last. */
const BASE_MS = 1_577_836_800_000;
/** Of up to 65,536 tasks. */
const UNIT_MS = 16;
const PLACES = 2 ** 16;
/** What a number can tell apart. */
const NUMBER_MAX = 2 ** 53;

export class RowOrder<T> {
  readonly #source: Iterator<T>;
  readonly #millisOf: (row: T) => number;
  readonly #rows: T[] = [];
  readonly #keys: Float64Array;
  readonly #places: number;
  readonly #unitMs: number;
  readonly #unitsMax: number;
  #isReady = false;
  #next = 0;

  /** @param rows do not change meanwhile */
  constructor(rows: Iterable<T>, size: number, millisOf: (row: T) => number) {
    this.#source = rows[Symbol.iterator]();
    this.#millisOf = millisOf;
    this.#keys = new Float64Array(size);
    this.#places = 2 ** Math.max(16, Math.ceil(Math.log2(size + 1)));
    this.#unitsMax = NUMBER_MAX / this.#places - 1;
    this.#unitMs = (UNIT_MS * this.#places) / PLACES;
  }

  /** Looks at so many more. @returns true when `next` may be asked */
  prepare(max: number): boolean {
    for (let i = 0; i < max && !this.#isReady; i++) this.#take();
    return this.#isReady;
  }

  #take(): void {
    const { value, done } = this.#source.next();
    if (done === true) {
      this.#keys.sort();
      this.#isReady = true;
      return;
    }
    const units = Math.floor((this.#millisOf(value) - BASE_MS) / this.#unitMs);
    const place = this.#rows.length;
    this.#keys[place] = Math.min(Math.max(units, 0), this.#unitsMax) * this.#places + place;
    this.#rows.push(value);
  }

  /** All were given. */
  get isOver(): boolean {
    return this.#isReady && this.#next === this.#keys.length;
  }

  /** When there is one. */
  next(): T {
    const key = this.#keys[this.#next++];
    return this.#rows[key - Math.floor(key / this.#places) * this.#places];
  }
}
