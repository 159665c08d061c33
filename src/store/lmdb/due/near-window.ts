/**
 * What of the due index the engine has been told. Buckets are looked through some time before they start: what is mixed is
 * given to the engine as far as it has room for the lane, and put beside others of its lane otherwise; lanes are
 * noted, and read as there is room for each (kept-lanes.ts). So a bucket holds up no other, whatever is in it.
 */
import type { Lane, LiveEntry, NearRoom } from '../../store.js';
import type { Key } from '../keys.js';
import type { Pool } from '../pool.js';
import type { Bucket, Buckets } from './buckets.js';
import { CHUNK_MAX, type Chunk, type Chunks } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import { type Entry, liveEntryOf } from './entry.js';
import { KeptLanes } from './kept-lanes.js';
import { laneOf, MIXED } from './lane.js';
import type { Leftovers } from './leftovers.js';
import { startOf, WIDTHS_MS } from './levels.js';
import { RoomLeft } from './room-left.js';
import { Spill } from './spill.js';
import { splitStep } from './splitting.js';

/** Entries that one step of loading or splitting looks at. */
export const STEP_ENTRIES = 1000;
export const STEP_CHUNKS = 128;
const STEP_LANES = 256;
/** Buckets are looked through this long ahead, if all of them fits; sooner where there are very many. */
const HORIZON_MS = 60_000;
/** And this long, if not. */
const CROWDED_HORIZON_MS = 10_000;
/** So many are looked through in a millisecond, beside other work. */
const ENTRIES_A_MS = 100;
/** And so many moved to another bucket. */
const SPLITS_A_MS = 20;
/** How long before its start a bucket that does not fit is split at the latest, by level. */
const SPLIT_AHEAD_MS = [0, 3, 30, 360, 4320, 43_200].map((minutes) => minutes * 60_000);
/** Where there is no room that could be told of, it is looked for again after this long. */
const FULL_RETRY_MS = 1000;

export interface WindowParts {
  readonly buckets: Buckets;
  readonly chunks: Chunks;
  readonly leftovers: Leftovers;
  readonly pool: Pool;
  /** Somebody's place, and not left lying. */
  readonly isPlaced: (entry: Entry) => boolean;
}

export interface LoadStep {
  readonly entries: readonly LiveEntry[];
  /** There is more to do at once. */
  readonly more: boolean;
  /** To be called within a commit of its own, when no other is under way; what it returns is given as well. */
  readonly commit: ((context: CommitContext) => readonly LiveEntry[]) | undefined;
  /** When to ask again, wall clock ms; Infinity: when something was added. */
  readonly nextAtMs: number;
}

export class NearWindow {
  readonly kept: KeptLanes;
  /** Everything due before is near, or kept; a multiple of a second. */
  watermarkMs = Number.NEGATIVE_INFINITY;
  readonly #parts: WindowParts;
  /** Of the bucket that is being looked through: the last mixed chunk done; the last lane noted, when all are done. */
  #cursor: Key | undefined;
  #lane: Uint8Array | undefined;
  /** Commits up to this one may have entries in it that the engine was not told. */
  #bound = 0;
  /** Of the bucket: entries were left lying in it. */
  #isDoubtful = false;

  constructor(parts: WindowParts) {
    this.#parts = parts;
    this.kept = new KeptLanes(parts.chunks, parts.pool, parts.isPlaced);
  }

  /** Nothing is near. */
  clear(): void {
    this.watermarkMs = Number.NEGATIVE_INFINITY;
    this.kept.clear();
  }

  /** A step may have failed: the bucket is looked through again. What was given is given again, which does no harm. */
  restart(): void {
    this.#cursor = undefined;
    this.#lane = undefined;
  }

  /** The engine was told, or is to be when it becomes visible. */
  isNear(lane: Lane, dueAt: number): boolean {
    return dueAt < this.watermarkMs && dueAt < this.kept.watermarkOf(lane);
  }

  /** The same, and its bucket has been looked through. */
  isTold(lane: Lane, dueAt: number): boolean {
    const bucket = this.#parts.buckets.next();
    const isAfter = bucket?.stage === 'loading' && dueAt >= bucket.start;
    return !isAfter && this.isNear(lane, dueAt);
  }

  /**
   * The next step. What it gives is to be timed in the turn in which it is called, before anything else is committed.
   * @param visible all commits up to this one are visible
   */
  load(nowMs: number, room: NearRoom, visible: number): LoadStep {
    for (const lane of room.crowded) this.kept.close(lane);
    const entries: LiveEntry[] = [];
    const left = new RoomLeft(room);
    const more = this.kept.read(nowMs, left, STEP_ENTRIES, entries);
    const step = this.#nextBucket(nowMs, room, left, visible);
    if (entries.length === 0) return step;
    return { ...step, entries: entries.concat(step.entries), more: more || step.more };
  }

  #nextBucket(nowMs: number, room: NearRoom, left: RoomLeft, visible: number): LoadStep {
    const { buckets } = this.#parts;
    const horizonMs = startOf(0, nowMs + HORIZON_MS) + WIDTHS_MS[0];
    const bucket = buckets.next();
    if (bucket === undefined || bucket.start >= Math.max(horizonMs, nowMs + workMs(bucket))) {
      this.watermarkMs = Math.max(this.watermarkMs, horizonMs);
      return bucket === undefined ? NOTHING : this.#ahead(bucket, room, nowMs, visible);
    }
    if (bucket.stage === 'loading') return this.#look(bucket, left, nowMs);
    // Below, and not at: it may be empty, and what is put in then would not be seen.
    this.watermarkMs = Math.max(this.watermarkMs, bucket.start);
    if (Math.max(bucket.addedBy, bucket.rewrittenBy) > visible) return SOON;
    const fits = bucket.live <= room.total;
    // All of it is overdue: its order is not worth the time that splitting takes.
    const isPast = bucket.start + WIDTHS_MS[bucket.level] <= nowMs;
    if (bucket.stage === 'splitting' || (!fits && bucket.level > 0 && !isPast))
      return this.#split();
    const atMs = bucket.start - Math.max(CROWDED_HORIZON_MS, workMs(bucket));
    if (!fits && atMs > nowMs) return { ...NOTHING, nextAtMs: atMs };
    buckets.setStage(bucket, 'loading');
    this.restart();
    this.#bound = visible;
    this.#isDoubtful = bucket.live !== bucket.physical;
    if (bucket.level === 0) {
      this.watermarkMs = Math.max(this.watermarkMs, bucket.start + WIDTHS_MS[0]);
    }
    return this.#look(bucket, left, nowMs);
  }

  /** One that is not near yet is split well before, if it will not fit. */
  #ahead(bucket: Bucket, room: NearRoom, nowMs: number, visible: number): LoadStep {
    const fits = bucket.live <= room.total && bucket.stage !== 'splitting';
    const splits = !fits && bucket.level > 0;
    const aheadMs = splits
      ? Math.max(SPLIT_AHEAD_MS[bucket.level], bucket.live / SPLITS_A_MS)
      : Math.max(HORIZON_MS, workMs(bucket));
    const atMs = bucket.start - aheadMs;
    if (!splits || atMs > nowMs) return { ...NOTHING, nextAtMs: atMs };
    return Math.max(bucket.addedBy, bucket.rewrittenBy) > visible ? SOON : this.#split();
  }

  #split(): LoadStep {
    return {
      ...SOON,
      commit: (context) => {
        splitStep(this.#parts, context);
        return [];
      },
    };
  }

  // --- looking through a bucket ------------------------------------------------------------------------

  #look(bucket: Bucket, left: RoomLeft, nowMs: number): LoadStep {
    if (this.kept.isFull) return { ...NOTHING, nextAtMs: nowMs + FULL_RETRY_MS };
    if (this.#lane !== undefined) return this.#noteLanes(bucket);
    const { chunks, isPlaced } = this.#parts;
    const found = chunks.readLane(bucket, MIXED, this.#cursor, STEP_CHUNKS);
    const entries: LiveEntry[] = [];
    let done = 0;
    for (const chunk of found) {
      if (entries.length > STEP_ENTRIES - CHUNK_MAX) break;
      if (!this.#isTold(chunk)) {
        const all = chunks.entries(chunk.bytes);
        const some = this.#isDoubtful ? all.filter(isPlaced) : all;
        if (!some.every((entry) => left.take(entry))) {
          const commit = (context: CommitContext): readonly LiveEntry[] =>
            this.#spill(bucket, left, context);
          return { ...NOTHING, entries, more: true, commit };
        }
        for (const entry of some) entries.push(liveEntryOf(entry));
      }
      done++;
      this.#cursor = chunk.key;
    }
    if (done === found.length && done < STEP_CHUNKS) this.#lane = MIXED;
    return { ...NOTHING, entries, more: true };
  }

  /** By the commit that put it in, when the bucket was near already. */
  #isTold({ splits, group }: Chunk): boolean {
    return splits === 0 && group > this.#bound;
  }

  /** Of the next chunks, gives what there is room for, and puts the others beside those of their lanes. */
  #spill(bucket: Bucket, left: RoomLeft, context: CommitContext): readonly LiveEntry[] {
    const { chunks, isPlaced } = this.#parts;
    const spill = new Spill(this.#parts, bucket, left, context);
    const found = chunks.readLane(bucket, MIXED, this.#cursor, STEP_CHUNKS);
    let looked = 0;
    for (const chunk of found) {
      if (looked >= STEP_ENTRIES) break;
      this.#cursor = chunk.key;
      if (this.#isTold(chunk)) continue;
      looked += spill.chunk(chunk, this.#isDoubtful ? isPlaced : undefined);
    }
    spill.finish();
    return spill.given;
  }

  #noteLanes(bucket: Bucket): LoadStep {
    const { chunks, buckets, leftovers, pool } = this.#parts;
    for (let i = 0; i < STEP_LANES; i++) {
      const lane = chunks.nextLane(bucket, this.#lane);
      if (lane === undefined) {
        buckets.setStage(bucket, 'loaded');
        if (bucket.live <= 0) leftovers.noteEmpty(bucket);
        break;
      }
      this.kept.note(laneOf(pool, lane), bucket, lane, this.#isDoubtful);
      this.#lane = lane;
    }
    return SOON;
  }

  /** When the first that is not near is due; where too many would have to be looked at, the start of their bucket. */
  earliestMs(): number | undefined {
    const { buckets, chunks } = this.#parts;
    const keptMs = this.kept.earliestMs();
    const bucket = buckets.next();
    if (bucket === undefined || bucket.start >= keptMs) {
      return Number.isFinite(keptMs) ? keptMs : undefined;
    }
    if (bucket.stage !== 'far') return bucket.start;
    const found = chunks.read(bucket, undefined, STEP_CHUNKS);
    if (found.length === STEP_CHUNKS) return bucket.start;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { bytes } of found) {
      for (const { dueAt } of chunks.entries(bytes)) earliest = Math.min(earliest, dueAt);
    }
    return Number.isFinite(earliest) ? earliest : bucket.start;
  }
}

/** How long it takes to look through it. */
function workMs({ live }: Bucket): number {
  return live / ENTRIES_A_MS;
}

const NOTHING: LoadStep = {
  entries: [],
  more: false,
  commit: undefined,
  nextAtMs: Number.POSITIVE_INFINITY,
};
/** Something that must be visible first is under way, or the next piece of the same follows. */
const SOON: LoadStep = { ...NOTHING, more: true };
