import { memoryStore } from '../../index.js';

/** The stores that a load test can run on, by their name on the command line. */
export const STORES = { memory: memoryStore } as const;

export type StoreName = keyof typeof STORES;
export const STORE_NAMES = Object.keys(STORES) as readonly StoreName[];
/** Used when none is named. */
export const DEFAULT_STORE: StoreName = 'memory';
