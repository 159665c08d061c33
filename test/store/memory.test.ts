/** The memory store: the conformance suite, with and without delays, and what is its own: test hooks. */
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { StoreFullError } from '../../src/core/errors.js';
import { type MemoryStoreOptions, memoryStore } from '../../src/store/memory/memory-store.js';
import {
  bytes,
  createOneOff,
  endOneOff,
  idOf,
  next,
  occurrenceOf,
  START_MS,
  taskOf,
  writing,
} from './builders.js';
import { testStore } from './conformance.js';
import { assertSame, type MakeSubject, Trial } from './trial.js';

/** Longer than all that a test does between a commit and a crash. */
const LONG = '10s';

function subjectOf(options?: MemoryStoreOptions): MakeSubject {
  return () => {
    const store = memoryStore(options);
    const clock = new VirtualClock(START_MS);
    return {
      store,
      clock,
      crash: () => store.crash(),
      crashLosesVisible: options?.flushDelay === LONG,
      recount: () => store.recount(),
    };
  };
}

testStore('memory', subjectOf(), { seeds: [1, 2, 3, 4, 5, 6] });
testStore('memory, commits and flushes take time', subjectOf({ commitDelay: 3, flushDelay: 5 }), {
  seeds: [11, 12],
});
// Long flushes: a crash takes back several commits at once.
testStore('memory, flushes take long', subjectOf({ flushDelay: LONG }), { seeds: [21, 22, 23] });

const UNAVAILABLE = { code: 'TICKWHEEL_STORE_UNAVAILABLE' };

describe('the memory store with delays', () => {
  it('makes a commit visible and durable at their moments on the clock, and not before', async () => {
    const t = await Trial.open(subjectOf({ commitDelay: 10, flushDelay: '20ms' }));
    const moments: string[] = [];
    const { visible, durable } = t.session.commit([createOneOff(1)]);
    visible.then(() => moments.push(`visible ${t.clock.now() - START_MS}`));
    durable.then(() => moments.push(`durable ${t.clock.now() - START_MS}`));
    expect(t.session.waitsForClock).toBe(true);
    await t.clock.advance(9);
    expect(await t.view(idOf(1))).toBeUndefined();
    await t.clock.advance(1);
    expect(await t.view(idOf(1))).toBeDefined();
    await t.clock.advance(19);
    expect(moments).toEqual(['visible 10']);
    expect(t.session.unflushedBytes).toBeGreaterThan(0);
    await t.clock.advance(1);
    expect(moments).toEqual(['visible 10', 'durable 30']);
    expect(t.session.waitsForClock).toBe(false);
    await t.dispose();
  });

  it('without delays is visible after the turn of the call, never in it', async () => {
    const t = await Trial.open(subjectOf());
    const commit = t.session.commit([createOneOff(1)]);
    const early = t.session.views([idOf(1)]);
    expect(await early).toEqual([undefined]);
    await commit.visible;
    expect(await t.view(idOf(1))).toBeDefined();
    await t.dispose();
  });
});

describe('a crash of the memory store', () => {
  it('takes back what was visible and not durable: changes, removals, keys, prunings, settings', async () => {
    const t = await Trial.open(subjectOf({ flushDelay: 50 }));
    const keyed = { idempotencyKey: 'k' };
    const brief = { ...keyed, policies: { ...taskOf(1).policies, idempotencyTtlMs: 0 } };
    await t.commitDurably(
      createOneOff(1, brief),
      createOneOff(2),
      createOneOff(3),
      createOneOff(4),
    );
    await t.commitDurably(
      writing(next(taskOf(1, brief), { state: 'completed', endedAt: START_MS, lastEnd: 'dead' })),
      endOneOff(4, 'succeeded', START_MS),
      endOneOff(3, 'dead', START_MS),
    );
    const everything = async () => [
      await t.pages((page) => t.session.listTasks(page), 10),
      await t.pages((page) => t.session.listDeadLetters(page), 10),
      await t.session.settings(),
      { ...(await t.session.counts()), bytes: 0 },
    ];
    const before = await everything();

    const doomed = t.session.commit([
      createOneOff(5, keyed),
      { taskId: idOf(2), remove: { revision: 1 } },
      { taskId: idOf(3), remove: { revision: 2 } },
      { taskId: '', settings: [['tenant:a', { weight: 1 }]] },
    ]);
    const late = t.session.commit([
      writing(next(taskOf(5, keyed), { priority: 1 })),
      createOneOff(6),
    ]);
    expect(await doomed.visible).toEqual([]);
    expect(await late.visible).toEqual([]);
    expect(await t.session.taskIdOfKey('acme', 'k', t.clock.now())).toBe(idOf(5));
    expect(await t.prune(START_MS + 3_600_000)).toBe(1);
    expect(await t.view(idOf(4))).toBeUndefined();

    t.subject.crash?.();
    await expect(doomed.durable).rejects.toMatchObject(UNAVAILABLE);
    await expect(late.durable).rejects.toMatchObject(UNAVAILABLE);
    await t.openAgain();
    assertSame(await everything(), before);
    assertSame({ ...(await t.subject.recount?.()), bytes: 0 }, before[3]);
    expect(await t.prune(START_MS + 3_600_000)).toBe(1);
    await t.commitDurably(createOneOff(5, keyed));
    await t.dispose();
  });

  it('rejects what was queued, and leaves no alarm on the clock', async () => {
    const t = await Trial.open(subjectOf({ commitDelay: 50 }));
    const { visible, durable } = t.session.commit([createOneOff(1)]);
    t.subject.crash?.();
    await expect(visible).rejects.toMatchObject(UNAVAILABLE);
    await expect(durable).rejects.toMatchObject(UNAVAILABLE);
    expect(t.clock.armed).toBe(0);
    expect(t.session.waitsForClock).toBe(false);
    await t.openAgain();
    expect(await t.view(idOf(1))).toBeUndefined();
    await t.dispose();
  });
});

describe('promise 4: a failed commit', () => {
  it('makes the store unavailable until it is opened again', async () => {
    const cause = new Error('disk on fire');
    const t = await Trial.open(subjectOf({ fail: (n) => (n === 2 ? cause : undefined) }));
    await t.commit(createOneOff(1));
    const failed = t.session.commit([createOneOff(2)]);
    const behind = t.session.commit([createOneOff(3)]);
    await expect(failed.visible).rejects.toMatchObject({ ...UNAVAILABLE, cause });
    for (const promise of [failed.durable, behind.visible, behind.durable]) {
      await expect(promise).rejects.toMatchObject(UNAVAILABLE);
    }
    const { session } = t;
    await expect(session.commit([]).visible).rejects.toMatchObject(UNAVAILABLE);
    await expect(session.counts()).rejects.toMatchObject(UNAVAILABLE);
    await expect(session.prune(0, 1)).rejects.toMatchObject(UNAVAILABLE);
    await t.reopen();
    expect((await t.session.views([1, 2, 3].map(idOf))).map((view) => view?.task.id)).toEqual([
      idOf(1),
      undefined,
      undefined,
    ]);
    await t.commit(createOneOff(2));
    await t.dispose();
  });

  it('for want of space fails alone', async () => {
    const full = new StoreFullError('full');
    const t = await Trial.open(subjectOf({ fail: (n) => (n === 1 ? full : undefined) }));
    const failed = t.session.commit([createOneOff(1)]);
    const behind = t.session.commit([createOneOff(2)]);
    await expect(failed.visible).rejects.toBe(full);
    await expect(failed.durable).rejects.toBe(full);
    expect(await behind.visible).toEqual([]);
    await behind.durable;
    expect(t.session.unflushedBytes).toBe(0);
    expect(await t.view(idOf(1))).toBeUndefined();
    await t.dispose();
  });

  it('of more records than the store may hold fails alone, and changes nothing', async () => {
    const t = await Trial.open(subjectOf({ maxRecords: 2 }));
    await t.commit(createOneOff(1));
    const tooMany = t.session.commit([createOneOff(2), createOneOff(3)]);
    await expect(tooMany.visible).rejects.toMatchObject({ code: 'TICKWHEEL_STORE_FULL' });
    expect(await t.view(idOf(2))).toBeUndefined();
    await t.commit(createOneOff(2), endOneOff(1, 'dead', START_MS));
    await t.commit({ taskId: idOf(1), remove: { revision: 2 } }, createOneOff(3)).catch(() => {});
    await t.commit({ taskId: idOf(2), remove: { revision: 1 } });
    await t.dispose();
  });

  it('in its flush takes back all that was not durable', async () => {
    const cause = new Error('fsync');
    const t = await Trial.open(subjectOf({ failFlush: (n) => (n === 2 ? cause : undefined) }));
    await t.commitDurably(createOneOff(1));
    const failed = t.session.commit([createOneOff(2)]);
    expect(await failed.visible).toEqual([]);
    await expect(failed.durable).rejects.toMatchObject({ ...UNAVAILABLE, cause });
    await t.reopen();
    expect(await t.view(idOf(1))).toBeDefined();
    expect(await t.view(idOf(2))).toBeUndefined();
    await t.dispose();
  });
});

describe('memory of the memory store', () => {
  it('is used again after removal: many rounds take no more than one', async () => {
    const t = await Trial.open(subjectOf());
    const round = async (n: number): Promise<void> => {
      const numbers = Array.from({ length: 2000 }, (_, i) => n * 2000 + i);
      const patch = (i: number) => ({ idempotencyKey: `key-${i}`, payload: bytes(300) });
      await t.commit(...numbers.map((i) => createOneOff(i, patch(i))));
      await t.commit(...numbers.map((i) => endedUnit(i, patch(i))));
      expect(await t.prune(START_MS + 365 * 24 * 3_600_000)).toBe(2000);
    };
    await round(0);
    const { bytes: afterOne } = await t.session.counts();
    for (let n = 1; n < 5; n++) await round(n);
    const { bytes: afterFive } = await t.session.counts();
    expect(afterFive).toBeLessThanOrEqual(afterOne * 1.1);
    await t.dispose();
  });

  it('stays below 300 bytes a pending one-off', async () => {
    const t = await Trial.open(subjectOf());
    const count = 20_000;
    for (let n = 0; n < count; n += 2000) {
      const units = Array.from({ length: 2000 }, (_, i) =>
        createOneOff(n + i, { payload: bytes(64) }),
      );
      await t.commit(...units);
    }
    const counts = await t.session.counts();
    expect(counts.pending).toBe(count);
    expect(counts.bytes / count).toBeLessThan(300);
    await t.dispose();
  });

  it('keeps lone surrogates in keys apart', async () => {
    const t = await Trial.open(subjectOf());
    await t.commit(
      createOneOff(1, { idempotencyKey: 'x\ud800' }),
      createOneOff(2, { idempotencyKey: 'x\ud801' }),
    );
    expect(await t.session.taskIdOfKey('acme', 'x\ud801', START_MS)).toBe(idOf(2));
    expect((await t.view(idOf(1)))?.task.idempotencyKey).toBe('x\ud800');
    await t.dispose();
  });
});

function endedUnit(n: number, patch: Parameters<typeof taskOf>[1]) {
  const task = taskOf(n, patch);
  const occurrence = occurrenceOf(task);
  return writing(
    next(task, { state: 'completed', endedAt: START_MS, lastEnd: 'succeeded' }),
    next(occurrence, { state: 'succeeded', endedAt: START_MS, result: bytes(40), attempt: 1 }),
  );
}
