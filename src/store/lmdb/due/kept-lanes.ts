/**
 * Lanes of the near window of which there is more on disk: what the engine had no room for, by lane and bucket. While a lane
 * is kept, what comes in for it from its first unread bucket on goes to the disk as well, so that it is given in order.
 *
 * Invariants
 * 1. An unread part is noted when its bucket is looked through, or when the commit that puts something in is decided.
 * 2. A lane's watermark goes back only in `close` and when a bucket is looked through, both of which happen in a step of
 *    loading, when no commit of the engine's is under way: engine and store agree on what is kept.
 */
import type { Lane, LiveEntry } from '../../store.js';
import type { Key } from '../keys.js';
import type { Pool } from '../pool.js';
import type { BucketName, Chunks } from './chunks.js';
import { CHUNK_MAX } from './chunks.js';
import { type Entry, liveEntryOf } from './entry.js';
import { type LaneOf, laneKey, laneName } from './lane.js';
import type { RoomLeft } from './room-left.js';

/** Parts noted at most; beyond, no more buckets are looked through. About 200 bytes each. */
const PARTS_MAX = 20_000;
/** Entries that one lane is given in its turn. */
const TURN_MAX = 256;

/** What is unread of a lane in one bucket, of one priority. */
interface Part {
  readonly bucket: BucketName;
  readonly priority: number;
  readonly key: Uint8Array;
  /** Entries may have been left lying: each is held against its record. */
  readonly isDoubtful: boolean;
  cursor: Key | undefined;
}

interface Kept {
  readonly lane: Lane;
  readonly parts: Part[];
  /** All that comes in is kept, whenever it is due. */
  isClosed: boolean;
  watermarkMs: number;
}

export class KeptLanes {
  readonly #chunks: Chunks;
  readonly #pool: Pool;
  readonly #isPlaced: (entry: Entry) => boolean;
  /** In turns: one that had its turn goes to the end. */
  readonly #lanes = new Map<string, Kept>();
  #parts = 0;

  constructor(chunks: Chunks, pool: Pool, isPlaced: (entry: Entry) => boolean) {
    this.#chunks = chunks;
    this.#pool = pool;
    this.#isPlaced = isPlaced;
  }

  clear(): void {
    this.#lanes.clear();
    this.#parts = 0;
  }

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  get isFull(): boolean {
    return this.#parts >= PARTS_MAX;
  }

  /** What of the lane is due from then on is kept; Infinity: nothing. */
  watermarkOf(lane: Lane): number {
    if (this.#lanes.size === 0) return Number.POSITIVE_INFINITY;
    return this.#lanes.get(laneName(lane))?.watermarkMs ?? Number.POSITIVE_INFINITY;
  }

  /** The first bucket of which something is unread. */
  earliestMs(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { parts } of this.#lanes.values()) {
      for (const { bucket } of parts) earliestMs = Math.min(earliestMs, bucket.start);
    }
    return earliestMs;
  }

  #obtain(lane: Lane): Kept {
    const name = laneName(lane);
    let kept = this.#lanes.get(name);
    if (kept === undefined) {
      const watermarkMs = Number.POSITIVE_INFINITY;
      kept = { lane, parts: [], isClosed: false, watermarkMs };
      this.#lanes.set(name, kept);
    }
    return kept;
  }

  /** The engine has too many of the lane: it is given what comes in when it has room again. */
  close(lane: Lane): void {
    // What has no lane on disk is never kept.
    if (laneKey(this.#pool, { ...lane, priority: 0 }) === undefined) return;
    const { tenant, handler, handlerVersion } = lane;
    const kept = this.#obtain({ tenant, handler, handlerVersion });
    kept.isClosed = true;
    kept.watermarkMs = Number.NEGATIVE_INFINITY;
  }

  /** Something of the lane in that bucket is unread. O(its parts). */
  note(lane: LaneOf, bucket: BucketName, key: Uint8Array, isDoubtful = false): void {
    const { tenant, handler, handlerVersion, priority } = lane;
    const { level, start } = bucket;
    const kept = this.#obtain({ tenant, handler, handlerVersion });
    for (const part of kept.parts) {
      const isIt =
        part.bucket.start === start && part.bucket.level === level && part.priority === priority;
      if (isIt) return;
    }
    kept.parts.push({ bucket: { level, start }, priority, key, isDoubtful, cursor: undefined });
    kept.watermarkMs = Math.min(kept.watermarkMs, start);
    this.#parts += 1;
  }

  /**
   * Reads what lanes have room for, lanes in turn, about `max` entries.
   * @returns whether there may be more at once
   */
  read(nowMs: number, room: RoomLeft, max: number, into: LiveEntry[]): boolean {
    for (const [name, kept] of [...this.#lanes]) {
      if (into.length >= max) return true;
      const before = into.length;
      const left = room.of(kept.lane);
      this.#readLane(kept, nowMs, Math.min(left, TURN_MAX, max), into);
      const given = into.length - before;
      room.use(kept.lane, given);
      const isOver = kept.parts.length === 0 && (!kept.isClosed || left > 0);
      if (isOver || given > 0) this.#lanes.delete(name);
      if (!isOver && given > 0) this.#lanes.set(name, kept);
    }
    return into.length > 0;
  }

  #readLane(kept: Kept, nowMs: number, max: number, into: LiveEntry[]): void {
    let left = max;
    while (left > 0 && kept.parts.length > 0) {
      const part = firstOf(kept.parts, nowMs);
      const asked = Math.ceil(left / CHUNK_MAX);
      const chunks = this.#chunks.readLane(part.bucket, part.key, part.cursor, asked);
      for (const { key, bytes } of chunks) {
        part.cursor = key;
        for (const entry of this.#chunks.entries(bytes)) {
          left -= 1;
          if (!part.isDoubtful || this.#isPlaced(entry)) into.push(liveEntryOf(entry));
        }
      }
      if (chunks.length < asked) this.#drop(kept, part);
    }
  }

  #drop(kept: Kept, part: Part): void {
    kept.parts.splice(kept.parts.indexOf(part), 1);
    this.#parts -= 1;
    if (kept.isClosed) return;
    kept.watermarkMs = Number.POSITIVE_INFINITY;
    for (const { bucket } of kept.parts) {
      kept.watermarkMs = Math.min(kept.watermarkMs, bucket.start);
    }
  }
}

/** Of what is due by priority, then by time; what is not due yet by time. */
function firstOf(parts: readonly Part[], nowMs: number): Part {
  let first = parts[0];
  for (const part of parts) if (isBefore(part, first, nowMs)) first = part;
  return first;
}

function isBefore(a: Part, b: Part, nowMs: number): boolean {
  const isDue = a.bucket.start <= nowMs;
  if (isDue !== b.bucket.start <= nowMs) return isDue;
  if (isDue && a.priority !== b.priority) return a.priority < b.priority;
  return a.bucket.start < b.bucket.start;
}
