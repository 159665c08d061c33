/**
 * Overdue occurrences for which the ready queue has no room, by lane: 34 bytes each, no object.
 *
 * Each lane is a leftist heap (Crane 1972; Knuth, TAOCP 3, 5.2.3) by priority, due time and
 * arrival. Its nodes lie in one pool: against a heap in an array for each lane, a lane costs
 * nothing while it is empty, pushing and taking are O(log n) at worst, and no growth copies a long
 * lane.
 *
 *   words of a node  0 slot · 1 stamp · 2 left · 3 right · 4–5 due (f64) · 6 arrival
 *                    7 priority 8 bits | rank 8 bits
 *
 * Cancelling is lazy: an entry whose stamp is not its slot's any more is stale, and is passed over
 * when it comes up. A lane more than half stale is swept, some nodes with each call, so that stale
 * ones never pile up.
 */
import { assert } from '../core/assert.js';
import { Slots } from '../core/slots.js';
import { grown } from './lane-table.js';

export { type LaneName, LaneTable } from './lane-table.js';

/** What an entry is checked against: the near table. */
export interface Stamps {
  stamp(slot: number): number;
}

export interface BacklogEntry {
  slot: number;
  stamp: number;
}

const CHUNK_BITS = 13;
const CHUNK = 1 << CHUNK_BITS;
const IN_CHUNK = CHUNK - 1;
const WORDS = 8;
const SLOT = 0;
const STAMP = 1;
const LEFT = 2;
const RIGHT = 3;
/** In the numbers, of which a node has half as many as words. */
const DUE = 2;
const ARRIVAL = 6;
const META = 7;
/** Stale entries passed over by one `take` at most. */
const SKIPS_A_TAKE = 1024;
/** Nodes looked at with each call, while a lane is swept. */
const SWEEPS_A_CALL = 8;
/** Lanes this short are swept at once. */
const SWEEP_AT_ONCE = 64;
const NONE = 0xffff_ffff;
/** Of a node, in Slots. */
const LINK_BYTES = 2;
const NOTHING = new ArrayBuffer(0);

export class Backlog {
  readonly #stamps: Stamps;
  // Nodes are numbered from 1; 0 is none.
  readonly #words: Uint32Array[] = [];
  readonly #numbers: Float64Array[] = [];
  readonly #nodes = new Slots(
    {
      add: (chunk) => this.#setChunk(chunk, new ArrayBuffer(CHUNK * WORDS * 4)),
      drop: (chunk) => this.#setChunk(chunk, NOTHING),
    },
    CHUNK_BITS,
    2 ** 32,
    1,
  );
  #arrivals = 0;
  #size = 0;
  // By lane.
  #roots = new Uint32Array(64);
  #counts = new Uint32Array(64);
  #stale = new Uint32Array(64);
  /** The entry that was pushed last, while it is there. */
  #last = new Uint32Array(64);
  /** Lanes with entries are linked in a ring. */
  #after = new Uint32Array(64);
  #before = new Uint32Array(64);
  /** The lane whose turn is next; NONE when all are empty. */
  #turn = NONE;
  #lanes = 0;
  /** Lanes being swept → the tree of what was looked at and kept; `#roots` has what was not. */
  readonly #sweeps = new Map<number, number>();
  readonly #entry: BacklogEntry = { slot: 0, stamp: 0 };
  /** Right sides of two trees of 2³² nodes. */
  readonly #path = new Uint32Array(64);

  constructor(stamps: Stamps) {
    this.#stamps = stamps;
  }

  /** Entries, without those reported as dropped. */
  get size(): number {
    return this.#size;
  }

  sizeOf(lane: number): number {
    return lane < this.#counts.length ? this.#counts[lane] - this.#stale[lane] : 0;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.#nodes.chunks * CHUNK * (WORDS * 4 + LINK_BYTES) + this.#roots.length * 6 * 4;
  }

  /** Enters the occurrence in that slot; `stamp` is its slot's present one. O(log n). */
  push(lane: number, slot: number, stamp: number, priority: number, dueAt: number): void {
    while (lane >= this.#roots.length) this.#growLanes();
    const node = this.#nodes.alloc();
    const words = this.#words[node >>> CHUNK_BITS];
    const at = (node & IN_CHUNK) * WORDS;
    words[at + SLOT] = slot;
    words[at + STAMP] = stamp;
    words[at + LEFT] = 0;
    words[at + RIGHT] = 0;
    words[at + ARRIVAL] = this.#arrivals++;
    words[at + META] = (priority << 8) | 1;
    this.#numbers[node >>> CHUNK_BITS][(at >>> 1) + DUE] = dueAt;
    if (this.#counts[lane]++ === 0) this.#enterRing(lane);
    this.#size++;
    this.#sweep(lane, SWEEPS_A_CALL);
    this.#add(lane, node);
  }

  /**
   * Takes out the lane's first entry: by priority, due time, arrival. Undefined when none is left,
   * or when very many stale ones had to be passed over; then `sizeOf` is not 0 yet. The object is
   * valid until the next call. O(log n).
   */
  take(lane: number): BacklogEntry | undefined {
    if (lane >= this.#counts.length) return undefined;
    this.#sweep(lane, SWEEPS_A_CALL);
    for (let skips = 0; skips < SKIPS_A_TAKE && this.#counts[lane] > 0; skips++) {
      const node = this.#takeFirst(lane);
      const words = this.#words[node >>> CHUNK_BITS];
      const at = (node & IN_CHUNK) * WORDS;
      this.#entry.slot = words[at + SLOT];
      this.#entry.stamp = words[at + STAMP];
      const isStale = this.#isStale(node);
      this.#forget(lane, node, isStale);
      if (!isStale) return this.#entry;
    }
    return undefined;
  }

  /**
   * Visits the lanes with entries, each once, until `visit` returns false; the next call goes on
   * with the lane that follows. `visit` may take from its lane.
   */
  forEachLane(visit: (lane: number) => boolean): void {
    for (let left = this.#lanes; left > 0 && this.#turn !== NONE; left--) {
      const lane = this.#turn;
      this.#turn = this.#after[lane];
      if (!visit(lane)) return;
    }
  }

  /** An entry of the lane has become stale: its slot was freed just before. O(log n). */
  dropped(lane: number): void {
    if (lane >= this.#counts.length || this.#stale[lane] >= this.#counts[lane]) return;
    this.#stale[lane]++;
    this.#size--;
    if (2 * this.#stale[lane] > this.#counts[lane] && !this.#sweeps.has(lane)) {
      this.#sweeps.set(lane, 0);
    }
    this.#sweep(lane, SWEEPS_A_CALL);
  }

  // --- lanes
  // -------------------------------------------------------------------------------------------

  #add(lane: number, node: number): void {
    const last = this.#last[lane];
    this.#last[lane] = node;
    if (last !== 0 && this.#isBefore(last, node) && this.#extend(last, node)) return;
    const swept = this.#sweeps.get(lane);
    if (swept === undefined) this.#roots[lane] = this.#merge(this.#roots[lane], node);
    else this.#sweeps.set(lane, this.#merge(swept, node));
  }

  /**
   * Hangs the node below a leaf that comes before it: then a crowd that comes in order is a chain, and a push costs no
   * path through the tree. A left child alone leaves ranks as they are. False: it is no leaf.
   */
  #extend(leaf: number, node: number): boolean {
    const words = this.#words[leaf >>> CHUNK_BITS];
    const at = (leaf & IN_CHUNK) * WORDS;
    if (words[at + LEFT] !== 0) return false;
    words[at + LEFT] = node;
    return true;
  }

  #takeFirst(lane: number): number {
    const root = this.#roots[lane];
    const swept = this.#sweeps.get(lane) ?? 0;
    if (swept !== 0 && (root === 0 || this.#isBefore(swept, root))) {
      this.#sweeps.set(lane, this.#withoutRoot(swept));
      return swept;
    }
    assert(root !== 0, `lane ${lane} of the backlog has lost an entry`);
    this.#roots[lane] = this.#withoutRoot(root);
    return root;
  }

  /**
   * Looks at the next nodes of a lane that is being swept: the stale are freed, the others kept
   * apart.
   */
  #sweep(lane: number, nodesMax: number): void {
    if (this.#sweeps.size === 0) return;
    let swept = this.#sweeps.get(lane);
    if (swept === undefined) return;
    let left = this.#counts[lane] <= SWEEP_AT_ONCE ? SWEEP_AT_ONCE : nodesMax;
    for (; left > 0 && this.#roots[lane] !== 0; left--) {
      const node = this.#roots[lane];
      this.#roots[lane] = this.#withoutRoot(node);
      if (this.#isStale(node)) this.#forget(lane, node, true);
      else {
        this.#leaf(node);
        swept = this.#merge(swept, node);
      }
    }
    if (this.#roots[lane] !== 0) this.#sweeps.set(lane, swept);
    else {
      this.#roots[lane] = swept;
      this.#sweeps.delete(lane);
    }
  }

  #isStale(node: number): boolean {
    const words = this.#words[node >>> CHUNK_BITS];
    const at = (node & IN_CHUNK) * WORDS;
    return this.#stamps.stamp(words[at + SLOT]) !== words[at + STAMP];
  }

  /** The node has left its lane. */
  #forget(lane: number, node: number, isStale: boolean): void {
    this.#leaf(node);
    this.#nodes.free(node);
    if (this.#last[lane] === node) this.#last[lane] = 0;
    if (isStale && this.#stale[lane] > 0) this.#stale[lane]--;
    else this.#size--;
    if (--this.#counts[lane] > 0) return;
    this.#size += this.#stale[lane];
    this.#stale[lane] = 0;
    this.#sweeps.delete(lane);
    this.#leaveRing(lane);
  }

  #enterRing(lane: number): void {
    this.#lanes++;
    if (this.#turn === NONE) {
      this.#after[lane] = lane;
      this.#before[lane] = lane;
      this.#turn = lane;
      return;
    }
    const last = this.#before[this.#turn];
    this.#after[last] = lane;
    this.#before[lane] = last;
    this.#after[lane] = this.#turn;
    this.#before[this.#turn] = lane;
  }

  #leaveRing(lane: number): void {
    this.#lanes--;
    const after = this.#after[lane];
    const before = this.#before[lane];
    this.#after[before] = after;
    this.#before[after] = before;
    if (this.#turn === lane) this.#turn = after === lane ? NONE : after;
  }

  #growLanes(): void {
    this.#roots = grown(this.#roots);
    this.#counts = grown(this.#counts);
    this.#stale = grown(this.#stale);
    this.#last = grown(this.#last);
    this.#after = grown(this.#after);
    this.#before = grown(this.#before);
  }

  // --- nodes
  // -------------------------------------------------------------------------------------------

  #isBefore(a: number, b: number): boolean {
    const words = this.#words[a >>> CHUNK_BITS];
    const otherWords = this.#words[b >>> CHUNK_BITS];
    const at = (a & IN_CHUNK) * WORDS;
    const otherAt = (b & IN_CHUNK) * WORDS;
    const priority = words[at + META] >>> 8;
    const otherPriority = otherWords[otherAt + META] >>> 8;
    if (priority !== otherPriority) return priority < otherPriority;
    const due = this.#numbers[a >>> CHUNK_BITS][(at >>> 1) + DUE];
    const otherDue = this.#numbers[b >>> CHUNK_BITS][(otherAt >>> 1) + DUE];
    if (due !== otherDue) return due < otherDue;
    // Arrivals wrap around; those of living nodes lie within half the range.
    return ((words[at + ARRIVAL] - otherWords[otherAt + ARRIVAL]) | 0) < 0;
  }

  /** The tree of both; the path down the right sides is at most twice log2 of the nodes. */
  #merge(first: number, second: number): number {
    const path = this.#path;
    let depth = 0;
    let a = first;
    let b = second;
    while (a !== 0 && b !== 0) {
      if (this.#isBefore(b, a)) {
        const lower = a;
        a = b;
        b = lower;
      }
      path[depth++] = a;
      a = this.#words[a >>> CHUNK_BITS][(a & IN_CHUNK) * WORDS + RIGHT];
    }
    let tree = a === 0 ? b : a;
    while (depth > 0) {
      const node = path[--depth];
      this.#setRight(node, tree);
      tree = node;
    }
    return tree;
  }

  /** Puts the subtree on the right, or on the left when it is the deeper one there. */
  #setRight(node: number, tree: number): void {
    const words = this.#words[node >>> CHUNK_BITS];
    const at = (node & IN_CHUNK) * WORDS;
    const left = words[at + LEFT];
    const swap = this.#rank(left) < this.#rank(tree);
    const right = swap ? left : tree;
    words[at + LEFT] = swap ? tree : left;
    words[at + RIGHT] = right;
    words[at + META] = (words[at + META] & ~0xff) | (this.#rank(right) + 1);
  }

  /** Nodes on the way down the right side; 0 for none. */
  #rank(node: number): number {
    return node === 0
      ? 0
      : this.#words[node >>> CHUNK_BITS][(node & IN_CHUNK) * WORDS + META] & 0xff;
  }

  #withoutRoot(root: number): number {
    const words = this.#words[root >>> CHUNK_BITS];
    const at = (root & IN_CHUNK) * WORDS;
    return this.#merge(words[at + LEFT], words[at + RIGHT]);
  }

  #leaf(node: number): void {
    const words = this.#words[node >>> CHUNK_BITS];
    const at = (node & IN_CHUNK) * WORDS;
    words[at + LEFT] = 0;
    words[at + RIGHT] = 0;
    words[at + META] = (words[at + META] & ~0xff) | 1;
  }

  #setChunk(chunk: number, buffer: ArrayBuffer): void {
    this.#words[chunk] = new Uint32Array(buffer);
    this.#numbers[chunk] = new Float64Array(buffer);
  }
}
