/** The buckets that have entries, with their counts: a few thousand at most, whatever is pending. */
import { Reader, type Writer } from '../bytes.js';
import type { Db } from '../environment.js';
import { Key, readI64 } from '../keys.js';
import { WIDTHS_MS } from './levels.js';

export type Stage =
  /** On disk alone. */
  | 'far'
  /** Being moved to the level below; nothing more comes in. */
  | 'splitting'
  /** Moved; remembered as long as there is something in the buckets below, so that places are found. */
  | 'split'
  /** Being read; what comes in is told to the engine by its commit. */
  | 'loading'
  /** Read: the engine knows all of it. */
  | 'loaded';

export interface Bucket {
  readonly level: number;
  readonly start: number;
  /** Entries that are somebody's place. */
  live: number;
  /** Entries in chunks. More than `live` when some were left lying. */
  physical: number;
  stage: Stage;
  /** The newest commit that put a chunk in. */
  addedBy: number;
  /** The newest commit that changed or removed a chunk. */
  rewrittenBy: number;
  dirty: boolean;
}

const SPLIT_CODE = 1;
const SPLITTING_CODE = 2;

export function keyOf(level: number, start: number): number {
  return (start / WIDTHS_MS[0]) * 8 + level;
}

export class Buckets {
  readonly #db: Db;
  readonly #all = new Map<number, Bucket>();
  #dirty: Bucket[] = [];
  #next: Bucket | undefined;
  #nextKnown = false;
  readonly #key = new Key();

  constructor(db: Db) {
    this.#db = db;
  }

  /** Reads all. Nothing is loaded then. */
  load(): void {
    this.#all.clear();
    this.#dirty = [];
    this.#nextKnown = false;
    const start = new Key().byte(0);
    const end = new Key().byte(255);
    for (const { key, value } of this.#db.getRange({ start, end })) {
      const reader = new Reader(value, 0, value.length);
      const bucket = this.#make(key[0], readI64(key, 1));
      bucket.live = reader.varint();
      bucket.physical = reader.varint();
      const code = reader.byte();
      bucket.stage = code === SPLIT_CODE ? 'split' : code === SPLITTING_CODE ? 'splitting' : 'far';
    }
  }

  get size(): number {
    return this.#all.size;
  }

  find(level: number, start: number): Bucket | undefined {
    return this.#all.get(keyOf(level, start));
  }

  /** The bucket, made if it is not there. */
  obtain(level: number, start: number, isNear: boolean): Bucket {
    const found = this.find(level, start);
    if (found !== undefined) return found;
    const bucket = this.#make(level, start);
    bucket.stage = isNear ? 'loaded' : 'far';
    this.#nextKnown = false;
    return bucket;
  }

  #make(level: number, start: number): Bucket {
    const bucket: Bucket = {
      level,
      start,
      live: 0,
      physical: 0,
      stage: 'far',
      addedBy: 0,
      rewrittenBy: 0,
      dirty: false,
    };
    this.#all.set(keyOf(level, start), bucket);
    return bucket;
  }

  setStage(bucket: Bucket, stage: Stage): void {
    bucket.stage = stage;
    this.#nextKnown = false;
    this.touch(bucket);
  }

  /** It has changed, and is to be stored with the commit at hand. */
  touch(bucket: Bucket): void {
    if (bucket.dirty) return;
    bucket.dirty = true;
    this.#dirty.push(bucket);
  }

  /** The first that is not loaded: by start, of equal ones the coarsest. */
  next(): Bucket | undefined {
    if (this.#nextKnown) return this.#next;
    this.#nextKnown = true;
    let first: Bucket | undefined;
    for (const bucket of this.#all.values()) {
      if (bucket.stage === 'loaded' || bucket.stage === 'split') continue;
      const isBefore =
        first === undefined ||
        bucket.start < first.start ||
        (bucket.start === first.start && bucket.level > first.level);
      if (isBefore) first = bucket;
    }
    this.#next = first;
    return first;
  }

  all(): Iterable<Bucket> {
    return this.#all.values();
  }

  remove(bucket: Bucket): void {
    this.#all.delete(keyOf(bucket.level, bucket.start));
    this.#nextKnown = false;
    this.touch(bucket);
  }

  /** Queues the puts of what has changed. */
  flush(writer: Writer): void {
    for (const bucket of this.#dirty) {
      bucket.dirty = false;
      const key = this.#key.clear().byte(bucket.level).i64(bucket.start);
      if (this.find(bucket.level, bucket.start) !== bucket) {
        // Unless another has taken its place, which is dirty itself.
        if (this.find(bucket.level, bucket.start) === undefined) this.#db.remove(key);
        continue;
      }
      writer.begin(32);
      writer.varint(bucket.live);
      writer.varint(bucket.physical);
      const { stage } = bucket;
      writer.byte(stage === 'split' ? SPLIT_CODE : stage === 'splitting' ? SPLITTING_CODE : 0);
      this.#db.put(key, writer.end());
    }
    this.#dirty = [];
  }

  get hasDirty(): boolean {
    return this.#dirty.length > 0;
  }
}
