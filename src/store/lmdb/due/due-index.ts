/**
 * Which pending occurrences are due when, on disk, and which of them the engine has been told (the near window).
 *
 * Invariants
 * 1. An occurrence that lives and is not held back has exactly one place, stored in its record: in the bucket of its
 *    due time, or, while it runs, in the log of what runs. Others have none.
 * 2. All buckets that start before the watermark have been read, or are being read. What becomes visible with a due time
 *    before the watermark is timed by the engine itself.
 * 3. A bucket is read or split only when all that was ever put in is visible.
 * 4. An entry of a bucket that is still far is removed when it is nobody's place any more. One in a bucket that was read
 *    stays until the bucket is empty and goes as a whole; its record tells that it means nothing.
 */
import { isTerminal, type OccurrenceRecord } from '../../../core/model.js';
import type { LiveEntry } from '../../store.js';
import type { Writer } from '../bytes.js';
import type { Db } from '../environment.js';
import type { Key } from '../keys.js';
import type { Pool } from '../pool.js';
import { isHeldBack, isRunning, type Row, type StoredOccurrence } from '../row.js';
import { type Bucket, Buckets, type Stage } from './buckets.js';
import { CHUNK_MAX, Chunks, groupOf } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import { type Entry, entryMax, liveEntryOf, writeEntry } from './entry.js';
import { bucketOf, Leftovers } from './leftovers.js';
import {
  commitOf,
  levelFor,
  levelOf,
  placeOf,
  RUNNING_LEVEL,
  startOf,
  WIDTHS_MS,
} from './levels.js';
import { Running } from './running.js';

/** Entries that one step of loading or splitting looks at. */
const STEP_ENTRIES = 1000;
const STEP_CHUNKS = 128;
/** Buckets are read this long ahead, if there is room. */
const HORIZON_MS = 60_000;
/** How long before its start a bucket that does not fit is split, by level. */
const SPLIT_AHEAD_MS = [0, 3, 30, 360, 4320, 43_200].map((minutes) => minutes * 60_000);

interface Added {
  readonly row: Row;
  readonly stored: StoredOccurrence;
}

/** Of an occurrence as it was: what its entry says. */
export type TimedAs = Pick<OccurrenceRecord, 'dueAt' | 'handler' | 'handlerVersion'>;

export interface DueOptions {
  readonly due: Db;
  readonly buckets: Db;
  readonly pool: Pool;
  /** The task as it is visible or about to be. */
  readonly rowOf: (taskId: string) => Row | undefined;
}

export interface LoadStep {
  readonly entries: readonly LiveEntry[];
  /** There is more to do at once. */
  readonly more: boolean;
  /** A commit is needed that splits (`split`). */
  readonly splits: boolean;
  /** When to ask again, wall clock ms; Infinity: when something was added. */
  readonly nextAtMs: number;
}

export class DueIndex {
  readonly #options: DueOptions;
  readonly #buckets: Buckets;
  readonly #chunks: Chunks;
  readonly #running: Running;
  /** Entries of the commit at hand, by bucket. */
  readonly #added = new Map<Bucket, Added[]>();
  readonly #leftovers: Leftovers;
  /** Everything due before is near; a multiple of a second. */
  #watermarkMs = Number.NEGATIVE_INFINITY;
  /** Of the bucket that is being read or split: the last chunk done. */
  #cursor: Key | undefined;
  /** Commits up to this one may have entries in it that the engine was not told. */
  #cursorBound = 0;

  constructor(options: DueOptions) {
    this.#options = options;
    this.#buckets = new Buckets(options.buckets);
    this.#chunks = new Chunks(options.due, options.pool);
    this.#running = new Running(options.due);
    this.#leftovers = new Leftovers(this.#buckets, this.#chunks);
  }

  /** At open, and after a failed commit: from the disk. What the engine knows of the near window stays true. */
  reload(keepsWindow: boolean): void {
    const near = keepsWindow ? [...this.#buckets.all()].filter(({ stage }) => isNear(stage)) : [];
    this.#added.clear();
    this.#leftovers.clear();
    this.#buckets.load();
    for (const { level, start, stage } of near) {
      const bucket = this.#buckets.find(level, start);
      if (bucket !== undefined) this.#buckets.setStage(bucket, stage);
    }
    if (!keepsWindow) this.#watermarkMs = Number.NEGATIVE_INFINITY;
    this.#running.load((taskId, serial, place) => this.#isRunning(taskId, serial, place));
  }

  get watermarkMs(): number {
    return this.#watermarkMs;
  }

  /** Tasks with something recorded as running. */
  runningTasks(): readonly string[] {
    return this.#running.tasks();
  }

  #isRunning(taskId: string, serial: number, place: number): boolean {
    const row = this.#options.rowOf(taskId);
    return row?.occurrences.some((o) => o.serial === serial && o.place === place) === true;
  }

  // --- within a commit -------------------------------------------------------------------------------

  /**
   * Gives the occurrence the place that it should have; to be called whenever its task or itself has changed, with
   * what it was before.
   */
  settle(
    row: Row,
    stored: StoredOccurrence,
    before: TimedAs | undefined,
    priorityBefore: number,
    context: CommitContext,
  ): void {
    const { record } = stored;
    const dueBefore = before === undefined ? record.dueAt : before.dueAt;
    if (isTerminal(record.state) || (!isRunning(record) && isHeldBack(row.task, record))) {
      this.remove(stored, dueBefore, context);
      return;
    }
    if (isRunning(record)) {
      if (stored.place !== 0 && levelOf(stored.place) === RUNNING_LEVEL) return;
      this.remove(stored, dueBefore, context);
      stored.place = placeOf(context.number, RUNNING_LEVEL);
      this.#running.add(row.id, stored.serial, context.number);
      return;
    }
    const stays =
      stored.place !== 0 &&
      levelOf(stored.place) !== RUNNING_LEVEL &&
      before !== undefined &&
      before.dueAt === record.dueAt &&
      before.handler === record.handler &&
      before.handlerVersion === record.handlerVersion &&
      priorityBefore === row.task.priority;
    if (stays) return;
    this.remove(stored, dueBefore, context);
    this.#add(row, stored, context);
  }

  #add(row: Row, stored: StoredOccurrence, { number, nowMs }: CommitContext): void {
    const { dueAt } = stored.record;
    const bucket = this.#bucketFor(dueAt, nowMs);
    bucket.addedBy = number;
    bucket.live += 1;
    bucket.physical += 1;
    this.#buckets.touch(bucket);
    const added = this.#added.get(bucket);
    if (added === undefined) this.#added.set(bucket, [{ row, stored }]);
    else added.push({ row, stored });
    stored.place = placeOf(number, bucket.level);
  }

  /** The coarsest that its distance allows, and that still takes something in. */
  #bucketFor(dueAt: number, nowMs: number): Bucket {
    if (dueAt < this.#watermarkMs) return this.#buckets.obtain(0, startOf(0, dueAt), true);
    for (let level = levelFor(dueAt, nowMs); ; level--) {
      const start = startOf(level, dueAt);
      const found = this.#buckets.find(level, start);
      const isOpen = found === undefined ? start >= this.#watermarkMs : found.stage === 'far';
      if (isOpen || level === 0) return found ?? this.#buckets.obtain(level, start, false);
    }
  }

  /** Takes the occurrence out; `dueAt` is when it was due when it was put in. */
  remove(stored: StoredOccurrence, dueAt: number, { number }: CommitContext): void {
    const { place } = stored;
    if (place === 0) return;
    stored.place = 0;
    if (levelOf(place) === RUNNING_LEVEL) {
      this.#running.remove(commitOf(place));
      return;
    }
    if (commitOf(place) === number && this.#takeBack(stored, dueAt)) return;
    const bucket = bucketOf(this.#buckets, place, dueAt);
    if (bucket !== undefined && bucket.stage !== 'splitting') {
      bucket.live -= 1;
      this.#buckets.touch(bucket);
      if (isNear(bucket.stage)) {
        if (bucket.live === 0) this.#leftovers.noteEmpty(bucket);
        return;
      }
    }
    this.#leftovers.drop({ occurrenceId: stored.record.id, place, dueAt });
  }

  /** It came in with this very commit. */
  #takeBack(stored: StoredOccurrence, dueAt: number): boolean {
    for (const [bucket, added] of this.#added) {
      if (startOf(bucket.level, dueAt) !== bucket.start) continue;
      const at = added.findIndex((other) => other.stored === stored);
      if (at < 0) continue;
      added.splice(at, 1);
      bucket.live -= 1;
      bucket.physical -= 1;
      if (bucket.live === 0) this.#leftovers.noteEmpty(bucket);
      return true;
    }
    return false;
  }

  /** Queues the puts of all that the commit at hand has changed. */
  finish(context: CommitContext): void {
    this.#writeAdded(context);
    this.#running.finish(context);
    this.#leftovers.finish(context);
    this.#buckets.flush(context.writer);
  }

  #writeAdded({ number, writer }: CommitContext): void {
    for (const [bucket, added] of this.#added) {
      for (let from = 0, sub = 0; from < added.length; from += CHUNK_MAX, sub++) {
        const to = Math.min(from + CHUNK_MAX, added.length);
        let bytesMax = 0;
        for (let i = from; i < to; i++) bytesMax += entryMax(added[i].stored.record);
        writer.begin(bytesMax);
        for (let i = from; i < to; i++) {
          writeEntry(writer, this.#options.pool, added[i].stored.record, added[i].row.task);
        }
        this.#chunks.put(this.#chunks.key(bucket.level, bucket.start, 0, number, sub), writer);
      }
    }
    this.#added.clear();
  }

  /** True when a commit with nothing else in it would tidy up. */
  hasLeftovers(visible: number): boolean {
    return this.#leftovers.canTidy(visible);
  }

  // --- the near window -------------------------------------------------------------------------------

  /**
   * The next step of reading buckets: `room` entries more may be near. What it gives is to be timed in the turn in
   * which it is called, before anything else is committed.
   */
  load(nowMs: number, room: number, visible: number): LoadStep {
    const horizonMs = startOf(0, nowMs + HORIZON_MS) + WIDTHS_MS[0];
    const bucket = this.#buckets.next();
    if (bucket === undefined || bucket.start >= horizonMs) {
      this.#watermarkMs = Math.max(this.#watermarkMs, horizonMs);
      return bucket === undefined ? NOTHING : this.#ahead(bucket, room, nowMs, visible);
    }
    if (bucket.stage === 'loading') return this.#loadStep(bucket, room, nowMs);
    // Below, and not at: it may be empty, and what is put in then would not be seen.
    this.#watermarkMs = Math.max(this.#watermarkMs, Math.min(bucket.start, horizonMs));
    if (Math.max(bucket.addedBy, bucket.rewrittenBy) > visible) return SOON;
    const fits = bucket.live <= room;
    if (bucket.stage === 'splitting' || (!fits && bucket.level > 0)) {
      return SPLIT;
    }
    if (!fits && (bucket.start > nowMs || room < STEP_ENTRIES)) {
      return { ...NOTHING, nextAtMs: Math.max(bucket.start, nowMs + FULL_RETRY_MS) };
    }
    this.#buckets.setStage(bucket, 'loading');
    this.#cursor = undefined;
    this.#cursorBound = visible;
    if (bucket.level === 0)
      this.#watermarkMs = Math.max(this.#watermarkMs, bucket.start + WIDTHS_MS[0]);
    return this.#loadStep(bucket, room, nowMs);
  }

  /** One that is not near yet is split well before, if it will not fit. */
  #ahead(bucket: Bucket, room: number, nowMs: number, visible: number): LoadStep {
    const fits = bucket.live <= room && bucket.stage !== 'splitting';
    const atMs = bucket.start - (fits ? HORIZON_MS : SPLIT_AHEAD_MS[bucket.level]);
    if (fits || atMs > nowMs) return { ...NOTHING, nextAtMs: atMs };
    return Math.max(bucket.addedBy, bucket.rewrittenBy) > visible ? SOON : SPLIT;
  }

  /** When the first that is not near is due; where too many would have to be looked at, the start of their bucket. */
  earliestMs(): number | undefined {
    const bucket = this.#buckets.next();
    if (bucket === undefined || bucket.stage !== 'far') return bucket?.start;
    const chunks = this.#chunks.read(bucket, undefined, STEP_CHUNKS);
    if (chunks.length === STEP_CHUNKS) return bucket.start;
    let earliest = Number.POSITIVE_INFINITY;
    for (const chunk of chunks) {
      for (const { dueAt } of this.#chunks.entries(chunk.bytes))
        earliest = Math.min(earliest, dueAt);
    }
    return Number.isFinite(earliest) ? earliest : bucket.start;
  }

  #loadStep(bucket: Bucket, room: number, nowMs: number): LoadStep {
    if (room < CHUNK_MAX) return { ...NOTHING, nextAtMs: nowMs + FULL_RETRY_MS };
    const chunks = this.#chunks.read(bucket, this.#cursor, STEP_CHUNKS);
    const entries: LiveEntry[] = [];
    const entriesMax = Math.min(STEP_ENTRIES, room) - CHUNK_MAX;
    const hasStale = bucket.live !== bucket.physical;
    let done = 0;
    for (const chunk of chunks) {
      if (entries.length > entriesMax) break;
      done++;
      this.#cursor = chunk.key;
      if (chunk.splits === 0 && chunk.group > this.#cursorBound) continue;
      for (const entry of this.#chunks.entries(chunk.bytes)) {
        if (!hasStale || this.#isPlaced(entry)) entries.push(liveEntryOf(entry));
      }
    }
    if (done < STEP_CHUNKS && done === chunks.length) {
      this.#buckets.setStage(bucket, 'loaded');
      if (bucket.live <= 0) this.#leftovers.noteEmpty(bucket);
    }
    return { ...NOTHING, entries, more: true };
  }

  /** Somebody's place, and not left lying. */
  #isPlaced(entry: Entry): boolean {
    const row = this.#options.rowOf(entry.taskId);
    const stored = row?.occurrences.find((o) => o.record.id === entry.occurrenceId);
    return (
      stored !== undefined &&
      stored.place !== 0 &&
      levelOf(stored.place) !== RUNNING_LEVEL &&
      stored.record.dueAt === entry.dueAt
    );
  }

  /** A step of moving the next bucket to the level below; in a commit when no other is under way. */
  split(context: CommitContext): void {
    const bucket = this.#buckets.next();
    if (bucket === undefined || bucket.level === 0) return;
    if (bucket.stage !== 'far' && bucket.stage !== 'splitting') return;
    // First what is to be removed: in the groups of a split an old entry and a newer one look alike.
    if (this.#leftovers.areDeferred) return;
    this.#buckets.setStage(bucket, 'splitting');
    const chunks = this.#chunks.read(bucket, undefined, STEP_CHUNKS);
    const hasStale = bucket.live !== bucket.physical;
    let done = 0;
    let moved = 0;
    /** By bucket below, splits and group. */
    const parts = new Map<string, { below: Bucket; splits: number; group: number; of: Part[] }>();
    for (const chunk of chunks) {
      if (moved >= STEP_ENTRIES) break;
      done++;
      const splits = chunk.splits + 1;
      const group = groupOf(chunk.group, 1);
      for (const entry of this.#chunks.entries(chunk.bytes)) {
        bucket.physical -= 1;
        moved++;
        if (hasStale && !this.#isPlaced(entry)) continue;
        bucket.live -= 1;
        const level = bucket.level - 1;
        const below = this.#buckets.obtain(level, startOf(level, entry.dueAt), false);
        below.live += 1;
        below.physical += 1;
        below.addedBy = context.number;
        this.#buckets.touch(below);
        const name = `${below.start} ${splits} ${group}`;
        const part = parts.get(name) ?? { below, splits, group, of: [] };
        parts.set(name, part);
        part.of.push({ bytes: chunk.bytes, from: entry.from, to: entry.to });
      }
      this.#chunks.remove(chunk.key);
    }
    let sub = context.number * NUMBERS_A_COMMIT;
    for (const { below, splits, group, of } of parts.values()) {
      for (let from = 0; from < of.length; from += CHUNK_MAX) {
        this.#writePart(of.slice(from, from + CHUNK_MAX), context.writer);
        const key = this.#chunks.key(below.level, below.start, splits, group, sub++);
        this.#chunks.put(key, context.writer);
      }
    }
    bucket.rewrittenBy = context.number;
    if (done < STEP_CHUNKS && done === chunks.length) {
      bucket.live = 0;
      bucket.physical = 0;
      this.#buckets.setStage(bucket, 'split');
      this.#forgetSplit();
    }
  }

  #writePart(of: readonly Part[], writer: Writer): void {
    let bytesMax = 0;
    for (const { from, to } of of) bytesMax += to - from;
    writer.begin(bytesMax);
    for (const { bytes, from, to } of of) writer.raw(bytes.subarray(from, to), to - from);
  }

  /** Buckets that were split are forgotten when nothing is left in those below. */
  #forgetSplit(): void {
    const kept = [...this.#buckets.all()].filter(({ stage }) => stage !== 'split');
    for (const bucket of [...this.#buckets.all()]) {
      if (bucket.stage !== 'split') continue;
      const end = bucket.start + WIDTHS_MS[bucket.level];
      const isNeeded = kept.some(
        ({ level, start }) => level < bucket.level && start >= bucket.start && start < end,
      );
      if (!isNeeded) this.#buckets.remove(bucket);
    }
  }

  get bucketCount(): number {
    return this.#buckets.size;
  }
}

interface Part {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

const NUMBERS_A_COMMIT = 4096;
/** A window that is full is looked at again after this long. */
const FULL_RETRY_MS = 20;
const NOTHING: LoadStep = {
  entries: [],
  more: false,
  splits: false,
  nextAtMs: Number.POSITIVE_INFINITY,
};
const SPLIT: LoadStep = { ...NOTHING, more: true, splits: true };
/** Something that must be visible first is under way. */
const SOON: LoadStep = { ...NOTHING, more: true };

function isNear(stage: Stage): boolean {
  return stage === 'loaded' || stage === 'loading';
}
