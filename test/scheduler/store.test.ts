/** The scheduler on a store that delays, fails, is full, dies; and on one whose bytes are sealed. */
import { describe, expect, it } from 'vitest';
import {
  type Context,
  fixedDelay,
  memoryStore,
  Scheduler,
  type Store,
  StoreCorruptError,
  type StoredBytesCodec,
  StoreFullError,
  StoreUnavailableError,
} from '../../src/index.js';
import {
  close,
  type MemoryStore,
  newClock,
  openBed,
  rejection,
  since,
  startBed,
} from './helpers.js';

const fine = { work: (n: unknown) => n };

describe('commits', () => {
  it('may take their time: callers hear when they are durable, work starts when they are visible', async () => {
    const store = memoryStore({ commitDelay: 10, flushDelay: 100 });
    const clock = newClock();
    const opening = openBed(fine, { store, clock });
    const { scheduler, events } = await opening;
    await scheduler.start();
    let made: { id: string } | undefined;
    void scheduler.schedule('work', 7).then((task) => {
      made = task;
    });
    await clock.advance('109ms');
    expect(made).toBeUndefined();
    expect(events).toEqual([]);
    expect((await scheduler.list()).items[0]?.status).toBe('succeeded');
    await clock.advance('1ms');
    expect(made).toBeDefined();
    expect(events.map((event) => event.type)).toEqual(['scheduled']);
    await clock.advance('1s');
    expect(events.map((event) => event.type)).toEqual(['scheduled', 'started', 'succeeded']);
    const ended = await scheduler.occurrence(
      (await scheduler.list()).items[0]?.lastOccurrenceId as string,
    );
    // Due to ready to running took two commits, then the handler was entered.
    expect(since(ended?.startedAt)).toBeLessThanOrEqual(30);
  });

  it('that fail make the store unavailable to all: callers, waiters, later calls', async () => {
    let broken = false;
    const store = memoryStore({ fail: () => (broken ? new Error('disk on fire') : undefined) });
    const { scheduler, clock, errors } = await startBed(fine, { store });
    const task = await scheduler.schedule('work', 1, { delay: '1h' });
    const waiting = rejection(scheduler.wait(task.id));
    broken = true;
    const failed = await rejection(scheduler.schedule('work', 2));
    expect(failed).toBeInstanceOf(StoreUnavailableError);
    expect(await waiting).toBeInstanceOf(StoreUnavailableError);
    for (const call of [
      () => scheduler.schedule('work', 3),
      () => scheduler.get(task.id),
      () => scheduler.cancel(task.id),
      () => scheduler.stats(),
      () => scheduler.wait(task.id),
    ]) {
      expect(await rejection(call())).toBeInstanceOf(StoreUnavailableError);
    }
    expect(errors.map(({ source }) => source)).toContain('engine');
    expect(clock.armed).toBe(0);
    broken = false;
    await scheduler.shutdown();
    const next = await startBed(fine, { store, clock });
    expect((await next.scheduler.get(task.id))?.status).toBe('scheduled');
    await clock.advance('1h');
    expect((await next.scheduler.wait(task.id)).result).toBe(1);
  });

  it('leave no caller waiting when the loop itself meets an error', async () => {
    let broken = false;
    const inner = memoryStore();
    const store: Store = {
      capabilities: inner.capabilities,
      open: async (options) => {
        const session = await inner.open(options);
        let reads = 0;
        return new Proxy(session, {
          get(target, name) {
            const member = Reflect.get(target, name, target);
            if (typeof member !== 'function') return member;
            return (...args: unknown[]) => {
              // The caller's own look passes, that of the loop does not.
              if (broken && name === 'views' && ++reads > 1) throw new RangeError('a bug');
              return member.apply(target, args);
            };
          },
        });
      },
    };
    const clock = newClock();
    const errors: unknown[] = [];
    const scheduler = await Scheduler.open({
      clock,
      store,
      handlers: fine,
      onError: (error) => errors.push(error),
    });
    const task = await scheduler.schedule('work', 1, { delay: '1h' });
    broken = true;
    const calls = [
      scheduler.update(task.id, { payload: 2 }),
      scheduler.cancel(task.id),
      scheduler.schedule('work', 2),
      scheduler.pause({ tenant: 'a' }),
    ];
    for (const call of calls) {
      const failed = await rejection(call);
      expect(failed).toBeInstanceOf(StoreUnavailableError);
      expect(failed.cause).toMatchObject({ message: 'a bug' });
    }
    expect(errors.length).toBe(1);
    await scheduler.shutdown();
  });

  it('fails item by item what it met while a held key was looked at', async () => {
    let flushes = 0;
    const store = memoryStore({
      flushDelay: 3,
      failFlush: () => (++flushes === 6 ? new Error('no power') : undefined),
    });
    const { scheduler, clock } = await startBed({ noop: () => {} }, { store });
    const call = () =>
      scheduler.scheduleMany(
        Array.from({ length: 300 }, (_, i) => ({
          handler: 'noop' as const,
          options: i % 3 === 0 ? {} : { idempotencyKey: `k${i}`, delay: '1h' },
        })),
      );
    const calls = Promise.allSettled(Array.from({ length: 10 }, call));
    for (let i = 0; i < 200; i++) await clock.advance(1).catch(() => {});
    for (const settled of await calls) {
      expect(settled.status).toBe('fulfilled');
      const results = (settled as PromiseFulfilledResult<unknown[]>).value;
      expect(results).toHaveLength(300);
      for (const result of results) {
        if (result instanceof Error) expect(result).toBeInstanceOf(StoreUnavailableError);
        else expect(result).toHaveProperty('id');
      }
    }
  });

  it('whose flush fails are told to nobody as kept', async () => {
    let broken = false;
    const store = memoryStore({ failFlush: () => (broken ? new Error('no power') : undefined) });
    const { scheduler, clock } = await startBed(fine, { store });
    broken = true;
    const failed = await rejection(scheduler.schedule('work', 1, { idempotencyKey: 'k' }));
    expect(failed).toBeInstanceOf(StoreUnavailableError);
    broken = false;
    await scheduler.shutdown();
    const next = await startBed(fine, { store, clock });
    // The outcome was unknown: repeat with the same key.
    const again = await next.scheduler.schedule('work', 1, { idempotencyKey: 'k' });
    expect(again.created).toBe(true);
    expect((await next.scheduler.list()).items.length).toBe(1);
  });

  it('on a full store fail alone; ends of attempts are kept and written later', async () => {
    let full = false;
    const store = memoryStore({ fail: () => (full ? new StoreFullError('no space') : undefined) });
    let ran = 0;
    const { scheduler, clock } = await startBed(
      {
        nap: async (ms: number, ctx: Context) => {
          ran++;
          await ctx.sleep(ms);
          return ms;
        },
      },
      { store },
    );
    const running = await scheduler.schedule('nap', 1000);
    const later = await scheduler.schedule('nap', 1, { delay: '3s' });
    await clock.advance('500ms');
    full = true;
    expect(await rejection(scheduler.schedule('nap', 1))).toBeInstanceOf(StoreFullError);
    const kept = scheduler.update(later.id, { payload: 2 }).catch((error) => error);
    await clock.advance('9500ms');
    expect(await kept).toBeInstanceOf(StoreFullError);
    expect((await scheduler.get(running.id))?.status).toBe('running');
    expect((await scheduler.get(later.id))?.status).toBe('scheduled');
    full = false;
    await clock.advance('2s');
    expect(await scheduler.wait(running.id)).toMatchObject({ result: 1000, attempt: 1 });
    expect(await scheduler.wait(later.id)).toMatchObject({ result: 1, attempt: 1 });
    expect(ran).toBe(2);
    await scheduler.schedule('nap', 1);
  });

  it('on a full store change no setting: a pause or limit that was refused is not in force', async () => {
    let full = false;
    const store = memoryStore({ fail: () => (full ? new StoreFullError('no space') : undefined) });
    const { scheduler, clock } = await startBed(fine, { store, tenants: { t: { maxPending: 1 } } });
    await scheduler.pause({ tenant: 'p' });
    full = true;
    for (const call of [
      scheduler.pause({ tenant: 't' }),
      scheduler.pause({ handler: 'work' }),
      scheduler.resume({ tenant: 'p' }),
      scheduler.setTenantLimits('t', { maxPending: 0 }),
    ]) {
      expect(await rejection(call)).toBeInstanceOf(StoreFullError);
    }
    full = false;
    const held = await scheduler.schedule('work', 1, { tenant: 'p' });
    const free = await scheduler.schedule('work', 2, { tenant: 't' });
    await clock.advance('5s');
    expect((await scheduler.get(free.id))?.status).toBe('succeeded');
    expect((await scheduler.get(held.id))?.status).toBe('scheduled');
    await scheduler.resume({ tenant: 'p' });
    expect((await scheduler.wait(held.id)).result).toBe(1);
  });

  it('beyond maxRecords are refused, and the scheduler goes on', async () => {
    const store = memoryStore({ maxRecords: 10 });
    const { scheduler, clock } = await startBed(fine, { store, retention: { succeeded: 0 } });
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => scheduler.schedule('work', n, { delay: n })),
    );
    expect(results.some((result) => result.status === 'rejected')).toBe(true);
    await clock.advance('10s');
    expect((await scheduler.schedule('work', 21)).created).toBe(true);
    await clock.advance('10s');
  });
});

describe('a crash', () => {
  it('keeps what was acknowledged; what ran is crashed, uncharged, and runs again', async () => {
    const first = await startBed({ nap: (_: unknown, ctx: Context) => ctx.sleep('1h') });
    const { store, clock } = first;
    const task = await first.scheduler.schedule('nap');
    const later = await first.scheduler.schedule('nap', null, { delay: '1m' });
    await clock.advance('1s');
    store.crash();
    expect(await rejection(first.scheduler.get(task.id))).toBeInstanceOf(StoreUnavailableError);
    await close(first).catch(() => {});

    const second = await startBed({ nap: () => 'again' }, { store, clock });
    const ended = await second.scheduler.wait(task.id);
    expect(ended).toMatchObject({ result: 'again', attempt: 2, failures: 0, crashes: 0 });
    const attempts = await second.scheduler.attempts(ended.id);
    expect(attempts.map((a) => a.outcome)).toEqual(['crashed', 'succeeded']);
    expect(attempts[1]?.fencingToken).toBeGreaterThan(attempts[0]?.fencingToken as number);
    await clock.advance('1m');
    expect((await second.scheduler.wait(later.id)).attempt).toBe(1);
  });

  it('loses what was not durable, and nothing that was', async () => {
    const store = memoryStore({ flushDelay: '1s' });
    const first = await startBed(fine, { store });
    const { clock } = first;
    const creating = first.scheduler.schedule('work', 1, { delay: '1h' });
    await clock.advance('1s');
    const kept = await creating;
    const lost = rejection(first.scheduler.schedule('work', 2, { delay: '1h' }));
    await clock.advance('500ms');
    store.crash();
    expect(await lost).toBeInstanceOf(StoreUnavailableError);
    await close(first).catch(() => {});
    const second = await openBed(fine, { store, clock });
    expect((await second.scheduler.list()).items.map((task) => task.id)).toEqual([kept.id]);
  });

  it('three times in the same task charges it only while it runs alone', async () => {
    const store = memoryStore();
    const clock = newClock();
    let id = '';
    for (let death = 0; death < 3; death++) {
      const bed = await startBed(
        { nap: (_: unknown, ctx: Context) => ctx.sleep('1h') },
        { store, clock },
      );
      if (death === 0) id = (await bed.scheduler.schedule('nap')).id;
      await clock.advance('1s');
      expect((await bed.scheduler.get(id))?.status).toBe('running');
      store.crash();
      await close(bed).catch(() => {});
    }
    const { scheduler } = await startBed({ nap: () => 'well' }, { store, clock });
    await clock.advance('1m');
    const ended = await scheduler.wait(id);
    expect(ended).toMatchObject({ result: 'well', attempt: 4, failures: 0, crashes: 1 });
  });

  it('twice leaves suspects that run alone, and of those only the one that ran is charged', async () => {
    const store = memoryStore();
    const clock = newClock();
    const ids: string[] = [];
    const running = new Set<string>();
    let most = 0;
    const handlers = {
      nap: async (_: unknown, ctx: Context) => {
        running.add(ctx.taskId);
        if (ids.slice(0, 3).some((id) => running.has(id))) most = Math.max(most, running.size);
        await ctx.sleep('10m');
        running.delete(ctx.taskId);
      },
    };
    for (let death = 0; death < 3; death++) {
      running.clear();
      most = 0;
      const bed = await startBed(handlers, { store, clock });
      if (death === 0)
        for (let n = 0; n < 3; n++) ids.push((await bed.scheduler.schedule('nap')).id);
      await clock.advance('1s');
      expect(most).toBe(death < 2 ? 3 : 1);
      store.crash();
      await close(bed).catch(() => {});
    }
    running.clear();
    most = 0;
    const { scheduler } = await startBed(handlers, { store, clock });
    ids.push((await scheduler.schedule('nap')).id);
    await clock.advance('50m');
    const ends = await Promise.all(ids.map((id) => scheduler.wait(id)));
    expect(ends.map((end) => end.status)).toEqual(ids.map(() => 'succeeded'));
    expect(ends.map((end) => end.crashes).sort()).toEqual([0, 0, 0, 1]);
    expect(most).toBe(1);
  });

  it('leaves what must run alone ready until the thread is empty, for which others wait a bounded time', async () => {
    const store = memoryStore();
    const clock = newClock();
    const ran: string[] = [];
    const handlers = {
      suspect: (_: unknown, ctx: Context) => ctx.sleep('10s'),
      long: (_: unknown, ctx: Context) => ctx.sleep('20s'),
      quick: (name: string) => void ran.push(name),
    };
    let suspect = '';
    for (let death = 0; death < 2; death++) {
      const bed = await startBed(handlers, { store, clock });
      if (death === 0) suspect = (await bed.scheduler.schedule('suspect')).id;
      await clock.advance('1s');
      store.crash();
      await close(bed).catch(() => {});
    }
    const { scheduler } = await openBed(handlers, { store, clock });
    const statusOf = async () => (await scheduler.occurrences(suspect)).items[0]?.status;
    await scheduler.pause(suspect);
    await scheduler.start();
    await scheduler.schedule('long');
    await clock.advance('1s');
    await scheduler.resume(suspect);
    await clock.advance('1s');
    await scheduler.schedule('quick', 'while it empties');
    await clock.advance('3s');
    // Not claimed: a lease would be held for nothing, and a death of the process charged to it.
    expect(await statusOf()).toBe('ready');
    expect(ran).toEqual([]);
    await clock.advance('2s');
    await scheduler.schedule('quick', 'at once');
    await clock.advance('1s');
    expect(ran).toEqual(['while it empties', 'at once']);
    expect(await statusOf()).toBe('ready');
    await clock.advance('13s');
    expect(await statusOf()).toBe('running');
    await scheduler.schedule('quick', 'afterwards');
    await clock.advance('8s');
    expect(ran.length).toBe(2);
    await clock.advance('2s');
    expect(await statusOf()).toBe('succeeded');
    expect(ran[2]).toBe('afterwards');
  });

  it('drops and repeats no run of a schedule', async () => {
    const store = memoryStore();
    const clock = newClock();
    const runs: string[] = [];
    const handlers = {
      tick: (_: unknown, ctx: Context) => void runs.push(ctx.occurrenceId),
    };
    const first = await startBed(handlers, { store, clock });
    const schedule = fixedDelay({ delay: '1s' });
    const task = await first.scheduler.schedule('tick', null, { schedule });
    await clock.advance('2500ms');
    store.crash();
    await close(first).catch(() => {});
    const second = await startBed(handlers, { store, clock });
    await clock.advance('2s');
    expect(runs.length).toBe(new Set(runs).size);
    const { items } = await second.scheduler.occurrences(task.id);
    expect(items.filter((o) => o.endedAt === undefined).length).toBe(1);
    expect(items.filter((o) => o.status === 'succeeded').length).toBe(runs.length);
  });
});

describe('payloadCodec', () => {
  const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0x5a);
  const codec: StoredBytesCodec = { id: 'flip', encode: flip, decode: flip };
  const secret = 'correct horse battery staple';

  /** A store that shows all bytes that it is given. */
  function spying(store: MemoryStore): { store: Store; seen: Buffer[] } {
    const seen: Buffer[] = [];
    const keep = (value: unknown): void => {
      if (value instanceof Uint8Array) seen.push(Buffer.from(value));
      else if (typeof value === 'object' && value !== null) Object.values(value).forEach(keep);
    };
    const open: Store['open'] = async (options) => {
      const session = await store.open(options);
      return new Proxy(session, {
        get(target, name) {
          const member = Reflect.get(target, name, target);
          if (typeof member !== 'function') return member;
          return (...args: unknown[]) => {
            if (name === 'commit') keep(args);
            return member.apply(target, args);
          };
        },
      });
    };
    return { store: { capabilities: store.capabilities, open }, seen };
  }

  it('sees payloads, progress, results and errors before the store does', async () => {
    const { store, seen } = spying(memoryStore());
    const clock = newClock();
    const scheduler = await Scheduler.open({
      clock,
      store,
      payloadCodec: codec,
      handlers: {
        echo: async (text: string, ctx: Context) => {
          ctx.heartbeat({ text });
          await ctx.sleep(1);
          if (ctx.attempt === 1) throw new Error(text);
          return [ctx.progress, text];
        },
      },
    });
    await scheduler.start();
    const task = await scheduler.schedule('echo', secret, { idempotencyKey: 'k' });
    await clock.advance('1m');
    const ended = await scheduler.wait(task.id);
    expect(ended).toMatchObject({
      result: [{ text: secret }, secret],
      progress: { text: secret },
    });
    const attempts = await scheduler.attempts(ended.id);
    expect(attempts[0]?.error?.message).toBe(secret);
    expect((await scheduler.get(task.id))?.payload).toBe(secret);
    const again = await scheduler.schedule('echo', secret, { idempotencyKey: 'k' });
    expect(again.created).toBe(false);
    expect(seen.length).toBeGreaterThan(4);
    expect(seen.filter((bytes) => bytes.includes(secret))).toEqual([]);
    expect(seen.some((bytes) => Buffer.from(flip(bytes)).includes(secret))).toBe(true);
    await scheduler.shutdown();
  });

  it('that cannot read one payload kills only that occurrence', async () => {
    const poisoned = 'poison';
    const picky: StoredBytesCodec = {
      ...codec,
      decode: (bytes) => {
        const plain = flip(bytes);
        if (Buffer.from(plain).toString('latin1') === `\xa6${poisoned}`) {
          throw new Error('wrong key');
        }
        return plain;
      },
    };
    const { scheduler, clock, events } = await startBed(fine, { payloadCodec: picky });
    await scheduler.pause({ tenant: 'default' });
    const results = await scheduler.scheduleMany([
      { handler: 'work', payload: 1 },
      { handler: 'work', payload: poisoned },
      { handler: 'work', payload: 3 },
    ]);
    await scheduler.resume({ tenant: 'default' });
    await clock.advance('1m');
    expect(results.map((result) => result instanceof Error)).toEqual([false, false, false]);
    const ids = results.map((result) => (result as { id: string }).id);
    const ended = [];
    for (const id of ids) ended.push(await scheduler.wait(id));
    expect(ended.map((occurrence) => occurrence.status)).toEqual([
      'succeeded',
      'dead',
      'succeeded',
    ]);
    expect(ended[1]).toMatchObject({
      attempt: 1,
      error: { code: 'TICKWHEEL_STORE_CORRUPT', cause: { message: 'wrong key' } },
    });
    expect(events.filter((event) => event.type === 'deadLettered').length).toBe(1);
    // All of them can still be looked at; only the payload itself cannot.
    const { items } = await scheduler.list();
    expect(items.length).toBe(3);
    expect(() => items[1]?.payload).toThrow('wrong key');
    expect(items[2]?.payload).toBe(3);
  });

  it('that fails on a result or on progress fails only that attempt', async () => {
    const picky: StoredBytesCodec = {
      ...codec,
      encode: (bytes) => {
        if (Buffer.from(bytes).includes('unspeakable')) throw new Error('cannot seal');
        return flip(bytes);
      },
    };
    const { scheduler, clock } = await startBed(
      {
        speak: (n: number) => ['unspeakable', 'fine'][n],
        beat: async (_: unknown, ctx: Context) => {
          ctx.heartbeat('unspeakable');
          await ctx.sleep(1);
          return 'alive';
        },
        fail: () => {
          throw new Error('unspeakable');
        },
      },
      { payloadCodec: picky },
    );
    const once = { retry: { maxAttempts: 1 } };
    const bad = await scheduler.schedule('speak', 0, once);
    expect(await scheduler.wait(bad.id)).toMatchObject({
      status: 'dead',
      error: { message: expect.stringContaining('cannot seal') },
    });
    const failed = await scheduler.schedule('fail', undefined, once);
    expect(await scheduler.wait(failed.id)).toMatchObject({
      status: 'dead',
      error: { message: expect.any(String) },
    });
    const beating = await scheduler.schedule('beat', null, once);
    await clock.advance('1s');
    expect(await scheduler.wait(beating.id)).toMatchObject({
      result: 'alive',
      progress: undefined,
    });
    const good = await scheduler.schedule('speak', 1, once);
    expect((await scheduler.wait(good.id)).result).toBe('fine');
    const refused = await rejection(scheduler.schedule('speak', 'unspeakable' as never));
    expect(refused.code).toBe('TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE');
    expect(refused.message).toContain('cannot seal');
    expect((await scheduler.list()).items.length).toBe(4);
  });

  it('that has the wrong key for everything harms neither listeners nor the loop', async () => {
    const first = await openBed(fine, { payloadCodec: codec });
    const { store, clock } = first;
    const task = await first.scheduler.schedule('work', 1);
    await close(first);
    const closed: StoredBytesCodec = {
      ...codec,
      decode: () => {
        throw new Error('wrong key');
      },
    };
    const { scheduler, events } = await startBed(fine, { payloadCodec: closed, store, clock });
    await clock.advance('1s');
    expect((await scheduler.get(task.id))?.status).toBe('failed');
    const dead = events.find((event) => event.type === 'deadLettered');
    expect(dead).toBeDefined();
    expect(await scheduler.wait(task.id)).toMatchObject({ status: 'dead' });
  });

  it('that is not given again is missed by name: what it wrote is told as unreadable', async () => {
    const first = await openBed(fine, { payloadCodec: codec });
    const { store, clock } = first;
    const task = await first.scheduler.schedule('work', { n: 1 });
    await close(first);
    const { scheduler } = await openBed(fine, { store, clock });
    const [read] = (await scheduler.list()).items;
    expect(read?.id).toBe(task.id);
    expect(() => read?.payload).toThrow(StoreCorruptError);
    expect(() => read?.payload).toThrow(/another payloadCodec/);
  });
});

describe('retention', () => {
  it('forgets ended tasks after their time, by how they ended', async () => {
    const { scheduler, clock } = await startBed(
      {
        ...fine,
        fail: () => {
          throw new Error('always');
        },
      },
      { retention: { succeeded: '1h', failed: '2h' } },
    );
    const ok = await scheduler.schedule('work', 1);
    const bad = await scheduler.schedule('fail', undefined, { retry: { maxAttempts: 1 } });
    const gone = await scheduler.schedule('work', 1, { delay: '1d' });
    await scheduler.cancel(gone.id);
    await clock.advance('59m');
    expect(await scheduler.get(ok.id)).toBeDefined();
    await clock.advance('2m');
    expect(await scheduler.get(ok.id)).toBeUndefined();
    expect(await scheduler.occurrence(ok.lastOccurrenceId as string)).toBeUndefined();
    expect(await scheduler.get(bad.id)).toBeDefined();
    expect(await scheduler.get(gone.id)).toBeDefined();
    expect((await scheduler.deadLetters()).items.length).toBe(1);
    await clock.advance('1h');
    expect(await scheduler.get(bad.id)).toBeUndefined();
    expect(await scheduler.get(gone.id)).toBeUndefined();
    expect((await scheduler.deadLetters()).items).toEqual([]);
    expect((await scheduler.list()).items).toEqual([]);
    expect(clock.armed).toBe(1);
  });

  it('forgets old occurrences of a task that lives on', async () => {
    const { scheduler, clock } = await startBed(fine, { retention: { succeeded: '10s' } });
    const task = await scheduler.schedule('work', 1, { schedule: fixedDelay({ delay: '1s' }) });
    await clock.advance('2m');
    const { items } = await scheduler.occurrences(task.id, { limit: 1000 });
    expect(items.length).toBeGreaterThanOrEqual(10);
    expect(items.length).toBeLessThan(15);
    expect((await scheduler.get(task.id))?.status).toBe('scheduled');
  });

  it('uses memory again', async () => {
    const { scheduler, clock, store } = await startBed(fine, { retention: { succeeded: '1s' } });
    const bytes: number[] = [];
    for (let round = 0; round < 4; round++) {
      const items = Array.from({ length: 1000 }, () => ({
        handler: 'work' as const,
        payload: 'x'.repeat(100),
      }));
      await scheduler.scheduleMany(items);
      await clock.advance('10s');
      expect((await scheduler.list()).items).toEqual([]);
      bytes.push((await store.recount()).bytes);
    }
    expect(bytes[3] as number).toBeLessThan((bytes[0] as number) * 1.1);
  });
});
