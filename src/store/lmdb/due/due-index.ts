/**
 * Which pending occurrences are due when, on disk, and which of them the engine has been told (the near window).
 *
 * Invariants
 * 1. An occurrence that lives and is not held back has exactly one place, stored in its record: in the bucket of its
 *    due time, or, while it runs, in the log of what runs. Others have none.
 * 2. All buckets that start before the watermark have been looked through, or are being. What becomes visible with a due
 *    time before the watermark is timed by the engine itself, unless its lane is kept (kept-lanes.ts).
 * 3. A bucket is read or split only when all that was ever put in is visible.
 * 4. An entry of a bucket that is still far is removed when it is nobody's place any more. One in a bucket that was read
 *    stays until the bucket is empty and goes as a whole; its record tells that it means nothing.
 */
import { isTerminal, type OccurrenceRecord } from '../../../core/model.js';
import type { Lane, NearRoom } from '../../store.js';
import type { Db } from '../environment.js';
import type { Pool } from '../pool.js';
import { isHeldBack, isRunning, type Row, type StoredOccurrence } from '../row.js';
import { type Bucket, Buckets, type Stage } from './buckets.js';
import { CHUNK_MAX, Chunks } from './chunks.js';
import type { CommitContext } from './commit-context.js';
import { type Entry, entryMax, writeEntry } from './entry.js';
import { byLane, type LaneOf, laneKey, MIXED, type Sorted } from './lane.js';
import { bucketOf, Leftovers } from './leftovers.js';
import { commitOf, levelFor, levelOf, placeOf, RUNNING_LEVEL, startOf } from './levels.js';
import { type LoadStep, NearWindow } from './near-window.js';
import { Running } from './running.js';
import { APART_MIN } from './splitting.js';

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

export class DueIndex {
  readonly #options: DueOptions;
  readonly #buckets: Buckets;
  readonly #chunks: Chunks;
  readonly #running: Running;
  /** Entries of the commit at hand, by bucket. */
  #added = new Map<Bucket, Added[]>();
  readonly #leftovers: Leftovers;
  readonly #window: NearWindow;

  constructor(options: DueOptions) {
    this.#options = options;
    this.#buckets = new Buckets(options.buckets);
    this.#chunks = new Chunks(options.due, options.pool);
    this.#running = new Running(options.due);
    this.#leftovers = new Leftovers(this.#buckets, this.#chunks, options.pool);
    this.#window = new NearWindow({
      buckets: this.#buckets,
      chunks: this.#chunks,
      leftovers: this.#leftovers,
      pool: options.pool,
      isPlaced: (entry) => this.#isPlaced(entry),
    });
  }

  /** At open, and after a failed commit: from the disk. What the engine knows of the near window stays true. */
  reload(keepsWindow: boolean): void {
    const near = keepsWindow ? [...this.#buckets.all()].filter(({ stage }) => isNear(stage)) : [];
    // Not `clear`, which would keep them alive (core/flat-map.ts)
    this.#added = new Map();
    this.#leftovers.clear();
    this.#buckets.load();
    for (const { level, start, stage } of near) {
      const bucket = this.#buckets.find(level, start);
      if (bucket !== undefined) this.#buckets.setStage(bucket, stage);
    }
    if (keepsWindow) this.#window.restart();
    else this.#window.clear();
    this.#running.load((taskId, serial, place) => this.#isRunning(taskId, serial, place));
  }

  /** See DueWindow. */
  isNear(lane: Lane, dueAt: number): boolean {
    return this.#window.isNear(lane, dueAt);
  }

  /** See DueWindow. */
  isTold(lane: Lane, dueAt: number): boolean {
    return this.#window.isTold(lane, dueAt);
  }

  /** See DueWindow; `visible`: all commits up to this one are. */
  load(nowMs: number, room: NearRoom, visible: number): LoadStep {
    return this.#window.load(nowMs, room, visible);
  }

  /** See DueWindow. */
  earliestMs(): number | undefined {
    return this.#window.earliestMs();
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
    const was = before ?? record;
    if (isTerminal(record.state) || (!isRunning(record) && isHeldBack(row.task, record))) {
      this.remove(stored, was, priorityBefore, context);
      return;
    }
    if (isRunning(record)) {
      if (stored.place !== 0 && levelOf(stored.place) === RUNNING_LEVEL) return;
      this.remove(stored, was, priorityBefore, context);
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
    this.remove(stored, was, priorityBefore, context);
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
    if (dueAt < this.#window.watermarkMs) return this.#buckets.obtain(0, startOf(0, dueAt), true);
    for (let level = levelFor(dueAt, nowMs); ; level--) {
      const start = startOf(level, dueAt);
      const found = this.#buckets.find(level, start);
      const isOpen =
        found === undefined ? start >= this.#window.watermarkMs : found.stage === 'far';
      if (isOpen || level === 0) return found ?? this.#buckets.obtain(level, start, false);
    }
  }

  /** Takes the occurrence out; `was` and `priority` are those with which it was put in. */
  remove(
    stored: StoredOccurrence,
    was: TimedAs,
    priority: number,
    { number }: CommitContext,
  ): void {
    const { place } = stored;
    const { dueAt, handler, handlerVersion } = was;
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
    const { id: occurrenceId, tenant } = stored.record;
    const lane: LaneOf = { tenant, handler, handlerVersion, priority };
    this.#leftovers.drop({ occurrenceId, place, dueAt, lane });
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
    const { pool } = this.#options;
    for (const [bucket, added] of this.#added) {
      for (const { lane, items } of this.#sorted(bucket, added)) {
        const key = (lane && laneKey(pool, lane)) ?? MIXED;
        const isKept = lane !== undefined && key !== MIXED && isNear(bucket.stage);
        if (isKept) this.#window.kept.note(lane, bucket, key);
        for (let from = 0, sub = 0; from < items.length; from += CHUNK_MAX, sub++) {
          const to = Math.min(from + CHUNK_MAX, items.length);
          let bytesMax = 0;
          for (let i = from; i < to; i++) bytesMax += entryMax(items[i].stored.record);
          writer.begin(bytesMax);
          for (let i = from; i < to; i++) {
            writeEntry(writer, pool, items[i].stored.record, items[i].row.task);
          }
          this.#chunks.put(this.#chunks.key(bucket, key, 0, number, sub), writer);
        }
      }
    }
    // Not `clear`, which would keep them alive (core/flat-map.ts)
    this.#added = new Map();
  }

  /** Of what is near, lanes that are kept apart; of what is far, those with many entries. */
  #sorted(bucket: Bucket, added: Added[]): readonly Sorted<Added>[] {
    if (!isNear(bucket.stage)) {
      if (added.length < APART_MIN) return [{ lane: undefined, items: added }];
      return byLane(added, laneOfAdded, (_, count) => count >= APART_MIN);
    }
    const { kept } = this.#window;
    if (kept.isEmpty) return [{ lane: undefined, items: added }];
    const isKept = ({ row, stored }: Added): boolean =>
      !this.#window.isNear(laneOfAdded({ row, stored }), stored.record.dueAt);
    const told = added.filter((each) => !isKept(each));
    const apart = byLane(added.filter(isKept), laneOfAdded, () => true);
    return told.length === 0 ? apart : [...apart, { lane: undefined, items: told }];
  }

  /** True when a commit with nothing else in it would tidy up. */
  hasLeftovers(visible: number): boolean {
    return this.#leftovers.canTidy(visible);
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
}

function laneOfAdded({ row, stored }: Added): LaneOf {
  const { tenant, handler, handlerVersion } = stored.record;
  return { tenant, handler, handlerVersion, priority: row.task.priority };
}

function isNear(stage: Stage): boolean {
  return stage === 'loaded' || stage === 'loading';
}
