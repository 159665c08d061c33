/** Moves what is in a bucket to those of the level below, in bounded steps. */

import type { Pool } from '../pool.js';
import type { Bucket, Buckets } from './buckets.js';
import { CHUNK_MAX, type Chunk, type Chunks, groupOf } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import type { Entry } from './entry.js';
import { byLane, laneKey, MIXED } from './lane.js';
import type { Leftovers } from './leftovers.js';
import { startOf, WIDTHS_MS } from './levels.js';
import { NUMBERS_A_COMMIT, writeSlices } from './slices.js';

/** Entries that one step looks at, about. */
const STEP_ENTRIES = 1000;
const STEP_CHUNKS = 128;
/** So many of a lane, of one bucket and commit, lie apart from others. */
export const APART_MIN = 8;

export interface SplitParts {
  readonly buckets: Buckets;
  readonly chunks: Chunks;
  readonly leftovers: Leftovers;
  readonly pool: Pool;
  readonly isPlaced: (entry: Entry) => boolean;
}

interface Moved {
  readonly entry: Entry;
  readonly bytes: Uint8Array;
}

/** What goes into one bucket below, of one group. */
interface Part {
  readonly below: Bucket;
  readonly splits: number;
  readonly group: number;
  readonly of: Moved[];
}

/** A step of moving the next bucket to the level below; in a commit when no other is under way. */
export function splitStep(parts: SplitParts, context: CommitContext): void {
  const { buckets, chunks, leftovers } = parts;
  const bucket = buckets.next();
  if (bucket === undefined || bucket.level === 0) return;
  if (bucket.stage !== 'far' && bucket.stage !== 'splitting') return;
  // First what is to be removed: in the groups of a split an old entry and a newer one look alike.
  if (leftovers.areDeferred) return;
  buckets.setStage(bucket, 'splitting');
  const found = chunks.read(bucket, undefined, STEP_CHUNKS);
  const isDoubtful = bucket.live !== bucket.physical;
  const moving = new Map<string, Part>();
  let done = 0;
  for (let moved = 0; done < found.length && moved < STEP_ENTRIES; done++) {
    const chunk = found[done];
    for (const entry of chunks.entries(chunk.bytes)) {
      bucket.physical -= 1;
      moved++;
      if (isDoubtful && !parts.isPlaced(entry)) continue;
      bucket.live -= 1;
      enter(buckets, chunk, entry, bucket.level - 1, moving, context);
    }
    chunks.remove(chunk.key);
  }
  write(parts, moving.values(), context);
  bucket.rewrittenBy = context.number;
  if (done < STEP_CHUNKS && done === found.length) {
    bucket.live = 0;
    bucket.physical = 0;
    buckets.setStage(bucket, 'split');
    forgetSplit(buckets);
  }
}

function enter(
  buckets: Buckets,
  chunk: Chunk,
  entry: Entry,
  level: number,
  moving: Map<string, Part>,
  { number }: CommitContext,
): void {
  const below = buckets.obtain(level, startOf(level, entry.dueAt), false);
  below.live += 1;
  below.physical += 1;
  below.addedBy = number;
  buckets.touch(below);
  const splits = chunk.splits + 1;
  const group = groupOf(chunk.group, 1);
  const name = `${below.start} ${splits} ${group}`;
  let part = moving.get(name);
  if (part === undefined) {
    part = { below, splits, group, of: [] };
    moving.set(name, part);
  }
  part.of.push({ entry, bytes: chunk.bytes });
}

function write(
  { chunks, pool }: SplitParts,
  moving: Iterable<Part>,
  { number, writer }: CommitContext,
): void {
  let sub = number * NUMBERS_A_COMMIT;
  for (const { below, splits, group, of } of moving) {
    const sorted = byLane(
      of,
      ({ entry }) => entry,
      (_, count) => count >= APART_MIN,
    );
    for (const { lane, items } of sorted) {
      const key = (lane && laneKey(pool, lane)) ?? MIXED;
      for (let from = 0; from < items.length; from += CHUNK_MAX) {
        const some = items.slice(from, from + CHUNK_MAX);
        const slices = some.map(({ entry, bytes }) => ({ bytes, from: entry.from, to: entry.to }));
        writeSlices(slices, writer);
        chunks.put(chunks.key(below, key, splits, group, sub++), writer);
      }
    }
  }
}

/** Buckets that were split are forgotten when nothing is left in those below. */
function forgetSplit(buckets: Buckets): void {
  const all = [...buckets.all()];
  const kept = all.filter(({ stage }) => stage !== 'split');
  for (const bucket of all) {
    if (bucket.stage !== 'split') continue;
    const end = bucket.start + WIDTHS_MS[bucket.level];
    const isNeeded = kept.some(
      ({ level, start }) => level < bucket.level && start >= bucket.start && start < end,
    );
    if (!isNeeded) buckets.remove(bucket);
  }
}
