import { describe, expect, it } from 'vitest';
import {
  AbortedError,
  type Context,
  cron,
  fixedDelay,
  fixedRate,
  memoryStore,
  OccurrenceNotFoundError,
  TaskEndedError,
  TaskNotFoundError,
  UnknownHandlerError,
  VersionConflictError,
} from '../../src/index.js';
import {
  close,
  type MemoryStore,
  openBed,
  rejection,
  START_MS,
  since,
  startBed,
} from './helpers.js';

function recorder() {
  const ran: (number | undefined)[] = [];
  return {
    ran,
    handlers: {
      note: (_: unknown, ctx: Context) => void ran.push(since(ctx.clock.now())),
      nap: (ms: number, ctx: Context) => {
        ran.push(since(ctx.clock.now()));
        return ctx.sleep(ms).then(() => ms);
      },
      fail: () => {
        throw new Error('always');
      },
    },
  };
}

describe('update', () => {
  it('by many at once costs a commit each, and each changes what the one before left', async () => {
    let commits = 0;
    const store = memoryStore({
      fail: (number) => {
        commits = number;
        return undefined;
      },
    }) as MemoryStore;
    const { scheduler } = await startBed({ note: () => 0 }, { store });
    const task = await scheduler.schedule('note', undefined, { delay: '1h' });
    const before = commits;
    const many = Array.from({ length: 40 }, (_, priority) =>
      scheduler.update(task.id, priority % 2 === 0 ? { timeout: 1 + priority } : { ttl: priority }),
    );
    await Promise.all(many);
    expect(commits - before).toBe(40);
    const { version, options } = (await scheduler.get(task.id)) ?? {};
    expect([version, options?.timeout, options?.ttl]).toEqual([41, 39, 39]);
  });

  it('changes payload and policies, read at the start of each attempt', async () => {
    const seen: unknown[] = [];
    const { scheduler, clock } = await startBed({
      note: (payload: unknown) => {
        seen.push(payload);
        throw new Error('again');
      },
    });
    const task = await scheduler.schedule('note', 1, { retry: { maxAttempts: 3 } });
    await clock.advance(0);
    const changed = await scheduler.update(task.id, {
      payload: 2,
      priority: 'high',
      retry: { maxAttempts: 2 },
      timeout: '3s',
    });
    expect(changed).toMatchObject({ payload: 2, priority: 2, version: 2, generation: 1 });
    expect(changed.options).toMatchObject({ timeout: 3000, retry: { maxAttempts: 2 } });
    expect(await scheduler.get(task.id)).toEqual(changed);
    await clock.advance('1m');
    expect(seen).toEqual([1, 2]);
    expect((await scheduler.wait(task.id)).failures).toBe(2);
  });

  it('moves a one-off, earlier and later, and runs it once', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { delay: '1h' });
    await scheduler.update(task.id, { delay: '2h' });
    await clock.advance('90m');
    expect(ran).toEqual([]);
    const moved = await scheduler.update(task.id, { runAt: START_MS + 91 * 60_000 });
    expect(moved).toMatchObject({ version: 3, generation: 3 });
    await clock.advance('30m');
    expect(ran).toEqual([91 * 60_000]);
    const { items } = await scheduler.occurrences(task.id);
    expect(items.map((o) => o.status)).toEqual(['succeeded', 'cancelled', 'cancelled']);
    expect(items[1]?.reason).toBe('superseded');
  });

  it('refuses on another version, and takes the right one', async () => {
    const { scheduler } = await openBed(recorder().handlers);
    const task = await scheduler.schedule('note', 1, { delay: '1h' });
    await scheduler.update(task.id, { payload: 2 }, { version: 1 });
    const refused = await rejection(scheduler.update(task.id, { payload: 3 }, { version: 1 }));
    expect(refused).toBeInstanceOf(VersionConflictError);
    expect((await scheduler.get(task.id))?.payload).toBe(2);
    await scheduler.update(task.id, { payload: 3 }, { version: 2 });
  });

  it('counts callers’ changes only', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note', 1, { schedule: fixedRate({ every: '1s' }) });
    await clock.advance('5s');
    expect(await scheduler.get(task.id)).toMatchObject({ version: 1, generation: 1 });
  });

  it('loses no change of many that come at once', async () => {
    const { scheduler } = await openBed(recorder().handlers);
    const task = await scheduler.schedule('note', 1, { delay: '1h' });
    await Promise.all([
      scheduler.update(task.id, { timeout: '1s' }),
      scheduler.update(task.id, { ttl: '2s' }),
      scheduler.update(task.id, { retry: { maxAttempts: 9 } }),
      scheduler.update(task.id, { retry: { jitter: 0.5 } }),
    ]);
    const after = await scheduler.get(task.id);
    expect(after?.version).toBe(5);
    expect(after?.options).toMatchObject({
      timeout: 1000,
      ttl: 2000,
      retry: { maxAttempts: 9, jitter: 0.5 },
    });
  });

  it('leaves a running occurrence alone when the schedule changes', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 5000, { schedule: fixedRate({ every: '10s' }) });
    await clock.advance('1s');
    const changed = await scheduler.update(task.id, {
      schedule: fixedRate({ every: '10s', startDelay: '7s' }),
    });
    expect(changed).toMatchObject({ status: 'running', generation: 2 });
    await clock.advance('20s');
    expect(ran).toEqual([0, 8000, 18_000]);
    const done = (await scheduler.occurrences(task.id)).items.filter(
      (o) => o.status === 'succeeded',
    );
    expect(done.map((o) => since(o.nominalAt))).toEqual([8000, 0]);
  });

  it('changes the kind of schedule; a live fixedDelay run starts the new generation at its end', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 1000, { schedule: fixedDelay({ delay: '10s' }) });
    await clock.advance('500ms');
    await scheduler.update(task.id, { schedule: fixedDelay({ delay: '2s' }) });
    await clock.advance('4s');
    expect(ran).toEqual([0, 3000]);
    await scheduler.update(task.id, { schedule: cron('*/20 * * * * *'), overlap: 'bufferAll' });
    await clock.advance('30s');
    expect(ran).toEqual([0, 3000, 20_000]);
    expect((await scheduler.get(task.id))?.options.overlap).toBe('bufferAll');
  });

  it('refuses an ended or unknown task, and a version of a handler that is not here', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note');
    const living = await scheduler.schedule('note', 1, { delay: '1h' });
    await clock.advance(0);
    expect(await rejection(scheduler.update(task.id, {}))).toBeInstanceOf(TaskEndedError);
    expect(await rejection(scheduler.update('none', {}))).toBeInstanceOf(TaskNotFoundError);
    const refused = await rejection(scheduler.update(living.id, { handlerVersion: 2 }));
    expect(refused).toBeInstanceOf(UnknownHandlerError);
    const ended = fixedRate({ every: '1s', endAt: START_MS - 1 });
    expect(await rejection(scheduler.update(living.id, { schedule: ended }))).toMatchObject({
      code: expect.stringMatching(/TICKWHEEL_INVALID_(SCHEDULE|ARGUMENT)/),
    });
    expect(await scheduler.get(living.id)).toMatchObject({ version: 1, status: 'scheduled' });
  });

  it('replaces the alarm: a task moved to now runs at once', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { delay: '12h' });
    await clock.advance(0);
    await scheduler.update(task.id, { delay: 0 });
    expect((await scheduler.wait(task.id)).status).toBe('succeeded');
    expect(ran).toEqual([0]);
  });
});

describe('cancel', () => {
  it('lets nothing of the task start, and tells so', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock, events } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { schedule: fixedRate({ every: '1s' }) });
    await clock.advance('1500ms');
    expect(await scheduler.cancel(task.id, { reason: 'done with it' })).toBe(true);
    expect(await scheduler.cancel(task.id)).toBe(false);
    await clock.advance('1h');
    expect(ran).toEqual([0, 1000]);
    expect(await scheduler.get(task.id)).toMatchObject({
      status: 'cancelled',
      endReason: 'done with it',
      nextRunAt: undefined,
      endedAt: new Date(START_MS + 1500),
    });
    expect(events.filter((e) => e.type === 'cancelled')).toMatchObject([
      { taskId: task.id, reason: 'done with it' },
    ]);
    expect(await rejection(scheduler.cancel('none'))).toBeInstanceOf(TaskNotFoundError);
  });

  it('signals what runs; a handler that throws then has been cancelled', async () => {
    let reason: unknown;
    const { scheduler, clock } = await startBed({
      nap: async (_: undefined, ctx: Context) => {
        await ctx.sleep('1h').catch((error) => {
          reason = error;
          throw error;
        });
      },
    });
    const task = await scheduler.schedule('nap');
    await clock.advance('1s');
    expect(await scheduler.cancel(task.id)).toBe(true);
    await clock.advance(0);
    expect(reason).toBeInstanceOf(AbortedError);
    expect(reason).toMatchObject({ why: 'cancelled' });
    const [occurrence] = (await scheduler.occurrences(task.id)).items;
    expect(occurrence).toMatchObject({
      status: 'cancelled',
      failures: 0,
      cancelRequestedAt: new Date(START_MS + 1000),
    });
    const [attempt] = await scheduler.attempts(occurrence?.id as string);
    expect(attempt?.outcome).toBe('cancelled');
  });

  it('lets a finish that comes first win', async () => {
    const { scheduler, clock } = await startBed({
      nap: (_: undefined, ctx: Context) => ctx.sleep('1h').catch(() => 'saved'),
    });
    const task = await scheduler.schedule('nap');
    await clock.advance('1s');
    await scheduler.cancel(task.id);
    await clock.advance(0);
    const [occurrence] = (await scheduler.occurrences(task.id)).items;
    expect(occurrence).toMatchObject({ status: 'succeeded', result: 'saved' });
    expect((await scheduler.get(task.id))?.status).toBe('cancelled');
  });

  it('shows a run that ignores it as running, and ends it after the grace', async () => {
    const { scheduler, clock } = await startBed(
      { stubborn: () => new Promise(() => {}) },
      { timeoutGrace: '5s' },
    );
    const task = await scheduler.schedule('stubborn');
    await clock.advance('1s');
    await scheduler.cancel(task.id);
    await clock.advance('4s');
    const id = task.lastOccurrenceId as string;
    expect(await scheduler.occurrence(id)).toMatchObject({
      status: 'running',
      cancelRequestedAt: new Date(START_MS + 1000),
    });
    await clock.advance('1s');
    expect((await scheduler.occurrence(id))?.status).toBe('cancelled');
    expect((await scheduler.stats()).zombies).toBe(1);
  });

  it('holds retries back too', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('fail');
    await clock.advance(0);
    await scheduler.cancel(task.id);
    await clock.advance('1h');
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'cancelled', attempt: 1 });
  });
});

describe('pause and resume', () => {
  it('hold a task: nothing starts once pause has resolved, catch-up on resume', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock, events } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { schedule: fixedRate({ every: '1s' }) });
    await clock.advance('1500ms');
    await scheduler.pause(task.id);
    await scheduler.pause(task.id);
    expect(await scheduler.get(task.id)).toMatchObject({ status: 'paused', nextRunAt: undefined });
    await clock.advance('3s');
    expect(ran).toEqual([0, 1000]);
    await scheduler.resume(task.id);
    await scheduler.resume(task.id);
    await clock.advance(0);
    expect(ran).toEqual([0, 1000, 4500]);
    await clock.advance('1s');
    expect(ran).toEqual([0, 1000, 4500, 5000]);
    const missed = events.filter((e) => e.type === 'missed');
    expect(missed).toMatchObject([
      {
        reason: 'catchupLatest',
        count: 2,
        from: new Date(START_MS + 2000),
        to: new Date(START_MS + 3000),
      },
    ]);
    expect(events.filter((e) => e.type === 'paused' || e.type === 'resumed').length).toBe(2);
  });

  it.each(['tenant', 'handler'] as const)('hold a whole %s', async (kind) => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const scope = kind === 'tenant' ? { tenant: 'a' } : { handler: 'note' };
    const other = kind === 'tenant' ? { tenant: 'b' } : { tenant: 'a' };
    await scheduler.schedule('note', 1, { tenant: 'a', schedule: fixedRate({ every: '1s' }) });
    await scheduler.schedule('nap', 1, { ...other, delay: '2500ms' });
    await clock.advance('500ms');
    await scheduler.pause(scope);
    const late = await scheduler.schedule('note', 1, { tenant: 'a' });
    await clock.advance('4s');
    expect(ran).toEqual([0, 2500]);
    expect((await scheduler.get(late.id))?.status).toBe('scheduled');
    await scheduler.resume(scope);
    await clock.advance(0);
    // The late one-off, and one run for the newest of the times that passed.
    expect(ran).toEqual([0, 2500, 4500, 4500]);
    await clock.advance('1s');
    expect(ran.slice(4)).toEqual([5000]);
    expect((await scheduler.wait(late.id)).status).toBe('succeeded');
  });

  it('hold what was ready already, and claimed nothing of', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers, { workers: { concurrency: 1 } });
    await scheduler.schedule('nap', 1000);
    await clock.advance(0);
    const waiting = await scheduler.schedule('note');
    const tenantsOwn = await scheduler.schedule('note', 1, { tenant: 't' });
    await clock.advance(0);
    await scheduler.pause(waiting.id);
    await scheduler.pause({ tenant: 't' });
    await clock.advance('5s');
    expect(ran).toEqual([0]);
    expect((await scheduler.occurrence(waiting.lastOccurrenceId as string))?.status).toBe('ready');
    await scheduler.resume(waiting.id);
    await scheduler.resume({ tenant: 't' });
    expect((await scheduler.wait(waiting.id)).status).toBe('succeeded');
    expect((await scheduler.wait(tenantsOwn.id)).status).toBe('succeeded');
    expect(ran).toEqual([0, 5000, 5000]);
  });

  it('hold retries; on resume one is due at the later of its time and now', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const options = { retry: { maxAttempts: 2, initialBackoff: '10s' } };
    const [early, late] = [
      await scheduler.schedule('fail', undefined, options),
      await scheduler.schedule('fail', undefined, options),
    ];
    await clock.advance('1s');
    await scheduler.pause(early.id);
    await scheduler.pause(late.id);
    await clock.advance('4s');
    await scheduler.resume(early.id);
    await clock.advance('15s');
    await scheduler.resume(late.id);
    await clock.advance(0);
    expect(since((await scheduler.wait(early.id)).endedAt)).toBe(10_000);
    expect(since((await scheduler.wait(late.id)).endedAt)).toBe(20_000);
  });

  it('are durable', async () => {
    const { ran, handlers } = recorder();
    const first = await startBed(handlers);
    const task = await first.scheduler.schedule('note', 1, { delay: '1m' });
    const other = await first.scheduler.schedule('note', 1, { delay: '1m', tenant: 't' });
    await first.scheduler.pause(task.id);
    await first.scheduler.pause({ tenant: 't' });
    await close(first);
    const { store, clock } = first;
    const { scheduler } = await startBed(handlers, { store, clock });
    await clock.advance('1h');
    expect(ran).toEqual([]);
    await scheduler.resume(task.id);
    await scheduler.resume({ tenant: 't' });
    await scheduler.wait(task.id);
    await scheduler.wait(other.id);
    expect(ran.length).toBe(2);
  });

  it('refuse ended and unknown tasks', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note');
    await clock.advance(0);
    expect(await rejection(scheduler.pause(task.id))).toBeInstanceOf(TaskEndedError);
    expect(await rejection(scheduler.resume(task.id))).toBeInstanceOf(TaskEndedError);
    expect(await rejection(scheduler.pause('none'))).toBeInstanceOf(TaskNotFoundError);
  });

  it('let a running attempt end, and its fixedDelay successor wait', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('nap', 1000, { schedule: fixedDelay({ delay: '1s' }) });
    await clock.advance('500ms');
    await scheduler.pause(task.id);
    await clock.advance('10s');
    expect(ran).toEqual([0]);
    await scheduler.resume(task.id);
    await clock.advance('100ms');
    expect(ran).toEqual([0, 10_500]);
  });

  it.each([{ tenant: 'default' }, { handler: 'a' }])(
    'runs all missed times one after another when a scope is resumed: %o',
    async (scope) => {
      const { scheduler, clock } = await startBed({
        a: (_: unknown, ctx: Context) => ctx.sleep(1),
      });
      const schedule = fixedRate({ every: '1m' });
      const { id } = await scheduler.schedule('a', 1, { schedule, catchup: 'all' });
      await clock.advance('61s');
      await scheduler.pause(scope);
      await clock.advance('5m');
      await scheduler.resume(scope);
      await clock.advance('30s');
      const { items } = await scheduler.occurrences(id);
      const statuses = items.map(({ status }) => status);
      expect(statuses).toEqual(['scheduled', ...new Array(7).fill('succeeded')]);
    },
  );
});

describe('trigger', () => {
  it('runs once now, outside the schedule and its limit', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, {
      schedule: fixedRate({ every: '10s', startDelay: '10s', limit: 2 }),
    });
    await clock.advance('3s');
    const made = await scheduler.trigger(task.id);
    expect(made).toMatchObject({
      taskId: task.id,
      status: 'ready',
      dueAt: new Date(START_MS + 3000),
    });
    await clock.advance('1m');
    expect(ran).toEqual([3000, 10_000, 20_000]);
    expect((await scheduler.occurrence(made.id))?.status).toBe('succeeded');
  });

  it('runs also while the task is paused, and leaves it paused', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { delay: '1h' });
    await scheduler.pause(task.id);
    await scheduler.trigger(task.id);
    await clock.advance('2h');
    expect(ran).toEqual([0]);
    expect((await scheduler.get(task.id))?.status).toBe('paused');
  });

  it('goes behind a live run, unless allowAll', async () => {
    for (const overlap of ['skip', 'allowAll'] as const) {
      const { ran, handlers } = recorder();
      const { scheduler, clock } = await startBed(handlers);
      const task = await scheduler.schedule('nap', 5000, {
        schedule: fixedRate({ every: '1h' }),
        overlap,
      });
      await clock.advance('1s');
      await scheduler.trigger(task.id);
      await clock.advance('20s');
      expect([overlap, ran]).toEqual([overlap, overlap === 'skip' ? [0, 5000] : [0, 1000]]);
    }
  });

  it('refuses an ended task', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note');
    await clock.advance(0);
    expect(await rejection(scheduler.trigger(task.id))).toBeInstanceOf(TaskEndedError);
  });
});

describe('cancelOccurrence', () => {
  it('drops one occurrence, the schedule goes on', async () => {
    const { ran, handlers } = recorder();
    const { scheduler, clock } = await startBed(handlers);
    const task = await scheduler.schedule('note', 1, { schedule: fixedRate({ every: '1s' }) });
    await clock.advance('1500ms');
    const next = (await scheduler.get(task.id))?.lastOccurrenceId as string;
    expect(await scheduler.cancelOccurrence(next, { reason: 'holiday' })).toBe(true);
    expect(await scheduler.cancelOccurrence(next)).toBe(false);
    await clock.advance('2s');
    expect(ran).toEqual([0, 1000, 3000]);
    expect(await scheduler.occurrence(next)).toMatchObject({
      status: 'cancelled',
      reason: 'holiday',
    });
  });

  it('signals a running one, and ends a one-off as cancelled', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('nap', 60_000);
    await clock.advance('1s');
    expect(await scheduler.cancelOccurrence(task.lastOccurrenceId as string)).toBe(true);
    await clock.advance(0);
    expect(await scheduler.get(task.id)).toMatchObject({ status: 'cancelled' });
    const refused = await rejection(scheduler.cancelOccurrence(`${task.id}.9.9`));
    expect(refused).toBeInstanceOf(OccurrenceNotFoundError);
  });
});

describe('redrive', () => {
  it('makes a new, linked occurrence; again gives the same one', async () => {
    let broken = true;
    const { scheduler, clock } = await startBed({
      flaky: () => {
        if (broken) throw new Error('broken');
        return 'repaired';
      },
    });
    const task = await scheduler.schedule('flaky', undefined, { retry: { maxAttempts: 1 } });
    const dead = await scheduler.wait(task.id);
    expect(dead.status).toBe('dead');
    broken = false;
    const made = await scheduler.redrive(dead.id);
    expect(made).toMatchObject({ taskId: task.id, redriveOf: dead.id, failures: 0, attempt: 0 });
    expect((await scheduler.redrive(dead.id)).id).toBe(made.id);
    await clock.advance(0);
    expect(await scheduler.wait(task.id)).toMatchObject({ id: made.id, result: 'repaired' });
    expect((await scheduler.redrive(dead.id)).id).toBe(made.id);
    expect(await scheduler.get(task.id)).toMatchObject({ status: 'succeeded' });
    expect((await scheduler.occurrence(dead.id))?.status).toBe('dead');
    expect((await scheduler.occurrences(task.id)).items.length).toBe(2);
  });

  it('gives concurrent callers one and the same', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('fail', undefined, { retry: { maxAttempts: 1 } });
    const dead = await scheduler.wait(task.id);
    const first = Promise.all([scheduler.redrive(dead.id), scheduler.redrive(dead.id)]);
    await Promise.resolve();
    const later = scheduler.redrive(dead.id);
    const made = [...(await first), await later];
    expect(new Set(made.map((occurrence) => occurrence.id)).size).toBe(1);
    await clock.advance(0);
    expect((await scheduler.occurrences(task.id)).items.length).toBe(2);
  });

  it('refuses what did not die, and what never was', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note');
    await clock.advance(0);
    const refused = await rejection(scheduler.redrive(task.lastOccurrenceId as string));
    expect(refused.code).toBe('TICKWHEEL_INVALID_ARGUMENT');
    expect(refused.message).toMatch(/succeeded.*dead or quarantined/);
    const unknown = await rejection(scheduler.redrive(`${task.id}.9.9`));
    expect(unknown).toBeInstanceOf(OccurrenceNotFoundError);
  });

  it('carries the sequence of a fixedDelay after success on', async () => {
    let broken = true;
    const ran: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      flaky: (_: undefined, ctx: Context) => {
        ran.push(since(ctx.clock.now()));
        if (broken) throw new Error('broken');
      },
    });
    const task = await scheduler.schedule('flaky', undefined, {
      schedule: fixedDelay({ delay: '1s', after: 'success' }),
      retry: { maxAttempts: 1 },
    });
    await clock.advance('1h');
    expect(ran).toEqual([0]);
    expect(await scheduler.get(task.id)).toMatchObject({ status: 'failed', nextRunAt: undefined });
    broken = false;
    await scheduler.redrive(task.lastOccurrenceId as string);
    await clock.advance('2500ms');
    expect(ran.slice(1)).toEqual([3_600_000, 3_601_000, 3_602_000]);
  });
});

describe('delete', () => {
  it('removes an ended task and its history; only an ended one', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('note', 1, { delay: '1s' });
    const refused = await rejection(scheduler.delete(task.id));
    expect(refused.code).toBe('TICKWHEEL_INVALID_ARGUMENT');
    expect(refused.message).toContain('ended tasks only');
    await clock.advance('1s');
    expect(await scheduler.delete(task.id)).toBe(true);
    expect(await scheduler.delete(task.id)).toBe(false);
    expect(await scheduler.get(task.id)).toBeUndefined();
    expect(await scheduler.occurrence(task.lastOccurrenceId as string)).toBeUndefined();
  });

  it('takes its dead letters along', async () => {
    const { scheduler, clock } = await startBed(recorder().handlers);
    const task = await scheduler.schedule('fail', undefined, { retry: { maxAttempts: 1 } });
    await clock.advance(0);
    expect((await scheduler.stats()).deadLetters).toBe(1);
    await scheduler.delete(task.id);
    expect((await scheduler.stats()).deadLetters).toBe(0);
    expect((await scheduler.deadLetters()).items).toEqual([]);
  });
});

describe('setTenantLimits', () => {
  it('takes effect at once, and overrides open also after a restart', async () => {
    const tenants = { t: { maxConcurrency: 1 } };
    const { handlers, ran } = recorder();
    const first = await startBed(handlers, { tenants });
    for (let i = 0; i < 4; i++) await first.scheduler.schedule('nap', 1000, { tenant: 't' });
    await first.clock.advance(0);
    expect(ran).toEqual([0]);
    await first.scheduler.setTenantLimits('t', { maxConcurrency: 2, maxPending: 4 });
    await first.clock.advance(0);
    expect(ran).toEqual([0, 0]);
    expect((await rejection(first.scheduler.schedule('nap', 1, { tenant: 't' }))).code).toBe(
      'TICKWHEEL_QUOTA_EXCEEDED',
    );
    await close(first);
    const { store, clock } = first;
    const { scheduler } = await openBed(handlers, { tenants, store, clock });
    expect((await rejection(scheduler.schedule('nap', 1, { tenant: 't' }))).code).toBe(
      'TICKWHEEL_QUOTA_EXCEEDED',
    );
    ran.length = 0;
    await scheduler.start();
    await clock.advance(0);
    expect(ran.length).toBe(2);
  });
});
