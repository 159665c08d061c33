/** Stores of tests that hold on each of them alike: how one is made, how its process dies, and a recount of what it has. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { lmdbStore, memoryStore } from '../../src/index.js';
import type { LmdbSession } from '../../src/store/lmdb/session.js';
import type { MemoryStore } from '../../src/store/memory/memory-store.js';
import type { Store, StoreCounts, StoreSession } from '../../src/store/store.js';
import { recount } from '../store/recount.js';

export interface TestStore extends Store {
  /** As if the process died: whoever has it open is not heard of any more, and it can be opened again. */
  crash(): void | Promise<void>;
  recount(): StoreCounts | Promise<StoreCounts>;
}

export const KINDS = ['memory', 'lmdb'] as const;
type Kind = (typeof KINDS)[number];

const FILE = 'data.mdb';
const roots: string[] = [];
let kind: Kind = process.env.TEST_STORE === 'lmdb' ? 'lmdb' : 'memory';

/** Within this `describe`, `newStore` makes such ones. Otherwise TEST_STORE=lmdb says which. */
export function useStore(wanted: Kind): void {
  const before = kind;
  beforeAll(() => {
    kind = wanted;
  });
  afterAll(() => {
    kind = before;
  });
}

export function newStore(): TestStore {
  return kind === 'lmdb' ? new FilesOfTest() : (memoryStore() as MemoryStore);
}

/** LMDB in a directory of its own. After a death the next process finds a copy: in this one, nothing else may have the files open. */
class FilesOfTest implements TestStore {
  readonly #root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  #path = this.#root;
  #lives = 0;
  #session: StoreSession | undefined;
  readonly capabilities = lmdbStore({ path: this.#root }).capabilities;

  constructor() {
    roots.push(this.#root);
  }

  open: Store['open'] = async (options) => {
    this.#session = await lmdbStore({ path: this.#path }).open(options);
    return this.#session;
  };

  async crash(): Promise<void> {
    await (this.#session as LmdbSession).atRest();
    const next = join(this.#root, `life-${++this.#lives}`);
    mkdirSync(next);
    copyFileSync(join(this.#path, FILE), join(next, FILE));
    this.#path = next;
  }

  recount(): Promise<StoreCounts> {
    return recount(this.#session as StoreSession);
  }
}

afterAll(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});
