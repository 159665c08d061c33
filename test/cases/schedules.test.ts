/** Cases 19 to 23: recurring tasks through downtime, sleep, updates and crashes. Cases 14 to 18 are in test/core. */
import { describe, expect, it } from 'vitest';
import { type Context, cron, fixedRate, memoryStore, VirtualClock } from '../../src/index.js';
import { close, newClock, openBed, START_MS, since, startBed } from '../scheduler/helpers.js';

const MINUTE = 60_000;
const DAY = 86_400_000;

function recorder() {
  const ran: [nominal: number, started: number][] = [];
  const note = (_: unknown, ctx: Context) => {
    ran.push([since(ctx.nominalAt) as number, since(ctx.clock.now()) as number]);
  };
  return { ran, note };
}

describe('schedules', () => {
  it.each([100, 500, 1000])('19. every %i ms: keeps its rate without drift', async (every) => {
    const starts: number[] = [];
    const { scheduler, clock } = await startBed({
      work: async (_: unknown, ctx: Context) => {
        starts.push(since(ctx.clock.now()) as number);
        await ctx.sleep(37);
      },
    });
    await scheduler.schedule('work', null, { schedule: fixedRate({ every }) });
    await clock.advance(every * 200 - 1);
    expect(starts).toEqual(Array.from({ length: 200 }, (_, n) => n * every));
  });

  it('20. the machine slept from Friday to Tuesday: the Sunday task runs at wake-up', async () => {
    const { ran, note } = recorder();
    const friday = Date.parse('2026-01-02T18:00:00Z');
    const clock = new VirtualClock(friday);
    const { scheduler } = await startBed({ note }, { clock });
    await scheduler.schedule('note', null, { schedule: cron('0 6 * * SUN') });
    await scheduler.schedule('note', null, { runAt: '2026-01-04T12:00:00Z' });
    await clock.advance('1h');
    await clock.jumpWall(Date.parse('2026-01-06T09:00:00Z') - clock.now());
    const tuesday = Date.parse('2026-01-06T09:00:00Z') - START_MS;
    expect(ran).toEqual([
      [Date.parse('2026-01-04T06:00:00Z') - START_MS, tuesday],
      [Date.parse('2026-01-04T12:00:00Z') - START_MS, tuesday],
    ]);
    await clock.advanceTo('2026-01-11T07:00:00Z');
    expect(ran.length).toBe(3);
  });

  it.each([
    ['latest', 1, 100],
    ['all', 101, 0],
    ['none', 0, 101],
  ] as const)(
    '21. a minutely cron after 101 minutes of downtime: %s',
    async (catchup, runs, missed) => {
      const { ran, note } = recorder();
      const first = await startBed({ note });
      const { store, clock } = first;
      const schedule = cron('* * * * *');
      const task = await first.scheduler.schedule('note', null, { schedule, catchup });
      await clock.advance('30s');
      await close(first);
      const closedAt = clock.now();
      // Times 1 to 101 passed.
      await clock.advance(START_MS + 101 * MINUTE + 30_000 - closedAt);
      const { scheduler, events } = await startBed({ note }, { store, clock });
      expect(ran.length).toBe(runs);
      if (runs > 0) expect(ran.at(-1)?.[0]).toBe(101 * MINUTE);
      const counted = events.filter((event) => event.type === 'missed').map((event) => event.count);
      expect(counted).toEqual(missed === 0 ? [] : [missed]);
      ran.length = 0;
      await clock.advance(MINUTE);
      expect(ran).toEqual([[102 * MINUTE, 102 * MINUTE]]);
      expect((await scheduler.get(task.id))?.status).toBe('scheduled');
    },
  );

  it.each([
    ['latest', 1],
    ['all', 1440],
    ['none', 0],
  ] as const)('21b. after a year, %s: goes on, at bounded cost', async (catchup, runs) => {
    const { ran, note } = recorder();
    const store = memoryStore();
    const clock = newClock();
    const first = await openBed({ note }, { store, clock });
    const schedule = cron('* * * * *');
    await first.scheduler.schedule('note', null, { schedule, catchup });
    await close(first);
    await clock.advance(START_MS + 365 * DAY + 30_000 - clock.now());
    const second = await startBed({ note }, { store, clock });
    expect(ran.length).toBe(runs);
    if (runs > 0) expect(ran.at(-1)?.[0]).toBe(365 * DAY);
    expect(second.events.filter((event) => event.type === 'missed').length).toBeLessThanOrEqual(1);
    ran.length = 0;
    await clock.advance(2 * MINUTE);
    expect(ran.map(([nominal]) => nominal)).toEqual([365 * DAY + MINUTE, 365 * DAY + 2 * MINUTE]);
  });

  it('21c. times that passed run one after another, even under skip', async () => {
    let inside = 0;
    let most = 0;
    const store = memoryStore();
    const clock = newClock();
    const nap = async (_: unknown, ctx: Context) => {
      most = Math.max(most, ++inside);
      await ctx.sleep('5s');
      inside--;
    };
    const first = await openBed({ nap }, { store, clock });
    const schedule = fixedRate({ every: '1m' });
    const task = await first.scheduler.schedule('nap', null, { schedule, catchup: 'all' });
    await close(first);
    await clock.advance(START_MS + 5 * MINUTE + 30_000 - clock.now());
    const { scheduler } = await startBed({ nap }, { store, clock });
    await clock.advance('31s');
    expect(most).toBe(1);
    const { items } = await scheduler.occurrences(task.id);
    const done = items.filter((occurrence) => occurrence.status === 'succeeded');
    expect(done.map((occurrence) => since(occurrence.nominalAt))).toEqual(
      [5, 4, 3, 2, 1, 0].map((n) => n * MINUTE),
    );
  });

  it('22. many rapid updates of one schedule: exactly one pending occurrence at the end', async () => {
    const { ran, note } = recorder();
    const { scheduler, clock } = await startBed({ note });
    const task = await scheduler.schedule('note', null, { schedule: fixedRate({ every: '1h' }) });
    await clock.advance(0);
    const updates = Array.from({ length: 200 }, (_, n) =>
      scheduler.update(task.id, { schedule: fixedRate({ every: `${n + 1}m`, startDelay: '30s' }) }),
    );
    await Promise.all(updates);
    const { items } = await scheduler.occurrences(task.id, { limit: 1000 });
    expect(items.filter((o) => o.endedAt === undefined).length).toBe(1);
    expect((await scheduler.stats()).pending).toBe(1);
    const after = await scheduler.get(task.id);
    expect(after).toMatchObject({ version: 201, generation: 201 });
    expect(after?.nextRunAt).toEqual(new Date(START_MS + 30_000));
    await clock.advance('1m');
    expect(ran.map(([, started]) => started)).toEqual([0, 30_000]);
  });

  it('23. a take-over after a crash neither drops nor repeats a due run', async () => {
    const store = memoryStore();
    const clock = newClock();
    const nominals: number[] = [];
    const note = (_: unknown, ctx: Context) => void nominals.push(since(ctx.nominalAt) as number);
    const schedule = fixedRate({ every: '1s' });
    let id = '';
    for (let life = 0; life < 5; life++) {
      const bed = await startBed({ note }, { store, clock });
      if (life === 0) {
        id = (await bed.scheduler.schedule('note', null, { schedule, catchup: 'all' })).id;
      }
      await clock.advance(700 + 100 * life);
      store.crash();
      await close(bed).catch(() => {});
    }
    const { scheduler } = await startBed({ note }, { store, clock });
    const last = Math.floor((clock.now() - START_MS) / 1000);
    expect(nominals).toEqual(Array.from({ length: last + 1 }, (_, n) => n * 1000));
    const { items } = await scheduler.occurrences(id, { limit: 1000 });
    expect(items.filter((o) => o.endedAt === undefined).length).toBe(1);
  });

  it('23b. nor does one at every possible commit', async () => {
    // The n-th commit fails, for every n: whatever the moment, each time runs, and none twice to its end.
    for (let failing = 1; failing < 30; failing++) {
      const clock = newClock();
      let life = 1;
      const store = memoryStore({
        fail: (n) => (life === 1 && n === failing ? new Error('the process died here') : undefined),
      });
      const ended: number[] = [];
      const handlers = {
        note: async (_: unknown, ctx: Context) => {
          await ctx.sleep(10);
          ended.push(since(ctx.nominalAt) as number);
        },
      };
      const schedule = fixedRate({ every: '1s', limit: 4 });
      const options = { schedule, catchup: 'all', idempotencyKey: 'k' } as const;
      const first = await openBed(handlers, { store, clock });
      await first.scheduler.start();
      await first.scheduler.schedule('note', null, options).catch(() => {});
      await clock.advance('10s');
      await close(first).catch(() => {});
      life = 2;
      const second = await startBed(handlers, { store, clock });
      const task = await second.scheduler.schedule('note', null, options);
      await clock.advance('1m');
      const { items } = await second.scheduler.occurrences(task.id);
      const statuses = items.map((o) => o.status);
      expect([failing, statuses]).toEqual([failing, new Array(4).fill('succeeded')]);
      await close(second);
    }
  });
});
