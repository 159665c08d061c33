/** Five kills; `npm run test:kill` makes as many as are asked for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runKills } from './kill.js';

const SEED = 20_260_101;

it('a process that is killed at any instant breaks no promise', async () => {
  const path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  try {
    const said: string[] = [];
    const say = (line: string) => void said.push(line);
    const { faults, tally } = await runKills({ rounds: 5, seed: SEED, path, say });
    expect(faults, `seed ${SEED}\n${said.join('\n')}`).toEqual([]);
    expect(tally.told).toBeGreaterThan(0);
    expect(tally.attempts).toBeGreaterThan(0);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
});
