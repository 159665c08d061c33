/**
 * Power loss while a store is opened for the first time: before its first flush any page of the file may be on the disk and
 * any may not, and nobody was told of anything. It must open, empty. What was flushed once and has lost a first page is
 * damaged, and must not be taken for new.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock/turn.js';
import { lmdbStore, Scheduler, systemClock } from '../../src/index.js';
import { FIRST_TRANSACTIONS } from '../../src/store/lmdb/file-check.js';
import { Dice } from '../simulation/dice.js';
import { isFlushed, newestOf, PAGE_BYTES, rebooted } from './image.js';
import { Child } from './process.js';

const SEED = 20_261_203;
const LOOKS = 3;
const TRIES_MAX = 200;
/** Of so many pages all images are made. */
const PAGES_MAX = 6;
let path: string;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
});

afterEach(() => {
  rmSync(path, { recursive: true, force: true });
});

/** The file as a process had it that was stopped in its first open. */
async function lookAtFirstOpen(directory: string, waitMs: number): Promise<Buffer> {
  mkdirSync(directory);
  const child = new Child('./child.ts', [directory, join(directory, 'journal'), '1', 'inline']);
  const file = join(directory, 'data.mdb');
  while ((await child.line()) !== 'loaded');
  while (!existsSync(file) || statSync(file).size === 0) await nextTurn();
  if (waitMs > 0) await systemClock().sleep(waitMs);
  await child.stop();
  const look = readFileSync(file);
  await child.kill();
  return look;
}

/** Those pages of the file that `chosen` has a bit for, the others as zeros, or not there at the end. */
function imageOf(file: Buffer, chosen: number, isFullLength: boolean): Buffer {
  const image = Buffer.alloc(file.length);
  let end = 0;
  for (let page = 0; page * PAGE_BYTES < file.length; page++) {
    if ((chosen & (1 << page)) === 0) continue;
    end = (page + 1) * PAGE_BYTES;
    file.copy(image, page * PAGE_BYTES, page * PAGE_BYTES, end);
  }
  return rebooted(isFullLength ? image : image.subarray(0, end));
}

async function open(directory: string): Promise<Scheduler> {
  return Scheduler.open({ store: lmdbStore({ path: directory }) });
}

describe.runIf(process.platform === 'linux')('power loss', () => {
  it('before the first flush leaves a store that opens', async () => {
    const dice = new Dice(SEED);
    const looks: Buffer[] = [];
    for (let tries = 0; looks.length < LOOKS; tries++) {
      expect(tries, 'looks before the first flush').toBeLessThan(TRIES_MAX);
      const look = await lookAtFirstOpen(join(path, `first-${tries}`), dice.below(4));
      if (!isFlushed(look)) looks.push(look);
    }
    for (const look of looks) {
      const pages = Math.min(PAGES_MAX, look.length / PAGE_BYTES);
      for (let chosen = 0; chosen < 2 ** pages; chosen++) {
        // Written first, and with one call: without both, what else is there might be of a store that was in use.
        if (chosen !== 0 && (chosen & 3) === 0) continue;
        for (const isFullLength of [true, false]) {
          const directory = join(path, 'image');
          mkdirSync(directory);
          writeFileSync(join(directory, 'data.mdb'), imageOf(look, chosen, isFullLength));
          const scheduler = await open(directory);
          expect((await scheduler.stats()).pending).toBe(0);
          const task = await scheduler.schedule('any', 1, { delay: '1h' });
          await scheduler.shutdown();
          const again = await open(directory);
          expect((await again.get(task.id))?.status).toBe('scheduled');
          await again.shutdown();
          rmSync(directory, { recursive: true });
        }
      }
    }
  });
});

it('nothing but databases and the epoch is in a store that was opened for the first time', async () => {
  await (await open(path)).shutdown();
  expect(newestOf(readFileSync(join(path, 'data.mdb')))).toBe(FIRST_TRANSACTIONS);
});

describe('a store of which a first page is gone', () => {
  it.each([0, 1, 2])('is damaged, not new: page %i (2: both)', async (gone) => {
    const scheduler = await open(path);
    await scheduler.schedule('any', 1, { delay: '1h' });
    await scheduler.shutdown();
    const file = join(path, 'data.mdb');
    const image = readFileSync(file);
    const from = gone === 1 ? PAGE_BYTES : 0;
    image.fill(0, from, gone === 0 ? PAGE_BYTES : 2 * PAGE_BYTES);
    writeFileSync(file, image);
    await expect(open(path)).rejects.toMatchObject({ code: 'TICKWHEEL_STORE_CORRUPT' });
    const reader = Scheduler.open({ store: lmdbStore({ path, readOnly: true }) });
    await expect(reader).rejects.toMatchObject({ code: 'TICKWHEEL_STORE_CORRUPT' });
  });
});
