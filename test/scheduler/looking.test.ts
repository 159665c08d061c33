import { describe, expect, it } from 'vitest';
import { inNextTurn } from '../../src/clock/turn.js';
import {
  type Context,
  fixedDelay,
  fixedRate,
  InvalidArgumentError,
  TaskNotFoundError,
  WaitTimeoutError,
} from '../../src/index.js';
import { openBed, rejection, START_MS, since, startBed } from './helpers.js';

const handlers = {
  noop: (_payload?: unknown) => {},
  nap: (ms: number, ctx: Context) => ctx.sleep(ms).then(() => ms),
  fail: (message: string) => {
    throw new TypeError(message);
  },
};
const once = { retry: { maxAttempts: 1 } };

describe('one look after the other', () => {
  /** Whether the event loop had a turn while the looks were made. */
  async function hadTurns(looks: () => Promise<unknown>): Promise<boolean> {
    let had = false;
    inNextTurn(() => {
      had = true;
    });
    await looks();
    return had;
  }

  it('leaves due work its turns, whatever is looked at', async () => {
    const { scheduler } = await openBed(handlers);
    const made = await scheduler.scheduleMany(
      Array.from({ length: 300 }, () => ({ handler: 'noop' as const })),
    );
    const { id, lastOccurrenceId } = made[0] as { id: string; lastOccurrenceId: string };
    const looks = {
      get: () => scheduler.get(id),
      occurrence: () => scheduler.occurrence(lastOccurrenceId),
      occurrences: () => scheduler.occurrences(id),
      attempts: () => scheduler.attempts(lastOccurrenceId),
      list: () => scheduler.list({ limit: 1 }),
      deadLetters: () => scheduler.deadLetters(),
      stats: () => scheduler.stats(),
    };
    for (const [name, look] of Object.entries(looks)) {
      const had = await hadTurns(async () => {
        for (let i = 0; i < 250; i++) await look();
      });
      expect([name, had]).toEqual([name, true]);
    }
    expect(await hadTurns(() => scheduler.list({ limit: 300 }))).toBe(true);
  });
});

describe('get', () => {
  it('finds nothing for what was never created', async () => {
    const { scheduler } = await openBed(handlers);
    expect(await scheduler.get('nonsense')).toBeUndefined();
    expect(await scheduler.get('00000000-0000-7000-8000-000000000000')).toBeUndefined();
    expect(await scheduler.get({ idempotencyKey: 'none' })).toBeUndefined();
  });

  it('tells the status by the first rule that holds', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 1000, { delay: '1s' });
    const status = async () => (await scheduler.get(task.id))?.status;
    expect(await status()).toBe('scheduled');
    await clock.advance('1s');
    expect(await status()).toBe('running');
    await scheduler.pause(task.id);
    expect(await status()).toBe('paused');
    await scheduler.resume(task.id);
    await clock.advance('1s');
    expect(await status()).toBe('succeeded');

    const failing = await scheduler.schedule('fail', 'x', { retry: { maxAttempts: 2 } });
    await clock.advance(0);
    expect((await scheduler.get(failing.id))?.status).toBe('retrying');
    await clock.advance('1s');
    expect((await scheduler.get(failing.id))?.status).toBe('failed');

    const dropped = await scheduler.schedule('noop', null, { delay: '1s' });
    await scheduler.cancel(dropped.id, { reason: 'no need' });
    expect(await scheduler.get(dropped.id)).toMatchObject({
      status: 'cancelled',
      endReason: 'no need',
    });
  });
});

describe('wait', () => {
  it('resolves with the occurrence once it has ended, and at once when it had', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 1000);
    const waiting = scheduler.wait(task.id);
    await clock.advance('1s');
    const ended = await waiting;
    expect(ended).toMatchObject({ taskId: task.id, status: 'succeeded', result: 1000 });
    expect(since(ended.startedAt)).toBe(0);
    expect(since(ended.endedAt)).toBe(1000);
    expect(await scheduler.wait(task.id)).toEqual(ended);
    expect(await scheduler.occurrence(ended.id)).toEqual(ended);
  });

  it('resolves with a failure, and never rejects for it', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('fail', 'broken', { retry: { maxAttempts: 2 } });
    const waiting = scheduler.wait({ idempotencyKey: 'x' }).catch((error) => error);
    expect(await waiting).toBeInstanceOf(TaskNotFoundError);
    const ended = scheduler.wait(task.id);
    await clock.advance('2s');
    expect(await ended).toMatchObject({
      status: 'dead',
      attempt: 2,
      failures: 2,
      error: { name: 'TypeError', message: 'broken', stack: expect.any(String) },
    });
  });

  it('gives up at its timeout, on the scheduler’s clock, or when its signal is aborted', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('noop', null, { delay: '1h' });
    const timed = rejection(scheduler.wait(task.id, { timeout: '1m' }));
    const controller = new AbortController();
    const aborted = rejection(scheduler.wait(task.id, { signal: controller.signal }));
    await clock.advance('1m');
    expect(await timed).toBeInstanceOf(WaitTimeoutError);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await aborted).toBe(reason);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(scheduler.wait(task.id, { signal }))).toBe(reason);
    // Those who gave up leave no alarm behind.
    expect(clock.armed).toBe(1);
    expect(await rejection(scheduler.wait('nobody'))).toBeInstanceOf(TaskNotFoundError);
  });

  it('waits for the latest occurrence of a recurring task, not for all there will ever be', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const delayed = await scheduler.schedule('nap', 100, { schedule: fixedDelay({ delay: '1s' }) });
    const rated = await scheduler.schedule('nap', 100, { schedule: fixedRate({ every: '1s' }) });
    const first = [scheduler.wait(delayed.id), scheduler.wait(rated.id)];
    await clock.advance('150ms');
    expect((await Promise.all(first)).map((ended) => since(ended.nominalAt))).toEqual([0, 0]);
    const second = [scheduler.wait(delayed.id), scheduler.wait(rated.id)];
    await clock.advance('2s');
    expect((await Promise.all(second)).map((o) => since(o.nominalAt))).toEqual([1100, 1000]);
  });

  it('goes on to the occurrence that an update put in place', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 1, { delay: '1h' });
    const waiting = scheduler.wait(task.id);
    await scheduler.update(task.id, { delay: '1m' });
    await clock.advance('2m');
    expect(since((await waiting).nominalAt)).toBe(60_000);
  });

  it('ends with a cancelled, skipped or missed occurrence too', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('noop', null, { delay: '1h' });
    const waiting = scheduler.wait(task.id);
    await scheduler.cancel(task.id);
    expect(await waiting).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
    await clock.advance(0);
  });
});

describe('list', () => {
  it('is in creation order, page by page, and stable while tasks come and go', async () => {
    const { scheduler } = await openBed(handlers);
    const items = Array.from({ length: 25 }, (_, payload) => ({
      handler: 'noop' as const,
      payload,
      options: { delay: '1h' },
    }));
    const made = (await scheduler.scheduleMany(items)) as { id: string }[];
    const seen: unknown[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await scheduler.list({ limit: 7, ...(cursor ? { cursor } : {}) });
      expect(page.items.length).toBeLessThanOrEqual(7);
      seen.push(...page.items.map((task) => task.payload));
      cursor = page.cursor;
      if (pages++ === 0) {
        await scheduler.cancel(made[3]?.id as string);
        await scheduler.delete(made[3]?.id as string);
        await scheduler.schedule('noop', 25, { delay: '1h' });
      }
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 26 }, (_, n) => n));
  });

  it('filters by tenant, handler and status', async () => {
    const { scheduler, clock } = await startBed(handlers);
    await scheduler.schedule('noop', 1, { tenant: 'a' });
    await scheduler.schedule('noop', 2, { tenant: 'b', delay: '1h' });
    await scheduler.schedule('nap', 3, { tenant: 'a', delay: '1h' });
    await scheduler.schedule('fail', '4', { ...once, tenant: 'a' });
    await clock.advance(0);
    const all = async (filter: Parameters<typeof scheduler.list>[0]) => {
      const payloads: unknown[] = [];
      let cursor: string | undefined;
      do {
        const page = await scheduler.list({ ...filter, ...(cursor ? { cursor } : {}) });
        payloads.push(...page.items.map((task) => task.payload));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return payloads;
    };
    expect(await all({ tenant: 'a' })).toEqual([1, 3, '4']);
    expect(await all({ tenant: 'none' })).toEqual([]);
    expect(await all({ handler: 'noop' })).toEqual([1, 2]);
    expect(await all({ tenant: 'a', handler: 'nap' })).toEqual([3]);
    expect(await all({ status: 'scheduled' })).toEqual([2, 3]);
    expect(await all({ status: 'succeeded' })).toEqual([1]);
    expect(await all({ status: 'failed', tenant: 'a' })).toEqual(['4']);
    expect(await all({ status: 'running' })).toEqual([]);
    expect(await all({ limit: 1 })).toEqual([1, 2, 3, '4']);
  });

  it('refuses a cursor that is none', async () => {
    const { scheduler } = await openBed(handlers);
    await scheduler.schedule('noop');
    const task = await scheduler.schedule('noop');
    const lists = [
      (cursor: string) => scheduler.list({ cursor }),
      (cursor: string) => scheduler.occurrences(task.id, { cursor }),
      (cursor: string) => scheduler.deadLetters({ cursor }),
    ];
    for (const cursor of ['not a cursor', 't:', 'o:x', 'd:-1', 'd:1e9', 't:o:1', 'o:1.2.3']) {
      for (const list of lists) {
        expect(await rejection(list(cursor))).toBeInstanceOf(InvalidArgumentError);
      }
    }
  });
});

describe('occurrences and attempts', () => {
  it('lists a task’s occurrences, newest first, page by page', async () => {
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('noop', null, {
      schedule: fixedRate({ every: '1s', limit: 5 }),
    });
    await clock.advance('3s');
    const all = await scheduler.occurrences(task.id);
    expect(all.items.map((o) => [since(o.nominalAt), o.status])).toEqual([
      [4000, 'scheduled'],
      [3000, 'succeeded'],
      [2000, 'succeeded'],
      [1000, 'succeeded'],
      [0, 'succeeded'],
    ]);
    const first = await scheduler.occurrences(task.id, { limit: 2 });
    expect(first.items).toEqual(all.items.slice(0, 2));
    await clock.advance('1s');
    const cursor = first.cursor as string;
    const second = await scheduler.occurrences(task.id, { limit: 2, cursor });
    expect(second.items.map((o) => o.id)).toEqual(all.items.slice(2, 4).map((o) => o.id));
    for (const none of ['none', '00000000-0000-7000-8000-000000000000']) {
      expect(await rejection(scheduler.occurrences(none))).toBeInstanceOf(TaskNotFoundError);
    }
  });

  it('knows nothing of an occurrence that never was', async () => {
    const { scheduler } = await openBed(handlers);
    const task = await scheduler.schedule('noop');
    expect(await scheduler.occurrence('nonsense')).toBeUndefined();
    expect(await scheduler.occurrence(`${task.id}.1.1`)).toBeUndefined();
    const refused = await rejection(scheduler.attempts(`${task.id}.1.1`));
    expect(refused.code).toBe('TICKWHEEL_OCCURRENCE_NOT_FOUND');
  });

  it('lists attempts, oldest first, the running one included', async () => {
    const { scheduler, clock } = await startBed({
      flaky: async (_: undefined, ctx: Context) => {
        ctx.heartbeat({ at: ctx.attempt });
        await ctx.sleep(100);
        if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`);
        return 'done';
      },
    });
    const task = await scheduler.schedule('flaky', undefined, { retry: { initialBackoff: '1s' } });
    const id = task.lastOccurrenceId as string;
    expect(await scheduler.attempts(id)).toEqual([]);
    await clock.advance('1150ms');
    const two = await scheduler.attempts(id);
    expect(two.map((a) => [a.attempt, a.outcome, since(a.startedAt), since(a.endedAt)])).toEqual([
      [1, 'failed', 0, 100],
      [2, undefined, 1100, undefined],
    ]);
    expect(two[0]?.error?.message).toBe('attempt 1');
    expect(two[0]?.workerId).toEqual(expect.any(String));
    await clock.advance('1m');
    const three = await scheduler.attempts(id);
    expect(three.map((a) => [a.outcome, a.progress])).toEqual([
      ['failed', { at: 1 }],
      ['failed', { at: 2 }],
      ['succeeded', { at: 3 }],
    ]);
    expect(three[2]?.error).toBeUndefined();
    const tokens = three.map((a) => a.fencingToken);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(3);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  });
});

describe('deadLetters', () => {
  it('lists what died, by tenant and handler, until it is redriven', async () => {
    const { scheduler, clock } = await startBed(handlers);
    for (const [n, tenant] of ['a', 'b', 'a'].entries()) {
      await scheduler.schedule('fail', `${n}`, { ...once, tenant, delay: n });
    }
    await clock.advance('1s');
    const all = await scheduler.deadLetters();
    expect(all.items.map((o) => [o.error?.message, o.status])).toEqual([
      ['0', 'dead'],
      ['1', 'dead'],
      ['2', 'dead'],
    ]);
    const ofA = await scheduler.deadLetters({ tenant: 'a' });
    expect(ofA.items.map((o) => o.error?.message)).toEqual(['0', '2']);
    expect((await scheduler.deadLetters({ handler: 'noop' })).items).toEqual([]);
    const one = await scheduler.deadLetters({ limit: 1 });
    expect(one.items.length).toBe(1);
    const rest = await scheduler.deadLetters({ cursor: one.cursor as string });
    expect(rest.items.map((o) => o.error?.message)).toEqual(['1', '2']);
    expect((await scheduler.stats()).deadLetters).toBe(3);
    await scheduler.redrive(all.items[0]?.id as string);
    expect((await scheduler.deadLetters()).items.map((o) => o.error?.message)).toEqual(['1', '2']);
    await clock.advance(0);
  });
});

describe('stats', () => {
  it('counts by state and tenant, disjoint, and says what is next', async () => {
    const { scheduler, clock } = await startBed(handlers, {
      workers: { concurrency: 1 },
      tenants: { a: { maxConcurrency: 5, maxPending: 9 } },
    });
    await scheduler.schedule('nap', 60_000, { tenant: 'a' });
    await clock.advance(0);
    await scheduler.schedule('nap', 1, { tenant: 'b' });
    await scheduler.schedule('nap', 1, { tenant: 'b', delay: '1h' });
    await scheduler.schedule('nap', 1, { tenant: 'b', delay: '2h' });
    await clock.advance(0);
    const stats = await scheduler.stats();
    expect(stats).toMatchObject({ pending: 2, ready: 1, running: 1, deadLetters: 0 });
    expect(stats.tenants).toEqual({
      a: { pending: 0, ready: 0, running: 1, deadLetters: 0 },
      b: { pending: 2, ready: 1, running: 0, deadLetters: 0 },
    });
    expect(stats.nextDueAt).toEqual(new Date(START_MS + 3_600_000));
    expect(stats.bounds.slots).toEqual({ current: 1, limit: 1 });
    expect(stats.bounds.maxReady).toEqual({ current: 1, limit: 16_384 });
    expect(stats.bounds.tenants).toMatchObject({
      a: {
        waiting: { current: 0 },
        running: { current: 1, limit: 5 },
        pending: { current: 1, limit: 9 },
      },
      b: { waiting: { current: 1 }, running: { current: 0, limit: undefined } },
    });
    expect(stats.lateReports).toBe(0);
    expect(stats.zombies).toBe(0);
    expect(stats.listenerDrops).toBe(0);
    expect(stats.waitingVersions).toEqual({});
  });

  it('counts tenants and handlers of any name', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'a/b', 'a\0b', '語'.repeat(256)];
    const odd = Object.fromEntries(names.map((name) => [name, (payload: unknown) => payload]));
    const limits = Object.fromEntries(names.map((name) => [name, { maxPending: 2 }]));
    const { scheduler, clock } = await startBed(odd, { tenants: limits });
    for (const name of names) {
      const options = { tenant: name, idempotencyKey: name };
      const { id } = await scheduler.schedule(name, name, options);
      await scheduler.schedule(name, name, { tenant: name, delay: '1h' });
      await clock.advance(0);
      expect((await scheduler.wait({ idempotencyKey: name, tenant: name })).result).toBe(name);
      expect((await scheduler.list({ tenant: name, handler: name })).items[0]?.id).toBe(id);
    }
    const { tenants, bounds } = await scheduler.stats();
    for (const name of names) {
      const one = { pending: 1, ready: 0, running: 0, deadLetters: 0 };
      expect(Object.entries(tenants)).toContainEqual([name, one]);
      const pending = { pending: { current: 1, limit: 2 } };
      expect(Object.entries(bounds.tenants)).toContainEqual([
        name,
        expect.objectContaining(pending),
      ]);
    }
  });

  it('measures lateness of what was allowed to start, and not of catch-up, triggers or redrives', async () => {
    const { scheduler, clock, store } = await openBed(handlers);
    await scheduler.schedule('noop', null, { delay: '1s' });
    await clock.advance('1h');
    await scheduler.start();
    await clock.advance(0);
    expect((await scheduler.stats()).latenessMs).toEqual({
      p50: 0,
      p99: 0,
      p999: 0,
      max: 0,
      count: 0,
    });
    const task = await scheduler.schedule('noop', null, { delay: '1d' });
    await scheduler.trigger(task.id);
    const dead = await scheduler.schedule('fail', 'x', once);
    await clock.advance(0);
    await scheduler.redrive(dead.lastOccurrenceId as string);
    await clock.advance(0);
    expect((await scheduler.stats()).latenessMs).toMatchObject({ max: 0, count: 1 });
    expect((await store.recount()).deadLetters).toBe(1);
  });

  it('measures how late work is that waited for a slot', async () => {
    const { scheduler, clock } = await startBed(handlers, { workers: { concurrency: 1 } });
    await scheduler.schedule('nap', 1000);
    await clock.advance(0);
    await scheduler.schedule('noop');
    await clock.advance('2s');
    const { latenessMs } = await scheduler.stats();
    expect(latenessMs.count).toBe(2);
    expect(latenessMs.max).toBe(1000);
    expect(latenessMs.p50).toBe(0);
  });
});
