/**
 * The embedded store: everything in one directory, durable, for one process at a time. On LMDB, by lmdb-js.
 *
 *   Session ─ Pipeline (decided → visible → durable) ─ Applier (guards, changes) ─ DueIndex, Counts, Ends, KeyIndex
 *      └───── Queries ─ Records ─ RowCache, RowCodec ─ Environment (databases, the log of puts)
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { nextTurn } from '../../clock/turn.js';
import { InvalidArgumentError } from '../../core/errors.js';
import type { Store, StoreCapabilities, StoreOpenOptions, StoreSession } from '../store.js';
import { acquireLock } from './lock.js';
import type { Tuning } from './opening.js';

export interface LmdbStoreOptions {
  /** The directory; made when it is not there. */
  readonly path: string;
}

const LOCK_FILE = 'tickwheel.lock';

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

/** With sizes of one's own: `lmdbStore` for tests. */
export class LmdbStore implements Store {
  readonly capabilities: StoreCapabilities = {
    kind: 'lmdb',
    durable: true,
    shared: false,
    transactions: false,
  };
  readonly #path: string;
  readonly #tuning: Tuning;

  constructor(path: string, tuning: Tuning = {}) {
    this.#path = path;
    this.#tuning = tuning;
  }

  async #lock(): Promise<() => void> {
    for (;;) {
      const release = acquireLock(join(this.#path, LOCK_FILE));
      if (release !== undefined) return release;
      await nextTurn();
    }
  }

  async open(options: StoreOpenOptions): Promise<StoreSession> {
    mkdirSync(this.#path, { recursive: true });
    const release = await this.#lock();
    try {
      // Only those who have such a store load the library.
      const { openSession } = await import('./opening.js');
      return await openSession(this.#path, options, release, this.#tuning);
    } catch (error) {
      release();
      throw error;
    }
  }
}
