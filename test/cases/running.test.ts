/** Cases 26 to 33 on each store, with handlers in this process; those that need threads are in threads.test.ts. */
import { describe, expect, it } from 'vitest';
import { type Context, fixedRate, type Scheduler } from '../../src/index.js';
import {
  close,
  gate,
  newClock,
  openBed,
  rejection,
  seeded,
  since,
  startBed,
} from '../scheduler/helpers.js';
import { KINDS, newStore, useStore } from '../scheduler/stores.js';

describe.each(KINDS)('running on %s', (kind) => {
  useStore(kind);

  it.each([16, 16_384])(
    '26. priority 1 is not behind thousands without one (maxReady %i)',
    async (maxReady) => {
      const order: unknown[] = [];
      const { scheduler, clock } = await startBed(
        {
          work: async (n: unknown, ctx: Context) => {
            order.push(n);
            await ctx.sleep(1);
          },
        },
        { workers: { concurrency: 1 }, limits: { maxReady } },
      );
      const items = Array.from({ length: 3000 }, (_, payload) => ({
        handler: 'work' as const,
        payload: payload as unknown,
      }));
      await scheduler.scheduleMany(items);
      await clock.advance(5);
      const before = order.length;
      await scheduler.schedule('work', 'urgent', { priority: 1 });
      await clock.advance(5);
      // What was let through before it is at most the lane's share of what is held in memory.
      expect(order.indexOf('urgent')).toBeGreaterThan(0);
      expect(order.indexOf('urgent')).toBeLessThanOrEqual(before + 3);
    },
  );

  it('26b. a rescued task keeps its place', async () => {
    const order: unknown[] = [];
    const nap = async (name: string, ctx: Context) => {
      order.push(name);
      await ctx.sleep('1m');
    };
    for (const how of ['crash', 'shutdown'] as const) {
      order.length = 0;
      const store = newStore();
      const clock = newClock();
      const options = { store, clock, workers: { concurrency: 1 } };
      const first = await startBed({ nap }, options);
      for (const name of ['a', 'b', 'c']) {
        await first.scheduler.schedule('nap', name);
        await clock.advance(1);
      }
      if (how === 'crash') await store.crash();
      await close(first).catch(() => {});
      await startBed({ nap }, options);
      await clock.advance('5m');
      expect([how, order]).toEqual([how, ['a', 'a', 'b', 'c']]);
    }
  });

  it('27. pause has resolved: nothing starts; resume follows the catch-up policy', async () => {
    for (const catchup of ['latest', 'all', 'none'] as const) {
      const started: number[] = [];
      const refs: { scheduler?: Scheduler } = {};
      const { scheduler, clock } = await startBed(
        {
          work: (_: unknown, ctx: Context) =>
            void started.push((since(ctx.nominalAt) as number) / 1000),
        },
        { workers: { concurrency: 2 } },
      );
      refs.scheduler = scheduler as unknown as Scheduler;
      const schedule = fixedRate({ every: '1s' });
      const task = await scheduler.schedule('work', null, { schedule, catchup });
      await clock.advance('1500ms');
      await scheduler.pause(task.id);
      const before = started.length;
      await clock.advance('3s');
      expect(started.length).toBe(before);
      await scheduler.resume(task.id);
      await clock.advance('1s');
      const caught = { latest: [4], all: [2, 3, 4], none: [] };
      expect([catchup, started]).toEqual([catchup, [0, 1, ...caught[catchup], 5]]);
    }
  });

  it('27b. also with starts under way, whatever the moment', async () => {
    for (let turns = 0; turns < 12; turns++) {
      let starts = 0;
      const { scheduler, clock } = await startBed(
        { work: () => void starts++ },
        { workers: { concurrency: 3 } },
      );
      await scheduler.scheduleMany(
        Array.from({ length: 40 }, () => ({ handler: 'work' as const, options: { tenant: 't' } })),
      );
      for (let turn = 0; turn < turns; turn++) await new Promise((go) => setImmediate(go));
      await scheduler.pause(turns % 2 === 0 ? { tenant: 't' } : { handler: 'work' });
      const before = starts;
      await clock.advance('1m');
      expect([turns, starts]).toEqual([turns, before]);
      await scheduler.resume(turns % 2 === 0 ? { tenant: 't' } : { handler: 'work' });
      await clock.advance(0);
      expect(starts).toBe(40);
    }
  });

  it('28. cancelled but already fetched: never starts', async () => {
    const random = seeded(28);
    const ran = new Set<string>();
    const { scheduler, clock } = await startBed(
      { work: (_: unknown, ctx: Context) => void ran.add(ctx.taskId) },
      { workers: { concurrency: 2 } },
    );
    let cancelledBefore = 0;
    for (let round = 0; round < 100; round++) {
      const task = await scheduler.schedule('work', null, { delay: Math.floor(random() * 3) });
      const moving = random() < 0.5 ? clock.advance(2) : Promise.resolve();
      for (let turns = Math.floor(random() * 8); turns > 0; turns--) {
        await new Promise((go) => setImmediate(go));
      }
      const cancelled = await scheduler.cancel(task.id);
      const startedBefore = ran.has(task.id);
      await moving;
      await clock.advance(5);
      if (cancelled && !startedBefore) {
        cancelledBefore++;
        expect(ran.has(task.id)).toBe(false);
        expect(await scheduler.wait(task.id)).toMatchObject({ status: 'cancelled', attempt: 0 });
      }
      if (!cancelled) expect(ran.has(task.id)).toBe(true);
    }
    expect(cancelledBefore).toBeGreaterThan(10);
  });

  it('28b. removed while running: stays gone', async () => {
    const late = gate<string>();
    const { scheduler, clock } = await startBed({ stubborn: () => late.passed });
    const task = await scheduler.schedule('stubborn');
    await clock.advance('1s');
    await scheduler.cancel(task.id);
    expect((await rejection(scheduler.delete(task.id))).code).toMatch(/TICKWHEEL_/);
    await clock.advance('10s');
    expect(await scheduler.delete(task.id)).toBe(true);
    late.open('back again');
    await clock.advance('1m');
    expect(await scheduler.get(task.id)).toBeUndefined();
    expect((await scheduler.list()).items).toEqual([]);
    expect((await scheduler.stats()).running).toBe(0);
  });

  it('29. a timed-out handler is aborted, its retry runs, its late completion is refused', async () => {
    const late = gate<string>();
    const signals: AbortSignal[] = [];
    const { scheduler, clock } = await startBed({
      work: (_: unknown, ctx: Context) => {
        signals.push(ctx.signal);
        return ctx.attempt === 1 ? late.passed : ctx.sleep('10s').then(() => 'second');
      },
    });
    const task = await scheduler.schedule('work', null, { timeout: '20s' });
    await clock.advance('20s');
    expect(signals[0]?.aborted).toBe(true);
    await clock.advance('6s');
    expect(signals.length).toBe(2);
    late.open('first');
    await clock.advance('5s');
    expect((await scheduler.get(task.id))?.status).toBe('running');
    await clock.advance('10s');
    expect(await scheduler.wait(task.id)).toMatchObject({ result: 'second', failures: 1 });
  });

  it('31. a crash does not spend the retry budget', async () => {
    const store = newStore();
    const clock = newClock();
    let dying = true;
    const work = async (_: unknown, ctx: Context) => {
      if (dying) await ctx.sleep('1h');
      throw new Error('and fails');
    };
    const first = await startBed({ work }, { store, clock });
    const task = await first.scheduler.schedule('work', null, { retry: { maxAttempts: 2 } });
    for (let death = 0; death < 2; death++) {
      const bed = death === 0 ? first : await startBed({ work }, { store, clock });
      await clock.advance('1s');
      await store.crash();
      await close(bed).catch(() => {});
    }
    dying = false;
    const { scheduler } = await startBed({ work }, { store, clock });
    await clock.advance('1m');
    const ended = await scheduler.wait(task.id);
    expect(ended).toMatchObject({ status: 'dead', failures: 2, crashes: 0, attempt: 4 });
    const outcomes = (await scheduler.attempts(ended.id)).map((attempt) => attempt.outcome);
    expect(outcomes).toEqual(['crashed', 'crashed', 'failed', 'failed']);
  });

  it('32. shutdown: leases renewed until drained, finished work kept, what did not start released', async () => {
    const store = newStore();
    const clock = newClock();
    const options = { store, clock, leaseDuration: '3s', workers: { concurrency: 1 } };
    const nap = (ms: number, ctx: Context) => ctx.sleep(ms).then(() => ms);
    const first = await startBed({ nap }, options);
    const running = await first.scheduler.schedule('nap', 20_000);
    await clock.advance(0);
    const waiting = await first.scheduler.schedule('nap', 1000);
    await clock.advance('1s');
    const done = first.scheduler.shutdown();
    await clock.advance('20s');
    expect(await done).toEqual({ finished: 1, released: 0, aborted: 0 });
    const second = await openBed({ nap }, options);
    expect((await second.scheduler.wait(running.id)).result).toBe(20_000);
    const left = await second.scheduler.occurrence(waiting.lastOccurrenceId as string);
    expect(left).toMatchObject({ status: 'ready', attempt: 0 });
    await second.scheduler.start();
    await clock.advance('1s');
    expect(await second.scheduler.wait(waiting.id)).toMatchObject({ result: 1000, attempt: 1 });
  });

  it('33. the lease clock starts at the start, not when a far-future task is fetched', async () => {
    const { scheduler, clock, events } = await startBed(
      { nap: (_: unknown, ctx: Context) => ctx.sleep('1m').then(() => 'done') },
      { leaseDuration: '2s' },
    );
    const task = await scheduler.schedule('nap', null, { delay: '12h' });
    await clock.advance('13h');
    expect(await scheduler.wait(task.id)).toMatchObject({ result: 'done', attempt: 1, crashes: 0 });
    expect(events.filter((event) => event.type === 'leaseExpired')).toEqual([]);
  });
});
