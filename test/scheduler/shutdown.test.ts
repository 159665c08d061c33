import { describe, expect, it, vi } from 'vitest';
import {
  AbortedError,
  type Context,
  memoryStore,
  Scheduler,
  SchedulerStateError,
} from '../../src/index.js';
import { close, gate, newClock, openBed, rejection, since, startBed } from './helpers.js';

const nap = (ms: number, ctx: Context) => ctx.sleep(ms).then(() => ctx.attempt);

describe('shutdown', () => {
  it('stops timing first, lets what runs end, and starts nothing more', async () => {
    const started: number[] = [];
    const { scheduler, clock, store } = await startBed({
      nap: (ms: number, ctx: Context) => {
        started.push(ms);
        return nap(ms, ctx);
      },
    });
    const running = await scheduler.schedule('nap', 5000);
    const later = await scheduler.schedule('nap', 1, { delay: '1s' });
    await clock.advance('500ms');
    const done = scheduler.shutdown();
    expect(scheduler.state).toBe('draining');
    await clock.advance('10s');
    expect(await done).toEqual({ finished: 1, released: 0, aborted: 0 });
    expect(scheduler.state).toBe('closed');
    expect(started).toEqual([5000]);
    expect(clock.armed).toBe(0);

    const next = await startBed({ nap }, { store, clock });
    expect((await next.scheduler.get(running.id))?.status).toBe('succeeded');
    await clock.advance('1s');
    expect((await next.scheduler.get(later.id))?.status).toBe('succeeded');
  });

  it('leaves retention that comes due while it drains to the next opening, and does not spin for it', async () => {
    const retention = { succeeded: '1s', failed: '1s' };
    const { scheduler, clock, store } = await startBed({ nap }, { retention });
    const short = await scheduler.schedule('nap', 1);
    await scheduler.schedule('nap', 5000);
    await clock.advance('500ms');
    const done = scheduler.shutdown();
    await clock.advance('10s');
    expect(await done).toEqual({ finished: 1, released: 0, aborted: 0 });

    const next = await startBed({ nap }, { store, clock, retention });
    await clock.advance('1s');
    expect(await next.scheduler.get(short.id)).toBeUndefined();
  });

  it('is final and idempotent', async () => {
    const { scheduler, clock } = await startBed({ nap });
    const task = await scheduler.schedule('nap', 1);
    await clock.advance('1s');
    const first = scheduler.shutdown();
    const second = scheduler.shutdown({ drain: false });
    expect(await second).toEqual(await first);
    expect(await scheduler.shutdown()).toEqual(await first);
    await scheduler[Symbol.asyncDispose]();
    const calls: (() => Promise<unknown>)[] = [
      () => scheduler.start(),
      () => scheduler.schedule('nap', 1),
      () => scheduler.scheduleMany([]),
      () => scheduler.get(task.id),
      () => scheduler.wait(task.id),
      () => scheduler.list(),
      () => scheduler.update(task.id, {}),
      () => scheduler.cancel(task.id),
      () => scheduler.pause(task.id),
      () => scheduler.resume({ tenant: 'a' }),
      () => scheduler.trigger(task.id),
      () => scheduler.occurrences(task.id),
      () => scheduler.occurrence(task.lastOccurrenceId as string),
      () => scheduler.cancelOccurrence(task.lastOccurrenceId as string),
      () => scheduler.attempts(task.lastOccurrenceId as string),
      () => scheduler.deadLetters(),
      () => scheduler.redrive(task.lastOccurrenceId as string),
      () => scheduler.delete(task.id),
      () => scheduler.setTenantLimits('a', {}),
      () => scheduler.stats(),
    ];
    for (const call of calls) {
      expect([call.toString(), await rejection(call())]).toEqual([
        call.toString(),
        expect.any(SchedulerStateError),
      ]);
    }
    expect(() => scheduler.on('*', () => {})).toThrow(SchedulerStateError);
  });

  it('refuses a second start', async () => {
    const { scheduler } = await startBed({ nap });
    expect(await rejection(scheduler.start())).toBeInstanceOf(SchedulerStateError);
  });

  it('works on a scheduler that was never started, and disposes of itself', async () => {
    const { scheduler } = await openBed({ nap });
    await scheduler.schedule('nap', 1);
    expect(await scheduler.shutdown()).toEqual({ finished: 0, released: 0, aborted: 0 });
    const clock = newClock();
    let kept: Scheduler | undefined;
    {
      await using inner = await Scheduler.open({
        clock,
        handlers: { nap },
        store: memoryStore(),
      });
      kept = inner as unknown as Scheduler;
      await inner.start();
    }
    expect(kept.state).toBe('closed');
  });

  it('aborts with drain: false; what ran is released, uncharged, and runs after the next start', async () => {
    const reasons: unknown[] = [];
    const { scheduler, clock, store } = await startBed({
      nap: async (ms: number, ctx: Context) => {
        await ctx.sleep(ms).catch((reason) => {
          reasons.push(reason);
          throw reason;
        });
      },
    });
    const task = await scheduler.schedule('nap', 60_000);
    await clock.advance('1s');
    const done = scheduler.shutdown({ drain: false });
    await clock.advance(0);
    expect(await done).toEqual({ finished: 0, released: 1, aborted: 1 });
    expect(reasons).toEqual([expect.any(AbortedError)]);
    expect(reasons[0]).toMatchObject({ why: 'shutdown', code: 'TICKWHEEL_ABORTED' });

    const next = await startBed({ nap: () => 'again' }, { store, clock });
    const ended = await next.scheduler.wait(task.id);
    expect(ended).toMatchObject({ status: 'succeeded', attempt: 2, failures: 0, crashes: 0 });
    const attempts = await next.scheduler.attempts(ended.id);
    expect(attempts.map((attempt) => attempt.outcome)).toEqual(['released', 'succeeded']);
    expect(attempts[1]?.fencingToken).toBeGreaterThan(attempts[0]?.fencingToken as number);
  });

  it('aborts when the drain takes longer than the timeout', async () => {
    const { scheduler, clock, store } = await startBed({ nap });
    const [short, long] = [
      await scheduler.schedule('nap', 2000),
      await scheduler.schedule('nap', 60_000),
    ];
    await clock.advance('1s');
    const done = scheduler.shutdown({ timeout: '3s' });
    await clock.advance('2999ms');
    expect(scheduler.state).toBe('draining');
    await clock.advance('1ms');
    expect(await done).toEqual({ finished: 1, released: 1, aborted: 1 });
    const next = await openBed({ nap }, { store, clock });
    expect((await next.scheduler.get(short.id))?.status).toBe('succeeded');
    expect((await next.scheduler.get(long.id))?.status).toBe('scheduled');
  });

  it('gives up a handler that ignores its signal, after the grace, and refuses its late result', async () => {
    const { open, passed } = gate<string>();
    const { scheduler, clock, store } = await startBed(
      { stubborn: () => passed },
      { timeoutGrace: '5s' },
    );
    const task = await scheduler.schedule('stubborn');
    await clock.advance('1s');
    const done = scheduler.shutdown({ drain: false });
    await clock.advance('4999ms');
    expect(scheduler.state).toBe('draining');
    await clock.advance('1ms');
    expect(await done).toEqual({ finished: 0, released: 1, aborted: 1 });
    open('too late');
    const next = await startBed({ stubborn: () => 'in time' }, { store, clock });
    expect((await next.scheduler.wait(task.id)).result).toBe('in time');
  });

  it('keeps a result that comes during the abort', async () => {
    const { scheduler, clock, store } = await startBed({
      quick: (_: undefined, ctx: Context) => ctx.sleep('1m').catch(() => 'saved what there was'),
    });
    const task = await scheduler.schedule('quick');
    await clock.advance('1s');
    const done = scheduler.shutdown({ drain: false });
    await clock.advance(0);
    expect(await done).toMatchObject({ finished: 1, released: 0 });
    const next = await openBed({ quick: () => {} }, { store, clock });
    expect((await next.scheduler.wait(task.id)).result).toBe('saved what there was');
  });

  it('renews leases while it drains', async () => {
    const { scheduler, clock, store } = await startBed({ nap }, { leaseDuration: '1s' });
    const task = await scheduler.schedule('nap', 20_000);
    await clock.advance('1s');
    const done = scheduler.shutdown({ timeout: '1m' });
    await clock.advance('30s');
    expect(await done).toMatchObject({ finished: 1 });
    const next = await openBed({ nap }, { store, clock });
    const [attempt] = await next.scheduler.attempts(task.lastOccurrenceId as string);
    expect(attempt).toMatchObject({ attempt: 1, outcome: 'succeeded' });
  });

  it('gives the store free, and tells those who wait', async () => {
    const { scheduler, clock, store } = await startBed({ nap });
    const task = await scheduler.schedule('nap', 1, { delay: '1d' });
    const waiting = rejection(scheduler.wait(task.id));
    expect(await rejection(Scheduler.open({ clock, store }))).toMatchObject({
      code: 'TICKWHEEL_STORE_LOCKED',
    });
    await close({ scheduler, clock });
    expect(await waiting).toBeInstanceOf(SchedulerStateError);
    const next = await openBed({ nap }, { store, clock });
    expect((await next.scheduler.get(task.id))?.status).toBe('scheduled');
  });

  it('lets the events of the drain out, and takes calls meanwhile', async () => {
    const { scheduler, clock, events } = await startBed({ nap });
    await scheduler.schedule('nap', 1000);
    await clock.advance(0);
    const told = vi.fn();
    scheduler.on('succeeded', told);
    const done = scheduler.shutdown();
    const added = await scheduler.schedule('nap', 1);
    expect(added.status).toBe('scheduled');
    await clock.advance('5s');
    expect(await done).toMatchObject({ finished: 1 });
    expect(told).toHaveBeenCalledOnce();
    const ended = events.find((event) => event.type === 'succeeded');
    expect(since(ended?.at)).toBe(1000);
  });
});
