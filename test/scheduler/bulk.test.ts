/** Creates in bulk go beside the turns (src/engine/bulk.ts): nothing waits for them, and nothing gets between. */
import { describe, expect, it } from 'vitest';
import { memoryStore, StoreFullError, StoreUnavailableError } from '../../src/index.js';
import { newClock, openBed, rejection, startBed } from './helpers.js';
import { LateStore } from './late-store.js';

const MANY = 200;

function many(options: (i: number) => object = () => ({ delay: '1h' })) {
  return Array.from({ length: MANY }, (_, i) => ({
    handler: 'work' as const,
    payload: i,
    options: options(i),
  }));
}

/** A scheduler whose store holds back from here on what it tells the engine. */
async function startLate() {
  const late = new LateStore();
  let ran = 0;
  const bed = await startBed({ work: (_: number) => void ran++ }, { store: late.store });
  late.isHolding = true;
  return { ...bed, late, ran: () => ran };
}

describe('creates in bulk', () => {
  it('do not hold up due work: it is committed before them, and starts before they are visible', async () => {
    const late = new LateStore();
    const ran: unknown[] = [];
    const handlers = { work: (n: unknown) => void ran.push(n) };
    const { scheduler, clock } = await startBed(handlers, { store: late.store });
    const due = await scheduler.schedule('work', 'due', { delay: '1s' });
    await clock.advance('999ms');
    late.commits.length = 0;
    late.isHolding = true;
    const made = scheduler.scheduleMany(many());
    await clock.advance(0);
    expect(late.commits).toEqual([{ tasks: MANY, ahead: 0 }]);
    late.isHolding = false;
    await clock.advance('1ms');
    expect((await scheduler.get(due.id))?.status).toBe('succeeded');
    expect(ran).toEqual(['due']);
    late.letThrough();
    await clock.advance(0);
    expect((await made).every((result) => 'id' in result)).toBe(true);
  });

  it('are decided while those before are written, two commits at most', async () => {
    const late = new LateStore();
    const { scheduler, clock } = await startBed({ work: (_: number) => {} }, { store: late.store });
    late.commits.length = 0;
    late.isHolding = true;
    const calls = Array.from({ length: 5 }, () => scheduler.scheduleMany(many()));
    const mades = Promise.all(calls);
    await clock.advance(0);
    expect(late.commits.map(({ ahead }) => ahead)).toEqual([0, 1]);
    late.letThrough();
    await clock.advance(0);
    for (const results of await mades) expect(results.every((result) => 'id' in result)).toBe(true);
    expect(late.commits.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(5 * MANY);
  });

  it('are timed as others are: due at their time, with those due at once among them', async () => {
    const ran: number[] = [];
    const { scheduler, clock } = await startBed({
      work: (n: unknown) => void ran.push(n as number),
    });
    await scheduler.scheduleMany(many((i) => ({ delay: i })));
    await clock.advance(0);
    expect(ran).toEqual([0]);
    for (let i = 1; i < MANY; i++) {
      await clock.advance(1);
      expect(ran.at(-1)).toBe(i);
    }
    await clock.advance('1s');
    expect(ran).toHaveLength(MANY);
  });

  it('start nothing before they are visible, also not what is due at once and has a key', async () => {
    const { late, scheduler, clock, ran } = await startLate();
    const made = scheduler.scheduleMany(many((i) => ({ idempotencyKey: `k${i}` })));
    await clock.advance('10ms');
    expect(ran()).toBe(0);
    late.letThrough();
    await clock.advance('10ms');
    expect(ran()).toBe(MANY);
    await made;
  });

  it('of up to 1,000 are read at once: what their caller changes afterwards changes nothing', async () => {
    const { scheduler } = await startBed({ work: (_: { n: number }) => {} });
    const items = Array.from({ length: 1000 }, (_, n) => ({
      handler: 'work' as const,
      payload: { n },
      options: { delay: '1h' },
    }));
    const made = scheduler.scheduleMany(items);
    for (const { payload } of items) payload.n = -1;
    expect((await made).map((result) => ('id' in result ? result.payload.n : result))).toEqual(
      items.map((_, n) => n),
    );
  });

  it('of a list that a shutdown comes between are told what became of them, each', async () => {
    const store = memoryStore({ commitDelay: 1, flushDelay: 2 });
    const { scheduler, clock } = await startBed({ work: (_: number) => {} }, { store });
    const items = Array.from({ length: 15 }, () => many()).flat();
    const made = scheduler.scheduleMany(items);
    await clock.advance(2);
    const closed = scheduler.shutdown();
    for (let i = 0; i < 50; i++) await clock.advance(1);
    await closed;
    const results = await made;
    expect(results).toHaveLength(items.length);
    const kept = results.filter((result) => 'id' in result).length;
    for (const result of results.slice(kept)) expect(result).toBeInstanceOf(Error);
    const next = await startBed({ work: (_: number) => {} }, { store, clock });
    expect((await next.scheduler.stats()).pending).toBe(kept);
    expect(kept).toBeGreaterThan(0);
  });

  it('that are cancelled as soon as a list shows them are cancelled, and never run', async () => {
    const { late, scheduler, clock, ran } = await startLate();
    const made = scheduler.scheduleMany(many(() => ({ delay: '1s' })));
    await clock.advance(0);
    const [seen] = (await scheduler.list({ limit: 1 })).items;
    const cancelled = scheduler.cancel(seen?.id as string);
    await clock.advance(0);
    late.letThrough();
    await clock.advance(0);
    expect(await cancelled).toBe(true);
    await made;
    expect((await scheduler.get(seen?.id as string))?.status).toBe('cancelled');
    await clock.advance('2s');
    expect(ran()).toBe(MANY - 1);
    expect((await scheduler.stats()).repairs).toMatchObject({ overdue: 0, ready: 0 });
  });

  it('give a key to the first of a list that has it, also when only the second is due', async () => {
    const { scheduler } = await startBed({ work: (n: unknown) => n });
    const results = await scheduler.scheduleMany(
      many((i) => ({ idempotencyKey: `k${i >> 1}`, delay: i % 2 === 0 ? '1h' : 0 })),
    );
    for (let i = 0; i < MANY; i += 2) {
      expect(results[i]).toMatchObject({ created: true });
      expect(results[i + 1]).toMatchObject({ code: 'TICKWHEEL_IDEMPOTENCY_CONFLICT' });
    }
  });

  it('of a full store fail alone, and others go on when there is space', async () => {
    let full = false;
    const store = memoryStore({ fail: () => (full ? new StoreFullError('no space') : undefined) });
    const { scheduler, clock } = await startBed({ work: (_: number) => {} }, { store });
    full = true;
    const failed = scheduler.scheduleMany(many());
    await clock.advance(0);
    for (const result of await failed) expect(result).toBeInstanceOf(StoreFullError);
    full = false;
    await clock.advance('2s');
    const made = scheduler.scheduleMany(many(() => ({ delay: '1s' })));
    await clock.advance('2s');
    expect((await made).every((result) => 'id' in result)).toBe(true);
    expect((await scheduler.list({ status: 'succeeded', limit: 500 })).items).toHaveLength(MANY);
    expect(scheduler.state).toBe('running');
  });

  it('of a store that fails are told so, all of them', async () => {
    let broken = false;
    const store = memoryStore({ fail: () => (broken ? new Error('disk on fire') : undefined) });
    const { scheduler, clock } = await openBed(
      { work: (_: number) => {} },
      { store, clock: newClock() },
    );
    broken = true;
    const calls = Array.from({ length: 4 }, () => scheduler.scheduleMany(many()));
    const all = Promise.all(calls);
    await clock.advance(0).catch(() => {});
    for (const results of await all) {
      for (const result of results) expect(result).toBeInstanceOf(StoreUnavailableError);
    }
    expect(await rejection(scheduler.schedule('work', 1))).toBeInstanceOf(StoreUnavailableError);
  });

  it('are refused by nothing that a turn of their own would not be: events come once each', async () => {
    const { scheduler, clock, events } = await startBed({ work: (_: number) => {} });
    const made = await scheduler.scheduleMany(many());
    await clock.advance(0);
    const scheduled = events.filter(({ type }) => type === 'scheduled');
    expect(new Set(scheduled.map(({ taskId }) => taskId)).size).toBe(MANY);
    expect(scheduled).toHaveLength(MANY);
    expect(made).toHaveLength(MANY);
  });
});
