/**
 * What is nobody's place any more: entries to be taken out of their chunks, and buckets of which nothing lives. A chunk is
 * rewritten only when its newest form is visible; until then the removal waits.
 */
import type { Writer } from '../bytes.js';
import { Key } from '../keys.js';
import type { Pool } from '../pool.js';
import type { Bucket, Buckets } from './buckets.js';
import { type Chunk, type Chunks, groupOf } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import type { Entry } from './entry.js';
import { type LaneOf, laneKey, MIXED } from './lane.js';
import { commitOf, levelOf, startOf } from './levels.js';

/** Chunks removed from an empty bucket with one commit. */
const SWEEP_MAX = 256;

/** An entry that is nobody's place any more, and is to be taken out of its chunk. */
export interface Dropped {
  readonly occurrenceId: string;
  readonly place: number;
  readonly dueAt: number;
  /** As it was put in. */
  readonly lane: LaneOf;
}

/** Where the entry is, or may be if the bucket is being split. */
export function bucketOf(buckets: Buckets, place: number, dueAt: number): Bucket | undefined {
  for (let level = levelOf(place); level >= 0; level--) {
    const bucket = buckets.find(level, startOf(level, dueAt));
    if (bucket !== undefined && bucket.stage !== 'split') return bucket;
  }
  return undefined;
}

export class Leftovers {
  readonly #buckets: Buckets;
  readonly #chunks: Chunks;
  readonly #pool: Pool;
  /** Of the commit at hand. */
  #dropped: Dropped[] = [];
  /** Removals that wait until what they change is visible. */
  #deferred: Dropped[] = [];
  readonly #emptied = new Set<Bucket>();

  constructor(buckets: Buckets, chunks: Chunks, pool: Pool) {
    this.#buckets = buckets;
    this.#chunks = chunks;
    this.#pool = pool;
  }

  clear(): void {
    this.#dropped = [];
    this.#deferred = [];
    this.#emptied.clear();
  }

  drop(dropped: Dropped): void {
    this.#dropped.push(dropped);
  }

  noteEmpty(bucket: Bucket): void {
    this.#emptied.add(bucket);
  }

  get areDeferred(): boolean {
    return this.#deferred.length > 0;
  }

  /** Queues the puts of what can be tidied up with the commit at hand. */
  finish(context: CommitContext): void {
    this.#remove(context);
    this.#sweep(context);
  }

  /** True when a commit with nothing else in it would tidy up. */
  canTidy(visible: number): boolean {
    for (const dropped of this.#deferred) if (this.#canRemove(dropped, visible)) return true;
    for (const bucket of this.#emptied) if (canSweep(bucket, visible)) return true;
    return false;
  }

  #canRemove({ place, dueAt }: Dropped, visible: number): boolean {
    if (commitOf(place) > visible) return false;
    const bucket = bucketOf(this.#buckets, place, dueAt);
    return bucket === undefined || bucket.rewrittenBy <= visible;
  }

  #remove(context: CommitContext): void {
    const due = this.#deferred.concat(this.#dropped);
    this.#dropped = [];
    this.#deferred = [];
    if (due.length === 0) return;
    /** Chunks in which something was looked for, by bucket and group: read once, whatever is gone of them. */
    const looked = new Map<string, readonly Looked[]>();
    for (const dropped of due) {
      if (this.#canRemove(dropped, context.visible)) this.#locate(dropped, looked);
      else this.#deferred.push(dropped);
    }
    for (const found of looked.values()) {
      for (const { chunk, bucket, entries, gone } of found) {
        if (gone.size === 0) continue;
        this.#rewrite(chunk, entries, gone, context.writer);
        bucket.physical -= gone.size;
        bucket.rewrittenBy = context.number;
        this.#buckets.touch(bucket);
        if (bucket.live === 0) this.#emptied.add(bucket);
      }
    }
  }

  #locate(dropped: Dropped, looked: Map<string, readonly Looked[]>): void {
    const { occurrenceId, place, dueAt, lane } = dropped;
    const top = levelOf(place);
    const entry = nameOf(occurrenceId, dueAt);
    const lanes = [MIXED];
    const own = laneKey(this.#pool, lane);
    if (own !== undefined) lanes.push(own);
    for (let level = top; level >= 0; level--) {
      const bucket = this.#buckets.find(level, startOf(level, dueAt));
      if (bucket === undefined || bucket.stage === 'split') continue;
      for (const each of lanes) {
        const chunks = this.#lookAt(bucket, each, top - level, commitOf(place), looked);
        const found = chunks.find(({ entries }) => entries.has(entry));
        if (found === undefined) continue;
        found.gone.add(entry);
        // While a bucket is being split it was not known where the entry is.
        if (bucket.stage === 'splitting') bucket.live -= 1;
        return;
      }
      if (bucket.stage !== 'splitting') return;
    }
  }

  #lookAt(
    bucket: Bucket,
    lane: Uint8Array,
    splits: number,
    commit: number,
    looked: Map<string, readonly Looked[]>,
  ): readonly Looked[] {
    const { level, start } = bucket;
    const name = `${level} ${start} ${lane} ${splits} ${groupOf(commit, splits)}`;
    const known = looked.get(name);
    if (known !== undefined) return known;
    const found = this.#chunks.readGroup(bucket, lane, splits, commit).map((chunk) => ({
      chunk,
      bucket,
      entries: new Map(
        this.#chunks.entries(chunk.bytes).map((e) => [nameOf(e.occurrenceId, e.dueAt), e]),
      ),
      gone: new Set<string>(),
    }));
    looked.set(name, found);
    return found;
  }

  #rewrite(
    { key, bytes }: Chunk,
    entries: ReadonlyMap<string, Entry>,
    gone: ReadonlySet<string>,
    writer: Writer,
  ): void {
    if (gone.size === entries.size) {
      this.#chunks.remove(key);
      return;
    }
    writer.begin(bytes.length);
    for (const [name, { from, to }] of entries) {
      if (!gone.has(name)) writer.raw(bytes.subarray(from, to), to - from);
    }
    this.#chunks.put(key, writer);
  }

  /** Removes buckets of which nothing lives. */
  #sweep({ number, visible }: CommitContext): void {
    let left = SWEEP_MAX;
    for (const bucket of this.#emptied) {
      if (bucket.live > 0) {
        this.#emptied.delete(bucket);
        continue;
      }
      if (!canSweep(bucket, visible) || left <= 0) continue;
      const keys = this.#chunks.keys(bucket, left);
      const key = new Key();
      for (const bytes of keys) this.#chunks.remove(key.clear().raw(bytes));
      if (keys.length === left) bucket.rewrittenBy = number;
      else {
        this.#emptied.delete(bucket);
        this.#buckets.remove(bucket);
      }
      left -= keys.length;
    }
  }
}

function nameOf(occurrenceId: string, dueAt: number): string {
  return `${occurrenceId} ${dueAt}`;
}

interface Looked {
  readonly chunk: Chunk;
  readonly bucket: Bucket;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly gone: Set<string>;
}

function canSweep(bucket: Bucket, visible: number): boolean {
  const { stage, live } = bucket;
  if (live > 0 || (stage !== 'loaded' && stage !== 'far')) return false;
  return bucket.addedBy <= visible && bucket.rewrittenBy <= visible;
}
