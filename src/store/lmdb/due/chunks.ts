/**
 * Chunks: up to 64 entries in one value, so that a commit of many tasks is a few puts.
 *
 *   key  level u8 · start i64 · splits u8 · group u64 · number u64
 *
 * `splits` counts how often the entries were moved to a finer level; `group` is the number of the commit that put them,
 * divided by 16 for each move.
 */
import { Reader, type Writer } from '../bytes.js';
import type { Db } from '../environment.js';
import { Key, readU64 } from '../keys.js';
import type { Pool } from '../pool.js';
import type { Bucket } from './buckets.js';
import { type Entry, readEntry } from './entry.js';
import { GROUP } from './levels.js';

export const CHUNK_MAX = 64;
const GROUP_AT = 10;
const SPLITS_AT = 9;
const KEY_BYTES = 26;

export interface Chunk {
  readonly key: Key;
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

  key(level: number, start: number, splits: number, group: number, number: number): Key {
    return this.#key.clear().byte(level).i64(start).byte(splits).u64(group).u64(number);
  }

  /** The value that the writer has just ended. */
  put(key: Key, writer: Writer): void {
    this.#db.put(key, writer.end());
  }

  remove(key: Key): void {
    this.#db.remove(key);
  }

  /** Chunks of the bucket behind `after`, `max` at most; copies. */
  read(bucket: Bucket, after: Key | undefined, max: number): Chunk[] {
    const start = new Key(KEY_BYTES + 1);
    if (after === undefined) start.byte(bucket.level).i64(bucket.start);
    else start.raw(after.bytes, after.length).byte(0);
    const end = new Key(KEY_BYTES).byte(bucket.level).i64(bucket.start).byte(255);
    return this.#read(start, end, max);
  }

  /** Chunks in which an entry of that commit can be, after as many splits. */
  readGroup(level: number, start: number, splits: number, commit: number): Chunk[] {
    const group = groupOf(commit, splits);
    const from = new Key(KEY_BYTES).byte(level).i64(start).byte(splits).u64(group);
    const to = new Key(KEY_BYTES)
      .byte(level)
      .i64(start)
      .byte(splits)
      .u64(group + 1);
    return this.#read(from, to, Number.MAX_SAFE_INTEGER);
  }

  #read(start: Key, end: Key, max: number): Chunk[] {
    const chunks: Chunk[] = [];
    for (const { key, value } of this.#db.getRange({ start, end, limit: max })) {
      chunks.push({
        key: new Key(key.length).raw(key),
        splits: key[SPLITS_AT],
        group: readU64(key, GROUP_AT),
        bytes: Uint8Array.prototype.slice.call(value, 0, value.length),
      });
    }
    return chunks;
  }

  /** Keys of the bucket's chunks, `max` at most. */
  keys(level: number, bucketStart: number, max: number): Uint8Array[] {
    const start = new Key(KEY_BYTES).byte(level).i64(bucketStart);
    const end = new Key(KEY_BYTES).byte(level).i64(bucketStart).byte(255);
    return [...this.#db.getKeys({ start, end, limit: max })];
  }

  entries(bytes: Uint8Array): Entry[] {
    const reader = new Reader(bytes);
    const entries: Entry[] = [];
    while (!reader.isAtEnd) entries.push(readEntry(reader, this.#pool));
    return entries;
  }
}

export function groupOf(commit: number, splits: number): number {
  return Math.floor(commit / GROUP ** splits);
}
