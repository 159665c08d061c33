/** Cases 1 to 13 of faults that other schedulers had, as far as a scheduler shows them; the wheel's own are in test/wheel. */
import { describe, expect, it, vi } from 'vitest';
import { type Context, InvalidArgumentError, type Scheduler } from '../../src/index.js';
import { newClock, rejection, START_MS, since, startBed } from '../scheduler/helpers.js';

const DAY = 86_400_000;

function recorder() {
  const ran: [unknown, number][] = [];
  const note = (name: unknown, ctx: Context) =>
    void ran.push([name, since(ctx.clock.now()) as number]);
  return { ran, note };
}

describe('wheel', () => {
  it('1. delays of 2^31-1 ms, 2^31 ms, 30 days, 10 years fire at their time, not at once', async () => {
    const { ran, note } = recorder();
    const { scheduler, clock } = await startBed({ note });
    const delays = [2 ** 31 - 1, 2 ** 31, 30 * DAY, 3652 * DAY];
    for (const delay of delays) await scheduler.schedule('note', delay, { delay });
    await clock.advance(2 ** 31 - 2);
    expect(ran).toEqual([]);
    await clock.advance(3653 * DAY);
    expect(ran).toEqual(delays.map((delay) => [delay, delay]));
  });

  it('2. negative, NaN, infinite delays: a typed error; a runAt far in the past: due now, no busy loop', async () => {
    const { ran, note } = recorder();
    const clock = newClock();
    const { scheduler } = await startBed({ note }, { clock });
    for (const delay of [-1, Number.NaN, Number.POSITIVE_INFINITY, -Infinity]) {
      const refused = await rejection(scheduler.schedule('note', 'x', { delay }));
      expect(refused).toBeInstanceOf(InvalidArgumentError);
    }
    await scheduler.schedule('note', 'old', { runAt: -8.64e15 });
    await clock.advance(0);
    expect(ran).toEqual([['old', 0]]);
    const arm = vi.spyOn(clock, 'arm');
    await clock.advance('59m');
    expect(arm).not.toHaveBeenCalled();
  });

  it('3. inserted 6 h, 1 min, 1 s in that order: the sleep is re-armed each time to the earliest', async () => {
    const { ran, note } = recorder();
    const clock = newClock();
    const { scheduler } = await startBed({ note }, { clock });
    const arm = vi.spyOn(clock, 'arm');
    const wakes: number[] = [];
    for (const delay of ['6h', '1m', '1s']) {
      await scheduler.schedule('note', delay, { delay });
      await clock.advance(0);
      wakes.push((arm.mock.lastCall?.[0].wallMs as number) - START_MS);
      expect(clock.armed).toBe(1);
    }
    // A wake-up may be a cascade's, so at most each due time; and sooner each time.
    expect(wakes[0]).toBeLessThanOrEqual(6 * 3_600_000);
    expect(wakes[0]).toBeGreaterThan(60_000);
    expect(wakes[1]).toBeLessThanOrEqual(60_000);
    expect(wakes[1]).toBeGreaterThan(1000);
    expect(wakes[2]).toBe(1000);
    await clock.advance('6h');
    expect(ran).toEqual([
      ['1s', 1000],
      ['1m', 60_000],
      ['6h', 21_600_000],
    ]);
  });

  it('8. the host was away for many ticks: everything due comes out, in order', async () => {
    const { ran, note } = recorder();
    const { scheduler, clock } = await startBed({ note }, { workers: { concurrency: 1 } });
    const delays = [5, 4097, 70 * 60_000, 3, 4096, 12_345_678, 60_000, 1];
    for (const delay of delays) await scheduler.schedule('note', delay, { delay });
    const future = await scheduler.schedule('note', 'later', { delay: '10d' });
    await clock.jumpWall('1d');
    expect(ran.map(([name]) => name)).toEqual(delays.slice().sort((a, b) => a - b));
    expect((await scheduler.get(future.id))?.status).toBe('scheduled');
  });

  it('8b. a clock jump of years, forward and back, loses and repeats nothing', async () => {
    const { ran, note } = recorder();
    const { scheduler, clock } = await startBed({ note });
    await scheduler.schedule('note', 'hour', { delay: '1h' });
    await scheduler.schedule('note', 'century', { delay: 36_500 * DAY });
    await clock.jumpWall('3650d');
    expect(ran.map(([name]) => name)).toEqual(['hour']);
    await clock.jumpWall('-3650d');
    await scheduler.schedule('note', 'minute', { delay: '1m' });
    await clock.advance('59s');
    expect(ran.length).toBe(1);
    await clock.advance('1s');
    expect(ran[1]).toEqual(['minute', 60_000]);
    await clock.advance(36_500 * DAY);
    expect(ran.map(([name]) => name)).toEqual(['hour', 'minute', 'century']);
  });

  it('10. a handler that cancels itself or a sibling of the same tick', async () => {
    const ran: string[] = [];
    const refs: { scheduler?: Scheduler } = {};
    const bed = await startBed(
      {
        self: async (_: unknown, ctx: Context) => {
          ran.push('self');
          await refs.scheduler?.cancel(ctx.taskId);
          expect(ctx.signal.aborted).toBe(true);
        },
        killer: async (id: string) => {
          ran.push('killer');
          expect(await refs.scheduler?.cancel(id)).toBe(true);
        },
        victim: () => void ran.push('victim'),
      },
      { workers: { concurrency: 1 } },
    );
    const { scheduler, clock } = bed;
    refs.scheduler = scheduler as unknown as Scheduler;
    const self = await scheduler.schedule('self', null, { delay: 10 });
    const victim = await scheduler.schedule('victim', undefined, { delay: 20, priority: 9 });
    await scheduler.schedule('killer', victim.id, { delay: 20 });
    await clock.advance('1s');
    expect(ran).toEqual(['self', 'killer']);
    expect((await scheduler.get(self.id))?.status).toBe('cancelled');
    expect(await scheduler.wait(victim.id)).toMatchObject({ status: 'cancelled', attempt: 0 });
  });

  it('10b. a handler that re-arms at 0 delay never starves the rest', async () => {
    const ran: string[] = [];
    const { scheduler, clock } = await startBed(
      {
        again: async (left: number, ctx: Context) => {
          ran.push('again');
          if (left > 0) await ctx.schedule('again', left - 1, { delay: 0 });
        },
        other: () => void ran.push('other'),
      },
      { workers: { concurrency: 1 } },
    );
    await scheduler.schedule('again', 500);
    for (let i = 0; i < 5; i++) await scheduler.schedule('other');
    await clock.advance(0);
    expect(ran.length).toBe(506);
    expect(ran.lastIndexOf('other')).toBeLessThan(30);
  });

  it('12. fractions of a millisecond: never early', async () => {
    const { ran, note } = recorder();
    const { scheduler, clock } = await startBed({ note });
    await scheduler.schedule('note', 'at', { runAt: START_MS + 1000.2 });
    await scheduler.schedule('note', 'in', { delay: 0.5 });
    await clock.advance('2s');
    expect(ran).toEqual([
      ['in', 1],
      ['at', 1001],
    ]);
  });
});
