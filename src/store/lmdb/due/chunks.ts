/**
 * Chunks: up to 64 entries in one value, so that a commit of many tasks is a few puts.
 *
 *   key  level u8 · start i64 · lane (lane.ts) · 255 − splits u8 · group u64 · number u64
 *
 * A chunk holds entries of one lane, or of several: then its lane is 0. `splits` counts how often the entries were moved to
 * a finer level; `group` is the number of the commit that put them, divided by 16 for each move. So what came in last lies
 * last, behind what was moved.
 */
import { Reader, type Writer } from '../bytes.js';
import type { Db } from '../environment.js';
import { Key, readU64 } from '../keys.js';
import type { Pool } from '../pool.js';
import type { Bucket } from './buckets.js';
import { type Entry, readEntry } from './entry.js';
import { LANE_BYTES, MIXED } from './lane.js';
import { GROUP } from './levels.js';

export const CHUNK_MAX = 64;
const LANE_AT = 9;
const SPLITS_AT = LANE_AT + LANE_BYTES;
const GROUP_AT = SPLITS_AT + 1;
const KEY_BYTES = GROUP_AT + 16;
const SPLITS_MAX = 255;
/** Behind all that a key may go on with. */
const LAST = 255;

export type BucketName = Pick<Bucket, 'level' | 'start'>;

export interface Chunk {
  readonly key: Key;
  /** All 0: of several lanes. */
  readonly lane: Uint8Array;
  readonly splits: number;
  readonly group: number;
  readonly bytes: Uint8Array;
}

export class Chunks {
  readonly #db: Db;
  readonly #pool: Pool;
  readonly #key = new Key();

  constructor(db: Db, pool: Pool) {
    this.#db = db;
    this.#pool = pool;
  }

  key(
    { level, start }: BucketName,
    lane: Uint8Array,
    splits: number,
    group: number,
    number: number,
  ): Key {
    const key = this.#key.clear().byte(level).i64(start).raw(lane);
    return key
      .byte(SPLITS_MAX - splits)
      .u64(group)
      .u64(number);
  }

  /** The value that the writer has just ended. */
  put(key: Key, writer: Writer): void {
    this.#db.put(key, writer.end());
  }

  remove(key: Key): void {
    this.#db.remove(key);
  }

  /** Chunks of the bucket behind `after`, `max` at most; copies. */
  read(bucket: BucketName, after: Key | undefined, max: number): Chunk[] {
    return this.#read(fromOf(bucket, after), prefixOf(bucket).byte(LAST), max);
  }

  /** Chunks of one lane, or of those that are mixed, behind `after`, `max` at most; copies. */
  readLane(bucket: BucketName, lane: Uint8Array, after: Key | undefined, max: number): Chunk[] {
    const start = after === undefined ? prefixOf(bucket).raw(lane) : fromOf(bucket, after);
    return this.#read(start, prefixOf(bucket).raw(lane).byte(LAST).byte(LAST), max);
  }

  /** The first lane behind that one, the mixed left out; undefined: there is none. */
  nextLane(bucket: BucketName, after = MIXED): Uint8Array | undefined {
    const start = prefixOf(bucket).raw(after).byte(LAST).byte(LAST);
    const end = prefixOf(bucket).byte(LAST);
    for (const key of this.#db.getKeys({ start, end, limit: 1 })) return laneIn(key);
    return undefined;
  }

  /** Chunks of a lane in which an entry of that commit can be, after as many splits. */
  readGroup(bucket: BucketName, lane: Uint8Array, splits: number, commit: number): Chunk[] {
    const group = groupOf(commit, splits);
    const prefix = (): Key =>
      prefixOf(bucket)
        .raw(lane)
        .byte(SPLITS_MAX - splits);
    return this.#read(prefix().u64(group), prefix().u64(group + 1), Number.MAX_SAFE_INTEGER);
  }

  #read(start: Key, end: Key, max: number): Chunk[] {
    const chunks: Chunk[] = [];
    for (const { key, value } of this.#db.getRange({ start, end, limit: max })) {
      chunks.push({
        key: new Key(key.length).raw(key),
        lane: laneIn(key),
        splits: SPLITS_MAX - key[SPLITS_AT],
        group: readU64(key, GROUP_AT),
        bytes: Uint8Array.prototype.slice.call(value, 0, value.length),
      });
    }
    return chunks;
  }

  /** Keys of the bucket's chunks, `max` at most. */
  keys(bucket: BucketName, max: number): Uint8Array[] {
    const start = prefixOf(bucket);
    const end = prefixOf(bucket).byte(LAST);
    return [...this.#db.getKeys({ start, end, limit: max })];
  }

  entries(bytes: Uint8Array): Entry[] {
    const reader = new Reader(bytes);
    const entries: Entry[] = [];
    while (!reader.isAtEnd) entries.push(readEntry(reader, this.#pool));
    return entries;
  }
}

function prefixOf({ level, start }: BucketName): Key {
  return new Key(KEY_BYTES + 2).byte(level).i64(start);
}

/** Behind that chunk, or from the bucket's first on. */
function fromOf(bucket: BucketName, after: Key | undefined): Key {
  if (after === undefined) return prefixOf(bucket);
  return new Key(KEY_BYTES + 1).raw(after.bytes, after.length).byte(0);
}

function laneIn(key: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(key, LANE_AT, SPLITS_AT);
}

export function groupOf(commit: number, splits: number): number {
  return Math.floor(commit / GROUP ** splits);
}
