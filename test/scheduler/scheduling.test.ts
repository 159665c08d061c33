import { describe, expect, it } from 'vitest';
import {
  type Context,
  cron,
  fixedDelay,
  fixedRate,
  IdempotencyConflictError,
  InvalidArgumentError,
  memoryStore,
  OverloadedError,
  PayloadNotSerializableError,
  PayloadTooLargeError,
  QuotaExceededError,
  Scheduler,
  type Task,
  UnknownHandlerError,
} from '../../src/index.js';
import { close, newClock, openBed, rejection, START_MS, since, startBed } from './helpers.js';

const noop = (_payload?: unknown) => {};
const okay = { noop };

describe('schedule', () => {
  it('returns the task as it will be found', async () => {
    const { scheduler } = await openBed(okay);
    const payload = { to: 'a@example.org' };
    const { created, ...task } = await scheduler.schedule('noop', payload, {
      delay: '1h',
      tenant: 'acme',
      priority: 'high',
      idempotencyKey: 'k',
      retry: { maxAttempts: 7 },
      timeout: '2s',
    });
    expect(created).toBe(true);
    expect(task).toEqual(await scheduler.get(task.id));
    expect(task).toMatchObject({
      tenant: 'acme',
      handler: 'noop',
      handlerVersion: 1,
      payload,
      priority: 2,
      status: 'scheduled',
      version: 1,
      generation: 1,
      idempotencyKey: 'k',
      schedule: { kind: 'once', at: START_MS + 3_600_000 },
      createdAt: new Date(START_MS),
      nextRunAt: new Date(START_MS + 3_600_000),
      endedAt: undefined,
      endReason: undefined,
    });
    expect(task.options).toMatchObject({
      retry: { maxAttempts: 7, initialBackoff: 1000, multiplier: 2, maxBackoff: 60_000, jitter: 0 },
      timeout: 2000,
      maxCrashes: 3,
      overlap: 'skip',
      catchup: 'latest',
      catchupWindow: 86_400_000,
      onExhausted: 'continue',
      idempotencyTtl: 86_400_000,
    });
  });

  it('has the defaults of the contract', async () => {
    const { scheduler } = await openBed(okay);
    const task = await scheduler.schedule('noop');
    expect(task).toMatchObject({ tenant: 'default', priority: 5, payload: undefined });
    expect(task.options.retry.maxAttempts).toBe(3);
    expect(task.nextRunAt).toEqual(new Date(START_MS));
    const low = await scheduler.schedule('noop', null, { priority: 'low' });
    expect(low.priority).toBe(8);
    expect((await scheduler.schedule('noop', null, { priority: 'normal' })).priority).toBe(5);
    expect((await scheduler.schedule('noop', null, { priority: 0 })).priority).toBe(0);
  });

  it('never changes what it was given, and keeps what it was given', async () => {
    const { scheduler } = await openBed(okay);
    const payload = { list: [1, 2], when: new Date(5) };
    const options = Object.freeze({ delay: '1s', retry: Object.freeze({ maxAttempts: 2 }) });
    const before = structuredClone(payload);
    const task = await scheduler.schedule('noop', payload, options);
    expect(payload).toEqual(before);
    payload.list.push(3);
    expect((await scheduler.get(task.id))?.payload).toEqual(before);
  });

  it('takes a runAt as a Date, a number or an ISO text, and one in the past as now', async () => {
    const dues: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      note: (_: undefined, ctx: Context) => void dues.push(since(ctx.clock.now())),
    });
    for (const runAt of [
      new Date(START_MS + 1000),
      START_MS + 2000,
      '2026-01-01T00:00:03Z',
      '2026-01-01T01:00:04+01:00',
      '1970-01-01',
      -1,
    ]) {
      if (runAt === '1970-01-01') {
        expect(await rejection(scheduler.schedule('note', undefined, { runAt }))).toMatchObject({
          code: 'TICKWHEEL_INVALID_ARGUMENT',
        });
      } else await scheduler.schedule('note', undefined, { runAt });
    }
    await clock.advance('10s');
    expect(dues).toEqual([0, 1000, 2000, 3000, 4000]);
  });

  it('gives the occurrence its nominal time, and its due time never before the creation', async () => {
    const { scheduler } = await openBed(okay);
    const task = await scheduler.schedule('noop', null, { runAt: START_MS - 5000 });
    const occurrence = await scheduler.occurrence(task.lastOccurrenceId as string);
    expect(since(occurrence?.nominalAt)).toBe(-5000);
    expect(occurrence?.dueAt.getTime()).toBe(START_MS);
  });

  it('runs a fixedRate, a fixedDelay and a cron', async () => {
    const ran: Record<string, (number | undefined)[]> = { rate: [], delay: [], cron: [] };
    const { scheduler, clock } = await startBed({
      note: async (name: string, ctx: Context) => {
        ran[name]?.push(since(ctx.clock.now()));
        await ctx.sleep(300);
      },
    });
    const endless = { note: 'note' as const };
    await scheduler.schedule(endless.note, 'rate', { schedule: fixedRate({ every: '1s' }) });
    await scheduler.schedule('note', 'delay', { schedule: fixedDelay({ delay: '1s' }) });
    await scheduler.schedule('note', 'cron', { schedule: cron('*/2 * * * * *') });
    await clock.advance('4500ms');
    expect(ran).toEqual({
      rate: [0, 1000, 2000, 3000, 4000],
      delay: [0, 1300, 2600, 3900],
      cron: [2000, 4000],
    });
  });

  it('ends a schedule at its limit, and at its endAt', async () => {
    const { scheduler, clock } = await startBed(okay);
    const limited = await scheduler.schedule('noop', null, {
      schedule: fixedRate({ every: '1s', limit: 3 }),
    });
    const bounded = await scheduler.schedule('noop', null, {
      schedule: fixedDelay({ delay: '1s', endAt: START_MS + 2000 }),
    });
    await clock.advance('10s');
    for (const { id } of [limited, bounded]) {
      expect(await scheduler.get(id)).toMatchObject({
        status: 'succeeded',
        endReason: 'scheduleEnded',
        endedAt: new Date(START_MS + 2000),
        nextRunAt: undefined,
      });
      expect((await scheduler.occurrences(id)).items.length).toBe(3);
    }
  });

  it('accepts any handler name where there are no handlers', async () => {
    const clock = newClock();
    const store = memoryStore();
    const producer = await Scheduler.open({ clock, store });
    const task = await producer.schedule('whatever', { n: 1 });
    await producer.start();
    await clock.advance('1h');
    expect((await producer.get(task.id))?.status).toBe('scheduled');
    await producer.shutdown();
    const { scheduler } = await startBed({ whatever: (p: { n: number }) => p.n }, { clock, store });
    expect((await scheduler.wait(task.id)).result).toBe(1);
  });

  it('refuses an unknown handler, or version', async () => {
    const { scheduler } = await openBed({ two: { 1: noop, 2: noop } });
    const name = 'three' as 'two';
    expect(await rejection(scheduler.schedule(name))).toBeInstanceOf(UnknownHandlerError);
    const version = { handlerVersion: 3 };
    const refused = await rejection(scheduler.schedule('two', null, version));
    expect(refused).toBeInstanceOf(UnknownHandlerError);
    expect(refused.message).toMatch(/3.*1, 2/);
    expect((await scheduler.list()).items).toEqual([]);
  });

  it('refuses payloads that would not come back equal, or are too large', async () => {
    const { scheduler } = await openBed(okay, { limits: { maxPayloadBytes: 1000 } });
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    for (const bad of [() => 1, Symbol('x'), { deep: [() => 1] }, cycle]) {
      const refused = await rejection(scheduler.schedule('noop', bad));
      expect(refused).toBeInstanceOf(PayloadNotSerializableError);
    }
    const large = await rejection(scheduler.schedule('noop', 'x'.repeat(1001)));
    expect(large).toBeInstanceOf(PayloadTooLargeError);
    expect(large.message).toContain('1000');
    expect((await scheduler.list()).items).toEqual([]);
  });
});

describe('scheduleMany', () => {
  it('gives results in order, item by item', async () => {
    const { scheduler } = await openBed(okay);
    const results = await scheduler.scheduleMany([
      { handler: 'noop', payload: 0 },
      { handler: 'nobody' as 'noop', payload: 1 },
      { handler: 'noop', payload: () => 2 },
      { handler: 'noop', payload: 3, options: { delay: -1 } },
      null as never,
      { handler: 'noop', payload: 5, options: { delay: '1s' } },
    ]);
    const codes = results.map((result) => ('code' in result ? result.code : result.payload));
    expect(codes).toEqual([
      0,
      'TICKWHEEL_UNKNOWN_HANDLER',
      'TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE',
      'TICKWHEEL_INVALID_ARGUMENT',
      'TICKWHEEL_INVALID_ARGUMENT',
      5,
    ]);
    expect((await scheduler.list()).items.map((task) => task.payload)).toEqual([0, 5]);
  });

  it('takes none, and very many', async () => {
    const { scheduler, clock } = await startBed(okay, { retention: { succeeded: '1d' } });
    expect(await scheduler.scheduleMany([])).toEqual([]);
    const items = Array.from({ length: 5000 }, (_, payload) => ({
      handler: 'noop' as const,
      payload,
    }));
    const results = await scheduler.scheduleMany(items);
    expect(results.map((result) => (result as Task).payload)).toEqual(items.map((i) => i.payload));
    expect(new Set(results.map((result) => (result as Task).id)).size).toBe(5000);
    await clock.advance(0);
    expect((await scheduler.stats()).latenessMs.count).toBe(5000);
  });
});

describe('idempotency', () => {
  it('gives the existing task for the same definition', async () => {
    const { scheduler } = await openBed(okay);
    const options = { idempotencyKey: 'k', delay: '1h' };
    const first = await scheduler.schedule('noop', { b: 1, a: 2 }, options);
    const again = await scheduler.schedule('noop', { a: 2, b: 1 }, options);
    expect(again).toEqual({ ...first, created: false });
    expect((await scheduler.list()).items.length).toBe(1);
    expect((await scheduler.get({ idempotencyKey: 'k' }))?.id).toBe(first.id);
  });

  it('is by tenant', async () => {
    const { scheduler } = await openBed(okay);
    const [a, b] = await scheduler.scheduleMany([
      { handler: 'noop', payload: 1, options: { idempotencyKey: 'k', tenant: 'a' } },
      { handler: 'noop', payload: 2, options: { idempotencyKey: 'k', tenant: 'b' } },
    ]);
    expect([a, b]).toMatchObject([{ created: true }, { created: true }]);
    const found = await scheduler.get({ idempotencyKey: 'k', tenant: 'b' });
    expect(found?.payload).toBe(2);
    expect(await scheduler.get({ idempotencyKey: 'k' })).toBeUndefined();
  });

  it('holds within one bulk call, and among concurrent callers', async () => {
    const { scheduler } = await openBed(okay);
    const item = (payload: number) => ({
      handler: 'noop' as const,
      payload,
      options: { idempotencyKey: 'k' },
    });
    const [one, two, three] = await scheduler.scheduleMany([item(1), item(1), item(2)]);
    expect(one).toMatchObject({ created: true });
    expect(two).toMatchObject({ created: false, id: (one as Task).id });
    expect(three).toBeInstanceOf(IdempotencyConflictError);

    const callers = await Promise.all(
      Array.from({ length: 20 }, () => scheduler.schedule('noop', 7, { idempotencyKey: 'many' })),
    );
    expect(new Set(callers.map((task) => task.id)).size).toBe(1);
    expect(callers.filter((task) => task.created).length).toBe(1);
  });

  it('refuses another payload, handler or schedule under the key', async () => {
    const { scheduler } = await openBed({ noop, other: noop });
    const key = { idempotencyKey: 'k' };
    await scheduler.schedule('noop', 1, { ...key, delay: '1h' });
    const others = [
      scheduler.schedule('noop', 2, { ...key, delay: '1h' }),
      scheduler.schedule('other', 1, { ...key, delay: '1h' }),
      scheduler.schedule('noop', 1, { ...key, delay: '2h' }),
      scheduler.schedule('noop', 1, { ...key, schedule: fixedRate({ every: '1h' }) }),
      scheduler.schedule('noop', 1, key),
    ];
    for (const other of others) {
      const refused = await rejection(other);
      expect(refused).toBeInstanceOf(IdempotencyConflictError);
      expect(refused.message).toContain("'k'");
    }
    // Policies are no part of the definition.
    const same = await scheduler.schedule('noop', 1, { ...key, delay: '1h', priority: 1 });
    expect(same).toMatchObject({ created: false, priority: 5 });
  });

  it('keeps a delay a delay, however late it is declared again', async () => {
    const { scheduler, clock } = await openBed(okay);
    const options = { idempotencyKey: 'k', delay: '1h' };
    const first = await scheduler.schedule('noop', 1, options);
    await clock.advance('10m');
    const again = await scheduler.schedule('noop', 1, options);
    expect(again).toMatchObject({ created: false, id: first.id, nextRunAt: first.nextRunAt });
  });

  it('updates the living task with onConflict: update, for schedules declared at every boot', async () => {
    const { scheduler, clock } = await openBed(okay);
    const declare = (expression: string, payload: unknown) =>
      scheduler.schedule('noop', payload, {
        idempotencyKey: 'digest',
        onConflict: 'update',
        schedule: cron(expression),
        overlap: 'bufferAll',
      });
    const first = await declare('0 6 * * *', 1);
    expect(await declare('0 6 * * *', 1)).toEqual({ ...first, created: false });
    const moved = await declare('0 7 * * *', 2);
    expect(moved).toMatchObject({
      id: first.id,
      created: false,
      payload: 2,
      version: 2,
      generation: 2,
      nextRunAt: new Date(START_MS + 7 * 3_600_000),
    });
    // Only the payload: the schedule goes on as it was.
    await clock.advance('1m');
    expect(await declare('0 7 * * *', 3)).toMatchObject({ version: 3, generation: 2, payload: 3 });
    expect(await declare('0 7 * * *', 3)).toMatchObject({ version: 3, created: false });
    expect((await scheduler.occurrences(first.id)).items.filter((o) => !o.endedAt).length).toBe(1);
  });

  it('frees the key idempotencyTtl after the end, whatever retention says', async () => {
    const { scheduler, clock } = await startBed(okay, { retention: { succeeded: '1m' } });
    const options = { idempotencyKey: 'k', idempotencyTtl: '1h' };
    const first = await scheduler.schedule('noop', 1, options);
    await clock.advance('59m');
    const again = await scheduler.schedule('noop', 1, options);
    expect(again).toMatchObject({ id: first.id, created: false, status: 'succeeded' });
    expect(await rejection(scheduler.schedule('noop', 2, options))).toBeInstanceOf(
      IdempotencyConflictError,
    );
    await clock.advance('1m');
    const next = await scheduler.schedule('noop', 2, options);
    expect(next).toMatchObject({ created: true });
    expect(next.id).not.toBe(first.id);
    expect((await scheduler.get({ idempotencyKey: 'k' }))?.id).toBe(next.id);
  });

  it('frees the key of a deleted task, and keeps it longer than the ttl while the task lives', async () => {
    const { scheduler, clock } = await openBed(okay);
    const options = { idempotencyKey: 'k', idempotencyTtl: 0, delay: '1d' };
    const first = await scheduler.schedule('noop', 1, options);
    await clock.advance('2h');
    expect(await scheduler.schedule('noop', 1, options)).toMatchObject({ created: false });
    await scheduler.cancel(first.id);
    const second = await scheduler.schedule('noop', 1, { ...options, idempotencyTtl: '10d' });
    expect(second.created).toBe(true);
    await scheduler.cancel(second.id);
    await scheduler.delete(second.id);
    expect(await scheduler.schedule('noop', 1, options)).toMatchObject({ created: true });
  });

  it('survives a restart', async () => {
    const first = await openBed(okay);
    const options = { idempotencyKey: 'k', delay: '1h' };
    const task = await first.scheduler.schedule('noop', { m: new Map([[1, 2]]) }, options);
    await close(first);
    const { scheduler } = await openBed(okay, { store: first.store, clock: first.clock });
    expect(await scheduler.schedule('noop', { m: new Map([[1, 2]]) }, options)).toMatchObject({
      id: task.id,
      created: false,
    });
  });
});

describe('admission', () => {
  it('holds a tenant to maxPending tasks that have not ended', async () => {
    const { scheduler, clock } = await openBed(okay, { tenants: { small: { maxPending: 2 } } });
    const item = (tenant: string) => ({
      handler: 'noop' as const,
      payload: null,
      options: { tenant, delay: '1m' },
    });
    const results = await scheduler.scheduleMany([
      item('small'),
      item('small'),
      item('small'),
      item('large'),
    ]);
    expect(results.map((result) => ('code' in result ? result.code : 'ok'))).toEqual([
      'ok',
      'ok',
      'TICKWHEEL_QUOTA_EXCEEDED',
      'ok',
    ]);
    const refused = results[2] as QuotaExceededError;
    expect(refused).toBeInstanceOf(QuotaExceededError);
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    expect(refused.message).toMatch(/'small'.*2/);

    await scheduler.cancel((results[0] as Task).id);
    await scheduler.schedule('noop', null, { tenant: 'small', delay: '1m' });
    expect(await rejection(scheduler.schedule('noop', null, { tenant: 'small' }))).toBeInstanceOf(
      QuotaExceededError,
    );
    await scheduler.start();
    await clock.advance('2m');
    await scheduler.schedule('noop', null, { tenant: 'small' });
  });

  it('gives back the place of a create that came to nothing', async () => {
    const { scheduler } = await openBed(okay, { tenants: { '*': { maxPending: 1 } } });
    const key = { idempotencyKey: 'k', delay: '1h' };
    await scheduler.schedule('noop', 1, { ...key, tenant: 'a' });
    expect((await rejection(scheduler.schedule('noop', 1, { tenant: 'a' }))).code).toBe(
      'TICKWHEEL_QUOTA_EXCEEDED',
    );
    await rejection(scheduler.schedule('noop', () => 1, { tenant: 'b' }));
    await scheduler.schedule('noop', 1, { tenant: 'b' });
  });

  it('does not count what stood beside an item that could not even be read', async () => {
    const { scheduler } = await openBed(okay, { tenants: { '*': { maxPending: 3 } } });
    const unreadable = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('keep out');
        },
      },
    );
    const options = { delay: '1h' };
    const hostile = {
      handler: 'noop' as const,
      payload: 1,
      get options(): typeof options {
        throw new Error('keep out');
      },
    };
    const results = await scheduler.scheduleMany([
      { handler: 'noop', payload: 1, options },
      { handler: 'noop', payload: unreadable, options },
      hostile,
      { handler: 'noop', payload: 2, options },
    ]);
    expect(results.map((result) => ('code' in result ? result.code : 'ok'))).toEqual([
      'ok',
      'TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE',
      'TICKWHEEL_INVALID_ARGUMENT',
      'ok',
    ]);
    expect((results[2] as Error).message).toMatch(/keep out; allowed: /);
    await scheduler.schedule('noop', 3, options);
    const { pending } = (await scheduler.stats()).bounds.tenants.default ?? {};
    expect(pending).toEqual({ current: 3, limit: 3 });
  });

  it('lets the holder of a key be met although the tenant is full', async () => {
    const { scheduler } = await openBed(okay, { tenants: { '*': { maxPending: 1 } } });
    const options = { idempotencyKey: 'k', delay: '1h' };
    const first = await scheduler.schedule('noop', 1, options);
    expect(await scheduler.schedule('noop', 1, options)).toMatchObject({
      id: first.id,
      created: false,
    });
  });

  it('counts open tasks anew after a restart', async () => {
    const tenants = { '*': { maxPending: 1 } };
    const first = await openBed(okay, { tenants });
    await first.scheduler.schedule('noop', 1, { delay: '1h' });
    await close(first);
    const { scheduler } = await openBed(okay, {
      store: first.store,
      clock: first.clock,
      tenants,
    });
    expect(await rejection(scheduler.schedule('noop', 2))).toBeInstanceOf(QuotaExceededError);
  });

  it('refuses creates while too many bytes wait for their flush', async () => {
    const store = memoryStore({ flushDelay: '1s' });
    const { scheduler, clock } = await openBed(okay, {
      store,
      limits: { maxUnflushedBytes: 10_000 },
    });
    const creating = Array.from({ length: 100 }, (_, n) =>
      scheduler.schedule('noop', n, { delay: '1h' }).catch((error) => error),
    );
    await clock.advance('2s');
    const results = await Promise.all(creating);
    const refused = results.filter((result) => result instanceof OverloadedError);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(100);
    expect(refused[0].retryAfterMs).toBeGreaterThan(0);
    expect((await scheduler.list()).items.length).toBe(100 - refused.length);
    const later = scheduler.schedule('noop', 100, { delay: '1h' });
    await clock.advance('2s');
    expect(await later).toMatchObject({ created: true });
  });

  it('fails the items for which the caller’s random throws, and lives on', async () => {
    let throws = false;
    const random = (): number => {
      if (throws) throw new Error('no entropy');
      return 0.5;
    };
    const { scheduler } = await startBed({ noop: () => {} }, { random });
    throws = true;
    const items = Array.from({ length: 50 }, () => ({ handler: 'noop' as const }));
    for (const result of await scheduler.scheduleMany(items)) {
      expect(result).toBeInstanceOf(InvalidArgumentError);
    }
    throws = false;
    const task = await scheduler.schedule('noop');
    expect((await scheduler.wait(task.id)).status).toBe('succeeded');
  });
});
