/** What the LMDB store does with its files: the lock, reopening, a killed process, damage, formats. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { open as openLmdb } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { FORMAT, FORMAT_MIN } from '../../src/store/lmdb/formats.js';
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import { acquireLock } from '../../src/store/lmdb/lock.js';
import type { StoreSession } from '../../src/store/store.js';
import { createOneOff, idOf, next, occurrenceOf, START_MS, taskOf, writing } from './builders.js';
import { RETENTION } from './trial.js';

const CHILD = fileURLToPath(new URL('./child/store-child.ts', import.meta.url));
let path: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(path, { recursive: true, force: true });
});

const dataFile = (): string => join(path, 'data.mdb');

function open(): Promise<StoreSession> {
  return lmdbStore({ path }).open({ clock: new VirtualClock(START_MS), retention: RETENTION });
}

/** A child, and what it says line by line. */
function start(mode: 'hold' | 'write'): { child: ChildProcess; lines: AsyncIterator<string> } {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, mode, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  return { child, lines: lines[Symbol.asyncIterator]() };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = once(child, 'exit');
  child.kill('SIGKILL');
  await over;
}

async function fill(count: number): Promise<void> {
  const session = await open();
  await session.commit(Array.from({ length: count }, (_, n) => createOneOff(n))).durable;
  await session.close();
}

describe('a place where no store can be made', () => {
  it.each([
    { what: 'is a file', place: () => join(path, 'file') },
    { what: 'lies below a file', place: () => join(path, 'file', 'data') },
    { what: 'lies in /proc', place: () => '/proc/tickwheel/data' },
  ])('is told when it $what', async ({ what, place }) => {
    if (what.endsWith('/proc') && process.platform !== 'linux') return;
    writeFileSync(join(path, 'file'), '');
    const store = lmdbStore({ path: place() });
    const opening = store.open({ clock: new VirtualClock(START_MS), retention: RETENTION });
    await expect(opening).rejects.toMatchObject({ code: 'TICKWHEEL_STORE_UNAVAILABLE' });
  });

  it('is a directory of its own otherwise, with those above it', async () => {
    const place = join(path, 'a', 'b');
    const store = lmdbStore({ path: place });
    const session = await store.open({ clock: new VirtualClock(START_MS), retention: RETENTION });
    await session.close();
    expect(statSync(join(place, 'data.mdb')).size).toBeGreaterThan(0);
  });
});

describe('the lock', () => {
  it('keeps a second process out, names the holder, and dies with it', async () => {
    const { child, lines } = start('hold');
    expect((await lines.next()).value).toBe('open');
    await expect(open()).rejects.toMatchObject({
      code: 'TICKWHEEL_STORE_LOCKED',
      message: expect.stringContaining(`process ${child.pid}`),
    });
    await kill(child);
    const session = await open();
    expect(session.epoch).toBe(2);
    await session.close();
  });

  it.runIf(process.platform === 'linux')(
    'of a process that was killed is none, though nobody has asked how it ended',
    async () => {
      const { child, lines } = start('hold');
      expect((await lines.next()).value).toBe('open');
      child.kill('SIGKILL');
      // Without a turn of the event loop its parent, this process, does not ask.
      let release: (() => void) | undefined;
      const isZombie = (): boolean =>
        / Z /.test(readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(')').at(-1) as string);
      while (!isZombie());
      while (release === undefined) release = acquireLock(join(path, 'tickwheel.lock'));
      expect(isZombie()).toBe(true);
      release();
    },
  );

  // Only there does the system tell when a process began.
  it.runIf(process.platform === 'linux')(
    'of a process whose pid another has now is no lock',
    async () => {
      const lock = join(path, 'tickwheel.lock');
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      writeFileSync(lock, JSON.stringify({ pid: process.pid, start: '1', boot }));
      await (await open()).close();
      writeFileSync(lock, 'half a lo');
      await (await open()).close();
    },
  );
});

describe('a killed process', () => {
  it('loses nothing that was durable, and nothing is there in part', async () => {
    const { child, lines } = start('write');
    let durable = 0;
    expect((await lines.next()).value).toBe('open');
    while (durable < 400) durable = Number((await lines.next()).value);
    await kill(child);
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      durable = Number(line.value);
    }
    const session = await open();
    const ids = Array.from({ length: durable + 40 }, (_, n) => idOf(n));
    const views = await session.views(ids);
    expect(views.slice(0, durable).every((view) => view !== undefined)).toBe(true);
    for (let n = 0; n < ids.length; n += 20) {
      const there = views.slice(n, n + 20).filter((view) => view !== undefined).length;
      expect([0, 20]).toContain(there);
      if (n < durable) expect(views[n]?.task.state).toBe('completed');
    }
    const { pending, openTasks } = await session.counts();
    const live = views.filter((view) => view?.live.length === 1).length;
    expect({ pending, openTasks }).toEqual({ pending: live, openTasks: live });
    await session.close();
  });
});

describe('damage', () => {
  const CORRUPT = { code: 'TICKWHEEL_STORE_CORRUPT', message: expect.stringContaining('data.mdb') };

  it('at the beginning of the file is found at open', async () => {
    await fill(10);
    const fd = openSync(dataFile(), 'r+');
    writeSync(fd, Buffer.alloc(3 * 4096, 0x5a), 0, 3 * 4096, 0);
    closeSync(fd);
    await expect(open()).rejects.toMatchObject(CORRUPT);
    // The lock is not left behind.
    await expect(open()).rejects.toMatchObject(CORRUPT);
  });

  it('by which the file lost its end is found, and does not end the process', async () => {
    await fill(3000);
    truncateSync(dataFile(), Math.floor(statSync(dataFile()).size / 2 / 4096) * 4096);
    const reading = async (): Promise<unknown> => {
      const session = await open();
      try {
        return await session.views(Array.from({ length: 3000 }, (_, n) => idOf(n)));
      } finally {
        await session.close();
      }
    };
    await expect(reading()).rejects.toMatchObject(CORRUPT);
  });

  it('of the number of commits is found, or numbers would be given out twice', async () => {
    await fill(10);
    const session = await open();
    await session.commit([writing(next(taskOf(3), { priority: 2 }))]).durable;
    await session.close();
    const raw = openLmdb(dataFile(), { noSubdir: true, maxDbs: 20 } as never);
    const encoded = { encoding: 'binary', keyEncoding: 'binary', useVersions: true };
    const chain = raw.openDB('chain', encoded as never);
    await chain.put(Buffer.from([1]) as never, Buffer.from([1]) as never, 1);
    await raw.close();
    await expect(open()).rejects.toMatchObject(CORRUPT);
  });

  it('of what is no store at all is refused', async () => {
    writeFileSync(dataFile(), 'not a store, but long enough to be one '.repeat(1000));
    await expect(open()).rejects.toMatchObject(CORRUPT);
  });
});

describe('formats', () => {
  it.each([
    ['a newer one', FORMAT + 1],
    ['one that no version had that was given out', FORMAT_MIN - 1],
  ])('refuses a store of %s', async (_, format) => {
    await fill(1);
    const raw = openLmdb(dataFile(), { noSubdir: true, maxDbs: 20 } as never);
    const meta = raw.openDB('meta', { encoding: 'binary', keyEncoding: 'binary' } as never);
    await meta.put(Buffer.from([1]) as never, Buffer.from([format]) as never);
    await raw.close();
    await expect(open()).rejects.toMatchObject({
      code: 'TICKWHEEL_STORE_VERSION',
      message: expect.stringContaining(`format ${format}`),
    });
  });
});

describe('the default store', () => {
  it('keeps everything from one opening to the next', async () => {
    await fill(50);
    for (let round = 2; round < 5; round++) {
      const session = await open();
      expect(session.epoch).toBe(round);
      const [view] = await session.views([idOf(7)]);
      expect(view).toEqual({ task: taskOf(7), live: [occurrenceOf(taskOf(7))] });
      expect((await session.counts()).pending).toBe(50);
      await session.close();
    }
  });
});
