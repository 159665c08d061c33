/**
 * The store that keeps everything in memory: the reference for all others, and for tests the one whose delays
 * and failures can be set. Made for tens of millions of pending tasks: records are rows in typed arrays.
 *
 *   Session ─ Pipeline (when a commit is visible, durable) ─ Applier (guards, changes) ─┐
 *      └───── Queries, Pruner ──────────────────────────────────────────────────────────┴─ Records
 *   Records: TaskTable, OccurrenceTable (rows), RowIndex (ids, keys), SeqLog (orders), Lanes (counts), Blobs
 */
import { optionsOf, refuse } from '../../core/arguments.js';
import { assert } from '../../core/assert.js';
import { StoreFullError, StoreLockedError, StoreUnavailableError } from '../../core/errors.js';
import { type Duration, parseDurationMs } from '../../core/units.js';
import type { Store, StoreCapabilities, StoreCounts, StoreOpenOptions, Unit } from '../store.js';
import { Applier } from './apply.js';
import { Journal } from './journal.js';
import { Pipeline } from './pipeline.js';
import { Pruner } from './pruner.js';
import { Queries } from './queries.js';
import { Records } from './records.js';
import { MemorySession } from './session.js';
import { ROWS_MAX } from './slab.js';

export interface MemoryStoreOptions {
  /** Test hook. A commit becomes visible this long after it was given, on the scheduler's clock. Default 0: a microtask. */
  readonly commitDelay?: Duration;
  /** Test hook. A commit becomes durable this long after it became visible. Default 0: a later microtask. */
  readonly flushDelay?: Duration;
  /**
   * Test hook, asked before the n-th commit (from 1, over all openings) is applied. A StoreFullError refuses that
   * commit alone; any other error makes the store unavailable until it is opened again.
   */
  readonly fail?: (commitNumber: number) => Error | undefined;
  /** Test hook, asked before the n-th flush counts as done; an error makes the store unavailable. */
  readonly failFlush?: (flushNumber: number) => Error | undefined;
  /** Tasks, and likewise occurrences, held at most; a commit beyond fails with StoreFullError. Default 2²⁷ − 1. */
  readonly maxRecords?: number;
}

/** A store whose data lives as long as this object, from one opening to the next. */
export interface MemoryStore extends Store {
  /**
   * Test hook: the process dies. What is not durable is lost, the lock is free, and all calls under way or yet to
   * come on the session reject with StoreUnavailableError. Without `flushDelay` and `failFlush` what is
   * visible counts as durable.
   */
  crash(): void;
  /** Test hook: the counts from the records themselves. O(records). */
  recount(): StoreCounts;
}

const OPTIONS = new Set(['commitDelay', 'flushDelay', 'fail', 'failFlush', 'maxRecords'] as const);

/** A session's epoch takes 20 bits of a fencing token. */
const EPOCH_MAX = 2 ** 20;

/**
 * A store in this process's memory: nothing survives the process. A pending one-off takes about 200 bytes and
 * its payload's length.
 * @throws InvalidArgumentError on a bad or unknown option
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  optionsOf(options, 'memoryStore options', OPTIONS);
  return new MemoryStoreImpl(options);
}

class MemoryStoreImpl implements MemoryStore {
  readonly capabilities: StoreCapabilities = {
    kind: 'memory',
    durable: false,
    shared: false,
    transactions: false,
  };
  readonly #options: MemoryStoreOptions;
  readonly #commitDelayMs: number;
  readonly #flushDelayMs: number;
  readonly #recordsMax: number;
  readonly #records = new Records();
  readonly #pruner = new Pruner(this.#records);
  readonly #queries = new Queries(this.#records);
  readonly #applier = new Applier(this.#records, this.#pruner);
  #epoch = 0;
  #commits = 0;
  #flushes = 0;
  /** Of the session that has the store open. */
  #pipeline: Pipeline | undefined;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    const { commitDelay = 0, flushDelay = 0, maxRecords = ROWS_MAX } = options;
    this.#commitDelayMs = parseDurationMs(commitDelay, 'commitDelay');
    this.#flushDelayMs = parseDurationMs(flushDelay, 'flushDelay');
    if (!(maxRecords >= 1)) refuse('maxRecords', maxRecords, '1 or more');
    this.#recordsMax = Math.min(maxRecords, ROWS_MAX);
  }

  async open({ clock, retention }: StoreOpenOptions): Promise<MemorySession> {
    if (this.#pipeline !== undefined) {
      throw new StoreLockedError(
        'the memory store is open in another scheduler; shut that down first',
      );
    }
    assert(this.#epoch < EPOCH_MAX, 'a store is opened at most 2^20 times');
    this.#epoch += 1;
    this.#pruner.setRetention(retention);
    const { fail, failFlush } = this.#options;
    const journalled = this.#flushDelayMs > 0 || failFlush !== undefined;
    const pipeline = new Pipeline({
      clock,
      commitDelayMs: this.#commitDelayMs,
      flushDelayMs: this.#flushDelayMs,
      newJournal: journalled ? () => new Journal(this.#records) : undefined,
      apply: (units, journal) => {
        this.#assertRoom(units);
        return this.#applier.apply(units, clock.now(), journal);
      },
      takeBack: (journal) => journal.takeBack(this.#pruner),
      failCommit: () => fail?.(++this.#commits),
      failFlush: () => failFlush?.(++this.#flushes),
    });
    this.#pipeline = pipeline;
    return new MemorySession({
      epoch: this.#epoch,
      records: this.#records,
      pruner: this.#pruner,
      queries: this.#queries,
      pipeline,
      release: () => {
        if (this.#pipeline === pipeline) this.#pipeline = undefined;
      },
    });
  }

  crash(): void {
    this.#pipeline?.fail(new StoreUnavailableError('the memory store crashed'));
    this.#pipeline = undefined;
  }

  recount(): StoreCounts {
    return this.#queries.recount(this.#records.bytes + this.#pruner.bytes);
  }

  /** Rows are counted before a commit is applied, for half of one must never be. */
  #assertRoom(units: readonly Unit[]): void {
    const { tasks, occurrences } = this.#records;
    let newTasks = 0;
    let newOccurrences = 0;
    for (const { task, occurrences: changes } of units) {
      if (task?.expected === 0) newTasks += 1;
      if (changes === undefined) continue;
      for (const { expected } of changes) if (expected === 0) newOccurrences += 1;
    }
    const most = Math.max(tasks.rows.used + newTasks, occurrences.rows.used + newOccurrences);
    if (most > this.#recordsMax) {
      throw new StoreFullError(`the memory store holds at most ${this.#recordsMax} records`);
    }
  }
}
