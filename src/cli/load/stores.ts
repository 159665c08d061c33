import { lmdbStore, memoryStore, type Store } from '../../index.js';
import { makeOwnDirectory } from './own-directory.js';

/** The stores that a load test can run on, by their name on the command line. */
export const STORE_NAMES = ['memory', 'lmdb'] as const;
export type StoreName = (typeof STORE_NAMES)[number];
/** Used when none is named. */
export const DEFAULT_STORE: StoreName = 'lmdb';

/**
 * A store that can also be asked for its size while a scheduler has it open; `null` before and
 * after.
 */
export interface MeasuredStore extends Store {
  bytes(): Promise<number | null>;
  /** Removes its files, unless the caller named their place. */
  dispose(): Promise<void>;
}

/** @param path of `lmdb`; by default a directory of its own, removed afterwards */
export async function openStore(name: StoreName, path: string | undefined): Promise<MeasuredStore> {
  const isOnDisk = name === 'lmdb';
  const own = isOnDisk && path === undefined ? await makeOwnDirectory() : undefined;
  const store = isOnDisk ? lmdbStore({ path: path ?? (own?.path as string) }) : memoryStore();
  let session: Awaited<ReturnType<Store['open']>> | undefined;
  return {
    capabilities: store.capabilities,
    async open(options) {
      session = await store.open(options);
      return session;
    },
    bytes: async () => (session === undefined ? null : (await session.counts()).bytes),
    dispose: async () => own?.remove(),
  };
}
