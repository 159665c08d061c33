/**
 * A full disk, for real: a small file system in memory, where the system lets us mount one. lmdb-js writes the error of
 * each failed transaction to the console.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { LmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import { verifyStore } from '../../src/store/lmdb/verify/verify.js';
import type { StoreSession } from '../../src/store/store.js';
import { bytes, createOneOff, idOf, START_MS } from './builders.js';
import { RETENTION } from './trial.js';

const DISK_MIB = 8;
const BALLAST_BYTES = 3 * 2 ** 20;
const PAYLOAD_BYTES = 3000;
let root: string;
let path: string;
/** Why there is no small disk. */
let missing: string | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  const disk = join(root, 'disk');
  mkdirSync(disk);
  path = join(disk, 'store');
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', disk];
    execFileSync('mount', options, { stdio: 'pipe' });
    missing = undefined;
    writeFileSync(join(disk, 'ballast'), Buffer.alloc(BALLAST_BYTES, 1));
  } catch (error) {
    missing = String((error as Error).message).trim();
  }
});

afterEach(() => {
  if (missing === undefined) execFileSync('umount', ['-l', join(root, 'disk')]);
  rmSync(root, { recursive: true, force: true });
});

function open(): Promise<StoreSession> {
  const store = new LmdbStore(path, { keys: { entriesMax: 64, workMax: 256 } });
  return store.open({ clock: new VirtualClock(START_MS), retention: RETENTION });
}

const create = (n: number) =>
  createOneOff(n, { payload: bytes(PAYLOAD_BYTES, n), idempotencyKey: `key ${n}` });

/** Creates, some at a time, until one is refused. Of each that was given, whether it is there. */
async function fillUp(
  session: StoreSession,
  base = 0,
): Promise<{ outcomes: boolean[]; codes: Set<string> }> {
  const outcomes: boolean[] = [];
  const codes = new Set<string>();
  while (codes.size === 0) {
    const from = base + outcomes.length;
    const commits = Array.from({ length: 6 }, (_, i) => session.commit([create(from + i)]));
    const settled = await Promise.allSettled(
      commits.map(({ visible, durable }) => Promise.all([visible, durable])),
    );
    for (const result of settled) {
      outcomes.push(result.status === 'fulfilled');
      if (result.status === 'rejected') codes.add(result.reason.code);
    }
  }
  return { outcomes, codes };
}

async function expectThere(session: StoreSession, outcomes: readonly boolean[]): Promise<void> {
  const views = await session.views(outcomes.map((_, n) => idOf(n)));
  expect(views.map((view) => view !== undefined)).toEqual(outcomes);
  for (const n of [0, outcomes.indexOf(false)]) {
    const holder = await session.taskIdOfKey('acme', `key ${n}`, START_MS);
    expect(holder).toBe(outcomes[n] ? idOf(n) : undefined);
  }
}

describe('a full disk', () => {
  it('fails what was on its way, leaves the rest to be read, and is over with space', async (context) => {
    if (missing !== undefined) context.skip(`no small disk can be mounted here: ${missing}`);
    const session = await open();
    const { outcomes, codes } = await fillUp(session);
    expect([...codes]).toEqual(['TICKWHEEL_STORE_FULL']);
    expect(outcomes.filter((isThere) => isThere).length).toBeGreaterThan(100);
    await expectThere(session, outcomes);
    // What is free by then is soon used up, and again only those on their way fail.
    const more = await fillUp(session, 10_000);
    expect([...more.codes]).toEqual(['TICKWHEEL_STORE_FULL']);

    rmSync(join(root, 'disk', 'ballast'));
    const first = outcomes.indexOf(false);
    const again = session.commit([create(first), create(first - 1)]);
    expect(await again.visible).toEqual([{ unit: 1, reason: 'revision' }]);
    await again.durable;
    outcomes[first] = true;
    await expectThere(session, outcomes);
    await session.close();
    const found = await verifyStore({ path, nowMs: () => START_MS });
    expect(found.disagreements).toEqual([]);
    const reopened = await open();
    await expectThere(reopened, outcomes);
    await reopened.close();
  });

  it('does not keep the store from being closed and opened', async (context) => {
    if (missing !== undefined) context.skip(`no small disk can be mounted here: ${missing}`);
    const session = await open();
    const { outcomes } = await fillUp(session);
    await session.close();
    rmSync(join(root, 'disk', 'ballast'));
    const again = await open();
    await expectThere(again, outcomes);
    await again.close();
  });
});
