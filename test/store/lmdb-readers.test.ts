/** Who opens a store to read it does no harm to the process that writes it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { lmdbStore, systemClock } from '../../src/index.js';
import type { StoreSession } from '../../src/store/store.js';
import { createOneOff } from './builders.js';
import { RETENTION } from './trial.js';

const CHILD = fileURLToPath(new URL('./child/reader-child.ts', import.meta.url));
const GATE = 'tickwheel.opening';
const READERS = 2;
const OPENINGS = '12';
let path: string;
let session: StoreSession;

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  session = await lmdbStore({ path }).open({ clock: systemClock(), retention: RETENTION });
});

afterEach(async () => {
  await session.close();
  rmSync(path, { recursive: true });
});

it('opens beside one that commits all the time, again and again', async () => {
  let open = READERS;
  const ends = Array.from({ length: READERS }, async () => {
    const args = ['--import', 'tsx', CHILD, path, OPENINGS];
    const reader = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    const [code] = await once(reader, 'exit');
    open--;
    return code;
  });
  let tasks = 0;
  while (open > 0) {
    const { visible, durable } = session.commit([createOneOff(tasks)]);
    expect(await visible).toEqual([]);
    if (++tasks % 5 === 0) await durable;
  }
  expect(await Promise.all(ends)).toEqual(Array(READERS).fill(0));
  expect((await session.counts()).pending).toBe(tasks);
  expect(existsSync(join(path, GATE))).toBe(false);
});

it('is waited for, and not for long when it has died', async () => {
  const began = session.commit([createOneOff(1)]);
  await began.durable;
  const dead = { pid: 2 ** 22 + 1, start: '1', boot: 'another' };
  writeFileSync(join(path, GATE), JSON.stringify(dead));
  await session.commit([createOneOff(2)]).durable;
  expect(existsSync(join(path, GATE))).toBe(false);
  expect((await session.counts()).pending).toBe(2);
});
