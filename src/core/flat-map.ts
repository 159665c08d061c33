/**
 * A hash table for what comes and goes by the ten thousand a second (open addressing, linear probing, removal by shifting
 * back; Knuth, TAOCP 3, 6.4).
 *
 * Not a Map: each time V8 makes the table of a Map anew, which it does after every few removals, the old table points to
 * the new one. Once one of them has survived two young collections, it keeps all that follow alive, with whatever was in
 * them, until the next full collection: that was two thirds of all that was copied by young collections.
 */

const PLACES_MIN = 64;

/** Well spread whole numbers of 32 bits. */
export type Hash<K> = (key: K) => number;

export class FlatMap<K extends string | number, V> {
  readonly #hash: Hash<K>;
  #keys: (K | undefined)[] = places();
  #values: (V | undefined)[] = places();
  #size = 0;

  constructor(hash: Hash<K>) {
    this.#hash = hash;
  }

  get size(): number {
    return this.#size;
  }

  /** O(1), as all that follow. */
  get(key: K): V | undefined {
    return this.#values[this.#placeOf(key)];
  }

  has(key: K): boolean {
    return this.#keys[this.#placeOf(key)] !== undefined;
  }

  set(key: K, value: V): void {
    let place = this.#placeOf(key);
    if (this.#keys[place] === undefined) {
      if (this.#size * 2 >= this.#keys.length) {
        this.#grow();
        place = this.#placeOf(key);
      }
      this.#keys[place] = key;
      this.#size++;
    }
    this.#values[place] = value;
  }

  delete(key: K): boolean {
    let free = this.#placeOf(key);
    const keys = this.#keys;
    const values = this.#values;
    if (keys[free] === undefined) return false;
    this.#size--;
    const mask = keys.length - 1;
    for (let at = (free + 1) & mask; ; at = (at + 1) & mask) {
      const moved = keys[at];
      if (moved === undefined) break;
      // It may move to the free place unless that lies before the one where its search begins.
      const home = this.#hash(moved) & mask;
      if (((at - home) & mask) < ((at - free) & mask)) continue;
      keys[free] = moved;
      values[free] = values[at];
      free = at;
    }
    keys[free] = undefined;
    values[free] = undefined;
    return true;
  }

  clear(): void {
    this.#keys = places();
    this.#values = places();
    this.#size = 0;
  }

  /** In no order. Nothing may be set or deleted meanwhile. O(the most that there ever were). */
  *values(): IterableIterator<V> {
    for (let place = 0; place < this.#keys.length; place++) {
      if (this.#keys[place] !== undefined) yield this.#values[place] as V;
    }
  }

  /** Where the key is, or the free place where it would be put. */
  #placeOf(key: K): number {
    const keys = this.#keys;
    const mask = keys.length - 1;
    let place = this.#hash(key) & mask;
    while (keys[place] !== undefined && keys[place] !== key) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = places(2 * keys.length);
    this.#values = places(2 * keys.length);
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at];
      if (key === undefined) continue;
      const place = this.#placeOf(key);
      this.#keys[place] = key;
      this.#values[place] = values[at];
    }
  }
}

function places<T>(count = PLACES_MIN): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}

/** Of numbers that are given out one after the other. */
export function hashOfNumber(key: number): number {
  return Math.imul(key, 0x9e37_79b1) >>> 7;
}
