import { memoryStore, type Store } from '../../index.js';

/** The stores that a load test can run on, by their name on the command line. */
const STORES = { memory: memoryStore } as const;

export type StoreName = keyof typeof STORES;
export const STORE_NAMES = Object.keys(STORES) as readonly StoreName[];
/** Used when none is named. */
export const DEFAULT_STORE: StoreName = 'memory';

/**
 * A store that can also be asked for its size while a scheduler has it open; `null` before and
 * after.
 */
export interface MeasuredStore extends Store {
  bytes(): Promise<number | null>;
}

export function openStore(name: StoreName): MeasuredStore {
  const store: Store = STORES[name]();
  let session: Awaited<ReturnType<Store['open']>> | undefined;
  return {
    capabilities: store.capabilities,
    async open(options) {
      session = await store.open(options);
      return session;
    },
    bytes: async () => (session === undefined ? null : (await session.counts()).bytes),
  };
}
