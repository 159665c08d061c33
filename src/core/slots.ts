/**
 * Numbers of slots that lie in chunks, given out and taken back. A chunk of which nothing is used is dropped, so that a
 * table falls back to what it holds, but for one that is kept, so that a size at its edge does not free and allocate all
 * the time. A freed slot is the next of its chunk to be used, and the chunk that was freed from last the next to be used
 * up: what is touched is warm.
 *
 *   slot ──┬── upper bits: chunk
 *          └── lower `bits`: place in the chunk
 */
import { assert } from './assert.js';

/** Who has the chunks' memory. */
export interface ChunkOwner {
  /** The chunk is used from now on: one with a number that was dropped, or the next number. */
  add(chunk: number): void;
  drop(chunk: number): void;
}

interface Chunk {
  readonly number: number;
  /** Of each free place the next, + 1. */
  readonly links: Uint16Array;
  /** The free place to be used next, + 1; 0: none but those that were never used. */
  free: number;
  /** Places from here on were never used. */
  fresh: number;
  used: number;
  /** Neighbours among the chunks with room. */
  before: Chunk | undefined;
  after: Chunk | undefined;
}

export class Slots {
  readonly #bits: number;
  readonly #size: number;
  readonly #max: number;
  readonly #reserved: number;
  readonly #owner: ChunkOwner;
  readonly #chunks: (Chunk | undefined)[] = [];
  /** Numbers of dropped chunks. */
  readonly #dropped: number[] = [];
  /** The first of the chunks with room. */
  #roomy: Chunk | undefined;
  #used = 0;

  /**
   * @param bits of a place in its chunk, 0 to 15
   * @param max slots in all
   * @param reserved the first so many slots are never given out, a chunk at most
   */
  constructor(owner: ChunkOwner, bits: number, max: number, reserved = 0) {
    this.#owner = owner;
    this.#bits = bits;
    this.#size = 2 ** bits;
    this.#max = max;
    this.#reserved = reserved;
  }

  /** Slots given out. */
  get used(): number {
    return this.#used;
  }

  /** Chunks that have memory. */
  get chunks(): number {
    return this.#chunks.length - this.#dropped.length;
  }

  /** No slot ever given out is as great. */
  get end(): number {
    return this.#chunks.length * this.#size;
  }

  usedIn(chunk: number): number {
    return this.#chunks[chunk]?.used ?? 0;
  }

  /** O(1), but for a new chunk now and then. */
  alloc(): number {
    const chunk = this.#roomy ?? this.#grow();
    const { free } = chunk;
    let place = chunk.fresh;
    if (free === 0) chunk.fresh++;
    else {
      place = free - 1;
      chunk.free = chunk.links[place];
    }
    this.#used++;
    if (++chunk.used === this.#size) this.#unlink(chunk);
    return chunk.number * this.#size + place;
  }

  /** The slot was given out. O(1). */
  free(slot: number): void {
    const chunk = this.#chunks[slot >>> this.#bits];
    assert(chunk !== undefined, `slot ${slot} is in use`);
    const place = slot & (this.#size - 1);
    chunk.links[place] = chunk.free;
    chunk.free = place + 1;
    this.#used--;
    if (chunk.used-- === this.#size) this.#link(chunk);
    const isLast = chunk.before === undefined && chunk.after === undefined;
    if (chunk.used === 0 && !isLast) this.#drop(chunk);
  }

  #grow(): Chunk {
    const number = this.#dropped.pop() ?? this.#chunks.length;
    assert((number + 1) * this.#size <= this.#max, `${this.#max} slots are all there are`);
    const reserved = number === 0 ? this.#reserved : 0;
    const chunk: Chunk = {
      number,
      links: new Uint16Array(this.#size),
      free: 0,
      fresh: reserved,
      // What is reserved is never freed, so that its chunk stays.
      used: reserved,
      before: undefined,
      after: undefined,
    };
    this.#owner.add(number);
    this.#chunks[number] = chunk;
    if (reserved === this.#size) return this.#grow();
    this.#link(chunk);
    return chunk;
  }

  #drop(chunk: Chunk): void {
    this.#unlink(chunk);
    this.#chunks[chunk.number] = undefined;
    this.#dropped.push(chunk.number);
    this.#owner.drop(chunk.number);
  }

  #link(chunk: Chunk): void {
    chunk.after = this.#roomy;
    if (this.#roomy !== undefined) this.#roomy.before = chunk;
    this.#roomy = chunk;
  }

  #unlink(chunk: Chunk): void {
    if (chunk.before === undefined) this.#roomy = chunk.after;
    else chunk.before.after = chunk.after;
    if (chunk.after !== undefined) chunk.after.before = chunk.before;
    chunk.before = undefined;
    chunk.after = undefined;
  }
}
