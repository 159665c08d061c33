/** Case 35 and its kind: where records and this process disagree, a scan finds it and puts it right. */
import { describe, expect, it } from 'vitest';
import type { HandlerMap } from '../../src/index.js';
import type { DueWindow, LiveEntry, Store, StoreSession, Unit } from '../../src/store/store.js';
import { type Bed, close, newClock, startBed } from './helpers.js';
import { KINDS, newStore, useStore } from './stores.js';

/** A store whose scans, and near window, can be made to overlook an occurrence, and whose records can be changed behind the engine. */
class Tampered implements Store {
  readonly real = newStore();
  // As if others had it open: leases are written then, and what was written is met at the next renewal.
  readonly capabilities = { ...this.real.capabilities, shared: true };
  /** Occurrences that scans do not find. */
  readonly hidden = new Set<string>();
  session!: StoreSession;
  scans = 0;

  recount() {
    return this.real.recount();
  }

  open: Store['open'] = async (options) => {
    const session = await this.real.open(options);
    this.session = session;
    return new Proxy(session, {
      get: (target, name) => {
        if (name === 'scanLive') return this.#scan;
        if (name === 'due' && target.due !== undefined) return this.#windowOf(target.due);
        const value = (target as unknown as Record<string | symbol, unknown>)[name];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  };

  readonly #scan: StoreSession['scanLive'] = async (query) => {
    this.scans++;
    const page = await this.session.scanLive(query);
    return { ...page, items: page.items.filter(this.#isFound) };
  };

  readonly #isFound = ({ occurrenceId }: LiveEntry): boolean => !this.hidden.has(occurrenceId);

  #windowOf(due: DueWindow): DueWindow {
    const hiddenTasks = () => new Set([...this.hidden].map((id) => id.split('.')[0]));
    return {
      isNear: (lane, dueAt) => due.isNear(lane, dueAt),
      isTold: (lane, dueAt) => due.isTold(lane, dueAt),
      earliestMs: () => due.earliestMs(),
      runningTasks: () => due.runningTasks().filter((id) => !hiddenTasks().has(id)),
      load: async (nowMs, room) => {
        const step = await due.load(nowMs, room);
        return { ...step, entries: step.entries.filter(this.#isFound) };
      },
    };
  }

  async change(taskId: string, change: (unit: Unit) => Unit): Promise<void> {
    const [view] = await this.session.views([taskId]);
    const occurrences = (view?.live ?? []).map((record) => ({
      record: { ...record, revision: record.revision + 1 },
      expected: record.revision,
    }));
    const { visible, durable } = this.session.commit([change({ taskId, occurrences })]);
    expect(await visible).toEqual([]);
    await durable;
  }
}

async function start<H extends HandlerMap>(
  store: Tampered,
  handlers: H,
  clock = newClock(),
  leaseDuration = '10s',
) {
  return startBed(handlers, { store: store as never, clock, leaseDuration });
}

const repairsOf = async (bed: Bed<HandlerMap>) => (await bed.scheduler.stats()).repairs;
const NONE = { overdue: 0, ready: 0, running: 0, lease: 0, counters: 0 };

/** A scheduler opened anew whose first scan overlooks the task's occurrence. */
async function reopenedBlind(options: object, handlers: HandlerMap, prepare?: () => Promise<void>) {
  const store = new Tampered();
  const first = await start(store, handlers);
  const task = await first.scheduler.schedule('work', undefined, options);
  await prepare?.call(undefined);
  await store.real.crash();
  await close(first as never).catch(() => {});
  store.hidden.add(task.lastOccurrenceId as string);
  const second = await start(store, handlers, first.clock);
  store.hidden.clear();
  // Something happens, so that there is something to watch.
  await second.scheduler.schedule('other', undefined);
  return { store, bed: second as unknown as Bed<HandlerMap>, task };
}

describe.each(KINDS)('reconciliation on %s', (kind) => {
  useStore(kind);

  it('finds what is overdue and was never loaded', async () => {
    const ran: unknown[] = [];
    const handlers = { work: () => ran.push('work'), other: () => 0 };
    const { bed, task } = await reopenedBlind({ delay: '20s' }, handlers);
    await bed.clock.advance('25s');
    expect(ran).toEqual([]);
    await bed.clock.advance('10s');
    expect(ran).toEqual(['work']);
    expect(await repairsOf(bed)).toEqual({ ...NONE, overdue: 1 });
    const told = bed.events.filter(({ type }) => type === 'repaired');
    expect(told).toEqual([expect.objectContaining({ taskId: task.id, reason: 'overdue' })]);
  });

  it('finds what is ready and in no lane', async () => {
    const ran: unknown[] = [];
    const handlers = { work: () => ran.push('work'), other: () => 0 };
    const store = new Tampered();
    const first = await startBed(handlers, {
      store: store as never,
      handlerLimits: { work: { maxConcurrency: 0 } },
    });
    const task = await first.scheduler.schedule('work', undefined);
    await first.clock.advance(1);
    await store.real.crash();
    await close(first as never).catch(() => {});
    store.hidden.add(task.lastOccurrenceId as string);
    const bed = (await start(store, handlers, first.clock)) as unknown as Bed<HandlerMap>;
    store.hidden.clear();
    await bed.scheduler.schedule('other', undefined);
    await bed.clock.advance('31s');
    expect(ran).toEqual(['work']);
    expect(await repairsOf(bed)).toEqual({ ...NONE, ready: 1 });
  });

  it('ends what is recorded as running and nobody runs, once its lease is over', async () => {
    let attempts = 0;
    const handlers: HandlerMap = {
      work: async (_, ctx) => {
        if (++attempts === 1) await ctx.sleep('1h');
        return ctx.attempt;
      },
      other: () => 0,
    };
    const store = new Tampered();
    const first = await start(store, handlers);
    const task = await first.scheduler.schedule('work', undefined);
    await first.clock.advance('1s');
    await store.real.crash();
    await close(first as never).catch(() => {});
    store.hidden.add(task.lastOccurrenceId as string);
    const bed = (await start(store, handlers, first.clock)) as unknown as Bed<HandlerMap>;
    store.hidden.clear();
    await bed.scheduler.schedule('other', undefined);
    await bed.clock.advance('35s');
    expect(await bed.scheduler.wait(task.id)).toMatchObject({
      status: 'succeeded',
      attempt: 2,
      crashes: 1,
      result: 2,
    });
    const [lost] = await bed.scheduler.attempts(task.lastOccurrenceId as string);
    expect(lost).toMatchObject({ outcome: 'leaseExpired' });
    expect(await repairsOf(bed)).toEqual({ ...NONE, running: 1 });
  });

  it.each([
    ['at its next renewal', '10s', '5s', 0],
    ['by the scan', '10m', '35s', 1],
  ])('gives up an attempt whose occurrence does not run under its token: %s', async (...given) => {
    const [, leaseDuration, within, repairs] = given;
    const reasons: unknown[] = [];
    const handlers: HandlerMap = {
      work: async (_, ctx) => {
        if (ctx.attempt > 1) return;
        await ctx.sleep('1h').catch((error) => {
          reasons.push(error.why);
          throw error;
        });
      },
    };
    const store = new Tampered();
    const started = await start(store, handlers, undefined, leaseDuration);
    const bed = started as unknown as Bed<HandlerMap>;
    const task = await bed.scheduler.schedule('work', undefined);
    await bed.clock.advance('1s');
    await store.change(task.id, (unit) => ({
      ...unit,
      occurrences: (unit.occurrences ?? []).map(({ record, expected }) => ({
        record: { ...record, state: 'ready', leaseUntil: undefined },
        expected,
      })),
    }));
    await bed.clock.advance(within);
    expect(reasons).toEqual(['leaseLost']);
    expect(await bed.scheduler.wait(task.id)).toMatchObject({ status: 'succeeded', failures: 0 });
    expect((await repairsOf(bed)).lease).toBe(repairs);
  });

  it('goes past any number of attempts that are as they should be', async () => {
    const reasons: unknown[] = [];
    const handlers: HandlerMap = {
      nap: (_, ctx) => ctx.sleep('1h'),
      work: (_, ctx) => ctx.sleep('1h').catch((error) => reasons.push(error.why)),
    };
    const store = new Tampered();
    const clock = newClock();
    const { scheduler } = await startBed(handlers, {
      store: store as never,
      clock,
      leaseDuration: '10m',
      workers: { concurrency: 1200 },
    });
    const nap = { handler: 'nap', payload: undefined } as const;
    await scheduler.scheduleMany(Array.from({ length: 1100 }, () => nap));
    await clock.advance('1s');
    const task = await scheduler.schedule('work', undefined);
    await clock.advance('1s');
    await store.change(task.id, (unit) => ({
      ...unit,
      occurrences: (unit.occurrences ?? []).map(({ record, expected }) => ({
        record: { ...record, state: 'ready', leaseUntil: undefined },
        expected,
      })),
    }));
    await clock.advance('70s');
    expect(reasons).toEqual(['leaseLost']);
  });

  it('leaves alone what is ready and waits until another run of its task has ended', async () => {
    const ran: unknown[] = [];
    const handlers: HandlerMap = {
      busy: (_, ctx) => ctx.sleep('5s'),
      work: async (_, ctx) => {
        ran.push(ctx.occurrenceId);
        if (ran.length === 1) await ctx.sleep('2m');
      },
    };
    const bed = await startBed(handlers, { workers: { concurrency: 2 }, leaseDuration: '10m' });
    const { scheduler, clock } = bed;
    await scheduler.schedule('busy', undefined);
    await scheduler.schedule('busy', undefined);
    await clock.advance('1s');
    const { id, lastOccurrenceId: planned } = await scheduler.schedule('work', undefined);
    await clock.advance('1s');
    // What is triggered while its task is paused runs, and what was ready before is let go meanwhile.
    await scheduler.pause(id);
    const { id: triggered } = await scheduler.trigger(id);
    await clock.advance('5s');
    await scheduler.resume(id);
    await clock.advance('100s');
    expect(ran).toEqual([triggered]);
    expect(await repairsOf(bed as unknown as Bed<HandlerMap>)).toEqual(NONE);
    await clock.advance('30s');
    expect(ran).toEqual([triggered, planned]);
  });

  it('goes past any number of healthy records', async () => {
    const ran: unknown[] = [];
    const handlers = { work: () => ran.push('work'), other: () => 0 };
    const store = new Tampered();
    const first = await start(store, handlers);
    const healthy = { handler: 'other', payload: undefined, options: { delay: '30d' } } as const;
    await first.scheduler.scheduleMany(Array.from({ length: 3500 }, () => healthy));
    const task = await first.scheduler.schedule('work', undefined, { delay: '10s' });
    await store.real.crash();
    await close(first as never).catch(() => {});
    store.hidden.add(task.lastOccurrenceId as string);
    const bed = (await start(store, handlers, first.clock)) as unknown as Bed<HandlerMap>;
    store.hidden.clear();
    await bed.scheduler.schedule('other', undefined);
    await bed.clock.advance('32s');
    expect(ran).toEqual(['work']);
  });

  it('is not armed while there is nothing to watch', async () => {
    const store = new Tampered();
    const { scheduler, clock } = await start(store, { work: () => 0 });
    await scheduler.schedule('work', undefined, { delay: '30d' });
    await clock.advance('2m');
    const { scans } = store;
    expect(scans).toBeGreaterThan(0);
    await clock.advance('20d');
    expect(store.scans).toBe(scans);
  });
});
