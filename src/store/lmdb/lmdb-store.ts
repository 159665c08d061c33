/**
 * The embedded store: everything in one directory, durable, for one process at a time. On LMDB, by lmdb-js.
 *
 *   Session ─ Pipeline (decided → visible → durable) ─ Applier (guards, changes) ─ DueIndex, Counts, Ends, KeyIndex
 *      └───── Queries ─ Records ─ RowCache, RowCodec ─ Environment (databases, the log of puts)
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { assert } from '../../core/assert.js';
import { InvalidArgumentError, StoreCorruptError, StoreVersionError } from '../../core/errors.js';
import type { Store, StoreCapabilities, StoreOpenOptions, StoreSession } from '../store.js';
import { type Arena, Reader, Writer } from './bytes.js';
import { Environment, LOCK_FILE, translated } from './environment.js';
import { FORMAT } from './formats.js';
import { Key } from './keys.js';
import { acquireLock } from './lock.js';
import { LmdbSession } from './session.js';

export interface LmdbStoreOptions {
  /** The directory; made when it is not there. */
  readonly path: string;
}

/** A session's epoch takes 20 bits of a fencing token. */
const EPOCH_MAX = 2 ** 20;
const FORMAT_KEY = 1;
const EPOCH_KEY = 2;

/**
 * A store in files, which survives the end of the process and power loss. A pending one-off takes about 200 bytes of
 * disk and its payload's length, and no memory until it is near.
 * @throws InvalidArgumentError when the path is no text
 */
export function lmdbStore(options: LmdbStoreOptions): Store {
  const path: unknown = options?.path;
  if (typeof path !== 'string' || path === '') {
    throw new InvalidArgumentError(`lmdbStore: path is ${String(path)}; allowed: a directory`);
  }
  return new LmdbStore(resolve(path));
}

class LmdbStore implements Store {
  readonly capabilities: StoreCapabilities = {
    kind: 'lmdb',
    durable: true,
    shared: false,
    transactions: false,
  };
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async open(options: StoreOpenOptions): Promise<StoreSession> {
    mkdirSync(this.#path, { recursive: true });
    const release = acquireLock(join(this.#path, LOCK_FILE));
    let env: Environment | undefined;
    try {
      env = Environment.open(this.#path);
      const chainByte = byteArena();
      const epoch = await begin(env, chainByte);
      return new LmdbSession({ ...options, env, epoch, chainByte, release });
    } catch (error) {
      await env?.close();
      release();
      throw translated(error, env?.file ?? this.#path);
    }
  }
}

function byteArena(): Arena {
  const writer = new Writer();
  writer.begin(1);
  writer.byte(1);
  return writer.end();
}

/** Checks the format and raises the epoch, durably: no token of an epoch is ever issued twice. */
async function begin(env: Environment, chainByte: Arena): Promise<number> {
  const { meta } = env.db;
  const key = new Key();
  const read = (which: number): number | undefined => {
    const value = meta.getBinaryFast(key.clear().byte(which));
    return value && new Reader(value, 0, value.length).varint();
  };
  const format = read(FORMAT_KEY);
  const newest = env.newestCommit();
  if (format === undefined && newest > 0) {
    throw new StoreCorruptError(`the store's file '${env.file}' is damaged: it names no format`);
  }
  if (format !== undefined && format > FORMAT) {
    throw new StoreVersionError(
      `the store's file '${env.file}' has format ${format}; this version reads up to ${FORMAT}`,
    );
  }
  const epoch = (read(EPOCH_KEY) ?? 0) + 1;
  assert(epoch < EPOCH_MAX, 'a store is opened at most 2^20 times');
  const writer = new Writer();
  const put = (which: number, value: number): void => {
    writer.begin(10);
    writer.varint(value);
    meta.put(key.clear().byte(which), writer.end());
  };
  put(FORMAT_KEY, FORMAT);
  put(EPOCH_KEY, epoch);
  const { visible, flushed } = env.commit(newest, newest + 1, chainByte);
  await visible;
  await flushed;
  return epoch;
}
