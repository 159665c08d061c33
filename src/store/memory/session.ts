/** One opening of a memory store: its pipeline of commits, and reads of what is visible. */
import { StoreUnavailableError } from '../../core/errors.js';
import type { AttemptRecord, OccurrenceRecord, TaskView } from '../../core/model.js';
import type {
  Commit,
  DeadLetterQuery,
  LiveEntry,
  Page,
  PageQuery,
  Setting,
  StoreCounts,
  StoreSession,
  TaskQuery,
  Unit,
} from '../store.js';
import type { Pipeline } from './pipeline.js';
import type { Pruner } from './pruner.js';
import type { Queries } from './queries.js';
import type { Records } from './records.js';

export interface SessionParts {
  readonly epoch: number;
  readonly records: Records;
  readonly pruner: Pruner;
  readonly queries: Queries;
  readonly pipeline: Pipeline;
  /** Gives the store's lock free. */
  release(): void;
}

export class MemorySession implements StoreSession {
  readonly epoch: number;
  readonly #parts: SessionParts;
  readonly #queries: Queries;
  #closed: StoreUnavailableError | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#queries = parts.queries;
    this.epoch = parts.epoch;
  }

  get unflushedBytes(): number {
    return this.#parts.pipeline.unflushedBytes;
  }

  get waitsForClock(): boolean {
    return this.#parts.pipeline.waitsForClock;
  }

  commit(units: readonly Unit[]): Commit {
    if (this.#closed === undefined) return this.#parts.pipeline.commit(units);
    const rejected = Promise.reject(this.#closed);
    rejected.catch(() => {});
    return { visible: rejected, durable: rejected };
  }

  async views(
    ids: readonly string[],
    places?: number[],
  ): Promise<readonly (TaskView | undefined)[]> {
    this.#assertUsable();
    return this.#queries.views(ids, places);
  }

  async taskIdOfKey(tenant: string, key: string, nowMs: number): Promise<string | undefined> {
    this.#assertUsable();
    return this.#queries.taskIdOfKey(tenant, key, nowMs);
  }

  async occurrence(id: string): Promise<OccurrenceRecord | undefined> {
    this.#assertUsable();
    return this.#queries.occurrence(id);
  }

  async attempts(occurrenceId: string): Promise<readonly AttemptRecord[]> {
    this.#assertUsable();
    return this.#queries.attempts(occurrenceId);
  }

  async listTasks(query: TaskQuery): Promise<Page<TaskView>> {
    this.#assertUsable();
    return this.#queries.listTasks(query);
  }

  async listOccurrences(taskId: string, query: PageQuery): Promise<Page<OccurrenceRecord>> {
    this.#assertUsable();
    return this.#queries.listOccurrences(taskId, query);
  }

  async listDeadLetters(query: DeadLetterQuery): Promise<Page<OccurrenceRecord>> {
    this.#assertUsable();
    return this.#queries.listDeadLetters(query);
  }

  async scanLive(query: PageQuery): Promise<Page<LiveEntry>> {
    this.#assertUsable();
    return this.#queries.scanLive(query);
  }

  async settings(): Promise<ReadonlyMap<string, Setting>> {
    this.#assertUsable();
    return this.#parts.records.settings;
  }

  async counts(): Promise<StoreCounts> {
    this.#assertUsable();
    const { records, pruner } = this.#parts;
    return this.#queries.counts(records.bytes + pruner.bytes);
  }

  async prune(
    nowMs: number,
    max: number,
  ): Promise<{ removed: number; nextAtMs: number | undefined }> {
    this.#assertUsable();
    const { records, pruner } = this.#parts;
    const journal = this.#parts.pipeline.newestJournal;
    return pruner.prune(nowMs, max, (task) => journal?.keepTask(records.tasks.id(task)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed = new StoreUnavailableError('the store was closed');
    await this.#parts.pipeline.idle();
    this.#parts.release();
  }

  #assertUsable(): void {
    const failure = this.#parts.pipeline.failure ?? this.#closed;
    if (failure !== undefined) throw failure;
  }
}
