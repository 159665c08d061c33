/** The log of rows: generations moved to the tree while all goes on, and what a crash leaves of them. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import { openSession } from '../../src/store/lmdb/opening.js';
import type { RowLogLimits } from '../../src/store/lmdb/row-log.js';
import type { Store, StoreSession, Unit } from '../../src/store/store.js';
import { creating, next, occurrenceOf, START_MS, taskOf, writing } from './builders.js';
import { compareWithModel } from './model-check.js';
import { recounting } from './recount.js';

const SMALL: RowLogLimits = { rowsMax: 20, bytesMax: 2 ** 20, movesMin: 2, removalsMax: 2 };
const RETENTION = { succeededMs: 3_600_000, failedMs: 3_600_000 };
const paths: string[] = [];

afterEach(() => {
  for (const path of paths.splice(0)) rmSync(path, { recursive: true });
});

function newPath(): string {
  const path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  paths.push(path);
  return path;
}

function storeIn(path: string, limits = SMALL): Store {
  const { capabilities } = lmdbStore({ path });
  return {
    capabilities,
    open: (options) =>
      openSession({ path, made: undefined }, options, () => {}, { rowLog: limits }),
  };
}

const open = (path: string, limits = SMALL): Promise<StoreSession> =>
  storeIn(path, limits).open({ clock: new VirtualClock(START_MS), retention: RETENTION });

describe('the log of rows', () => {
  it.each([41, 42, 43])('changes nothing of what a store tells (STORE_SEED=%i)', async (seed) => {
    const path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
    const store = recounting(storeIn(path));
    const make = () => ({
      store,
      recount: () => store.recount(),
      clock: new VirtualClock(START_MS),
      dispose: () => rmSync(path, { recursive: true }),
    });
    await compareWithModel(make, seed, 300);
  });

  it('is read at open with what was moved of it half, at any commit', async () => {
    const path = newPath();
    const session = await open(path);
    const tasks = Array.from({ length: 60 }, (_, n) => taskOf(n, {}));
    const commit = async (units: readonly Unit[]): Promise<void> => {
      const { visible, durable } = session.commit(units);
      expect(await visible).toEqual([]);
      await durable;
    };
    await commit(tasks.map((task) => creating(task, occurrenceOf(task))));
    const revisions = tasks.map(() => 1);
    let checked = 0;
    for (let step = 0; step < 40; step++) {
      const units: Unit[] = [];
      for (let k = 0; k < 7; k++) {
        // In no order of ids, some often and some seldom.
        const n = (step * 17 + k * k * 5) % tasks.length;
        if (revisions[n] !== (tasks[n]?.revision ?? 0)) continue;
        const changed = next(tasks[n] as (typeof tasks)[0], { priority: (step + k) % 10 });
        if (units.some(({ taskId }) => taskId === changed.id)) continue;
        units.push(writing(changed));
        tasks[n] = changed;
        revisions[n] = changed.revision;
      }
      await commit(units);
      if (step % 3 !== 0) continue;
      // As a kill would leave it: all that is durable is in the file.
      const copy = newPath();
      cpSync(path, copy, { recursive: true });
      const again = await open(copy);
      const views = await again.views(tasks.map(({ id }) => id));
      expect(views.map((view) => view?.task)).toEqual(tasks);
      const page = await again.listTasks({ limit: 100 });
      expect(page.items.map(({ task }) => task)).toEqual(tasks);
      await again.close();
      checked++;
    }
    expect(checked).toBeGreaterThan(10);
    await session.close();
  });

  it('names no task that was removed, wherever its older versions lie', async () => {
    const path = newPath();
    const session = await open(path);
    const tasks = Array.from({ length: 50 }, (_, n) => taskOf(n, {}));
    const commit = async (units: readonly Unit[]) => {
      expect(await session.commit(units).visible).toEqual([]);
    };
    await commit(tasks.map((task) => creating(task, occurrenceOf(task))));
    const changed = tasks.map((task) => next(task, { priority: 3 }));
    await commit(changed.map((task) => writing(task)));
    for (let at = 0; at < 50; at += 10) {
      await commit(
        changed.slice(at, at + 5).map((task) => ({
          taskId: task.id,
          remove: { revision: task.revision },
        })),
      );
    }
    const left = changed.filter((_, n) => n % 10 >= 5);
    const listed = async (from: StoreSession) =>
      (await from.listTasks({ limit: 100 })).items.map(({ task }) => task.id);
    expect(await listed(session)).toEqual(left.map(({ id }) => id));
    await session.close();
    const again = await open(path);
    expect(await listed(again)).toEqual(left.map(({ id }) => id));
    await again.close();
  });
});
