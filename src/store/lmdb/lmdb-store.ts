/**
 * The embedded store: everything in one directory, durable, for one process at a time. On LMDB, by lmdb-js.
 *
 *   Session ─ Pipeline (decided → visible → durable) ─ Applier (guards, changes) ─ DueIndex, Counts, Ends, KeyIndex
 *      └───── Queries ─ Records ─ RowCache, RowCodec ─ Environment (databases, the log of puts)
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { nextTurn } from '../../clock/turn.js';
import { optionsOf, refuse } from '../../core/arguments.js';
import type { Store, StoreCapabilities, StoreOpenOptions, StoreSession } from '../store.js';
import { acquireLock, LOCK_FILE } from './lock.js';
import type { Tuning } from './opening.js';
import { translated } from './translated.js';

export interface LmdbStoreOptions {
  /** The directory; made when it is not there. */
  readonly path: string;
  /**
   * Reads the store as it is, also while another process has it open, and changes nothing: all but looking is refused.
   * Default false.
   */
  readonly readOnly?: boolean;
}

/**
 * A store in files, which survives the end of the process and power loss. A pending one-off takes about 200 bytes of
 * disk and its payload's length, and no memory until it is near.
 * @throws InvalidArgumentError when the path is no text, `readOnly` no boolean, or an option unknown
 */
export function lmdbStore(options: LmdbStoreOptions): Store {
  const given = optionsOf(options, 'lmdbStore options', OPTIONS);
  const path = directoryOf(given.path, 'lmdbStore path');
  const { readOnly = false } = given;
  if (typeof readOnly !== 'boolean') refuse('lmdbStore readOnly', readOnly, 'a boolean');
  return readOnly ? new ReadOnlyLmdbStore(resolve(path)) : new LmdbStore(resolve(path));
}

const OPTIONS = new Set(['path', 'readOnly'] as const);

/** @throws InvalidArgumentError */
export function directoryOf(path: unknown, what: string): string {
  if (typeof path !== 'string' || path === '') refuse(what, path, 'a directory');
  return path;
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
    let made: string | undefined;
    let release: () => void;
    try {
      made = makeDirectory(this.#path);
      release = await this.#lock();
    } catch (error) {
      throw translated(error, this.#path);
    }
    try {
      // Only those who have such a store load the library.
      const { openSession } = await import('./opening.js');
      return await openSession({ path: this.#path, made }, options, release, this.#tuning);
    } catch (error) {
      release();
      throw error;
    }
  }
}

/**
 * Makes a directory and those above it, and gives the topmost that was made. Not by `recursive`: where nothing can be
 * made, and the system says "not found", as in /proc, Node 20 tries again for ever.
 */
function makeDirectory(path: string): string | undefined {
  if (isDirectory(path)) return undefined;
  const above = dirname(path);
  const topmost = above === path ? undefined : makeDirectory(above);
  try {
    mkdirSync(path);
    return topmost ?? path;
  } catch (error) {
    // Somebody else made it meanwhile: the lock will say who is first.
    if (isDirectory(path)) return topmost;
    throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

class ReadOnlyLmdbStore implements Store {
  readonly capabilities: StoreCapabilities = {
    kind: 'lmdb',
    durable: true,
    shared: true,
    transactions: false,
    readOnly: true,
  };
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async open(): Promise<StoreSession> {
    const { openReader, ReadOnlySession } = await import('./read-only-session.js');
    return new ReadOnlySession(await openReader(this.#path));
  }
}
