/**
 * Small numbers for (tenant, handler, version), so that tables of timings hold four bytes instead
 * of three values. Counted references: a number is given out again when nothing uses it any more.
 */
import { assert } from '../core/assert.js';

export interface LaneName {
  readonly tenant: string;
  readonly handler: string;
  readonly version: number | undefined;
}

const NONE = 0xffff_ffff;
const FIRST_CAPACITY = 64;

export class LaneTable {
  /** Tenant → the first of its lanes, the others are linked behind it. */
  readonly #firstOf = new Map<string, number>();
  readonly #names: LaneName[] = [];
  #next = new Uint32Array(FIRST_CAPACITY);
  #references = new Uint32Array(FIRST_CAPACITY);
  /** Lanes given back, linked by `#next`. */
  #free = NONE;
  #size = 0;

  /** Lanes in use. */
  get size(): number {
    return this.#size;
  }

  /** The lane's number, with one more reference to it. O(lanes of the tenant). */
  intern(tenant: string, handler: string, version: number | undefined): number {
    const first = this.#firstOf.get(tenant) ?? NONE;
    for (let lane = first; lane !== NONE; lane = this.#next[lane]) {
      const name = this.#names[lane];
      if (name.handler === handler && name.version === version) {
        this.#references[lane]++;
        return lane;
      }
    }
    const lane = this.#allocate();
    this.#names[lane] = { tenant, handler, version };
    this.#references[lane] = 1;
    this.#next[lane] = first;
    this.#firstOf.set(tenant, lane);
    this.#size++;
    return lane;
  }

  /** References to the lane; 0 where there is none. O(lanes of the tenant). */
  countOf(tenant: string, handler: string, version: number | undefined): number {
    const first = this.#firstOf.get(tenant) ?? NONE;
    for (let lane = first; lane !== NONE; lane = this.#next[lane]) {
      const name = this.#names[lane];
      if (name.handler === handler && name.version === version) return this.#references[lane];
    }
    return 0;
  }

  /** What the number stands for; of a lane given back, what it last stood for. */
  name(lane: number): LaneName {
    const name = this.#names[lane];
    assert(name !== undefined, `lane ${lane} was never given out`);
    return name;
  }

  /** One reference less. O(1), for the last one O(lanes of the tenant). */
  release(lane: number): void {
    assert(this.#references[lane] > 0, `lane ${lane} is released more often than interned`);
    if (--this.#references[lane] > 0) return;
    this.#unlink(lane);
    this.#next[lane] = this.#free;
    this.#free = lane;
    this.#size--;
  }

  #unlink(lane: number): void {
    const { tenant } = this.#names[lane];
    const after = this.#next[lane];
    let before = this.#firstOf.get(tenant) as number;
    if (before !== lane) {
      while (this.#next[before] !== lane) before = this.#next[before];
      this.#next[before] = after;
    } else if (after !== NONE) this.#firstOf.set(tenant, after);
    else this.#firstOf.delete(tenant);
  }

  #allocate(): number {
    if (this.#free !== NONE) {
      const lane = this.#free;
      this.#free = this.#next[lane];
      return lane;
    }
    const lane = this.#names.length;
    if (lane === this.#next.length) {
      this.#next = grown(this.#next);
      this.#references = grown(this.#references);
    }
    return lane;
  }
}

/** A copy with twice the room. */
export function grown(from: Uint32Array): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(from.length * 2);
  to.set(from);
  return to;
}
