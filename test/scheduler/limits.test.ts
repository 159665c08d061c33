import { describe, expect, it, vi } from 'vitest';
import { type Context, memoryStore } from '../../src/index.js';
import { newClock, since, startBed } from './helpers.js';

function load() {
  let inside = 0;
  const seen = { most: 0, starts: [] as number[], order: [] as unknown[] };
  const nap = async (payload: unknown, ctx: Context) => {
    seen.most = Math.max(seen.most, ++inside);
    seen.starts.push(since(ctx.clock.now()) as number);
    seen.order.push(payload);
    await ctx.sleep('1s');
    inside--;
  };
  const instant = (payload: unknown, ctx: Context) => {
    seen.starts.push(since(ctx.clock.now()) as number);
    seen.order.push(payload);
  };
  return { seen, handlers: { nap, instant, other: instant } };
}

const many = (handler: 'nap' | 'instant' | 'other', count: number, tenant = 'default') =>
  Array.from({ length: count }, (_, payload) => ({ handler, payload, options: { tenant } }));

describe('a full tenant', () => {
  it('is given the task that another call with the same key is about to create', async () => {
    const { handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      store: memoryStore({ commitDelay: 5, flushDelay: 5 }) as never,
      tenants: { small: { maxPending: 1 } },
    });
    const options = { tenant: 'small', idempotencyKey: 'once', delay: '1h' } as const;
    const calls = [1, 2].map(() => scheduler.schedule('instant', 'x', options));
    await clock.advance(30);
    const [first, second] = await Promise.all(calls);
    expect([first?.created, second?.created]).toEqual([true, false]);
    expect(second?.id).toBe(first?.id);
  });
});

describe('limits', () => {
  it('hold a tenant to maxConcurrency, and others not', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      tenants: { slow: { maxConcurrency: 3 } },
    });
    await scheduler.scheduleMany(many('nap', 9, 'slow'));
    await clock.advance('500ms');
    expect(seen.most).toBe(3);
    await scheduler.scheduleMany(many('instant', 5, 'fast'));
    await clock.advance(0);
    expect(seen.starts.length).toBe(8);
    await clock.advance('2600ms');
    expect(seen.most).toBe(3);
    expect(seen.starts.length).toBe(14);
  });

  it('hold a handler to maxConcurrency over all tenants', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      handlerLimits: { nap: { maxConcurrency: 2 } },
    });
    await scheduler.scheduleMany([...many('nap', 3, 'a'), ...many('nap', 3, 'b')]);
    await clock.advance('10s');
    expect(seen.most).toBe(2);
    expect(seen.starts).toEqual([0, 0, 1000, 1000, 2000, 2000]);
  });

  it.each(['tenant', 'handler'])(
    'hold a %s to maxRatePerSecond, burst one second',
    async (kind) => {
      const { seen, handlers } = load();
      const rate = { maxRatePerSecond: 10 };
      const clock = newClock();
      const { scheduler } = await startBed(handlers, {
        clock,
        ...(kind === 'tenant' ? { tenants: { '*': rate } } : { handlerLimits: { instant: rate } }),
      });
      await scheduler.scheduleMany(many('instant', 25));
      await clock.advance(0);
      expect(seen.starts).toEqual(new Array(10).fill(0));
      expect(clock.armed).toBe(1);
      const arm = vi.spyOn(clock, 'arm');
      await clock.advance('10s');
      const later = Array.from({ length: 15 }, (_, n) => (n + 1) * 100);
      expect(seen.starts.slice(10)).toEqual(later);
      // One wake-up for each token, and no spinning in between.
      expect(arm.mock.calls.length).toBeLessThan(60);
    },
  );

  it('count retries as starts', async () => {
    const starts: number[] = [];
    const { scheduler, clock } = await startBed(
      {
        fail: (_: unknown, ctx: Context) => {
          starts.push(since(ctx.clock.now()) as number);
          throw new Error('again');
        },
      },
      { handlerLimits: { fail: { maxRatePerSecond: 1 } } },
    );
    const retry = { maxAttempts: 2, initialBackoff: 1 };
    for (let i = 0; i < 2; i++) await scheduler.schedule('fail', i, { retry });
    await clock.advance('10s');
    expect(starts).toEqual([0, 1000, 2000, 3000]);
  });

  it('leave limit-throttled starts out of the lateness', async () => {
    const { handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      tenants: { '*': { maxRatePerSecond: 1 } },
    });
    await scheduler.scheduleMany(many('instant', 5));
    await clock.advance('10s');
    const { latenessMs } = await scheduler.stats();
    expect(latenessMs).toMatchObject({ count: 1, max: 0 });
  });

  it('share the slots that come free by weight', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      workers: { concurrency: 4 },
      tenants: { heavy: { weight: 3 }, light: { weight: 1 } },
    });
    await scheduler.scheduleMany([
      ...many('nap', 40, 'heavy').map((item) => ({ ...item, payload: 'heavy' })),
      ...many('nap', 40, 'light').map((item) => ({ ...item, payload: 'light' })),
    ]);
    await clock.advance('9500ms');
    expect(seen.order.length).toBe(40);
    const heavy = seen.order.filter((tenant) => tenant === 'heavy').length;
    expect(heavy).toBeGreaterThanOrEqual(28);
    expect(heavy).toBeLessThanOrEqual(32);
  });

  it('keep a tenant from starving behind a flood of another', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      workers: { concurrency: 2 },
      limits: { maxReady: 32 },
    });
    await scheduler.scheduleMany(many('nap', 500, 'flood'));
    await clock.advance('500ms');
    await scheduler.schedule('nap', 'mine', { tenant: 'small' });
    await clock.advance('600ms');
    expect(seen.order).toContain('mine');
  });
});

describe('priorities', () => {
  it('order a tenant’s ready work by priority, due time, arrival', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, { workers: { concurrency: 1 } });
    await scheduler.schedule('nap', 'blocker');
    await clock.advance(0);
    const at = (payload: string, priority: number, delay: number) =>
      scheduler.schedule('instant', payload, { priority, delay });
    await at('5b', 5, 20);
    await at('5a', 5, 10);
    await at('5c', 5, 20);
    await at('9', 9, 5);
    await at('0', 0, 30);
    await clock.advance('2s');
    expect(seen.order).toEqual(['blocker', '0', '5a', '5b', '5c', '9']);
  });

  it('never outrank another tenant', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, { workers: { concurrency: 1 } });
    await scheduler.schedule('nap', 'blocker', { tenant: 'c' });
    await clock.advance(0);
    for (let n = 0; n < 4; n++) {
      await scheduler.schedule('instant', `urgent${n}`, { tenant: 'a', priority: 0 });
      await scheduler.schedule('instant', `idle${n}`, { tenant: 'b', priority: 9 });
    }
    await clock.advance('2s');
    const early = seen.order.slice(1, 5).map((name) => (name as string).replace(/\d/, ''));
    expect(early.filter((name) => name === 'idle').length).toBe(2);
  });

  it('rise one level for every 10 s of waiting', async () => {
    const { seen, handlers } = load();
    const { scheduler, clock } = await startBed(handlers, {
      workers: { concurrency: 1 },
    });
    const blocker = async (_: unknown, ctx: Context) => ctx.sleep('1s');
    expect(blocker).toBeTypeOf('function');
    await scheduler.pause({ handler: 'nap' });
    await scheduler.schedule('nap', 'first');
    await clock.advance(0);
    // Both wait for the slot of a long run; the patient one has waited 40 s longer.
    await scheduler.schedule('instant', 'warm-up');
    await clock.advance(0);
    await scheduler.resume({ handler: 'nap' });
    await clock.advance(0);
    for (let n = 0; n < 45; n++) await scheduler.schedule('nap', `keep${n}`, { priority: 0 });
    await scheduler.schedule('instant', 'patient', { priority: 8 });
    await clock.advance('40s');
    await scheduler.schedule('instant', 'late', { priority: 5 });
    await clock.advance('1m');
    const { order } = seen;
    expect(order.indexOf('patient')).toBeLessThan(order.indexOf('late'));
  });
});
