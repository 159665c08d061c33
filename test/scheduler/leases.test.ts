import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/index.js';
import { memoryStore } from '../../src/store/memory/memory-store.js';
import type { Store, StoreSession } from '../../src/store/store.js';
import { startBed } from './helpers.js';

/** Counts the units that are committed. */
class Counted implements Store {
  readonly #real = memoryStore();
  readonly capabilities: Store['capabilities'];
  units = 0;

  constructor(shared: boolean) {
    this.capabilities = { ...this.#real.capabilities, shared };
  }

  recount() {
    return this.#real.recount();
  }

  open: Store['open'] = async (options) => {
    const session = await this.#real.open(options);
    return new Proxy(session, {
      get: (target, name) => {
        if (name === 'commit') return this.#commitTo(session);
        const value = (target as unknown as Record<string | symbol, unknown>)[name];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  };

  #commitTo(session: StoreSession): StoreSession['commit'] {
    return (units) => {
      this.units += units.length;
      return session.commit(units);
    };
  }
}

const LEASE = '3s';

async function begin(shared: boolean) {
  const store = new Counted(shared);
  const handlers = {
    beat: async (_: unknown, ctx: Context) => {
      for (let second = 0; second < 30; second++) {
        await ctx.sleep('1s');
        ctx.heartbeat();
      }
    },
  };
  const bed = await startBed(handlers, { store: store as never, leaseDuration: LEASE });
  const task = await bed.scheduler.schedule('beat', undefined, { heartbeatTimeout: '2s' });
  await bed.clock.advance('500ms');
  return { ...bed, store, task };
}

describe('a lease that is renewed', () => {
  it('writes nothing where the store is ours alone, nor does a heartbeat', async () => {
    const { store, clock, scheduler, task } = await begin(false);
    const { units } = store;
    await clock.advance('20s');
    expect(store.units).toBe(units);
    await clock.advance('20s');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'succeeded', attempt: 1 });
  });

  it('is written where others may have the store open', async () => {
    const { store, clock, scheduler, task } = await begin(true);
    const { units } = store;
    await clock.advance('20s');
    expect(store.units).toBeGreaterThanOrEqual(units + 20);
    await clock.advance('20s');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'succeeded', attempt: 1 });
  });
});
