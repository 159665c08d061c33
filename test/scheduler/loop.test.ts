import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ExecutorHost } from '../../src/execution/executor.js';
import { InProcessExecutor } from '../../src/execution/in-process.js';
import { type Context, TimerWheel, UnrecoverableError } from '../../src/index.js';
import { openWith } from '../../src/scheduler.js';
import { newClock, openBed, START_MS, since, startBed } from './helpers.js';
import { LateStore } from './late-store.js';

afterEach(() => vi.restoreAllMocks());

/** Its threads do not answer until they are told to; as the pool, it says so with no report. */
class DeafExecutor extends InProcessExecutor {
  #host: ExecutorHost | undefined;
  #isDeaf = true;

  override open(host: ExecutorHost): Promise<void> {
    this.#host = host;
    return super.open(host);
  }

  override capacity(): number {
    return this.#isDeaf ? 0 : super.capacity();
  }

  answer(): void {
    this.#isDeaf = false;
    this.#host?.report([]);
  }
}

describe('the loop', () => {
  it('claims for a slot that comes free while the commit of its turn is under way', async () => {
    const late = new LateStore();
    const clock = newClock();
    let ran = 0;
    const executor = new DeafExecutor({ handlers: { work: () => void ran++ }, slots: 4 });
    const scheduler = await openWith({ clock, store: late.store }, { executor });
    await scheduler.start();
    await clock.advance(0);
    late.isHolding = true;
    late.commits.length = 0;
    const created = scheduler.schedule('work' as never);
    await vi.waitFor(() => expect(late.commits.length).toBe(1));
    late.letThrough();
    late.isHolding = true;
    // Now it is found due, and nothing can take it.
    await vi.waitFor(() => expect(late.commits.length).toBe(2));
    executor.answer();
    late.letThrough();
    await created;
    await clock.advance(0);
    expect(ran).toBe(1);
    await scheduler.shutdown();
  });

  it('wakes early for a task due now while it sleeps for one due in 12 hours', async () => {
    const ran: string[] = [];
    const { scheduler, clock } = await startBed(
      { note: (name: string) => void ran.push(name) },
      { workers: { concurrency: 1 } },
    );
    const late = await scheduler.schedule('note', 'late', { delay: '12h' });
    await clock.advance(0);
    expect(clock.armed).toBe(1);

    const now = await scheduler.schedule('note', 'now');
    // No time passes: the loop has to wake up by itself.
    const ended = await scheduler.wait(now.id);
    expect(ended.status).toBe('succeeded');
    expect(ran).toEqual(['now']);
    expect((await scheduler.get(late.id))?.status).toBe('scheduled');

    await clock.advance('12h');
    expect(ran).toEqual(['now', 'late']);
    expect(clock.now()).toBe(START_MS + 12 * 3_600_000);
  });

  it('runs each of 50 tasks due at one instant exactly once on 4 workers', async () => {
    const ran = new Map<number, number>();
    let inside = 0;
    let most = 0;
    const { scheduler, clock } = await startBed(
      {
        count: async (n: number, ctx: Context) => {
          most = Math.max(most, ++inside);
          ran.set(n, (ran.get(n) ?? 0) + 1);
          await ctx.sleep(10);
          inside--;
          return n;
        },
      },
      { workers: { concurrency: 4 } },
    );
    const runAt = new Date(START_MS + 60_000);
    const items = Array.from({ length: 50 }, (_, payload) => ({
      handler: 'count' as const,
      payload,
      options: { runAt },
    }));
    const tasks = await scheduler.scheduleMany(items);
    await clock.advance('59999ms');
    expect(ran.size).toBe(0);
    await clock.advance('10s');

    expect([...ran.keys()].sort((a, b) => a - b)).toEqual(items.map((item) => item.payload));
    expect(new Set(ran.values())).toEqual(new Set([1]));
    expect(most).toBe(4);
    for (const task of tasks) {
      expect(task).not.toBeInstanceOf(Error);
      const id = (task as { id: string }).id;
      expect((await scheduler.get(id))?.status).toBe('succeeded');
    }
  });

  it('never starts a task before its due time, and at it exactly', async () => {
    const started: (number | undefined)[] = [];
    const { scheduler, clock } = await startBed({
      note: (_: undefined, ctx: Context) => void started.push(since(ctx.clock.now())),
    });
    for (const delay of [1, 7, 4096, 4097, 60_000, 86_400_000, 1]) {
      await scheduler.schedule('note', undefined, { delay });
    }
    await clock.advance('1d');
    expect(started).toEqual([1, 1, 7, 4096, 4097, 60_000, 86_400_000]);
  });

  it('holds one armed alarm when idle, for ever, and wakes for nothing', async () => {
    const clock = newClock();
    const arm = vi.spyOn(clock, 'arm');
    await startBed({ noop: () => {} }, { clock });
    expect(clock.armed).toBe(1);
    expect(arm.mock.lastCall?.[0]).toEqual({ wallMs: Infinity, monotonicMs: Infinity });
    arm.mockClear();
    await clock.advance('365d');
    expect(arm).not.toHaveBeenCalled();
    expect(clock.armed).toBe(1);
  });

  it('has one alarm for timing, leases, deadlines and retention together', async () => {
    const clock = newClock();
    const arm = vi.spyOn(clock, 'arm');
    const { scheduler } = await startBed(
      { nap: (_: undefined, ctx: Context) => ctx.sleep('1m') },
      { clock, retention: { succeeded: '1h' } },
    );
    const options = { timeout: '5m', heartbeatTimeout: '4m' };
    const task = await scheduler.schedule('nap', undefined, options);
    await scheduler.schedule('nap', undefined, { delay: '12h' });
    await clock.advance('30s');
    expect((await scheduler.get(task.id))?.status).toBe('running');
    expect(clock.armed).toBe(1);
    expect(clock.sleepers).toBe(1);

    await clock.advance('30s');
    expect((await scheduler.get(task.id))?.status).toBe('succeeded');
    expect(clock.armed).toBe(1);
    // Nothing runs any more: neither leases nor deadlines are looked at, only what is to be forgotten.
    expect(arm.mock.lastCall?.[0]).toEqual({
      wallMs: START_MS + 60_000 + 3_600_000,
      monotonicMs: Infinity,
    });
    await clock.advance('2h');
    expect(await scheduler.get(task.id)).toBeUndefined();
    expect(clock.armed).toBe(1);
    expect(arm.mock.lastCall?.[0].monotonicMs).toBe(Infinity);
  });

  it('lets nothing start when the wheel lets nothing go', async () => {
    const advance = vi.spyOn(TimerWheel.prototype, 'advance');
    advance.mockReturnValue({ refs: new Uint32Array(0), more: false });
    const ran = vi.fn();
    const { scheduler, clock } = await startBed({ note: ran });
    const tasks = [
      await scheduler.schedule('note'),
      await scheduler.schedule('note', undefined, { delay: '1s' }),
      await scheduler.schedule('note', undefined, { runAt: START_MS - 1 }),
      // So many that they would come due in the turn that creates them.
      ...(await scheduler.scheduleMany(Array.from({ length: 100 }, () => ({ handler: 'note' })))),
    ];
    await clock.advance('1h');
    expect(advance).toHaveBeenCalled();
    expect(ran).not.toHaveBeenCalled();
    for (const task of tasks) {
      expect((await scheduler.get((task as { id: string }).id))?.status).toBe('scheduled');
    }
  });

  it('lets a call pass thousands of creates that wait for their turn', async () => {
    const { scheduler } = await startBed({ noop: () => {} });
    const victim = await scheduler.schedule('noop', undefined, { delay: '1h' });
    let created = false;
    const item = { handler: 'noop', options: { delay: '1h' } } as const;
    const calls = Array.from({ length: 10 }, () =>
      scheduler.scheduleMany(new Array(1000).fill(item)),
    );
    const creates = Promise.all(calls).then(() => {
      created = true;
    });
    expect(await scheduler.cancel(victim.id)).toBe(true);
    expect(created).toBe(false);
    await creates;
  });

  it('starts others at once beside the backlog of a tenant that is paused', async () => {
    const ran: string[] = [];
    const { scheduler, clock } = await startBed(
      { note: (name: string) => void ran.push(name) },
      { workers: { concurrency: 4 } },
    );
    await scheduler.pause({ tenant: 'held' });
    const many = (tenant: string, length: number) =>
      scheduler.scheduleMany(
        Array.from({ length }, () => ({ handler: 'note', payload: tenant, options: { tenant } })),
      );
    await many('held', 2000);
    await clock.advance('1s');
    await many('free', 100);
    await clock.advance(0);
    expect(ran).toEqual(new Array(100).fill('free'));
    await scheduler.resume({ tenant: 'held' });
    await clock.advance(0);
    expect(ran.filter((name) => name === 'held')).toHaveLength(2000);
  });

  it('is not harmed by a handler that fails, however it fails', async () => {
    const hostile = {
      get message(): string {
        throw new Error('no message for you');
      },
    };
    const failures: Record<string, () => unknown> = {
      throws: () => {
        throw new Error('at once');
      },
      rejects: () => Promise.reject(new TypeError('later')),
      nothing: () => Promise.reject(undefined),
      text: () => Promise.reject('only text'),
      hostile: () => Promise.reject(hostile),
      unrecoverable: () => {
        throw new UnrecoverableError('never again');
      },
      unserializable: () => () => 'a function is no result',
      // biome-ignore lint/suspicious/noThenProperty: a thenable that throws is one of the ways to fail
      thenable: () => ({ then: () => hostile.message }),
    };
    const { scheduler, clock } = await startBed(
      {
        fail: (how: string) => failures[how]?.(),
        fine: () => 'fine',
      },
      { workers: { concurrency: 1 } },
    );
    for (const how of Object.keys(failures)) {
      const task = await scheduler.schedule('fail', how, { retry: { maxAttempts: 1 } });
      const ended = await scheduler.wait(task.id);
      expect([how, ended.status, ended.failures]).toEqual([how, 'dead', 1]);
      expect(typeof ended.error?.message).toBe('string');
      const next = await scheduler.schedule('fine');
      expect((await scheduler.wait(next.id)).result).toBe('fine');
    }
    await clock.advance(0);
    expect((await scheduler.stats()).running).toBe(0);
  });

  it('does nothing before start, and all that is due after it', async () => {
    const ran: string[] = [];
    const { scheduler, clock } = await openBed({ note: (name: string) => void ran.push(name) });
    await scheduler.schedule('note', 'a');
    await scheduler.schedule('note', 'b', { delay: '1m' });
    await clock.advance('1h');
    expect(ran).toEqual([]);
    expect(scheduler.state).toBe('open');
    await scheduler.start();
    expect(scheduler.state).toBe('running');
    await clock.advance(0);
    expect(ran).toEqual(['a', 'b']);
  });
});
