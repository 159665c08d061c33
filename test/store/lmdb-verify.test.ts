/** `verifyStore`: silent on what schedulers leave behind, and loud about each index or counter that is wrong. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixedRate, lmdbStore, Scheduler, VirtualClock } from '../../src/index.js';
import { SEAL_BYTES, wholeWords } from '../../src/store/lmdb/bytes.js';
import { sealed } from '../../src/store/lmdb/seal.js';
import { type Verification, verifyStore } from '../../src/store/lmdb/verify/verify.js';
import { seeded } from '../scheduler/helpers.js';
import { START_MS } from './builders.js';

const SEED = Number(process.env.VERIFY_SEED ?? 20_261_130);
const random = seeded(SEED);
/** All that have something in them. */
const DATABASES = [
  'pool',
  'tasks',
  'rowlog',
  'history',
  'names',
  'attempts',
  'due',
  'buckets',
  'ends',
  'dead',
  'counts',
  'keyLog',
];
let root: string;
let copies = 0;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  await fill(join(root, 'store'));
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Something of everything that a store holds. */
async function fill(path: string): Promise<void> {
  const clock = new VirtualClock(START_MS, { settleTimeout: 20 });
  const handlers = {
    fine: (_payload: number) => 1,
    bad: (_payload: number) => {
      throw new Error('bad');
    },
  };
  const store = lmdbStore({ path });
  await using scheduler = await Scheduler.open({ clock, handlers, store });
  await scheduler.start();
  for (let n = 0; n < 40; n++) {
    await scheduler.schedule('fine', n, { delay: n * 7_000_000, idempotencyKey: `key ${n}` });
  }
  await scheduler.schedule('bad', 0, { retry: { maxAttempts: 3 } });
  await scheduler.schedule('fine', 0, { schedule: fixedRate({ every: '10s' }), tenant: 'other' });
  const paused = await scheduler.schedule('fine', 0, { delay: '1h' });
  await scheduler.pause(paused.id);
  const cancelled = await scheduler.schedule('fine', 0, { delay: '20d' });
  await scheduler.cancel(cancelled.id);
  await clock.advance('1m');
}

function verify(path: string): Promise<Verification> {
  return verifyStore({ path, nowMs: () => START_MS + 60_000 });
}

interface Raw {
  getRange(options: { limit?: number }): Iterable<{ key: Buffer; value: Buffer }>;
  put(key: Buffer, value: Buffer): Promise<unknown>;
  remove(key: Buffer): Promise<unknown>;
}

type Damage = (db: Raw, first: { key: Buffer; value: Buffer }) => Promise<unknown>;

/** A copy of which one database was changed. */
async function damaged(name: string, damage: Damage): Promise<string> {
  const path = join(root, `copy-${copies++}`);
  mkdirSync(path);
  cpSync(join(root, 'store', 'data.mdb'), join(path, 'data.mdb'));
  const env = openLmdb(join(path, 'data.mdb'), { noSubdir: true, maxDbs: 24 } as never);
  const options = { encoding: 'binary', keyEncoding: 'binary' } as never;
  const db = env.openDB(name, options) as unknown as Raw;
  // The first task has run: its newest version is in the log of rows, and in the tree is an old one. The second has not.
  const first = [...db.getRange({ limit: 2 })][name === 'tasks' ? 1 : 0];
  expect(first, `${name} holds something`).toBeDefined();
  const copy = { key: Buffer.from(first?.key ?? []), value: Buffer.from(first?.value ?? []) };
  await damage(db, copy);
  await env.close();
  return path;
}

const removed: Damage = (db, { key }) => db.remove(key);

/** A task that nothing has changed: of others the log may have a newer form. */
const removedPending: Damage = (db) => {
  const keys = [...db.getRange({})].map(({ key }) => Buffer.from(key));
  return db.remove(keys[20] as Buffer);
};

function bodyOf(value: Buffer): Buffer {
  return Buffer.from(value.subarray(0, value.length - SEAL_BYTES));
}

/** Under a key that differs in one byte, with the right checksum. */
function forged(at: number): Damage {
  return (db, { key, value }) => {
    const other = Buffer.from(key);
    other[at] = (other[at] ?? 0) ^ 1;
    return db.put(other, sealed(other, bodyOf(value)));
  };
}

/** With the right checksum. */
function changed(at: number): Damage {
  return (db, { key, value }) => {
    const other = bodyOf(value);
    const place = at < 0 ? other.length + at : at;
    other[place] = (other[place] ?? 0) ^ 1;
    return db.put(key, sealed(key, other));
  };
}

/** One bit of the value, as a disk may lose it. */
const flipped: Damage = (db, { key, value }) => {
  const other = Buffer.from(value);
  const place = Math.floor(other.length * random());
  other[place] = (other[place] ?? 0) ^ (1 << Math.floor(8 * random()));
  return db.put(key, other);
};

/** A log in which all names of tasks are one off. */
const renamed: Damage = async (db) => {
  for (const { key, value } of [...db.getRange({})]) {
    const other = Buffer.from(value);
    for (let at = 0; at < other.length; ) {
      const length = other.readUInt32LE(at + 16);
      other[at + 15] = (other[at + 15] ?? 0) ^ 1;
      const id = other.subarray(at, at + 16);
      other.set(sealed(id, other.subarray(at + 20, at + 20 + length)), at + 20);
      at += wholeWords(20 + length + SEAL_BYTES);
    }
    await db.put(Buffer.from(key), other);
  }
};

describe('verify', () => {
  it('finds that all agrees where it does', async () => {
    const found = await verify(join(root, 'store'));
    expect(found.disagreements).toEqual([]);
    expect(found).toMatchObject({ tasks: 44, disagreementCount: 0, notCompared: [] });
    expect(found.occurrences).toBeGreaterThan(49);
    expect(found.attempts).toBeGreaterThanOrEqual(2);
    expect(found.dueEntries).toBeGreaterThanOrEqual(39);
  });

  const cases: readonly [string, string, Damage, RegExp][] = [
    ['a count that is off', 'counts', changed(-1), /count \w+ of tenant/],
    ['a count that is gone', 'counts', removed, /count \w+ of tenant/],
    ['a task that is gone', 'tasks', removedPending, /key leads to task|count/],
    ['a task that is another', 'tasks', forged(15), /key/],
    ['a chunk of the due index that is gone', 'due', removed, /not in the due index/],
    ['a chunk of the due index that is there twice', 'due', forged(38), /bucket .* counts/],
    ['a bucket that is gone', 'buckets', removed, /not listed/],
    ['a bucket that counts wrongly', 'buckets', changed(0), /bucket .* counts/],
    ['an occurrence that is gone from the history', 'history', removed, /in its history/],
    ['a history of no task', 'history', forged(15), /history holds/],
    ['a name that is gone', 'names', removed, /not found by its name/],
    ['a name that leads nowhere', 'names', forged(15), /leads to no occurrence/],
    ['an attempt that is gone', 'attempts', removed, /attempts, there are/],
    ['an attempt of nothing', 'attempts', forged(15), /belongs to no occurrence/],
    ['a log of tasks that are not there', 'rowlog', renamed, /not in the tree/],
    ['a dead letter that is gone', 'dead', removed, /not listed as one/],
    ['a dead letter that is none', 'dead', forged(7), /has no such one/],
    ['an end that retention does not know', 'ends', removed, /retention does not know/],
    ['keys that are gone', 'keyLog', removed, /not found by it/],
    ['keys of other tasks', 'keyLog', changed(20), /does not have it/],
  ];
  it.each(cases)('finds %s', async (_, name, damage, expected) => {
    const { disagreements, disagreementCount } = await verify(await damaged(name, damage));
    expect(disagreementCount).toBeGreaterThan(0);
    expect(disagreements.join('\n')).toMatch(expected);
  });

  const flips = DATABASES.flatMap((name) => [1, 2, 3].map((n) => [name, n] as const));
  it.each(flips)(`finds a bit that was lost in '%s' (VERIFY_SEED=${SEED}), %i`, async (name) => {
    const found = await verify(await damaged(name, flipped)).then(
      ({ disagreements }) => disagreements.join('\n'),
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'TICKWHEEL_STORE_CORRUPT' });
        return (error as Error).message;
      },
    );
    expect(found).toMatch(new RegExp(`of '${name}' is not what was written|newest version of`));
  });

  it('knows that a key which has passed on stays where it is when the clock goes back', async () => {
    const path = join(root, 'passed-on');
    const clock = new VirtualClock(START_MS, { settleTimeout: 20 });
    const handlers = { fine: () => 1 };
    const scheduler = await Scheduler.open({ clock, handlers, store: lmdbStore({ path }) });
    await scheduler.start();
    const options = { idempotencyKey: 'passed on', idempotencyTtl: '1m' };
    const first = await scheduler.schedule('fine', undefined, options);
    await clock.advance('2m');
    const second = await scheduler.schedule('fine', undefined, options);
    expect(second.id).not.toBe(first.id);
    await scheduler.shutdown();
    const { disagreements } = await verifyStore({ path, nowMs: () => START_MS + 30_000 });
    expect(disagreements).toEqual([]);
  });

  it('names the file when there is no store', async () => {
    await expect(verify(join(root, 'nothing'))).rejects.toMatchObject({
      code: 'TICKWHEEL_STORE_UNAVAILABLE',
      message: expect.stringContaining('data.mdb'),
    });
  });
});
