import { describe, expect, it } from 'vitest';
import {
  AbortedError,
  type Context,
  fixedRate,
  RetryAfterError,
  UnrecoverableError,
} from '../../src/index.js';
import { close, gate, openBed, START_MS, since, startBed } from './helpers.js';

describe('a handler’s context', () => {
  it('tells what runs', async () => {
    const seen: unknown[] = [];
    const { scheduler, clock } = await startBed({
      look: { 3: (_: unknown, ctx: Context) => void seen.push({ ...facts(ctx) }) },
    });
    const task = await scheduler.schedule('look', null, { delay: '1s', tenant: 'acme' });
    await clock.advance('1s');
    expect(seen).toEqual([
      {
        taskId: task.id,
        occurrenceId: task.lastOccurrenceId,
        tenant: 'acme',
        handler: 'look',
        handlerVersion: 3,
        attempt: 1,
        retriesLeft: 2,
        nominalAt: new Date(START_MS + 1000),
        dueAt: new Date(START_MS + 1000),
        progress: undefined,
      },
    ]);
  });

  it('counts attempts up and retries down, with the same occurrence and growing tokens', async () => {
    const seen: [number, number, string, number][] = [];
    const { scheduler, clock } = await startBed({
      fail: (_: unknown, ctx: Context) => {
        const { attempt, retriesLeft, occurrenceId, fencingToken } = ctx;
        seen.push([attempt, retriesLeft, occurrenceId, fencingToken]);
        throw new Error('again');
      },
    });
    const task = await scheduler.schedule('fail');
    await clock.advance('1h');
    expect(seen.map(([attempt, left]) => [attempt, left])).toEqual([
      [1, 2],
      [2, 1],
      [3, 0],
    ]);
    expect(new Set(seen.map(([, , id]) => id))).toEqual(new Set([task.lastOccurrenceId]));
    const tokens = seen.map(([, , , token]) => token);
    expect(tokens[1]).toBeGreaterThan(tokens[0] as number);
    expect(tokens[2]).toBeGreaterThan(tokens[1] as number);
  });

  it('hands progress on to the next attempt, as a value of its own', async () => {
    const seen: unknown[] = [];
    const { scheduler, clock } = await startBed({
      pages: async (_: unknown, ctx: Context) => {
        const done = (ctx.progress as { pages: number[] } | undefined)?.pages ?? [];
        seen.push([...done]);
        done.push(ctx.attempt);
        ctx.heartbeat({ pages: done });
        done.push(99);
        await ctx.sleep(10);
        if (ctx.attempt < 3) throw new Error('again');
      },
    });
    const task = await scheduler.schedule('pages');
    await clock.advance('1m');
    expect(seen).toEqual([[], [1], [1, 2]]);
    expect((await scheduler.wait(task.id)).progress).toEqual({ pages: [1, 2, 3] });
  });

  it('keeps the progress through a heartbeat without one', async () => {
    const { scheduler, clock, events } = await startBed({
      beat: async (_: unknown, ctx: Context) => {
        ctx.heartbeat(1);
        await ctx.sleep(10);
        ctx.heartbeat();
        await ctx.sleep(10);
      },
    });
    const task = await scheduler.schedule('beat');
    await clock.advance('1s');
    expect((await scheduler.wait(task.id)).progress).toBe(1);
    const told = events.filter((event) => event.type === 'progress');
    expect(told[0]).toMatchObject({ progress: 1, attempt: 1 });
  });

  it('sleeps on the scheduler’s clock', async () => {
    const woke: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      nap: async (_: unknown, ctx: Context) => {
        await ctx.sleep('12h');
        woke.push(since(ctx.clock.now()));
        await ctx.clock.sleep(5);
        woke.push(since(ctx.clock.now()));
      },
    });
    await scheduler.schedule('nap');
    await clock.advance('13h');
    expect(woke).toEqual([43_200_000, 43_200_005]);
  });

  it('schedules for the same tenant, and tells of a key that is held', async () => {
    const made: { id: string; created: boolean }[] = [];
    const { scheduler, clock } = await startBed({
      parent: async (_: unknown, ctx: Context) => {
        made.push(await ctx.schedule('child', { of: ctx.occurrenceId }, { idempotencyKey: 'c' }));
        made.push(await ctx.schedule('child', { of: ctx.occurrenceId }, { idempotencyKey: 'c' }));
        made.push(await ctx.schedule('child', 2, { tenant: 'other', delay: '1h' }));
        await ctx.schedule('nobody').catch((error) => {
          made.push({ id: error.code, created: false });
        });
      },
      child: (payload: unknown) => payload,
    });
    const parent = await scheduler.schedule('parent', null, { tenant: 'acme' });
    await clock.advance(0);
    expect(made.map((task) => task.created)).toEqual([true, false, true, false]);
    expect(made[3]?.id).toBe('TICKWHEEL_UNKNOWN_HANDLER');
    const child = await scheduler.get(made[0]?.id as string);
    expect(child).toMatchObject({
      tenant: 'acme',
      payload: { of: parent.lastOccurrenceId },
      status: 'succeeded',
    });
    expect((await scheduler.get(made[2]?.id as string))?.tenant).toBe('other');
  });

  it('has methods that can be taken from it, and a log', async () => {
    const lines: unknown[] = [];
    const log = (fields: object | string) => lines.push(fields);
    const logger = {
      debug: log,
      info: log,
      warn: log,
      error: log,
      child: (bindings: object) => ({ ...logger, info: (m: unknown) => lines.push([bindings, m]) }),
    };
    const { scheduler, clock } = await startBed(
      {
        loose: async (_: unknown, { sleep, heartbeat, log, attempt }: Context) => {
          heartbeat(attempt);
          await sleep(1);
          log.info('here');
        },
      },
      { logger },
    );
    const task = await scheduler.schedule('loose');
    await clock.advance('1s');
    expect((await scheduler.wait(task.id)).status).toBe('succeeded');
    expect(lines).toEqual([
      [{ taskId: task.id, occurrenceId: task.lastOccurrenceId, attempt: 1 }, 'here'],
    ]);
  });

  it('tells a logger without children, such as console, what the line is of', async () => {
    const lines: unknown[] = [];
    const log = (...line: unknown[]) => lines.push(line);
    const handlers = {
      plain: (_: unknown, ctx: Context) => {
        ctx.log.info('here');
        ctx.log.warn({ rows: 3 }, 'there');
      },
    };
    const logger = { debug: log, info: log, warn: log, error: log };
    const { scheduler, clock } = await startBed(handlers, { logger });
    const task = await scheduler.schedule('plain');
    await clock.advance(0);
    const ids = { taskId: task.id, occurrenceId: task.lastOccurrenceId, attempt: 1 };
    expect(lines).toEqual([
      [ids, 'here'],
      [{ ...ids, rows: 3 }, 'there'],
    ]);
  });
});

function facts(ctx: Context) {
  const { taskId, occurrenceId, tenant, handler, handlerVersion, attempt, retriesLeft } = ctx;
  const { nominalAt, dueAt, progress } = ctx;
  return {
    taskId,
    occurrenceId,
    tenant,
    handler,
    handlerVersion,
    attempt,
    retriesLeft,
    nominalAt,
    dueAt,
    progress,
  };
}

describe('retries', () => {
  it('back off exponentially up to the longest wait', async () => {
    const at: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      fail: (_: unknown, ctx: Context) => {
        at.push(since(ctx.clock.now()));
        throw new Error('again');
      },
    });
    const retry = { maxAttempts: 6, initialBackoff: '1s', multiplier: 3, maxBackoff: '10s' };
    await scheduler.schedule('fail', null, { retry });
    await clock.advance('1h');
    expect(at).toEqual([0, 1000, 4000, 13_000, 23_000, 33_000]);
  });

  it('take off up to the jitter at random', async () => {
    const at: number[] = [];
    const { scheduler, clock } = await startBed(
      {
        fail: (_: unknown, ctx: Context) => {
          at.push(since(ctx.clock.now()) as number);
          throw new Error('again');
        },
      },
      { random: () => 0.5 },
    );
    await scheduler.schedule('fail', null, { retry: { maxAttempts: 2, jitter: 0.5 } });
    await clock.advance('1h');
    expect(at).toEqual([0, 750]);
  });

  it('end at once on UnrecoverableError, and wait as RetryAfterError says', async () => {
    const at: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      never: () => {
        throw new UnrecoverableError('no use');
      },
      after: (_: unknown, ctx: Context) => {
        at.push(since(ctx.clock.now()));
        if (ctx.attempt === 1) throw new RetryAfterError('42s');
      },
      plain: () => {
        // From another realm, or another copy of the library.
        throw Object.assign(new Error('no use'), { code: 'TICKWHEEL_UNRECOVERABLE' });
      },
    });
    for (const name of ['never', 'plain'] as const) {
      const dead = await scheduler.wait((await scheduler.schedule(name)).id);
      expect(dead).toMatchObject({
        status: 'dead',
        attempt: 1,
        failures: 1,
        error: { code: 'TICKWHEEL_UNRECOVERABLE', message: 'no use' },
      });
    }
    await scheduler.schedule('after');
    await clock.advance('1m');
    expect(at).toEqual([0, 42_000]);
  });

  it('do not consult the schedule; a recurring task goes on, or stops as failed', async () => {
    for (const onExhausted of ['continue', 'stop'] as const) {
      const ran: number[] = [];
      const { scheduler, clock } = await startBed({
        fail: (_: unknown, ctx: Context) => {
          ran.push(since(ctx.clock.now()) as number);
          throw new Error('always');
        },
      });
      const task = await scheduler.schedule('fail', null, {
        schedule: fixedRate({ every: '1m' }),
        retry: { maxAttempts: 2 },
        onExhausted,
      });
      await clock.advance('2m');
      const expected = [0, 1000, 60_000, 61_000, 120_000];
      expect(ran).toEqual(onExhausted === 'stop' ? [0, 1000] : expected);
      const after = await scheduler.get(task.id);
      expect([onExhausted, after?.status, after?.endReason]).toEqual(
        onExhausted === 'stop'
          ? ['stop', 'failed', 'exhausted']
          : ['continue', 'retrying', undefined],
      );
    }
  });

  it('store errors with their causes, and nothing that cannot be stored', async () => {
    const { scheduler } = await startBed({
      fail: () => {
        throw new Error('outer', { cause: Object.assign(new Error('inner'), { code: 'EPIPE' }) });
      },
      huge: () => {
        throw new Error('x'.repeat(1_000_000));
      },
    });
    const once = { retry: { maxAttempts: 1 } };
    const dead = await scheduler.wait((await scheduler.schedule('fail', undefined, once)).id);
    expect(dead.error).toMatchObject({
      name: 'Error',
      message: 'outer',
      cause: { name: 'Error', message: 'inner', code: 'EPIPE' },
    });
    const large = await scheduler.wait((await scheduler.schedule('huge', undefined, once)).id);
    expect(large.error?.message).toMatch(/^x{100,}/);
  });

  it('fail an attempt whose result cannot be stored', async () => {
    const { scheduler } = await startBed(
      { large: () => 'x'.repeat(2000) },
      { limits: { maxPayloadBytes: 1000 } },
    );
    const task = await scheduler.schedule('large', undefined, { retry: { maxAttempts: 1 } });
    expect(await scheduler.wait(task.id)).toMatchObject({
      status: 'dead',
      error: { code: 'TICKWHEEL_PAYLOAD_TOO_LARGE' },
    });
  });
});

describe('timeouts', () => {
  it('abort the signal; a handler that heeds it is retried at once', async () => {
    const reasons: unknown[] = [];
    const { scheduler, clock } = await startBed({
      nap: async (_: unknown, ctx: Context) => {
        if (ctx.attempt === 1) {
          await ctx.sleep('1h').catch((reason) => {
            reasons.push(reason);
            throw reason;
          });
        }
        return 'second';
      },
    });
    const task = await scheduler.schedule('nap', null, { timeout: '2s' });
    await clock.advance('2s');
    expect(reasons).toEqual([expect.any(AbortedError)]);
    expect(reasons[0]).toMatchObject({ why: 'timedOut' });
    expect((await scheduler.get(task.id))?.status).toBe('retrying');
    await clock.advance('1s');
    const ended = await scheduler.wait(task.id);
    expect(ended).toMatchObject({ status: 'succeeded', result: 'second', failures: 1 });
    const attempts = await scheduler.attempts(ended.id);
    expect(attempts.map((a) => [a.outcome, since(a.endedAt)])).toEqual([
      ['timedOut', 2000],
      ['succeeded', 3000],
    ]);
    expect(attempts[0]?.error?.code).toBe('TICKWHEEL_ABORTED');
  });

  it('give up, after the grace, a handler that ignores it; its late end is refused', async () => {
    const late = gate<string>();
    const { scheduler, clock } = await startBed({
      stubborn: (_: unknown, ctx: Context) => (ctx.attempt === 1 ? late.passed : 'second'),
    });
    const task = await scheduler.schedule('stubborn', null, { timeout: '1s' });
    await clock.advance('5999ms');
    expect((await scheduler.get(task.id))?.status).toBe('running');
    await clock.advance('1ms');
    expect((await scheduler.get(task.id))?.status).toBe('retrying');
    expect((await scheduler.stats()).zombies).toBe(1);
    await clock.advance('1s');
    late.open('first');
    await clock.advance('1s');
    const ended = await scheduler.wait(task.id);
    expect(ended).toMatchObject({ status: 'succeeded', result: 'second', attempt: 2 });
    expect((await scheduler.stats()).zombies).toBe(0);
  });

  it('refuse a success that comes after the timeout, within the grace', async () => {
    const { scheduler, clock } = await startBed({
      slow: async (_: unknown, ctx: Context) => {
        await ctx.sleep('1h').catch(() => {});
        return 'too late';
      },
    });
    const task = await scheduler.schedule('slow', null, {
      timeout: '1s',
      retry: { maxAttempts: 1 },
    });
    await clock.advance('1s');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'dead', result: undefined });
  });

  it('let nothing start while there are as many zombies as slots', async () => {
    const late = gate();
    const { scheduler, clock } = await startBed(
      { stubborn: () => late.passed, fine: () => 'fine' },
      { workers: { concurrency: 2 } },
    );
    const options = { timeout: '1s', retry: { maxAttempts: 1 } };
    for (let i = 0; i < 2; i++) await scheduler.schedule('stubborn', undefined, options);
    await clock.advance('10s');
    expect((await scheduler.stats()).zombies).toBe(2);
    const task = await scheduler.schedule('fine');
    await clock.advance('1m');
    expect((await scheduler.occurrence(task.lastOccurrenceId as string))?.status).toBe('ready');
    late.open();
    await clock.advance(0);
    expect((await scheduler.wait(task.id)).result).toBe('fine');
    expect((await scheduler.stats()).zombies).toBe(0);
  });

  it('count from handler entry, not from the due time', async () => {
    const { scheduler, clock } = await startBed(
      { nap: (ms: number, ctx: Context) => ctx.sleep(ms).then(() => ms) },
      { workers: { concurrency: 1 } },
    );
    await scheduler.schedule('nap', 10_000);
    await clock.advance(0);
    const task = await scheduler.schedule('nap', 900, { timeout: '1s' });
    await clock.advance('1m');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'succeeded', attempt: 1 });
  });
});

describe('heartbeatTimeout', () => {
  it('fails a run that has been silent for that long, as timed out', async () => {
    const { scheduler, clock } = await startBed({
      beat: async (_: unknown, ctx: Context) => {
        for (let i = 0; i < 5; i++) {
          await ctx.sleep('9s');
          ctx.heartbeat(i);
        }
        await ctx.sleep('1h');
      },
    });
    const task = await scheduler.schedule('beat', null, {
      heartbeatTimeout: '10s',
      retry: { maxAttempts: 1 },
    });
    await clock.advance('54999ms');
    expect((await scheduler.get(task.id))?.status).toBe('running');
    await clock.advance('1ms');
    const ended = await scheduler.wait(task.id);
    expect(ended).toMatchObject({ status: 'dead', failures: 1, crashes: 0, progress: 4 });
    const [attempt] = await scheduler.attempts(ended.id);
    expect(attempt?.outcome).toBe('timedOut');
  });
});

describe('ttl', () => {
  it('misses what could not start in time, and never runs it', async () => {
    const ran: number[] = [];
    const { scheduler, clock, events } = await startBed(
      {
        nap: (ms: number, ctx: Context) => {
          ran.push(ms);
          return ctx.sleep(ms);
        },
      },
      { workers: { concurrency: 1 } },
    );
    await scheduler.schedule('nap', 2000);
    await clock.advance(0);
    const missed = await scheduler.schedule('nap', 1, { ttl: '1999ms' });
    const met = await scheduler.schedule('nap', 2, { ttl: '2s' });
    await clock.advance('1m');
    expect(ran).toEqual([2000, 2]);
    expect(await scheduler.wait(missed.id)).toMatchObject({
      status: 'missed',
      reason: 'ttl',
      attempt: 0,
    });
    expect((await scheduler.wait(met.id)).status).toBe('succeeded');
    expect(events.find((event) => event.type === 'missed')).toMatchObject({
      reason: 'ttl',
      count: 1,
    });
  });

  it('lets the next in line go when one is missed just before its start', async () => {
    const ran: number[] = [];
    const { scheduler, clock } = await startBed(
      {
        tick: (_: unknown, ctx: Context) => void ran.push(since(ctx.nominalAt) as number),
        nap: (ms: number, ctx: Context) => ctx.sleep(ms),
      },
      { workers: { concurrency: 1 } },
    );
    await scheduler.schedule('nap', 3500, { priority: 0 });
    const schedule = fixedRate({ every: '1s', startDelay: '1s', limit: 3 });
    const task = await scheduler.schedule('tick', null, {
      schedule,
      overlap: 'bufferAll',
      ttl: '1s',
    });
    await clock.advance('1h');
    // Those of 1 s and 2 s were too old at 3.5 s, when the slot came free; that of 3 s was not.
    expect(ran).toEqual([3000]);
    expect((await scheduler.get(task.id))?.status).toBe('succeeded');
  });

  it('does not hold for retries', async () => {
    const { scheduler, clock } = await startBed({
      flaky: (_: unknown, ctx: Context) => {
        if (ctx.attempt === 1) throw new Error('again');
      },
    });
    const task = await scheduler.schedule('flaky', null, { ttl: 10 });
    await clock.advance('1m');
    expect((await scheduler.wait(task.id)).status).toBe('succeeded');
  });
});

describe('a wall clock that goes back', () => {
  it.each(['100ms', '1h'])(
    'by %s: what was due and has not started waits for its time again',
    async (by) => {
      const ran: [string, number][] = [];
      const { scheduler, clock } = await startBed(
        {
          nap: (ms: number, ctx: Context) => ctx.sleep(ms),
          note: (name: string, ctx: Context) =>
            void ran.push([name, since(ctx.clock.now()) as number]),
        },
        { workers: { concurrency: 1 }, limits: { maxReady: 2 } },
      );
      await scheduler.schedule('nap', 1010);
      // More than the lane holds, so that some are ready, and some overdue.
      const names = Array.from({ length: 6 }, (_, n) => `n${n}`);
      for (const name of names) await scheduler.schedule('note', name, { delay: '1s' });
      await clock.advance('1005ms');
      await clock.jumpWall(`-${by}`);
      const back = by === '1h' ? 3_600_000 : 100;
      await clock.advance('50ms');
      expect(ran).toEqual([]);
      await clock.advance(back - 60);
      expect(ran).toEqual([]);
      await clock.advance('60ms');
      expect(ran).toEqual(names.map((name) => [name, 1000]));
    },
  );
});

describe('what was ready when the wall clock went back', () => {
  it.each(['pause and resume', 'update'])('is not lost by %s', async (how) => {
    const ran: unknown[] = [];
    const { scheduler, clock } = await startBed(
      {
        nap: (_: unknown, ctx: Context) => ctx.sleep('10s'),
        note: (name: string) => ran.push(name),
      },
      { workers: { concurrency: 1 } },
    );
    await scheduler.schedule('nap', null);
    const task = await scheduler.schedule('note', 'ready');
    await clock.advance(5);
    await clock.jumpWall('-1m');
    await clock.advance('20s');
    if (how === 'update') await scheduler.update(task.id, { priority: 0 });
    else {
      await scheduler.pause(task.id);
      await scheduler.resume(task.id);
    }
    await clock.advance('39s');
    expect(ran).toEqual([]);
    await clock.advance('2s');
    expect(ran).toEqual(['ready']);
    expect((await scheduler.stats()).repairs).toMatchObject({ ready: 0, overdue: 0 });
  });
});

describe('an end that is here already', () => {
  it('came before its deadline is judged', async () => {
    const { scheduler, clock } = await startBed({
      work: async (_: unknown, ctx: Context) => {
        await ctx.clock.sleep('1s');
        return 'in time';
      },
    });
    const task = await scheduler.schedule('work', null, { timeout: '1s' });
    await clock.advance('2s');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'succeeded', result: 'in time' });
  });
});

describe('overlap', () => {
  const every = { schedule: fixedRate({ every: '60s' }) };
  const runsOf = async (
    overlap: 'skip' | 'bufferOne' | 'bufferAll' | 'allowAll' | 'cancelOther',
  ) => {
    const started: number[] = [];
    const { scheduler, clock, events } = await startBed({
      long: async (_: unknown, ctx: Context) => {
        started.push((since(ctx.clock.now()) as number) / 1000);
        await ctx.sleep('150s');
      },
    });
    await scheduler.schedule('long', null, { ...every, overlap });
    await clock.advance('310s');
    return { started, skipped: events.filter((event) => event.type === 'skipped') };
  };

  it('skip: the times during a run are skipped, told and recorded', async () => {
    const { started, skipped } = await runsOf('skip');
    expect(started).toEqual([0, 180]);
    expect(skipped.map((event) => [since(event.from as Date), event.reason, event.count])).toEqual([
      [60_000, 'overlap', 1],
      [120_000, 'overlap', 1],
      [240_000, 'overlap', 1],
      [300_000, 'overlap', 1],
    ]);
  });

  it('bufferOne: keeps the first', async () => {
    expect((await runsOf('bufferOne')).started).toEqual([0, 150, 300]);
  });

  it('bufferAll: all run, one after the other', async () => {
    const { started, skipped } = await runsOf('bufferAll');
    expect(started).toEqual([0, 150, 300]);
    expect(skipped).toEqual([]);
  });

  it('allowAll: side by side', async () => {
    expect((await runsOf('allowAll')).started).toEqual([0, 60, 120, 180, 240, 300]);
  });

  it('cancelOther: the new one starts when the old one has ended', async () => {
    expect((await runsOf('cancelOther')).started).toEqual([0, 60, 120, 180, 240, 300]);
  });
});

describe('handler versions', () => {
  const versions = {
    1: (_?: unknown) => 'one',
    2: (_?: unknown) => 'two',
  };

  it('a one-off takes the highest at its creation, unless pinned', async () => {
    const { scheduler, clock, store } = await openBed({ v: versions });
    const newest = await scheduler.schedule('v');
    const pinned = await scheduler.schedule('v', null, { handlerVersion: 1 });
    expect([newest.handlerVersion, pinned.handlerVersion]).toEqual([2, 1]);
    await close({ scheduler, clock });
    const next = await startBed({ v: { ...versions, 3: () => 'three' } }, { store, clock });
    expect((await next.scheduler.wait(newest.id)).result).toBe('two');
    expect((await next.scheduler.wait(pinned.id)).result).toBe('one');
  });

  it('a recurring task takes it at each occurrence’s creation', async () => {
    const schedule = fixedRate({ every: '1m' });
    const first = await startBed({ v: versions });
    const { clock, store } = first;
    const task = await first.scheduler.schedule('v', null, { schedule });
    const pinned = await first.scheduler.schedule('v', null, { schedule, handlerVersion: 1 });
    await clock.advance(0);
    await close(first);
    const second = await startBed({ v: { ...versions, 3: () => 'three' } }, { store, clock });
    await clock.advance('2m');
    const results = async (id: string) =>
      (await second.scheduler.occurrences(id)).items.map((o) => o.result).reverse();
    expect((await results(task.id)).slice(0, 3)).toEqual(['two', 'two', 'three']);
    expect((await results(pinned.id)).slice(0, 3)).toEqual(['one', 'one', 'one']);
  });

  it('waits, uncharged and counted, for a worker that has it', async () => {
    const first = await openBed({ v: versions, w: () => 'w' });
    const { clock, store } = first;
    const task = await first.scheduler.schedule('v');
    const other = await first.scheduler.schedule('w');
    await close(first);
    const without = await startBed({ v: { 1: versions[1] } }, { store, clock });
    const here = await without.scheduler.schedule('v');
    await clock.advance('30m');
    expect((await without.scheduler.wait(here.id)).result).toBe('one');
    expect((await without.scheduler.stats()).waitingVersions).toEqual({ 'v@2': 1, 'w@1': 1 });
    expect(await without.scheduler.get(task.id)).toMatchObject({ status: 'scheduled' });
    await close(without);
    const { scheduler } = await startBed({ v: versions, w: () => 'w' }, { store, clock });
    expect(await scheduler.wait(task.id)).toMatchObject({ result: 'two', attempt: 1, failures: 0 });
    expect((await scheduler.wait(other.id)).result).toBe('w');
    expect((await scheduler.stats()).waitingVersions).toEqual({});
  });
});
