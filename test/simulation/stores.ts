/** The stores that the simulator knows by name. Another one is added here, with how its process dies. */
import { memoryStore } from '../../src/index.js';
import type { MemoryStore } from '../../src/store/memory/memory-store.js';
import type { Dice } from './dice.js';
import { LmdbWorld } from './lmdb.js';
import type { RealStore } from './store.js';

const FLUSH_MS = [0, 0, 5, 40];

export const STORES: Readonly<Record<string, (dice: Dice) => RealStore>> = {
  memory: (dice) => {
    // With the hook, what is visible and not durable can be lost also without a delay.
    const options = { flushDelay: dice.pick(FLUSH_MS), failFlush: () => undefined };
    const store = memoryStore(options) as MemoryStore;
    return { store, crash: () => store.crash() };
  },
  lmdb: (dice) => new LmdbWorld(dice),
  // So little room that most of what is near waits in the store.
  'lmdb-few': (dice) => new LmdbWorld(dice, dice.pick([6, 40, 120])),
};
