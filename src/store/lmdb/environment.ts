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
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { inNextTurn } from '../../clock/turn.js';
import { StoreCorruptError, StoreUnavailableError, StoreVersionError } from '../../core/errors.js';
import { type Arena, Reader } from './bytes.js';
import { checkFile, MAP_BYTES } from './file-check.js';
import { FORMAT, FORMAT_MIN } from './formats.js';
import { Key } from './keys.js';
import { checkPages, PAGES_AT_OPEN } from './page-check.js';
import { LoggedDb, PutLog } from './put-log.js';
import { translated } from './translated.js';

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
  /** Undefined: there is none, and none was to be made. */
  openDB(name: string, options: object): RawDb | undefined;
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

export const DATA_FILE = 'data.mdb';
/** In `meta`. */
export const FORMAT_KEY = 1;

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

  /** Of a store that is there. @throws StoreCorruptError, StoreVersionError, StoreUnavailableError */
  static open(path: string, options: EnvironmentOptions = {}): Environment {
    const file = join(path, DATA_FILE);
    try {
      checkLockFile(file, options);
      if (!options.readOnly) checkFile(file);
      return new Environment(file, options, false);
    } catch (error) {
      throw translated(error, file);
    }
  }

  /** Makes a file with nothing in it. */
  static make(file: string, options: EnvironmentOptions): Environment {
    return new Environment(file, options, true);
  }

  private constructor(file: string, options: EnvironmentOptions, isNew: boolean) {
    const { mapBytes = MAP_BYTES, readOnly = false } = options;
    this.path = dirname(file);
    this.file = file;
    this.log = new PutLog();
    this.#root = open(file, {
      ...DB_OPTIONS,
      noSubdir: true,
      mapSize: mapBytes,
      maxDbs: NAMES.length + 4,
      overlappingSync: !readOnly,
      readOnly,
      noReadAhead: true,
    } as never) as unknown as Root;
    try {
      // Now that LMDB has taken back what was visible and not flushed. Who only reads has looked before.
      if (!readOnly && !isNew) for (const _ of checkPages(file, PAGES_AT_OPEN));
      const meta = this.#openDb('meta', isNew);
      if (!isNew) checkFormat(meta, file);
      this.#chain = this.#openDb('chain', isNew, { useVersions: true }) as ChainDb;
      const dbs = NAMES.map((name) => {
        const db = name === 'meta' ? meta : this.#openDb(name, isNew);
        return [name, new LoggedDb(db, this.log, name, !PLAIN.has(name))] as const;
      });
      this.db = Object.fromEntries(dbs) as unknown as Record<DbName, Db>;
    } catch (error) {
      // Why it cannot be opened is what counts, not how it closes.
      this.#root.close().then(undefined, ignore);
      throw error;
    }
  }

  /** @throws StoreCorruptError when there is none, and none is to be made */
  #openDb(name: string, create: boolean, options: object = {}): RawDb {
    const db = this.#root.openDB(name, { ...DB_OPTIONS, ...options, create });
    if (db !== undefined) return db;
    throw new StoreCorruptError(`the store's file '${this.file}' is damaged: it has no '${name}'`);
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

/** Before anything else is read: another format may have other databases and other checksums. */
function checkFormat(meta: RawDb, file: string): void {
  const value = meta.getBinaryFast(new Key().byte(FORMAT_KEY));
  if (value === undefined) {
    throw new StoreCorruptError(`the store's file '${file}' is damaged: it names no format`);
  }
  const format = new Reader(value, 0, value.length).varint();
  if (format >= FORMAT_MIN && format <= FORMAT) return;
  throw new StoreVersionError(
    `the store's file '${file}' has format ${format}; this version reads ${FORMAT_MIN} to ${FORMAT}`,
  );
}

/** lmdb-js ends the process when it can't open the file in which LMDB notes who reads. */
function checkLockFile(file: string, { readOnly = false }: EnvironmentOptions): void {
  const lock = `${file}-lock`;
  const found = statSync(lock, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isFile()) throw new StoreUnavailableError(`the store's file '${lock}' is no file`);
  if (!readOnly) accessSync(lock, constants.R_OK | constants.W_OK);
}
