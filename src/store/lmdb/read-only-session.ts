/** A session that reads a store, also while another process has it open, and changes nothing. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { nextTurn } from '../../clock/turn.js';
import { StoreLockedError, StoreUnavailableError } from '../../core/errors.js';
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
import { DATA_FILE, Environment } from './environment.js';
import { needsMending, newestMeta } from './file-check.js';
import { acquireLock, isHeld, LOCK_FILE } from './lock.js';
import { epochOf } from './opening.js';
import { checkPages, PAGES_AT_OPEN } from './page-check.js';
import { StoreReader } from './reader.js';
import { openBeside } from './reader-gate.js';
import { translated } from './translated.js';

/**
 * @param pagesMax how many pages are looked at before; none where a scheduler, which has looked at them, writes
 * @throws StoreCorruptError, StoreVersionError, StoreUnavailableError when there is no store
 */
export async function openReader(path: string, pagesMax = PAGES_AT_OPEN): Promise<StoreReader> {
  const file = join(path, DATA_FILE);
  try {
    if (!existsSync(file)) {
      throw new StoreUnavailableError(`there is no store: '${file}' does not exist`);
    }
    if (needsMending(file)) await mend(path);
    await checkUnwritten(path, file, pagesMax);
    const open = () => Environment.open(path, { readOnly: true });
    return new StoreReader(await openBeside(path, file, open));
  } catch (error) {
    throw translated(error, file);
  }
}

/** As a scheduler does when it opens it. */
async function mend(path: string): Promise<void> {
  let release: (() => void) | undefined;
  try {
    release = acquireLock(join(path, LOCK_FILE));
  } catch (error) {
    // Its scheduler has looked at it, and is writing its end.
    if (error instanceof StoreLockedError) return;
    throw error;
  }
  // Or it is just being ended by the system.
  if (release === undefined) return;
  try {
    await Environment.open(path).close();
  } finally {
    release();
  }
}

async function checkUnwritten(path: string, file: string, pagesMax: number): Promise<void> {
  const lock = join(path, LOCK_FILE);
  if (isHeld(lock)) return;
  const { transaction } = newestMeta(file);
  try {
    for (const _ of checkPages(file, pagesMax)) await nextTurn();
  } catch (error) {
    // A scheduler may have begun to write meanwhile.
    if (!isHeld(lock) && newestMeta(file).transaction === transaction) throw error;
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
    this.epoch = epochOf(reader.env);
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
