/**
 * Power loss while a store is opened for the first time: before its first flush any page of the file may be on the disk and
 * any may not, and nobody was told of anything. It must open, empty. So the file gets its name when it has been flushed, and
 * what has the name and lost its first pages is damaged: it must not be taken for new.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock/turn.js';
import { lmdbStore, Scheduler } from '../../src/index.js';
import { isFlushed, newestOf, PAGE_BYTES } from './image.js';
import { Child } from './process.js';

let path: string;
let file: string;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  file = join(path, 'data.mdb');
});

afterEach(() => {
  rmSync(path, { recursive: true, force: true });
});

async function open(): Promise<Scheduler> {
  return Scheduler.open({ store: lmdbStore({ path }) });
}

async function fill(): Promise<string> {
  const scheduler = await open();
  const { id } = await scheduler.schedule('any', 1, { delay: '1h' });
  await scheduler.shutdown();
  return id;
}

describe('power loss in the first open', () => {
  it.runIf(process.platform === 'linux')('finds no file that was not flushed', async () => {
    const child = new Child('./child.ts', [path, join(path, 'journal'), '1', 'inline']);
    while ((await child.line()) !== 'loaded');
    while (!existsSync(file)) await nextTurn();
    await child.stop();
    const look = readFileSync(file);
    await child.kill();
    expect(isFlushed(look)).toBe(true);
    expect(newestOf(look)).toBeGreaterThan(0);
    await (await open()).shutdown();
  });

  it('may leave anything of a file without its name', async () => {
    await fill();
    const whole = readFileSync(file);
    const half = whole.subarray(0, whole.length / 2);
    const holed = Buffer.from(whole).fill(0, 0, 2 * PAGE_BYTES);
    for (const left of [Buffer.alloc(0), Buffer.alloc(PAGE_BYTES), half, holed, whole]) {
      rmSync(path, { recursive: true });
      mkdirSync(path);
      writeFileSync(`${file}.new`, left);
      writeFileSync(`${file}.new-lock`, left);
      const scheduler = await open();
      expect((await scheduler.stats()).pending).toBe(0);
      const { id } = await scheduler.schedule('any', 1, { delay: '1h' });
      await scheduler.shutdown();
      expect(readdirSync(path).sort()).toEqual(['data.mdb', 'data.mdb-lock']);
      const again = await open();
      expect((await again.get(id))?.status).toBe('scheduled');
      await again.shutdown();
    }
  });
});

describe('a store that lost its beginning', () => {
  const both = 2 * PAGE_BYTES;
  it.each<[string, (image: Buffer) => Buffer]>([
    ['its first page', (image) => image.fill(0, 0, PAGE_BYTES)],
    ['its second page', (image) => image.fill(0, PAGE_BYTES, both)],
    ['both', (image) => image.fill(0, 0, both)],
    ['all its pages', (image) => image.fill(0)],
    ['all but its first byte', (image) => image.subarray(0, 1)],
    ['all it had', () => Buffer.alloc(0)],
  ])('is damaged, not new: %s', async (_, damage) => {
    await fill();
    writeFileSync(file, damage(readFileSync(file)));
    const expected = { code: 'TICKWHEEL_STORE_CORRUPT', message: expect.stringContaining(file) };
    await expect(open()).rejects.toMatchObject(expected);
    const reader = Scheduler.open({ store: lmdbStore({ path, readOnly: true }) });
    await expect(reader).rejects.toMatchObject(expected);
  });
});
