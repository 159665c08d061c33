/**
 * Every occurrence that timing knows in memory, in typed arrays: 58 bytes a row and about 4 of hash
 * index.
 *
 *   words of a row (u32)  0–3 task id · 4 generation
 *                         5 link to the next row of the bucket
 *                         6 lane 24 bits | flags 8 bits
 *                         7 stamp 25 bits | priority 4 bits | kind 2 bits | used 1 bit
 *                         8–9 ordinal (f64) · 10–11 due (f64) · 12–13 wheel handle (f64)
 *
 * A link is a slot + 1, 0 ends a chain. Rows and buckets come in chunks, and the index grows by one
 * bucket at a time (linear hashing, Litwin 1980), so no insertion copies the table. A chunk of rows goes when none of
 * them is in use (core/slots.ts); buckets stay.
 */
import { assert } from '../core/assert.js';
import type { OccurrenceKind } from '../core/model.js';
import { Slots } from '../core/slots.js';
import { formatUuid } from '../core/uuid.js';
import { formatOccurrenceId, hashOf, KINDS, OccurrenceKey } from './occurrence-key.js';

/** What the table keeps beside the id. */
export interface NearFields {
  /** Wall clock ms. */
  readonly dueAt: number;
  /** The wheel's handle. */
  readonly handle: number;
  /** A number of the lane table. */
  readonly lane: number;
  /** 0–9. */
  readonly priority: number;
  /** 0–255; the caller's. */
  readonly flags: number;
}

const CHUNK_BITS = 13;
const CHUNK = 1 << CHUNK_BITS;
const IN_CHUNK = CHUNK - 1;
const WORDS = 14;
const GENERATION = 4;
const LINK = 5;
const LANE = 6;
const META = 7;
/** Of the words seen as f64. */
const NUMBERS = WORDS / 2;
const ORDINAL = 4;
const DUE = 5;
const HANDLE = 6;
const LANES_MAX = 2 ** 24;
const USED = 1;
const KIND_BIT = 1;
const PRIORITY_BIT = 3;
const STAMP_BIT = 7;
const STAMP_MASK = -1 << STAMP_BIT;
/**
 * Rows a bucket. More saves memory and costs steps along chains: 1.5 on average for a row that is
 * there.
 */
const LOAD = 1;
/** Of a row, in Slots. */
const LINK_BYTES = 2;
/** Stands for the words of a chunk that was dropped: stamps read as 0, which no row has. */
const NOTHING = new Uint32Array(CHUNK * WORDS);
const NO_NUMBERS = new Float64Array(0);
/** Slots are less than this. */
export const SLOTS_MAX = 2 ** 31;

export class NearTable {
  readonly #words: Uint32Array[] = [];
  readonly #numbers: Float64Array[] = [];
  readonly #slots = new Slots(
    { add: (chunk) => this.#addChunk(chunk), drop: (chunk) => this.#dropChunk(chunk) },
    CHUNK_BITS,
    SLOTS_MAX,
  );
  /** What rows of a new chunk have as stamps: greater than any of the chunks that were dropped. */
  #firstStamp = 1;
  readonly #heads: Uint32Array[] = [new Uint32Array(CHUNK)];
  readonly #key = new OccurrenceKey();
  /** Of the key. */
  #hash = 0;
  /** What the last `find` did not find, whose key is at hand. */
  #missed: string | undefined;
  /**
   * A power of two; buckets from `#buckets` − `#base` on to `#base` are still to be split in this
   * round.
   */
  #base = CHUNK;
  #buckets = CHUNK;

  get size(): number {
    return this.#slots.used;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.#slots.chunks * CHUNK * (WORDS * 4 + LINK_BYTES) + this.#heads.length * CHUNK * 4;
  }

  /**
   * Enters the occurrence, or updates its fields when it is here; its slot. The id is well formed.
   * O(1).
   */
  put(occurrenceId: string, fields: NearFields): number {
    const slot = this.find(occurrenceId);
    if (slot < 0) return this.insertMissed(occurrenceId, fields);
    this.#setFields(slot, fields);
    return slot;
  }

  /** Enters the occurrence that the last `find` did not find; its slot. O(1). */
  insertMissed(occurrenceId: string, fields: NearFields): number {
    assert(this.#missed === occurrenceId, `'${occurrenceId}' is no occurrence's id, or is here`);
    this.#missed = undefined;
    const slot = this.#insertKey(this.#hash);
    this.#setFields(slot, fields);
    return slot;
  }

  #setFields(slot: number, fields: NearFields): void {
    const words = this.#words[slot >>> CHUNK_BITS];
    const numbers = this.#numbers[slot >>> CHUNK_BITS];
    const at = (slot & IN_CHUNK) * WORDS;
    const to = (slot & IN_CHUNK) * NUMBERS;
    assert(fields.lane < LANES_MAX, `lane ${fields.lane} is too great a number`);
    words[at + LANE] = (fields.lane << 8) | fields.flags;
    words[at + META] =
      (words[at + META] & STAMP_MASK) |
      (fields.priority << PRIORITY_BIT) |
      (this.#key.kind << KIND_BIT) |
      USED;
    numbers[to + DUE] = fields.dueAt;
    numbers[to + HANDLE] = fields.handle;
  }

  /** The occurrence's slot; −1 when it is not here, or when the text is no id. O(1). */
  find(occurrenceId: string): number {
    this.#missed = undefined;
    if (!this.#key.parse(occurrenceId)) return -1;
    this.#hash = this.#key.hash();
    const slot = this.#findKey(this.#hash);
    if (slot < 0) this.#missed = occurrenceId;
    return slot;
  }

  /** Frees the slot; its stamp grows. O(1). */
  remove(slot: number): void {
    const words = this.#used(slot);
    const at = (slot & IN_CHUNK) * WORDS;
    this.#unlink(slot);
    words[at + META] = (words[at + META] & STAMP_MASK) + (1 << STAMP_BIT);
    this.#slots.free(slot);
  }

  // --- columns
  // -----------------------------------------------------------------------------------------

  dueAt(slot: number): number {
    return this.#number(slot, DUE);
  }

  handle(slot: number): number {
    return this.#number(slot, HANDLE);
  }

  setHandle(slot: number, handle: number): void {
    this.#used(slot);
    this.#numbers[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * NUMBERS + HANDLE] = handle;
  }

  lane(slot: number): number {
    return this.#word(slot, LANE) >>> 8;
  }

  priority(slot: number): number {
    return (this.#word(slot, META) >>> PRIORITY_BIT) & 0xf;
  }

  flags(slot: number): number {
    return this.#word(slot, LANE) & 0xff;
  }

  setFlags(slot: number, flags: number): void {
    const words = this.#used(slot);
    const at = (slot & IN_CHUNK) * WORDS + LANE;
    words[at] = (words[at] & ~0xff) | flags;
  }

  kind(slot: number): OccurrenceKind {
    return KINDS[(this.#word(slot, META) >>> KIND_BIT) & 3];
  }

  generation(slot: number): number {
    return this.#word(slot, GENERATION);
  }

  ordinal(slot: number): number {
    return this.#number(slot, ORDINAL);
  }

  /**
   * Grows when the slot is freed: who kept slot and stamp can tell whether they still mean the
   * same. 0 where nothing is.
   */
  stamp(slot: number): number {
    assert(slot < this.#slots.end, `slot ${slot} was never given out`);
    return this.#words[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * WORDS + META] >>> STAMP_BIT;
  }

  taskIdOf(slot: number): string {
    return formatUuid(this.#used(slot), (slot & IN_CHUNK) * WORDS);
  }

  occurrenceIdOf(slot: number): string {
    const words = this.#used(slot);
    const at = (slot & IN_CHUNK) * WORDS;
    const kind = (words[at + META] >>> KIND_BIT) & 3;
    return formatOccurrenceId(words, at, words[at + GENERATION], kind, this.#number(slot, ORDINAL));
  }

  /**
   * The first slot in use behind `after` (−1 to begin); −1 when there is none. Skips empty chunks
   * whole.
   */
  nextSlot(after: number): number {
    let slot = after + 1;
    while (slot < this.#slots.end) {
      const chunk = slot >>> CHUNK_BITS;
      if (this.#slots.usedIn(chunk) > 0) {
        const words = this.#words[chunk];
        const end = (chunk + 1) * CHUNK;
        for (; slot < end; slot++) {
          if ((words[(slot & IN_CHUNK) * WORDS + META] & USED) !== 0) return slot;
        }
      }
      slot = (chunk + 1) * CHUNK;
    }
    return -1;
  }

  /** The words of the slot's chunk; the slot is in use. */
  #used(slot: number): Uint32Array {
    const words = this.#words[slot >>> CHUNK_BITS];
    assert(
      words !== undefined && (words[(slot & IN_CHUNK) * WORDS + META] & USED) !== 0,
      `slot ${slot} is not in use`,
    );
    return words;
  }

  #word(slot: number, column: number): number {
    return this.#used(slot)[(slot & IN_CHUNK) * WORDS + column];
  }

  #number(slot: number, column: number): number {
    this.#used(slot);
    return this.#numbers[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * NUMBERS + column];
  }

  // --- the index
  // ---------------------------------------------------------------------------------------

  #bucketOf(hash: number): number {
    const bucket = (hash & (2 * this.#base - 1)) >>> 0;
    return bucket < this.#buckets ? bucket : bucket - this.#base;
  }

  #findKey(hash: number): number {
    const { words: key, kind, ordinal } = this.#key;
    const bucket = this.#bucketOf(hash);
    let link = this.#heads[bucket >>> CHUNK_BITS][bucket & IN_CHUNK];
    while (link !== 0) {
      const slot = link - 1;
      const words = this.#words[slot >>> CHUNK_BITS];
      const at = (slot & IN_CHUNK) * WORDS;
      if (
        words[at + 3] === key[3] &&
        words[at + 2] === key[2] &&
        words[at + 1] === key[1] &&
        words[at] === key[0] &&
        words[at + GENERATION] === key[4] &&
        ((words[at + META] >>> KIND_BIT) & 3) === kind &&
        this.#numbers[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * NUMBERS + ORDINAL] === ordinal
      ) {
        return slot;
      }
      link = words[at + LINK];
    }
    return -1;
  }

  #insertKey(hash: number): number {
    // Twice at most: a row asks for 1 / LOAD buckets.
    while (this.size >= this.#buckets * LOAD) this.#split();
    const slot = this.#slots.alloc();
    const words = this.#words[slot >>> CHUNK_BITS];
    const at = (slot & IN_CHUNK) * WORDS;
    const key = this.#key.words;
    for (let i = 0; i <= GENERATION; i++) words[at + i] = key[i];
    this.#numbers[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * NUMBERS + ORDINAL] = this.#key.ordinal;
    const bucket = this.#bucketOf(hash);
    const heads = this.#heads[bucket >>> CHUNK_BITS];
    words[at + LINK] = heads[bucket & IN_CHUNK];
    heads[bucket & IN_CHUNK] = slot + 1;
    return slot;
  }

  #addChunk(chunk: number): void {
    const buffer = new ArrayBuffer(CHUNK * WORDS * 4);
    const words = new Uint32Array(buffer);
    for (let at = META; at < words.length; at += WORDS) words[at] = this.#firstStamp << STAMP_BIT;
    this.#words[chunk] = words;
    this.#numbers[chunk] = new Float64Array(buffer);
  }

  #dropChunk(chunk: number): void {
    const words = this.#words[chunk];
    for (let at = META; at < words.length; at += WORDS) {
      this.#firstStamp = Math.max(this.#firstStamp, words[at] >>> STAMP_BIT);
    }
    this.#words[chunk] = NOTHING;
    this.#numbers[chunk] = NO_NUMBERS;
  }

  #hashOfRow(slot: number): number {
    const words = this.#words[slot >>> CHUNK_BITS];
    const at = (slot & IN_CHUNK) * WORDS;
    const kind = (words[at + META] >>> KIND_BIT) & 3;
    const ordinal = this.#numbers[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * NUMBERS + ORDINAL];
    return hashOf(words, at, words[at + GENERATION], kind, ordinal);
  }

  #unlink(slot: number): void {
    const bucket = this.#bucketOf(this.#hashOfRow(slot));
    let links = this.#heads[bucket >>> CHUNK_BITS];
    let at = bucket & IN_CHUNK;
    while (links[at] !== slot + 1) {
      assert(links[at] !== 0, `slot ${slot} is not in the index`);
      const before = links[at] - 1;
      links = this.#words[before >>> CHUNK_BITS];
      at = (before & IN_CHUNK) * WORDS + LINK;
    }
    links[at] = this.#words[slot >>> CHUNK_BITS][(slot & IN_CHUNK) * WORDS + LINK];
  }

  /** One more bucket: those rows of the next old one that belong there move over. */
  #split(): void {
    const to = this.#buckets;
    const from = to - this.#base;
    const mask = 2 * this.#base - 1;
    if ((to & IN_CHUNK) === 0) this.#heads.push(new Uint32Array(CHUNK));
    const heads = this.#heads[from >>> CHUNK_BITS];
    let link = heads[from & IN_CHUNK];
    let stay = 0;
    let move = 0;
    while (link !== 0) {
      const slot = link - 1;
      const words = this.#words[slot >>> CHUNK_BITS];
      const at = (slot & IN_CHUNK) * WORDS + LINK;
      const next = words[at];
      if ((this.#hashOfRow(slot) & mask) >>> 0 === to) {
        words[at] = move;
        move = link;
      } else {
        words[at] = stay;
        stay = link;
      }
      link = next;
    }
    heads[from & IN_CHUNK] = stay;
    this.#heads[to >>> CHUNK_BITS][to & IN_CHUNK] = move;
    this.#buckets++;
    if (this.#buckets === 2 * this.#base) this.#base *= 2;
  }
}
