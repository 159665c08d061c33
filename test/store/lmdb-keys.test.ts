/** Idempotency keys in the LMDB store: the index takes part in its commits, through flushes, merges and reopenings. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock/turn.js';
import { VirtualClock } from '../../src/clock/virtual.js';
import { LmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import type { StoreSession, Unit } from '../../src/store/store.js';
import { createOneOff, endOneOff, HOUR_MS, idOf, policies, START_MS, taskOf } from './builders.js';
import { testStore } from './conformance.js';
import { recounting } from './recount.js';
import { RETENTION } from './trial.js';

const SMALL = { entriesMax: 8, workMax: 64 };
let path: string;
let idlers = 10_000;
let session: StoreSession | undefined;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
});

afterEach(async () => {
  await session?.close();
  session = undefined;
  rmSync(path, { recursive: true, force: true });
});

async function reopened(keys = SMALL): Promise<StoreSession> {
  await session?.close();
  const store = new LmdbStore(path, { keys });
  session = await store.open({ clock: new VirtualClock(START_MS), retention: RETENTION });
  return session;
}

const keyOf = (n: number): string => `key-${n}`;
const keyed = (n: number, key = n): Unit => createOneOff(n, { idempotencyKey: keyOf(key) });

function endKeyed(n: number, atMs: number): Unit {
  const patch = { idempotencyKey: keyOf(n), policies: policies({ idempotencyTtlMs: HOUR_MS }) };
  const unit = endOneOff(n, 'succeeded', atMs);
  const record = { ...taskOf(n, patch), ...pick(unit.task?.record) };
  return { ...unit, task: { record, expected: 1 } };
}

/** What ending changes. */
function pick(record: NonNullable<Unit['task']>['record'] | undefined): object {
  const { state, lastEnd, endedAt, endReason, revision } = record as NonNullable<typeof record>;
  return { state, lastEnd, endedAt, endReason, revision };
}

async function create(of: StoreSession, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 5) {
    const units = Array.from({ length: Math.min(5, to - n) }, (_, i) => keyed(n + i));
    expect(await of.commit(units).visible).toEqual([]);
  }
}

/** Moments with nothing under way. */
async function idleFor(of: StoreSession, moments: number): Promise<void> {
  for (let n = 0; n < moments; n++) {
    await of.commit([createOneOff(idlers++)]).durable;
    for (let turns = 0; turns < 5; turns++) await nextTurn();
  }
}

/** What the files hold of keys: log records, runs. Of a closed store. */
async function onDisk(): Promise<{ log: number; runs: number }> {
  const raw = openLmdb(join(path, 'data.mdb'), { noSubdir: true, maxDbs: 24 } as never);
  const options = { encoding: 'binary', keyEncoding: 'binary' } as never;
  const keys = [...raw.openDB('keyRuns', options).getKeys({})] as Buffer[];
  const runs = new Set(keys.map((key) => Math.floor(Number(key.readBigUInt64BE()) / 2 ** 26)));
  runs.delete(0);
  const log = [...raw.openDB('keyLog', options).getKeys({})].length;
  await raw.close();
  return { log, runs: runs.size };
}

async function expectHolders(of: StoreSession, to: number, isHeld: (n: number) => boolean) {
  for (let n = 0; n < to; n++) {
    const holder = await of.taskIdOfKey('acme', keyOf(n), START_MS + 1);
    expect(holder, `key ${n}`).toBe(isHeld(n) ? idOf(n) : undefined);
  }
}

describe('idempotency keys in the LMDB store', () => {
  it('are held through runs, merges and reopenings', async () => {
    const COUNT = 300;
    const first = await reopened();
    for (let n = 0; n < COUNT; n += 20) {
      await create(first, n, n + 20);
      await idleFor(first, 30);
    }
    await expectHolders(await reopened(), COUNT + 20, (n) => n < COUNT);
    await session?.close();
    const { log, runs } = await onDisk();
    expect(runs).toBeGreaterThan(0);
    // 300 entries in tables of 8 came to 37 runs, of which merges left few, and the log does not keep what is in runs.
    expect(runs).toBeLessThan(16);
    expect(log).toBeLessThan(60);
    const again = await reopened();
    const second = Array.from({ length: 40 }, (_, n) => keyed(1000 + n, n * 7));
    const refusals = await again.commit(second).visible;
    expect(refusals.map(({ reason, holder }) => [reason, holder])).toEqual(
      second.map((_, n) => ['key', idOf(n * 7)]),
    );
  });

  it('move from the log to runs in idle moments', async () => {
    const idle = await reopened({ ...SMALL, workMax: 1_000_000 });
    await create(idle, 0, 100);
    // Adds have paid for no work yet.
    await idleFor(idle, 60);
    await idle.close();
    const { log, runs } = await onDisk();
    expect(runs).toBeGreaterThan(0);
    expect(log).toBeLessThan(15);
  });

  it('of removed tasks are free and leave nothing behind', async () => {
    const COUNT = 200;
    const first = await reopened();
    await create(first, 0, COUNT);
    const removals = Array.from({ length: COUNT }, (_, n) => n).filter((n) => n % 20 !== 0);
    for (const n of removals) {
      await first.commit([{ taskId: idOf(n), remove: { revision: 1 } }]).visible;
    }
    await expectHolders(first, COUNT, (n) => n % 20 === 0);
    await expectHolders(await reopened(), COUNT, (n) => n % 20 === 0);
    // They can be taken again, by another task.
    const again = await reopened();
    expect(await again.commit([keyed(5000, 7), keyed(5001, 20)]).visible).toEqual([
      { unit: 1, reason: 'key', holder: idOf(20) },
    ]);
    expect(await again.taskIdOfKey('acme', keyOf(7), START_MS)).toBe(idOf(5000));
  });

  it('of pruned tasks are free once their time is over', async () => {
    const COUNT = 60;
    const first = await reopened();
    await create(first, 0, COUNT);
    const ends = Array.from({ length: COUNT }, (_, n) => endKeyed(n, START_MS + 1000));
    expect(await first.commit(ends).visible).toEqual([]);
    await expectHolders(first, COUNT, () => true);
    const late = START_MS + 30 * 24 * HOUR_MS + 10_000;
    for (let removed = 1; removed > 0; ) ({ removed } = await first.prune(late, 10));
    expect((await first.views([idOf(1)]))[0]).toBeUndefined();
    await expectHolders(await reopened(), COUNT, () => false);
  });
});

testStore(
  'lmdb with small tables of keys',
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
    const store = recounting(new LmdbStore(directory, { keys: SMALL }));
    return {
      store,
      recount: () => store.recount(),
      clock: new VirtualClock(START_MS),
      dispose: () => rmSync(directory, { recursive: true }),
    };
  },
  { seeds: [41, 42] },
);
