/**
 * A binary heap of (time, u32) in chunks of typed arrays, 12 bytes an entry. Appending times that grow, as
 * ends do, costs O(1); taking the earliest O(log n).
 */
const CHUNK_BITS = 12;
const CHUNK = 1 << CHUNK_BITS;
const MASK = CHUNK - 1;

export class TimeHeap {
  readonly #times: Float64Array[] = [];
  readonly #refs: Uint32Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#times.length * CHUNK * 12;
  }

  /** Undefined when empty. */
  get earliest(): number | undefined {
    return this.#size === 0 ? undefined : this.#times[0][0];
  }

  push(time: number, ref: number): void {
    if (this.#size >>> CHUNK_BITS === this.#times.length) {
      this.#times.push(new Float64Array(CHUNK));
      this.#refs.push(new Uint32Array(CHUNK));
    }
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (this.#time(parent) <= time) break;
      this.#set(at, this.#time(parent), this.#ref(parent));
      at = parent;
    }
    this.#set(at, time, ref);
  }

  /** The reference with the earliest time; the heap must not be empty. */
  pop(): number {
    const first = this.#refs[0][0];
    this.#size -= 1;
    const last = this.#size;
    if (last > 0) this.#sink(this.#time(last), this.#ref(last));
    // One empty chunk is kept, so that a size at its edge does not free and allocate all the time.
    if ((last >>> CHUNK_BITS) + 2 < this.#times.length) {
      this.#times.pop();
      this.#refs.pop();
    }
    return first;
  }

  clear(): void {
    this.#times.length = 0;
    this.#refs.length = 0;
    this.#size = 0;
  }

  #sink(time: number, ref: number): void {
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#time(child + 1) < this.#time(child)) child += 1;
      if (time <= this.#time(child)) break;
      this.#set(at, this.#time(child), this.#ref(child));
      at = child;
    }
    this.#set(at, time, ref);
  }

  #time(at: number): number {
    return this.#times[at >>> CHUNK_BITS][at & MASK];
  }

  #ref(at: number): number {
    return this.#refs[at >>> CHUNK_BITS][at & MASK];
  }

  #set(at: number, time: number, ref: number): void {
    this.#times[at >>> CHUNK_BITS][at & MASK] = time;
    this.#refs[at >>> CHUNK_BITS][at & MASK] = ref;
  }
}
