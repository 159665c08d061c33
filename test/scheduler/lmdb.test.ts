/** A scheduler on the LMDB store: what survives the end of its process, and what stays out of memory. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InProcessExecutor } from '../../src/execution/in-process.js';
import {
  type Context,
  lmdbStore,
  Scheduler,
  StoreFullError,
  VirtualClock,
} from '../../src/index.js';
import { openWith } from '../../src/scheduler.js';
import type { Commit, Store } from '../../src/store/store.js';
import { START_MS, seeded } from './helpers.js';

const random = seeded(4);
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** The files as a death of the process would leave them, in a directory of their own. */
function copyOfFiles(path: string): string {
  const copy = join(root, 'copy');
  mkdirSync(copy);
  cpSync(join(path, 'data.mdb'), join(copy, 'data.mdb'));
  return copy;
}

/** The store, with a disk that is full at times. */
function filling(store: Store, isFull: () => boolean): Store {
  const refused = (): Commit => {
    const error = Promise.reject(new StoreFullError('no space'));
    error.catch(() => {});
    return { visible: error, durable: error };
  };
  return {
    capabilities: store.capabilities,
    open: async (options) => {
      const session = await store.open(options);
      const commit = session.commit.bind(session);
      session.commit = (units) => (isFull() ? refused() : commit(units));
      return session;
    },
  };
}

describe('after the death of its process', () => {
  it('what ran is crashed, uncharged, and runs again; what is pending comes in time', async () => {
    const path = join(root, 'store');
    const clock = new VirtualClock(START_MS, { settleTimeout: 20 });
    const handlers = { nap: (ms: number, ctx: Context) => ctx.sleep(ms).then(() => ctx.attempt) };
    const first = await Scheduler.open({ clock, random, handlers, store: lmdbStore({ path }) });
    await first.start();
    const running = await first.schedule('nap', 3000);
    const later = await first.schedule('nap', 0, { delay: '1h' });
    const far = await first.schedule('nap', 0, { delay: '30d' });
    await clock.advance('1s');
    expect((await first.get(running.id))?.status).toBe('running');
    const copy = copyOfFiles(path);

    const clockAfter = new VirtualClock(clock.now(), { settleTimeout: 20 });
    const second = await Scheduler.open({
      clock: clockAfter,
      random,
      handlers,
      store: lmdbStore({ path: copy }),
    });
    await second.start();
    await clockAfter.advance('1m');
    const occurrence = await second.wait(running.id);
    expect(occurrence).toMatchObject({ status: 'succeeded', attempt: 2, failures: 0, crashes: 0 });
    expect((await second.attempts(occurrence.id)).map(({ outcome }) => outcome)).toEqual([
      'crashed',
      'succeeded',
    ]);
    await clockAfter.advance('1h');
    expect((await second.get(later.id))?.status).toBe('succeeded');
    expect((await second.get(far.id))?.status).toBe('scheduled');
    await clockAfter.advanceTo(START_MS + 30 * 86_400_000);
    expect((await second.get(far.id))?.status).toBe('succeeded');

    for (const [scheduler, at] of [
      [second, clockAfter],
      [first, clock],
    ] as const) {
      const over = scheduler.shutdown({ drain: false });
      await at.advance('30s');
      await over;
    }
  });
});

describe('tasks that are due far ahead', () => {
  it('move, are cancelled and come due like all others, though memory holds none of them', async () => {
    const clock = new VirtualClock(START_MS);
    const ran: number[] = [];
    const scheduler = await Scheduler.open({
      clock,
      random,
      handlers: { note: (n: number) => void ran.push(n) },
      store: lmdbStore({ path: root }),
    });
    await scheduler.start();
    const made = await scheduler.scheduleMany(
      Array.from({ length: 100 }, (_, n) => ({
        handler: 'note' as const,
        payload: n,
        options: { delay: `${n + 10}d` as const },
      })),
    );
    const ids = made.map((task) => (task instanceof Error ? '' : task.id));
    const stats = await scheduler.stats();
    expect(stats.pending).toBe(100);
    expect(stats.nextDueAt).toEqual(new Date(START_MS + 10 * 86_400_000));
    for (const id of ids.slice(10)) await scheduler.cancel(id);
    await scheduler.update(ids[9] as string, { delay: '5m' });
    await clock.advance('10m');
    expect(ran).toEqual([9]);
    await clock.advance('20d');
    expect(ran).toEqual([9, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    await scheduler.shutdown();
  });
});

describe('more than memory may hold', () => {
  const BIG = 1200;
  const SMALL = 20;
  const WINDOW = 200;
  let clock: VirtualClock;
  let scheduler: Scheduler;
  /** Tenants, in the order in which their tasks started. */
  let started: string[];
  let timedMax: number;
  /** So many commits are refused for want of space. */
  let refusals: number;

  beforeEach(async () => {
    clock = new VirtualClock(START_MS);
    await open(WINDOW);
  });

  async function open(windowMax: number, maxReady = 16_384): Promise<void> {
    started = [];
    timedMax = 0;
    const handlers = {
      note: async (_payload: unknown, ctx: Context): Promise<void> => {
        started.push(ctx.tenant);
        if (started.length % 50 === 0) await look();
      },
    };
    refusals = 0;
    const store = filling(lmdbStore({ path: root }), () => refusals-- > 0);
    const executor = new InProcessExecutor({ handlers, slots: 4 });
    scheduler = await openWith(
      { clock, random, store, limits: { maxReady } },
      { executor, windowMax },
    );
    await scheduler.start();
  }

  afterEach(() => scheduler.shutdown());

  async function look(): Promise<void> {
    const { bounds } = await scheduler.stats();
    timedMax = Math.max(timedMax, bounds.timed.current);
  }

  async function create(count: number, tenant: string, delay: number): Promise<void> {
    const options = { tenant, delay };
    await scheduler.scheduleMany(
      Array.from({ length: count }, () => ({ handler: 'note', payload: 0, options })),
    );
    await look();
  }

  it.each([
    ['an hour ahead', 3_600_000],
    ['within the near window', 30_000],
    ['at once', 0],
  ])('waits in the store, and another tenant does not wait behind it: due %s', async (_, delay) => {
    await create(BIG, 'big', delay);
    await create(SMALL, 'small', delay);
    await clock.advance(delay + 1000);
    expect(started.length).toBe(BIG + SMALL);
    // What one turn creates or lets go comes on top.
    expect(timedMax).toBeLessThan(WINDOW + BIG / 2);
    const last = started.lastIndexOf('small');
    if (delay > 0) expect(last).toBeLessThan(BIG / 2);
    expect((await scheduler.stats()).pending).toBe(0);
  });

  it('leaves room beside many tenants that are paused', async () => {
    for (let n = 0; n < 30; n++) {
      await scheduler.pause({ tenant: `paused ${n}` });
      await create(SMALL, `paused ${n}`, 3_600_000);
    }
    await create(SMALL, 'small', 3_600_100);
    await clock.advance(3_602_000);
    expect(started).toEqual(Array.from({ length: SMALL }, () => 'small'));
  });

  it('leaves room beside many tenants that are held back by their rate', async () => {
    await scheduler.shutdown();
    await open(10 * WINDOW);
    for (let n = 0; n < 12; n++) {
      await scheduler.setTenantLimits(`slow ${n}`, { maxRatePerSecond: 1 });
      await create(BIG, `slow ${n}`, 3_600_000);
    }
    await create(BIG / 4, 'small', 3_600_100);
    await clock.advance(3_602_000);
    expect(started.filter((tenant) => tenant === 'small').length).toBe(BIG / 4);
    await clock.advance(10_000);
    // Each at its own rate: none of the slow ones holds up another.
    for (let n = 0; n < 12; n++) {
      const count = started.filter((tenant) => tenant === `slow ${n}`).length;
      expect(count).toBeGreaterThanOrEqual(11);
    }
  });

  it('is run once the disk has room again, where a turn was lost that had let it go', async () => {
    await scheduler.shutdown();
    await open(WINDOW, 16);
    // More than its room, for some seconds: meanwhile the store keeps what comes in for this lane.
    await scheduler.setTenantLimits('big', { maxRatePerSecond: 50 });
    await create(BIG / 8, 'big', 1000);
    await clock.advance(999);
    refusals = 1;
    await clock.advance(4000);
    expect(started.length).toBe(BIG / 8);
    const { repairs } = await scheduler.stats();
    expect(Object.values(repairs).every((count) => count === 0)).toBe(true);
  });

  it('waits in the store while its tenant is paused, and goes on when it is resumed', async () => {
    await create(BIG, 'big', 30_000);
    await scheduler.pause({ tenant: 'big' });
    await clock.advance(60_000);
    await create(BIG, 'big', 0);
    expect(started).toEqual([]);
    await create(SMALL, 'small', 0);
    await clock.advance(1000);
    expect(started.length).toBe(SMALL);
    await scheduler.resume({ tenant: 'big' });
    await clock.advance(1000);
    expect(started.length).toBe(2 * BIG + SMALL);
  });
});
