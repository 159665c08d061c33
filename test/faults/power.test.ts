/** A few images; `npm run test:kill` makes as many as are asked for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runPowerLoss } from './power.js';

const SEED = 20_260_102;
let path: string;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
});

afterEach(() => {
  rmSync(path, { recursive: true, force: true });
});

const lose = (images: number, broken: boolean) =>
  runPowerLoss({ images, seed: SEED, path, broken, say: () => {} });

// Only there does the system tell whether a process has stopped.
describe.runIf(process.platform === 'linux')('after power loss', () => {
  it('all that was acknowledged is there, whatever part of the last writes is', async () => {
    const { faults, tally } = await lose(16, false);
    expect(faults, `seed ${SEED}`).toEqual([]);
    expect(tally.unflushedAtB).toBeGreaterThan(0);
  });

  it('a store that acknowledges what is only visible is found out', async () => {
    // What it lost is on few images where the disk is quick: as many as it takes.
    const { faults } = await lose(400, true);
    expect(faults.join('\n')).toContain('was acknowledged and is gone');
  });
});
