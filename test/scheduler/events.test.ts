import { describe, expect, it, vi } from 'vitest';
import { type Context, type Event, fixedRate } from '../../src/index.js';
import { openBed, START_MS, since, startBed } from './helpers.js';

const handlers = {
  nap: (ms: number, ctx: Context) => {
    ctx.heartbeat(`slept ${ms}`);
    return ctx.sleep(ms).then(() => ms);
  },
  fail: () => {
    throw new Error('always');
  },
};

describe('events', () => {
  it('tell a life in order, with what each type promises', async () => {
    const { scheduler, clock, events } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 500, { delay: '1s', tenant: 'acme' });
    await clock.advance('2s');
    const base = {
      taskId: task.id,
      tenant: 'acme',
      handler: 'nap',
      occurrenceId: task.lastOccurrenceId,
    };
    expect(events).toEqual([
      { ...base, type: 'scheduled', at: new Date(START_MS), dueAt: new Date(START_MS + 1000) },
      {
        ...base,
        type: 'started',
        at: new Date(START_MS + 1000),
        attempt: 1,
        latenessMs: 0,
        workerId: expect.any(String),
      },
      {
        ...base,
        type: 'progress',
        at: new Date(START_MS + 1000),
        attempt: 1,
        progress: 'slept 500',
      },
      {
        ...base,
        type: 'succeeded',
        at: new Date(START_MS + 1500),
        attempt: 1,
        result: 500,
        durationMs: 500,
      },
    ]);
  });

  it('tell retries and the dead letter', async () => {
    const { scheduler, clock, events } = await startBed(handlers);
    await scheduler.schedule('fail', undefined, { retry: { maxAttempts: 2 } });
    await clock.advance('1m');
    const told = events.filter((e) => e.type === 'retrying' || e.type === 'deadLettered');
    expect(told).toMatchObject([
      {
        type: 'retrying',
        attempt: 1,
        error: { message: 'always' },
        retryAt: new Date(START_MS + 1000),
      },
      { type: 'deadLettered', attempt: 2, error: { message: 'always' } },
    ]);
  });

  it('come by type, to many listeners, until they are taken off', async () => {
    const { scheduler, clock } = await openBed(handlers);
    const starts: Event[] = [];
    const ends: Event[] = [];
    const off = scheduler.on('started', (event) => starts.push(event));
    const controller = new AbortController();
    scheduler.on('succeeded', (event) => ends.push(event), { signal: controller.signal });
    const never = vi.fn();
    scheduler.on('*', never, { signal: AbortSignal.abort() });
    await scheduler.start();
    await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    off();
    off();
    await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    controller.abort();
    await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    expect(starts.map((event) => event.type)).toEqual(['started']);
    expect(ends.length).toBe(2);
    expect(never).not.toHaveBeenCalled();
  });

  it('are told in spite of listeners that throw, reject or take themselves off', async () => {
    const { scheduler, clock, errors, events } = await startBed(handlers);
    scheduler.on('*', () => {
      throw new Error('thrown');
    });
    scheduler.on('started', async () => {
      throw new Error('rejected');
    });
    const off = scheduler.on('scheduled', () => off());
    scheduler.on('started', () => new Promise(() => {}));
    const task = await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    expect((await scheduler.wait(task.id)).status).toBe('succeeded');
    expect(events.map((event) => event.type)).toEqual([
      'scheduled',
      'started',
      'progress',
      'succeeded',
    ]);
    const messages = errors.map(({ error, source }) => [(error as Error).message, source]);
    expect(messages.filter(([message]) => message === 'thrown').length).toBe(4);
    expect(messages).toContainEqual(['rejected', 'listener']);
  });

  it('are as they were for the next listener, whatever one does with them', async () => {
    const { scheduler, clock, errors, events } = await startBed(handlers);
    scheduler.on('scheduled', (event) => {
      (event as { tenant: string }).tenant = 'another';
    });
    const told: string[] = [];
    scheduler.on('scheduled', ({ tenant }) => told.push(tenant));
    await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    expect(told).toEqual(['default']);
    expect(events[0]).toMatchObject({ type: 'scheduled', tenant: 'default' });
    expect(errors.map(({ source }) => source)).toEqual(['listener']);
  });

  it('are dropped for a listener that is 10,000 behind, and counted', async () => {
    const { scheduler, clock } = await openBed(handlers);
    // All of one commit are told in one turn, before any listener has its own.
    const told = vi.fn();
    scheduler.on('scheduled', told);
    const items = Array.from({ length: 15_000 }, () => ({
      handler: 'nap' as const,
      payload: 1,
      options: { delay: '1h' },
    }));
    const creating = Promise.all(
      Array.from({ length: 15 }, (_, n) =>
        scheduler.scheduleMany(items.slice(n * 1000, n * 1000 + 1000)),
      ),
    );
    await creating;
    await clock.advance(0);
    const { listenerDrops } = await scheduler.stats();
    // The bed's own listener lost as many.
    expect(told.mock.calls.length + listenerDrops / 2).toBe(15_000);
  });

  it('come after their commit: what they tell can be read', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const seen: unknown[] = [];
    scheduler.on('*', async (event) => {
      const occurrence = await scheduler.occurrence(event.occurrenceId as string);
      seen.push([event.type, occurrence?.status]);
    });
    await scheduler.schedule('nap', 100, { delay: 10 });
    await clock.advance('1s');
    expect(seen).toContainEqual(['scheduled', 'scheduled']);
    expect(seen).toContainEqual(['started', 'running']);
    expect(seen).toContainEqual(['succeeded', 'succeeded']);
  });

  it('let a listener call back', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const ran: (number | undefined)[] = [];
    scheduler.on('succeeded', (event) => {
      ran.push(since(event.at));
      if (ran.length < 3) void scheduler.schedule('nap', 10);
    });
    await scheduler.schedule('nap', 10);
    await clock.advance('1s');
    expect(ran).toEqual([10, 20, 30]);
  });

  it('tell one skipped or missed event for consecutive ones', async () => {
    const { scheduler, clock, events } = await openBed(handlers);
    await scheduler.schedule('nap', 1, { schedule: fixedRate({ every: '1m' }) });
    await clock.advance('1h');
    await scheduler.start();
    await clock.advance(0);
    const missed = events.filter((event) => event.type === 'missed');
    expect(missed).toMatchObject([
      {
        count: 60,
        from: new Date(START_MS),
        to: new Date(START_MS + 59 * 60_000),
        reason: 'catchupLatest',
      },
    ]);
  });
});
