/** One opening of a store: its parts wired, its reads and commits. */
import type { Clock } from '../../clock/clock.js';
import { StoreUnavailableError } from '../../core/errors.js';
import type { AttemptRecord, OccurrenceRecord, TaskView } from '../../core/model.js';
import type {
  Commit,
  DeadLetterQuery,
  DueWindow,
  LiveEntry,
  Page,
  PageQuery,
  Retention,
  Setting,
  StoreCounts,
  StoreSession,
  TaskQuery,
  Unit,
} from '../store.js';
import { Applier } from './apply.js';
import { type Arena, Writer } from './bytes.js';
import { Counts } from './counts.js';
import { DueIndex } from './due/due-index.js';
import type { Environment } from './environment.js';
import { KeyHolders } from './key-holders.js';
import { type KeySizes, StoredKeys } from './key-index.js';
import { Pipeline } from './pipeline.js';
import { Pool } from './pool.js';
import { Pruner } from './prune.js';
import { Queries } from './queries.js';
import { Records } from './records.js';
import { Ends } from './retention.js';
import { hasEnded, type Row } from './row.js';
import { RowCache } from './row-cache.js';
import { RowCodec } from './row-codec.js';
import type { RowLogLimits } from './row-log.js';
import { Settings } from './settings.js';
import { translated } from './translated.js';

export interface SessionOptions {
  readonly env: Environment;
  readonly clock: Clock;
  readonly retention: Retention;
  readonly epoch: number;
  /** A byte that stays as it is. */
  readonly chainByte: Arena;
  readonly keys?: KeySizes | undefined;
  readonly rowLog?: RowLogLimits | undefined;
  /** Gives the store's lock free. */
  readonly release: () => void;
}

/**
 * Rows due within this are kept in memory after their commit. One kept for longer survives young collections as some ten
 * objects, which costs more than to read it again: with 10 s, at 15,000 due a second, p99 was 71 to 78 ms instead of 26 to 36,
 * and the process took 150 MiB more.
 */
const NEAR_MS = 100;

export class LmdbSession implements StoreSession {
  readonly epoch: number;
  readonly due: DueWindow;
  readonly waitsForClock = false;
  readonly #options: SessionOptions;
  readonly #counts: Counts;
  readonly #settings: Settings;
  readonly #queries: Queries;
  readonly #holders: KeyHolders;
  readonly #pruner: Pruner;
  readonly #pipeline: Pipeline;
  readonly #keys: StoredKeys;
  #closed: StoreUnavailableError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    const { env, clock, retention } = options;
    const { db } = env;
    const writer = new Writer();
    const pool = new Pool(db.pool);
    const cache = new RowCache();
    const records = new Records(env, new RowCodec(pool), cache, writer, options.rowLog);
    const counts = new Counts(db.counts);
    const settings = new Settings(db.settings, writer);
    const ends = new Ends(db.ends);
    ends.setRetention(retention.succeededMs, retention.failedMs);
    const keys = new StoredKeys({ log: db.keyLog, runs: db.keyRuns, writer, sizes: options.keys });
    const holders = new KeyHolders(keys, records);
    const due = new DueIndex({
      due: db.due,
      buckets: db.buckets,
      pool,
      rowOf: (taskId) => records.row(taskId),
    });
    const applier = new Applier({ records, cache, counts, due, ends, keys, holders, settings });
    const load = (keepsWindow: boolean): void => {
      env.log.clear();
      cache.clear(env.newestCommit());
      applier.clear();
      ends.clear();
      pool.load();
      records.load();
      counts.load();
      settings.load();
      due.reload(keepsWindow);
      keys.load();
    };
    load(false);
    const keeps = ({ task, occurrences }: Row): boolean => {
      if (hasEnded(task)) return false;
      const soonMs = clock.now() + NEAR_MS;
      for (const { record } of occurrences) if (record.dueAt <= soonMs) return true;
      return false;
    };
    this.#pipeline = new Pipeline(
      {
        env,
        clock,
        writer,
        apply: (units, context) => applier.apply(units, context),
        finish: (context) => {
          applier.finish(context);
          ends.finish(context.number, writer);
          due.finish(context);
          counts.flush(writer);
          pool.flush(writer);
          keys.finish(context.number);
        },
        visible: (commit) => {
          cache.visible(commit, keeps);
          records.visible(commit);
          keys.visible(commit);
        },
        idle: () => keys.step(),
        hasLeftovers: (visible) => due.hasLeftovers(visible),
        reload: () => load(true),
      },
      options.chainByte,
    );
    this.#keys = keys;
    this.#counts = counts;
    this.#settings = settings;
    this.#holders = holders;
    this.#queries = new Queries(env, records);
    this.#pruner = new Pruner({ records, applier, holders, ends, writer });
    this.due = this.#windowOf(due);
  }

  #windowOf(due: DueIndex): DueWindow {
    const pipeline = this.#pipeline;
    return {
      isNear: (lane, dueAt) => due.isNear(lane, dueAt),
      isTold: (lane, dueAt) => due.isTold(lane, dueAt),
      earliestMs: () => this.#reading(() => due.earliestMs()),
      runningTasks: () => due.runningTasks(),
      load: async (nowMs, room) => {
        this.#assertUsable();
        const step = this.#reading(() => due.load(nowMs, room, pipeline.visibleCommit));
        const { entries, more, nextAtMs, commit } = step;
        if (commit === undefined) return { entries, more, nextAtMs };
        let given: readonly LiveEntry[] = [];
        await pipeline.run((context) => {
          given = commit(context);
        });
        return { entries: entries.concat(given), more, nextAtMs };
      },
    };
  }

  /** Test hook: resolves when no commit, also of the store's own, is under way; undefined: that is so now. */
  atRest(): Promise<void> | undefined {
    return this.#pipeline.atRest();
  }

  get unflushedBytes(): number {
    return this.#pipeline.unflushedBytes;
  }

  commit(units: readonly Unit[]): Commit {
    if (this.#closed === undefined) return this.#pipeline.commit(units);
    const rejected = Promise.reject(this.#closed);
    rejected.catch(() => {});
    return { visible: rejected, durable: rejected };
  }

  async views(
    ids: readonly string[],
    places?: number[],
  ): Promise<readonly (TaskView | undefined)[]> {
    return this.#reading(() => this.#queries.views(ids, places));
  }

  async taskIdOfKey(tenant: string, key: string, nowMs: number): Promise<string | undefined> {
    return this.#reading(() => this.#holders.holderOf(tenant, key, nowMs));
  }

  async occurrence(id: string): Promise<OccurrenceRecord | undefined> {
    return this.#reading(() => this.#queries.occurrence(id));
  }

  async attempts(occurrenceId: string): Promise<readonly AttemptRecord[]> {
    return this.#reading(() => this.#queries.attempts(occurrenceId));
  }

  async listTasks(query: TaskQuery): Promise<Page<TaskView>> {
    return this.#reading(() => this.#queries.listTasks(query));
  }

  async listOccurrences(taskId: string, query: PageQuery): Promise<Page<OccurrenceRecord>> {
    return this.#reading(() => this.#queries.listOccurrences(taskId, query));
  }

  async listDeadLetters(query: DeadLetterQuery): Promise<Page<OccurrenceRecord>> {
    return this.#reading(() => this.#queries.listDeadLetters(query));
  }

  async scanLive(query: PageQuery): Promise<Page<LiveEntry>> {
    return this.#reading(() => this.#queries.scanLive(query));
  }

  async settings(): Promise<ReadonlyMap<string, Setting>> {
    this.#assertUsable();
    return this.#settings.all;
  }

  async counts(): Promise<StoreCounts> {
    this.#assertUsable();
    return { ...this.#counts.all(), bytes: this.#options.env.bytes };
  }

  async prune(
    nowMs: number,
    max: number,
  ): Promise<{ removed: number; nextAtMs: number | undefined }> {
    const nextAtMs = this.#reading(() => this.#pruner.peek());
    if (nextAtMs === undefined || nextAtMs > nowMs) return { removed: 0, nextAtMs };
    let pruned = { removed: 0, nextAtMs: undefined as number | undefined };
    await this.#pipeline.run((context) => {
      pruned = this.#pruner.prune(nowMs, max, context);
    });
    return pruned;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed = new StoreUnavailableError('the store was closed');
    await this.#pipeline.close();
    this.#keys.close();
    try {
      await this.#options.env.close();
    } finally {
      this.#options.release();
    }
  }

  #reading<T>(read: () => T): T {
    this.#assertUsable();
    try {
      return read();
    } catch (error) {
      throw translated(error, this.#options.env.file);
    }
  }

  #assertUsable(): void {
    const failure = this.#pipeline.failure ?? this.#closed;
    if (failure !== undefined) throw failure;
  }
}
