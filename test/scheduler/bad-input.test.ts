/** Every public call refuses what is wrong with a typed error, before anything is done. */
import { describe, expect, it } from 'vitest';
import {
  cron,
  fixedDelay,
  fixedRate,
  InvalidArgumentError,
  InvalidScheduleError,
  lmdbStore,
  memoryStore,
  nextTimes,
  RetryAfterError,
  Scheduler,
  systemClock,
  TickwheelError,
  TimerWheel,
  VirtualClock,
  verifyStore,
} from '../../src/index.js';
import { openBed, rejection } from './helpers.js';

type Bad = [what: string, value: unknown, says: RegExp];

function expectRefusal(error: unknown, says: RegExp): void {
  expect(error).toBeInstanceOf(TickwheelError);
  expect((error as TickwheelError).code).toMatch(/^TICKWHEEL_INVALID_(ARGUMENT|SCHEDULE)$/);
  expect((error as Error).message).toMatch(says);
  expect((error as Error).message).toMatch(/allowed: |is empty/);
}

const handlers = { noop: (_?: unknown) => {} };

describe('open refuses', () => {
  const bad: Bad[] = [
    ['nothing', null, /options is null/],
    ['an array', [], /options is an array/],
    ['an unknown option', { thraeds: 4 }, /'thraeds'.*threads|'thraeds'.*workers/],
    ['handlers that are none', { handlers: 7 }, /handlers is 7/],
    ['a handler that is no function', { handlers: { a: 7 } }, /'a'/],
    ['a handler without versions', { handlers: { a: {} } }, /'a'/],
    ['a version that is none', { handlers: { a: { zero: () => {} } } }, /'a'.*zero/],
    ['version 0', { handlers: { a: { 0: () => {} } } }, /'a'.*0/],
    ['an empty name', { handlers: { '': () => {} } }, /name/],
    ['a store that is none', { store: {} }, /store is an object/],
    ['a clock that is none', { clock: { now: () => 1 } }, /clock is an object/],
    ['a random that is none', { random: 0.5 }, /random is 0.5/],
    ['no threads', { workers: { threads: 0 } }, /workers.threads is 0/],
    ['a fraction of a slot', { workers: { concurrency: 1.5 } }, /workers.concurrency is 1.5/],
    ['an unknown worker option', { workers: { thread: 1 } }, /'thread'/],
    ['a negative retention', { retention: { succeeded: -1 } }, /retention.succeeded is -1/],
    ['a retention in years', { retention: { failed: '1y' } }, /retention.failed is '1y'/],
    ['a weight of 0', { tenants: { a: { weight: 0 } } }, /tenants\['a'\].weight is 0/],
    ['an unknown limit', { tenants: { a: { maxRate: 1 } } }, /tenants\['a'\].*'maxRate'/],
    ['a rate of 0', { handlerLimits: { a: { maxRatePerSecond: 0 } } }, /maxRatePerSecond is 0/],
    ['NaN', { handlerLimits: { a: { maxConcurrency: Number.NaN } } }, /maxConcurrency is NaN/],
    ['a limit of 0 bytes', { limits: { maxPayloadBytes: 0 } }, /limits.maxPayloadBytes is 0/],
    ['no ready work', { limits: { maxReady: 0 } }, /limits.maxReady is 0/],
    ['a lease of nothing', { leaseDuration: 0 }, /leaseDuration is 0/],
    ['an endless grace', { timeoutGrace: Number.POSITIVE_INFINITY }, /timeoutGrace is Infinity/],
    ['a text as timeout', { shutdownTimeout: 'soon' }, /shutdownTimeout is 'soon'/],
    ['half a codec', { payloadCodec: { id: 'x', encode: () => {} } }, /payloadCodec/],
    ['a logger that is none', { logger: console.log }, /logger/],
    ['an onError that is none', { onError: 'log' }, /onError is 'log'/],
    ['null for a default', { leaseDuration: null }, /leaseDuration is null/],
    ['null for a default within', { limits: { maxReady: null } }, /limits.maxReady is null/],
    ['null workers', { workers: { threads: null } }, /workers.threads is null/],
    ['a null retention', { retention: { failed: null } }, /retention.failed is null/],
  ];

  it.each(bad)('%s', async (_, options, says) => {
    const store = memoryStore();
    const given = typeof options === 'object' && options !== null && !('store' in options);
    const error = await rejection(
      Scheduler.open((given && !Array.isArray(options) ? { store, ...options } : options) as never),
    );
    expectRefusal(error, says);
    // The store was left free.
    const scheduler = await Scheduler.open({ store });
    await scheduler.shutdown();
  });

  it('the options of clocks, stores and wheels', async () => {
    const calls: [() => unknown, RegExp][] = [
      [() => new VirtualClock('yesterday'), /start is 'yesterday'/],
      [() => new VirtualClock(Number.NaN), /start is NaN/],
      [() => new VirtualClock(-1), /start is -1.*1970/],
      [() => new VirtualClock('1969-12-31T23:59:59Z'), /start is '1969/],
      [() => new VirtualClock(0, { settleTimeout: -1 }), /settleTimeout is -1/],
      [() => new VirtualClock(0, { settleTimeout: null as never }), /settleTimeout is null/],
      [() => memoryStore({ commitDelay: -1 }), /commitDelay is -1/],
      [() => memoryStore({ flushDelay: null as never }), /flushDelay is null/],
      [() => memoryStore({ maxRecords: Number.NaN }), /maxRecords is NaN/],
      [() => memoryStore({ flushdelay: 1 } as never), /'flushdelay'/],
      [() => lmdbStore(undefined as never), /path is undefined/],
      [() => lmdbStore({ path: '' }), /path is ''/],
      [() => lmdbStore({ path: 'x', readOnly: 1 as never }), /readOnly is 1/],
      // Misspelled, it would open for writing what was to be read only.
      [() => lmdbStore({ path: 'x', readonly: true } as never), /'readonly'.*readOnly/],
      [() => new RetryAfterError(-5), /delay is -5/],
    ];
    for (const [call, says] of calls) {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expectRefusal(thrown, says);
    }
    expectRefusal(await rejection(TimerWheel.create({ startTick: null as never })), /startTick/);
    expectRefusal(await rejection(TimerWheel.create({ maxTimers: null as never })), /maxTimers/);
    expectRefusal(await rejection(verifyStore({} as never)), /path is undefined/);
  });
});

describe('schedule refuses', () => {
  const bad: Bad[] = [
    ['options that are none', 7, /options is 7/],
    ['null', null, /options is null/],
    ['an unknown option', { dealy: 1 }, /'dealy'.*delay/],
    ['runAt and delay', { runAt: 1, delay: 1 }, /runAt and delay.*at most one/],
    ['delay and schedule', { delay: 1, schedule: fixedRate({ every: 1 }) }, /delay and schedule/],
    ['a negative delay', { delay: -1 }, /delay is -1/],
    ['NaN', { delay: Number.NaN }, /delay is NaN/],
    ['an infinite delay', { delay: Number.POSITIVE_INFINITY }, /delay is Infinity/],
    ['a delay that is no duration', { delay: '5 minutes' }, /delay is '5 minutes'/],
    ['a delay in a Date', { delay: new Date(5) }, /delay is 1970/],
    ['a delay beyond all dates', { delay: Number.MAX_SAFE_INTEGER }, /delay is 9007199254740991/],
    ['a runAt that is no time', { runAt: new Date('x') }, /runAt is an invalid Date/],
    ['a runAt without zone', { runAt: '2026-01-01T00:00:00' }, /runAt is '2026/],
    ['a runAt beyond all dates', { runAt: 8.65e15 }, /runAt is 8650000000000000/],
    ['a schedule that is none', { schedule: '* * * * *' }, /schedule is '\* \* \* \* \*'/],
    ['a schedule made by hand, badly', { schedule: { kind: 'fixedRate' } }, /every|schedule/],
    ['a schedule that has ended', { schedule: fixedRate({ every: 1, endAt: 0 }) }, /endAt/],
    ['an empty tenant', { tenant: '' }, /tenant is ''/],
    ['a tenant too long', { tenant: 'x'.repeat(257) }, /tenant has 257/],
    ['a tenant that is no text', { tenant: 7 }, /tenant is 7/],
    ['half a surrogate pair in a tenant', { tenant: 'a\ud800' }, /tenant has half of a surrogate/],
    ['half of one in a key', { idempotencyKey: '\udc00k' }, /idempotencyKey has half of a surro/],
    ['priority 10', { priority: 10 }, /priority is 10/],
    ['priority -1', { priority: -1 }, /priority is -1/],
    ['priority 1.5', { priority: 1.5 }, /priority is 1.5/],
    ['priority urgent', { priority: 'urgent' }, /priority is 'urgent'.*'high'/],
    ['priority toString', { priority: 'toString' }, /priority is 'toString'/],
    ['handlerVersion 0', { handlerVersion: 0 }, /handlerVersion is 0/],
    ['an empty key', { idempotencyKey: '' }, /idempotencyKey is ''/],
    ['a key too long', { idempotencyKey: 'x'.repeat(1025) }, /idempotencyKey has 1025/],
    ['a negative ttl of the key', { idempotencyTtl: -1 }, /idempotencyTtl is -1/],
    ['onConflict: replace', { onConflict: 'replace' }, /onConflict is 'replace'.*'update'/],
    ['a retry that is none', { retry: 5 }, /retry is 5/],
    ['an unknown retry option', { retry: { attempts: 5 } }, /'attempts'.*maxAttempts/],
    ['no attempts', { retry: { maxAttempts: 0 } }, /retry.maxAttempts is 0/],
    ['endless attempts', { retry: { maxAttempts: Infinity } }, /retry.maxAttempts is Infinity/],
    ['a shrinking backoff', { retry: { multiplier: 0.5 } }, /retry.multiplier is 0.5/],
    ['a negative backoff', { retry: { initialBackoff: -1 } }, /retry.initialBackoff is -1/],
    ['a text as backoff', { retry: { maxBackoff: 'long' } }, /retry.maxBackoff is 'long'/],
    ['a jitter of 2', { retry: { jitter: 2 } }, /retry.jitter is 2/],
    ['a timeout of 0', { timeout: 0 }, /timeout is 0/],
    ['a heartbeatTimeout of 0', { heartbeatTimeout: 0 }, /heartbeatTimeout is 0/],
    ['a negative ttl', { ttl: -1 }, /ttl is -1/],
    ['no crashes', { maxCrashes: 0 }, /maxCrashes is 0/],
    ['an unknown overlap', { overlap: 'drop', schedule: cron('* * * * *') }, /overlap is 'drop'/],
    ['overlap on a one-off', { overlap: 'skip' }, /overlap is 'skip'/],
    [
      'overlap on a fixedDelay',
      { overlap: 'skip', schedule: fixedDelay({ delay: 1 }) },
      /overlap is 'skip'/,
    ],
    ['an unknown catchup', { catchup: 'some' }, /catchup is 'some'/],
    ['a negative window', { catchupWindow: -1 }, /catchupWindow is -1/],
    ['an unknown onExhausted', { onExhausted: 'pause' }, /onExhausted is 'pause'/],
    ['a transaction that the store cannot join', { tx: { query() {} } }, /tx/],
  ];

  it.each(bad)('%s', async (_, options, says) => {
    const { scheduler, events, clock } = await openBed(handlers);
    const error = await rejection(scheduler.schedule('noop', 1, options as never));
    expectRefusal(error, says);
    const [inBulk, fine] = await scheduler.scheduleMany([
      { handler: 'noop', payload: 1, options: options as never },
      { handler: 'noop', payload: 2, options: { delay: '1h' } },
    ]);
    expectRefusal(inBulk, says);
    expect(fine).toMatchObject({ created: true });
    await clock.advance(0);
    expect((await scheduler.list()).items.map((task) => task.payload)).toEqual([2]);
    expect(events.length).toBe(1);
  });

  it.each([[''], [7], [undefined], [null], ['x'.repeat(300)], ['\ud800']])(
    'the handler name %s',
    async (name) => {
      const { scheduler } = await openBed(handlers);
      expectRefusal(
        await rejection((scheduler as unknown as Scheduler).schedule(name as string)),
        /handler (is|has)/,
      );
    },
  );

  it.each([[7], [null], ['noop'], [[]]])('as an item %s', async (item) => {
    const { scheduler } = await openBed(handlers);
    const [result] = await scheduler.scheduleMany([item as never]);
    expect(result).toBeInstanceOf(InvalidArgumentError);
  });

  it.each([[undefined], [null], [{}], ['noop'], [new Set()]])('as items %s', async (items) => {
    const { scheduler } = await openBed(handlers);
    expectRefusal(await rejection(scheduler.scheduleMany(items as never)), /items is/);
  });
});

describe('update refuses', () => {
  const bad: Bad[] = [
    ['a patch that is none', 7, /patch is 7/],
    ['null', null, /patch is null/],
    ['what cannot be changed', { tenant: 'b' }, /'tenant'/],
    ['delay and runAt', { delay: 1, runAt: 1 }, /runAt and delay/],
    ['a negative delay', { delay: -1 }, /delay is -1/],
    ['a bad schedule', { schedule: {} }, /schedule|kind/],
    ['a bad priority', { priority: 99 }, /priority is 99/],
    ['a bad retry', { retry: { maxAttempts: 0 } }, /retry.maxAttempts is 0/],
    ['overlap on a one-off', { overlap: 'skip' }, /overlap is 'skip'/],
    ['a bad version of the handler', { handlerVersion: 'two' }, /handlerVersion is 'two'/],
  ];

  it.each(bad)('%s', async (_, patch, says) => {
    const { scheduler } = await openBed(handlers);
    const task = await scheduler.schedule('noop', 1, { delay: '1h' });
    expectRefusal(await rejection(scheduler.update(task.id, patch as never)), says);
    const { created: _created, ...before } = task;
    expect(await scheduler.get(task.id)).toEqual(before);
  });

  it('a payload that cannot be stored, and a version that is none', async () => {
    const { scheduler } = await openBed(handlers);
    const task = await scheduler.schedule('noop', 1, { delay: '1h' });
    const refused = await rejection(scheduler.update(task.id, { payload: () => 1 }));
    expect(refused.code).toBe('TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE');
    for (const options of [{ version: 0 }, { version: 'x' }, { versoin: 1 }, 7]) {
      const error = await rejection(scheduler.update(task.id, {}, options as never));
      expectRefusal(error, /version|versoin|options/);
    }
    expect(await scheduler.get(task.id)).toMatchObject({ version: 1, payload: 1 });
  });
});

describe('all other calls refuse', () => {
  const refs: unknown[] = [undefined, null, 7, '', {}, { idempotencyKey: '' }, [], 'x'.repeat(200)];
  const ids: unknown[] = [undefined, null, 7, '', {}, 'x'.repeat(200)];
  type Call = (scheduler: Scheduler<typeof handlers>, bad: never) => Promise<unknown>;

  const byRef: Record<string, Call> = {
    get: (s, ref) => s.get(ref),
    wait: (s, ref) => s.wait(ref),
    update: (s, ref) => s.update(ref, {}),
    cancel: (s, ref) => s.cancel(ref),
    pause: (s, ref) => s.pause(ref),
    resume: (s, ref) => s.resume(ref),
    trigger: (s, ref) => s.trigger(ref),
    occurrences: (s, ref) => s.occurrences(ref),
    delete: (s, ref) => s.delete(ref),
  };
  it.each(Object.keys(byRef))('bad references: %s', async (name) => {
    const { scheduler } = await openBed(handlers);
    for (const ref of refs) {
      const error = await rejection((byRef[name] as Call)(scheduler, ref as never));
      expect([name, ref, error.code]).toEqual([name, ref, 'TICKWHEEL_INVALID_ARGUMENT']);
    }
  });

  const byId: Record<string, Call> = {
    occurrence: (s, id) => s.occurrence(id),
    cancelOccurrence: (s, id) => s.cancelOccurrence(id),
    attempts: (s, id) => s.attempts(id),
    redrive: (s, id) => s.redrive(id),
  };
  it.each(Object.keys(byId))('bad occurrence ids: %s', async (name) => {
    const { scheduler } = await openBed(handlers);
    for (const id of ids) {
      const error = await rejection((byId[name] as Call)(scheduler, id as never));
      expect([name, id, error.code]).toEqual([name, id, 'TICKWHEEL_INVALID_ARGUMENT']);
    }
  });

  const others: [string, Call, RegExp][] = [
    ['wait: a bad timeout', (s) => s.wait('x', { timeout: -1 }), /timeout is -1/],
    ['wait: a bad signal', (s) => s.wait('x', { signal: {} as never }), /signal is an object/],
    ['wait: an unknown option', (s) => s.wait('x', { timeuot: 1 } as never), /'timeuot'/],
    ['list: limit 0', (s) => s.list({ limit: 0 }), /limit is 0/],
    ['list: limit null', (s) => s.list({ limit: null as never }), /limit is null/],
    ['list: limit 1001', (s) => s.list({ limit: 1001 }), /limit is 1001/],
    ['list: a bad status', (s) => s.list({ status: 'done' as never }), /status is 'done'/],
    ['list: a bad tenant', (s) => s.list({ tenant: 5 as never }), /tenant is 5/],
    ['list: a bad handler', (s) => s.list({ handler: '' }), /handler is ''/],
    ['list: a bad cursor', (s) => s.list({ cursor: 5 as never }), /cursor is 5/],
    ['list: an unknown option', (s) => s.list({ state: 'x' } as never), /'state'/],
    ['list: options that are none', (s) => s.list(5 as never), /list options is 5/],
    ['deadLetters: limit NaN', (s) => s.deadLetters({ limit: Number.NaN }), /limit is NaN/],
    ['deadLetters: status', (s) => s.deadLetters({ status: 'dead' } as never), /'status'/],
    ['occurrences: limit -1', (s) => s.occurrences('x', { limit: -1 }), /limit is -1/],
    ['cancel: a bad reason', (s) => s.cancel('x', { reason: 7 as never }), /reason is 7/],
    ['cancel: a reason too long', (s) => s.cancel('x', { reason: 'x'.repeat(2000) }), /reason has/],
    ['pause: two scopes', (s) => s.pause({ tenant: 'a', handler: 'b' } as never), /target/],
    ['pause: an empty tenant', (s) => s.pause({ tenant: '' }), /tenant is ''/],
    ['resume: a bad handler', (s) => s.resume({ handler: 5 as never }), /handler is 5/],
    ['setTenantLimits: no tenant', (s) => s.setTenantLimits('', {}), /tenant is ''/],
    [
      'setTenantLimits: none',
      (s) => s.setTenantLimits('a', undefined as never),
      /limits is undefined/,
    ],
    ['setTenantLimits: bad', (s) => s.setTenantLimits('a', { maxPending: -1 }), /maxPending is -1/],
    ['shutdown: a bad drain', (s) => s.shutdown({ drain: 'no' as never }), /drain is 'no'/],
    ['shutdown: a bad timeout', (s) => s.shutdown({ timeout: 'x' }), /timeout is 'x'/],
    ['shutdown: an unknown option', (s) => s.shutdown({ force: true } as never), /'force'/],
  ];
  it.each(others)('%s', async (_, call, says) => {
    const { scheduler } = await openBed(handlers);
    const before = await scheduler.stats();
    expectRefusal(await rejection((async () => call(scheduler, undefined as never))()), says);
    expect(scheduler.state).toBe('open');
    expect(await scheduler.stats()).toEqual(before);
  });

  it('on: bad types, listeners, signals', async () => {
    const { scheduler } = await openBed(handlers);
    const calls: [() => unknown, RegExp][] = [
      [() => scheduler.on('done' as never, () => {}), /type is 'done'/],
      [() => scheduler.on('*', undefined as never), /listener is undefined/],
      [() => scheduler.on('*', () => {}, { signal: 5 as never }), /signal is 5/],
      [() => scheduler.on('*', () => {}, { once: true } as never), /'once'/],
    ];
    for (const [call, says] of calls) {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expectRefusal(thrown, says);
    }
  });

  it('advance and jumpWall of a virtual clock', async () => {
    const clock = new VirtualClock();
    const before = clock.now();
    expectRefusal(await rejection(clock.advance(-1)), /-1/);
    expectRefusal(await rejection(clock.advance('soon')), /'soon'/);
    expectRefusal(await rejection(clock.advanceTo('soon')), /'soon'/);
    expectRefusal(await rejection(clock.jumpWall('x')), /'x'/);
    expectRefusal(await rejection(clock.jumpWall(Number.NaN)), /NaN/);
    expectRefusal(await rejection(clock.sleep(-1)), /-1/);
    expectRefusal(await rejection(systemClock().sleep(Number.NaN)), /NaN/);
    const wrong = { signal: {} as AbortSignal };
    expectRefusal(await rejection(clock.sleep(1, wrong)), /signal is an object/);
    expectRefusal(await rejection(systemClock().sleep(1, wrong)), /signal is an object/);
    expect(clock.sleepers).toBe(0);
    expect(clock.now()).toBe(before);
  });

  it('schedules that are none, at once', () => {
    const bad: [() => unknown, RegExp][] = [
      [() => cron('* * * *'), /\* \* \* \*/],
      [() => cron('0 0 31 2 *'), /31 2/],
      [() => cron('* * * * *', { timezone: 'Mars/Olympus' }), /Mars/],
      [() => fixedRate({ every: 0 }), /every is 0/],
      [() => fixedRate({} as never), /every is undefined/],
      [() => fixedRate({ every: 1, startAt: 0, startDelay: 1 }), /startDelay/],
      [() => fixedDelay({ delay: -1 }), /delay is -1/],
      [() => fixedDelay({ delay: 1, after: 'always' as never }), /after is 'always'/],
      [() => fixedDelay({ delay: 1, after: null as never }), /after is null/],
      [() => cron('* * * * *', { timezone: null as never }), /timezone is null/],
      [() => fixedRate({ every: 1, limit: 0 }), /limit is 0/],
      [() => fixedRate({ every: 1, startAt: 10, endAt: 5 }), /endAt is 5/],
    ];
    for (const [call, says] of bad) {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(InvalidScheduleError);
      expect((thrown as Error).message).toMatch(says);
    }
    expect(() => nextTimes(fixedRate({ every: 1 }), { count: 0 })).toThrow(InvalidArgumentError);
    for (const options of [{ count: null }, { from: null }, { form: 5 }, 5]) {
      expect(() => nextTimes(cron('* * * * *'), options as never)).toThrow(InvalidArgumentError);
    }
    expect(() => nextTimes({} as never, {})).toThrow(InvalidScheduleError);
    expect(() => nextTimes(cron('* * * * *'), { from: 'x' })).toThrow(InvalidArgumentError);
  });
});
