/** A session that reads a store, also while another process has it open, and changes nothing. */
import { join } from 'node:path';
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
} from '../store.js';
import { DATA_FILE, Environment, translated } from './environment.js';
import { checkFormat } from './opening.js';
import { StoreReader } from './reader.js';
import { openBeside } from './reader-gate.js';

/** @throws StoreCorruptError, StoreVersionError, StoreUnavailableError when there is no store */
export async function openReader(path: string): Promise<StoreReader> {
  const open = () => Environment.open(path, { readOnly: true });
  const env = await openBeside(path, join(path, DATA_FILE), open);
  try {
    checkFormat(env);
    return new StoreReader(env);
  } catch (error) {
    await env.close();
    throw translated(error, env.file);
  }
}

export class ReadOnlySession implements StoreSession {
  readonly unflushedBytes = 0;
  readonly waitsForClock = false;
  readonly epoch: number;
  readonly #reader: StoreReader;
  #closed: StoreUnavailableError | undefined;

  constructor(reader: StoreReader) {
    this.#reader = reader;
    this.epoch = checkFormat(reader.env);
  }

  commit(): Commit {
    const error =
      this.#closed ?? new StoreUnavailableError('the store was opened for reading only');
    const rejected = Promise.reject(error);
    rejected.catch(() => {});
    return { visible: rejected, durable: rejected };
  }

  async views(ids: readonly string[]): Promise<readonly (TaskView | undefined)[]> {
    return this.#reading(({ queries }) => queries.views(ids));
  }

  async taskIdOfKey(tenant: string, key: string, nowMs: number): Promise<string | undefined> {
    return this.#reading(({ holders }) => holders.holderOf(tenant, key, nowMs));
  }

  async occurrence(id: string): Promise<OccurrenceRecord | undefined> {
    return this.#reading(({ queries }) => queries.occurrence(id));
  }

  async attempts(occurrenceId: string): Promise<readonly AttemptRecord[]> {
    return this.#reading(({ queries }) => queries.attempts(occurrenceId));
  }

  async listTasks(query: TaskQuery): Promise<Page<TaskView>> {
    return this.#reading(({ queries }) => queries.listTasks(query));
  }

  async listOccurrences(taskId: string, query: PageQuery): Promise<Page<OccurrenceRecord>> {
    return this.#reading(({ queries }) => queries.listOccurrences(taskId, query));
  }

  async listDeadLetters(query: DeadLetterQuery): Promise<Page<OccurrenceRecord>> {
    return this.#reading(({ queries }) => queries.listDeadLetters(query));
  }

  async scanLive(query: PageQuery): Promise<Page<LiveEntry>> {
    return this.#reading(({ queries }) => queries.scanLive(query));
  }

  async settings(): Promise<ReadonlyMap<string, Setting>> {
    return this.#reading(({ settings }) => settings.all);
  }

  async counts(): Promise<StoreCounts> {
    return this.#reading(({ counts, env }) => ({ ...counts.all(), bytes: env.bytes }));
  }

  async prune(): Promise<{ removed: number; nextAtMs: number | undefined }> {
    return { removed: 0, nextAtMs: undefined };
  }

  async close(): Promise<void> {
    if (this.#closed !== undefined) return;
    this.#closed = new StoreUnavailableError('the store was closed');
    await this.#reader.close();
  }

  #reading<T>(read: (reader: StoreReader) => T): T {
    if (this.#closed !== undefined) throw this.#closed;
    try {
      this.#reader.refresh();
      return read(this.#reader);
    } catch (error) {
      throw translated(error, this.#reader.env.file);
    }
  }
}
