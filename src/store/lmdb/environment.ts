/**
 * The files and databases of a store, and what of lmdb-js is used of them.
 *
 *   chain     1 record: the number of the newest commit; each commit asks for its predecessor's (pipeline.ts)
 *   meta      format, epoch
 *   pool      names kept once: tenants, handlers, policies, workers (pool.ts)
 *   tasks     id → the task with its live occurrences and its newest (row-codec.ts), unless the log has a newer one
 *   rowlog    commit, part → tasks as they were changed lately (row-log.ts)
 *   history   id, serial → an ended occurrence that is not its task's newest
 *   names     id, generation, kind, ordinal → serial in history
 *   attempts  id, serial, number → an ended attempt
 *   due       level, bucket, … → pending occurrences, many to a value (due/)
 *   buckets   bucket → how many
 *   ends      class, minute, commit → what ended, for retention (retention.ts)
 *   dead      number → a dead letter's id and serial
 *   counts    tenant → its counts
 *   settings  name → JSON
 *   keyLog, keyRuns   the index of idempotency keys (keys/)
 */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { inNextTurn } from '../../clock/turn.js';
import {
  StoreCorruptError,
  StoreFullError,
  StoreLockedError,
  StoreUnavailableError,
  StoreVersionError,
  TickwheelError,
} from '../../core/errors.js';
import { type Arena, MalformedError } from './bytes.js';
import { checkFile, needsMending } from './file-check.js';
import { Key } from './keys.js';
import { acquireLock, LOCK_FILE } from './lock.js';
import { LoggedDb, PutLog } from './put-log.js';

export interface RangeOptions {
  readonly start: Key;
  /** Exclusive. */
  readonly end: Key;
  readonly limit?: number;
  readonly reverse?: boolean;
  readonly values?: boolean;
}

export interface Pair {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/**
 * A database with our keys and values. What is read is valid until the next read; reading throws MalformedError when it is
 * not what was written.
 */
export interface Db {
  readonly name: string;
  /** Values have checksums. */
  readonly isSealed: boolean;
  /** Queues; see PutLog. */
  put(key: Key, value: Arena): void;
  /** What ends with its checksum already. */
  putSealed(key: Key, value: Arena): void;
  remove(key: Key): void;
  getBinaryFast(key: Key): Uint8Array | undefined;
  getRange(options: RangeOptions): Iterable<Pair>;
  /** With their checksums, unchecked. */
  getRawRange(options: RangeOptions): Iterable<Pair>;
  getKeys(options: RangeOptions): Iterable<Uint8Array>;
}

/** What of a database of lmdb-js is used. */
export interface RawDb {
  put(key: Key, value: Arena, version?: number): Promise<boolean>;
  remove(key: Key): Promise<boolean>;
  getBinaryFast(key: Key): Uint8Array | undefined;
  getEntry(key: Key): { version?: number } | undefined;
  getRange(options: RangeOptions): Iterable<{ key: Uint8Array; value: Uint8Array }>;
  getKeys(options: RangeOptions): Iterable<Uint8Array>;
}

interface ChainDb extends RawDb {
  ifVersion(key: Key, version: number | undefined, puts: () => void): Promise<boolean>;
}

interface Root {
  openDB(name: string, options: object): RawDb;
  readonly flushed: PromiseLike<unknown>;
  readonly committed: PromiseLike<unknown>;
  close(): Promise<void>;
  resetReadTxn(): void;
  /** The native environment: see hearVisible. */
  readonly env?: { startWriting?(address: number, told: (status: number) => unknown): void };
  getStats(): { root?: { lastPageNumber?: number }; lastPageNumber?: number; pageSize?: number };
}

const NAMES = [
  'meta',
  'pool',
  'tasks',
  'rowlog',
  'history',
  'names',
  'attempts',
  'due',
  'buckets',
  'ends',
  'dead',
  'counts',
  'settings',
  'keyLog',
  'keyRuns',
] as const;

export type DbName = (typeof NAMES)[number];
/** What says how to read all others, and what has a checksum for each task (row-log.ts). */
const PLAIN: ReadonlySet<DbName> = new Set(['meta', 'rowlog']);

/** What lmdb-js's writer tells the thread that waits for it: readers see the transaction, it is not flushed yet. */
const IS_VISIBLE = 1;

/** Address space, not memory or disk: reserved once, since moving a map stops everything that reads it. */
const MAP_BYTES = 2 ** 40;
export const DATA_FILE = 'data.mdb';
/** MDB_INVALID, MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC and what their messages say. */
const CORRUPT =
  /MDB_INVALID|MDB_CORRUPTED|MDB_PAGE_NOTFOUND|not an LMDB file|page not found|corrupt/i;
const VERSION = /MDB_VERSION_MISMATCH|version mismatch/i;
const FULL = /MDB_MAP_FULL|ENOSPC|No space left|EFBIG|File too large|EDQUOT|quota exceeded/i;

/** LMDB's word for a write that was cut off, as on a disk that becomes full in the midst of it. */
const CUT_OFF = /EIO|Input\/output error/i;
const NO_SPACE_BYTES = 2 ** 20;

function isFull(file: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize < NO_SPACE_BYTES;
  } catch {
    return false;
  }
}

function writeKey(key: Key | Uint8Array, target: Uint8Array, start: number): number {
  const isKey = key instanceof Key;
  const bytes = isKey ? key.bytes : key;
  const from = isKey ? key.at : 0;
  const { length } = key;
  for (let i = 0; i < length; i++) target[start + i] = bytes[from + i];
  return start + length;
}

function readKey(source: Uint8Array, start: number, end: number): Uint8Array {
  return Uint8Array.prototype.slice.call(source, start, end);
}

const DB_OPTIONS = {
  keyEncoder: { writeKey, readKey },
  encoder: {
    encode: (value: Arena) => value,
    decode: (value: Uint8Array) => value,
    copyBuffers: true,
  },
};

export interface EnvironmentOptions {
  /** How large the file may become. */
  readonly mapBytes?: number;
  /** Beside a process that writes, or without one. */
  readonly readOnly?: boolean;
}

export class Environment {
  readonly path: string;
  readonly file: string;
  readonly db: Readonly<Record<DbName, Db>>;
  readonly log: PutLog;
  readonly #root: Root;
  readonly #chain: ChainDb;
  #hasFailed = false;
  readonly #chainKey = new Key().byte(1);

  /** @throws StoreCorruptError, StoreVersionError, StoreUnavailableError */
  static open(path: string, options: EnvironmentOptions = {}): Environment {
    const file = join(path, DATA_FILE);
    const { readOnly = false } = options;
    try {
      if (readOnly) checkToRead(path, file);
      else checkFile(file);
      return new Environment(path, file, options);
    } catch (error) {
      throw translated(error, file);
    }
  }

  private constructor(
    path: string,
    file: string,
    { mapBytes = MAP_BYTES, readOnly = false }: EnvironmentOptions,
  ) {
    this.path = path;
    this.file = file;
    this.#root = open(file, {
      ...DB_OPTIONS,
      noSubdir: true,
      mapSize: mapBytes,
      maxDbs: NAMES.length + 4,
      overlappingSync: !readOnly,
      readOnly,
      noReadAhead: true,
    } as never) as unknown as Root;
    const make = (name: string, options: object = {}): RawDb =>
      this.#root.openDB(name, { ...DB_OPTIONS, ...options });
    this.#chain = make('chain', { useVersions: true }) as ChainDb;
    this.log = new PutLog();
    const dbs = NAMES.map((name) => {
      const db = new LoggedDb(make(name), this.log, name, !PLAIN.has(name));
      return [name, db] as const;
    });
    this.db = Object.fromEntries(dbs) as unknown as Record<DbName, Db>;
  }

  /** Bytes of the file. */
  get bytes(): number {
    return statSync(this.file).size;
  }

  /** The number of the newest commit; 0: there was none. */
  newestCommit(): number {
    return this.#chain.getEntry(this.#chainKey)?.version ?? 0;
  }

  /**
   * Calls back when a transaction was made visible, before it is flushed; `newestCommit` after `renew` says up to which
   * one. The promises of lmdb-js 3.5 come only with the flush, though its writer's thread tells this one at once: so
   * what it tells is heard on the way. False: this lmdb-js has no such place, `visible` of `commit` is all there is.
   */
  hearVisible(listener: () => void): boolean {
    const { env } = this.#root;
    const original = env?.startWriting;
    if (env === undefined || original === undefined) return false;
    const startWriting = (address: number, told: (status: number) => unknown): void => {
      original.call(env, address, (status) => {
        const answer = told(status);
        if (status === IS_VISIBLE) listener();
        return answer;
      });
    };
    Object.defineProperty(env, 'startWriting', { value: startWriting });
    return true;
  }

  /**
   * One transaction of all that was queued, if the newest commit before it is number `before`; `visible` is false when
   * it is not, because a commit before this one failed. `byte` is an arena with one byte that stays as it is.
   */
  commit(before: number, number: number, byte: Arena): TwoMoments {
    const chained = (): void => {
      this.log.execute();
      byte.start = 0;
      byte.end = 1;
      this.#chain.put(this.#chainKey, byte, number);
    };
    const expected = before === 0 ? undefined : before;
    const visible = this.#chain.ifVersion(this.#chainKey, expected, chained);
    visible.catch(() => {
      this.#hasFailed = true;
    });
    // A promise of its own, made at the end of the turn, rejects when the commit fails; `visible` tells that.
    inNextTurn(() => this.#root.committed.then(ignore, ignore));
    // Lazy: it means what was queued when `then` is called.
    const flushed = new Promise<void>((resolve, reject) => {
      this.#root.flushed.then(() => resolve(), reject);
    });
    return { visible, flushed };
  }

  /** The next read sees all that is committed by then; until it, or a later turn, all reads see the same. */
  renew(): void {
    this.#root.resetReadTxn();
  }

  async close(): Promise<void> {
    // lmdb-js would wait for the flush of a commit that failed: this one changes nothing, and takes its place.
    if (this.#hasFailed) await this.#chain.ifVersion(this.#chainKey, -1, () => {}).catch(ignore);
    await this.#root.close();
  }
}

function ignore(): void {}

export interface TwoMoments {
  readonly visible: Promise<boolean>;
  readonly flushed: Promise<void>;
}

function checkToRead(path: string, file: string): void {
  if (!existsSync(file)) {
    throw new StoreUnavailableError(`there is no store: '${file}' does not exist`);
  }
  if (!needsMending(file)) return;
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
    checkFile(file);
  } finally {
    release();
  }
  if (statSync(file).size === 0) {
    throw new StoreUnavailableError(`there is no store: '${file}' is empty`);
  }
}

/** The error that a caller is told for one of lmdb-js or of the decoder. */
export function translated(error: unknown, file: string): Error {
  if (error instanceof TickwheelError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  const said = `${message} ${typeof code === 'string' ? code : ''}`;
  if (error instanceof MalformedError || CORRUPT.test(said)) {
    return new StoreCorruptError(`the store's file '${file}' is damaged: ${message}`, {
      cause: error,
    });
  }
  if (VERSION.test(said)) {
    return new StoreVersionError(`the store's file '${file}' has another format: ${message}`, {
      cause: error,
    });
  }
  if (FULL.test(said) || (CUT_OFF.test(said) && isFull(file))) {
    return new StoreFullError(`no space for the store's file '${file}': ${message}`, {
      cause: error,
    });
  }
  return new StoreUnavailableError(`the store's file '${file}' can't be used: ${message}`, {
    cause: error,
  });
}
