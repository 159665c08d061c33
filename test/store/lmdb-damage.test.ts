/**
 * Damage to the file beside that of values, which have checksums: whatever page is gone, is another or has lost a bit, the
 * store is refused, or gives all that was in it. It never gives less, and never ends the process.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lmdbStore, Scheduler, VirtualClock, verifyStore } from '../../src/index.js';
import { checkPages } from '../../src/store/lmdb/page-check.js';
import { seeded } from '../scheduler/helpers.js';
import { START_MS } from './builders.js';

const SEED = Number(process.env.DAMAGE_SEED ?? 20_261_130);
const PAGE_BYTES = 4096;
/** Where a page or a meta says what it is. */
const HEADER_BYTES = 24;
const META_BYTES = 168;
const FLIPS = Number(process.env.DAMAGE_FLIPS ?? 20);
const TASKS = 200;
let root: string;
let whole: Buffer;
let right: string;
let copies = 0;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  const path = join(root, 'store');
  const clock = new VirtualClock(START_MS);
  const scheduler = await Scheduler.open({ clock, store: lmdbStore({ path }) });
  const tasks = Array.from({ length: TASKS }, (_, n) => ({
    handler: 'any',
    payload: 'x'.repeat(n % 50 === 0 ? 10_000 : n),
    options: { delay: n * 10_000_000 + 1, idempotencyKey: `key ${n}`, tenant: `tenant ${n % 3}` },
  }));
  for (let n = 0; n < TASKS; n += 100) await scheduler.scheduleMany(tasks.slice(n, n + 100));
  await scheduler.shutdown();
  whole = readFileSync(join(path, 'data.mdb'));
  right = await contentOf(whole);
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

function storeOf(image: Buffer): string {
  const path = join(root, `copy-${copies++}`);
  mkdirSync(path);
  writeFileSync(join(path, 'data.mdb'), image);
  return path;
}

/** All that it gives. @throws when it is refused */
async function contentOf(image: Buffer): Promise<string> {
  const path = storeOf(image);
  const clock = new VirtualClock(START_MS);
  try {
    const scheduler = await Scheduler.open({ clock, store: lmdbStore({ path }) });
    try {
      const { items } = await scheduler.list({ limit: 1000 });
      const { pending, tenants } = await scheduler.stats();
      return JSON.stringify({ items, pending, tenants });
    } finally {
      await scheduler.shutdown();
    }
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

/** @returns whether it was found */
async function expectFoundOrHarmless(image: Buffer, what: string): Promise<boolean> {
  const content = await contentOf(image).catch((error: unknown) => {
    expect(error, what).toMatchObject({
      code: 'TICKWHEEL_STORE_CORRUPT',
      message: expect.stringContaining('data.mdb'),
    });
    return undefined;
  });
  if (content === undefined) return true;
  expect(content === right, `${what}: all is there`).toBe(true);
  return false;
}

function changed(change: (image: Buffer) => void): Buffer {
  const image = Buffer.from(whole);
  change(image);
  return image;
}

describe('damage', () => {
  it('by which a page reads as zeros, as that of another, or is the end', async () => {
    let found = 0;
    const pages = whole.length / PAGE_BYTES;
    expect(pages).toBeGreaterThan(30);
    for (let page = 0; page < pages; page++) {
      const [from, to] = [page * PAGE_BYTES, (page + 1) * PAGE_BYTES];
      const zeroed = changed((image) => image.fill(0, from, to));
      if (await expectFoundOrHarmless(zeroed, `page ${page} as zeros`)) found++;
      if (page % 5 !== 0) continue;
      const other = ((page + 7) % pages) * PAGE_BYTES;
      const copied = changed((image) => image.copy(image, from, other, other + PAGE_BYTES));
      await expectFoundOrHarmless(copied, `page ${page} as another`);
      await expectFoundOrHarmless(whole.subarray(0, from + 100), `the end in page ${page}`);
    }
    // Those that are free do no harm.
    expect(found).toBeGreaterThan(pages / 2);
  });

  it(`by which a bit is lost (DAMAGE_SEED=${SEED})`, async () => {
    const random = seeded(SEED);
    const below = (end: number): number => Math.floor(random() * end);
    for (let n = 0; n < FLIPS; n++) {
      for (const at of [
        below(whole.length),
        below(whole.length / PAGE_BYTES) * PAGE_BYTES + below(2 * HEADER_BYTES),
        below(2) * PAGE_BYTES + below(META_BYTES),
      ]) {
        const mask = 1 << below(8);
        const flipped = changed((image) => {
          image[at] = (image[at] ?? 0) ^ mask;
        });
        await expectFoundOrHarmless(flipped, `bit ${mask} at ${at}`);
      }
    }
  });

  it('is found by verify in pages that an open does not look at', async () => {
    const isGone = (page: number, max: number): boolean => {
      const path = storeOf(
        changed((image) => image.fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES)),
      );
      try {
        for (const _ of checkPages(join(path, 'data.mdb'), max));
        return false;
      } catch {
        return true;
      }
    };
    const pages = Array.from({ length: whole.length / PAGE_BYTES }, (_, page) => page).slice(2);
    const unseen = pages.filter((page) => isGone(page, Infinity) && !isGone(page, 20));
    expect(unseen.length).toBeGreaterThan(2);
    const page = unseen[0] ?? 0;
    const path = storeOf(
      changed((image) => image.fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES)),
    );
    await expect(verifyStore({ path })).rejects.toMatchObject({
      code: 'TICKWHEEL_STORE_CORRUPT',
      message: expect.stringContaining(`page ${page} `),
    });
  });
});

describe('a file of another program', () => {
  it('is refused, and stays as it is', async () => {
    const path = join(root, 'foreign');
    mkdirSync(path);
    const file = join(path, 'data.mdb');
    const foreign = openLmdb(file, { noSubdir: true } as never);
    await foreign.put('a', 1);
    await foreign.close();
    const before = readFileSync(file);
    for (const readOnly of [false, true]) {
      const opened = Scheduler.open({ store: lmdbStore({ path, readOnly }) });
      await expect(opened).rejects.toMatchObject({ code: 'TICKWHEEL_STORE_CORRUPT' });
    }
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe('what is not what it should be', () => {
  const REFUSED = { code: 'TICKWHEEL_STORE_UNAVAILABLE' };
  const open = (path: string, readOnly = false) =>
    Scheduler.open({ store: lmdbStore({ path, readOnly }) });

  it('a directory in the place of a file', async () => {
    for (const name of ['data.mdb', 'data.mdb-lock', 'tickwheel.lock']) {
      const path = storeOf(whole);
      rmSync(join(path, name), { force: true });
      mkdirSync(join(path, name));
      await expect(open(path), name).rejects.toMatchObject(REFUSED);
    }
  });

  it('a file in the place of the directory, or on the way to it', async () => {
    const path = join(root, 'a-file');
    writeFileSync(path, '');
    for (const there of [path, join(path, 'below'), join(root, 'x'.repeat(300))]) {
      await expect(open(there)).rejects.toMatchObject(REFUSED);
      await expect(open(there, true)).rejects.toMatchObject(REFUSED);
    }
  });

  it('a lock of no process', async () => {
    for (const pid of [0, -1, 0.5, null]) {
      const path = storeOf(whole);
      writeFileSync(join(path, 'tickwheel.lock'), JSON.stringify({ pid, start: '', boot: '' }));
      await (await open(path)).shutdown();
    }
  });

  it('is told again and again, and holds nothing open', async () => {
    const path = storeOf(changed((image) => image.fill(0, 2 * PAGE_BYTES)));
    for (let n = 0; n < 3; n++) {
      for (const readOnly of [true, false]) {
        await expect(open(path, readOnly)).rejects.toMatchObject({
          code: 'TICKWHEEL_STORE_CORRUPT',
        });
      }
    }
    // Once it is put back it opens: nothing of the damaged one is kept.
    cpSync(join(root, 'store', 'data.mdb'), join(path, 'data.mdb'));
    const scheduler = await open(path);
    expect((await scheduler.stats()).pending).toBe(TASKS);
    await scheduler.shutdown();
  });
});
