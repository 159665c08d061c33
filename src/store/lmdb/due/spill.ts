/**
 * Takes mixed chunks apart: entries of lanes without room are put together by lane, in the same bucket. Their places stay
 * true, for a place says nothing of lanes.
 */
import type { LiveEntry } from '../../store.js';
import type { Pool } from '../pool.js';
import type { Bucket } from './buckets.js';
import { CHUNK_MAX, type Chunk, type Chunks } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import { type Entry, liveEntryOf } from './entry.js';
import { laneKey } from './lane.js';
import type { RoomLeft } from './room-left.js';
import { NUMBERS_A_COMMIT, type Slice, writeSlices } from './slices.js';

interface Spilled {
  readonly lane: Uint8Array;
  readonly splits: number;
  readonly group: number;
  readonly slices: Slice[];
}

export interface SpillParts {
  readonly chunks: Chunks;
  readonly pool: Pool;
}

export class Spill {
  readonly given: LiveEntry[] = [];
  readonly #parts: SpillParts;
  readonly #bucket: Bucket;
  readonly #left: RoomLeft;
  readonly #context: CommitContext;
  readonly #spilled = new Map<string, Spilled>();

  constructor(parts: SpillParts, bucket: Bucket, left: RoomLeft, context: CommitContext) {
    this.#parts = parts;
    this.#bucket = bucket;
    this.#left = left;
    this.#context = context;
  }

  /** @param isPlaced entries of which it is not true are given to nobody @returns entries looked at */
  chunk(chunk: Chunk, isPlaced: ((entry: Entry) => boolean) | undefined): number {
    const { chunks, pool } = this.#parts;
    const staying: Slice[] = [];
    const entries = chunks.entries(chunk.bytes);
    for (const entry of entries) {
      const slice = { bytes: chunk.bytes, from: entry.from, to: entry.to };
      if (isPlaced?.(entry) === false) {
        staying.push(slice);
        continue;
      }
      const lane = this.#left.take(entry) ? undefined : laneKey(pool, entry);
      // What has no lane on disk must be given, room or not.
      if (lane === undefined) {
        staying.push(slice);
        this.given.push(liveEntryOf(entry));
      } else this.#put(lane, chunk, slice);
    }
    if (staying.length === entries.length) return entries.length;
    if (staying.length === 0) chunks.remove(chunk.key);
    else {
      writeSlices(staying, this.#context.writer);
      chunks.put(chunk.key, this.#context.writer);
    }
    return entries.length;
  }

  #put(lane: Uint8Array, { splits, group }: Chunk, slice: Slice): void {
    const name = `${lane} ${splits} ${group}`;
    let spilled = this.#spilled.get(name);
    if (spilled === undefined) {
      spilled = { lane, splits, group, slices: [] };
      this.#spilled.set(name, spilled);
    }
    spilled.slices.push(slice);
  }

  finish(): void {
    const { chunks } = this.#parts;
    const { writer, number } = this.#context;
    let sub = number * NUMBERS_A_COMMIT;
    for (const { lane, splits, group, slices } of this.#spilled.values()) {
      for (let from = 0; from < slices.length; from += CHUNK_MAX) {
        writeSlices(slices.slice(from, from + CHUNK_MAX), writer);
        chunks.put(chunks.key(this.#bucket, lane, splits, group, sub++), writer);
      }
    }
    if (this.#spilled.size > 0) this.#bucket.rewrittenBy = number;
  }
}
