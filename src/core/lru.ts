/** A small cache of what is costly to make again: a Map whose order of insertion is the order of use. */
export class LruCache<V> {
  readonly #entries = new Map<string, V>();
  readonly #entriesMax: number;

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  /** The value of `key`, made now if it is not kept. When `make` throws, nothing is kept. O(1). */
  take(key: string, make: () => V): V {
    let value = this.#entries.get(key);
    if (value === undefined) {
      value = make();
      if (this.#entries.size >= this.#entriesMax) {
        this.#entries.delete(this.#entries.keys().next().value as string);
      }
    } else {
      this.#entries.delete(key);
    }
    this.#entries.set(key, value);
    return value;
  }
}
