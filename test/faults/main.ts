/**
 * npm run test:kill -- [--rounds 50] [--images 100] [--seed N] [--keep]
 *
 * Kills a process that accepts and runs tasks, again and again, and judges what it leaves; then takes the power from
 * one, in so many ways. The moments of the kills are the machine's as much as the seed's; what the callers do, and which
 * pages are lost, is the seed's. 0 rounds or images: not at all.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/index.js';
import { runKills } from './kill.js';
import { runPowerLoss } from './power.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    images: { type: 'string', default: '100' },
    seed: { type: 'string' },
    /** Leaves the files of the store and the journals where they are. */
    keep: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const images = Number(values.images);
const seed = Number(values.seed ?? systemClock().now() % 2 ** 31);
const path = mkdtempSync(join(tmpdir(), 'tickwheel-kill-'));
const say = (line: string): void => console.log(line);

const faults: string[] = [];
say(`seed ${seed}, ${rounds} rounds, ${images} images`);
for (const { count, run } of [
  { count: rounds, run: () => runKills({ rounds, seed, path, say }) },
  { count: images, run: () => runPowerLoss({ images, seed, path, say }) },
]) {
  if (count === 0) continue;
  const found = await run();
  say(JSON.stringify(found.tally));
  faults.push(...found.faults);
}
for (const fault of faults.slice(0, 50)) say(`FAULT ${fault}`);
say(faults.length === 0 ? 'no fault' : `${faults.length} faults; again: --seed ${seed}`);
if (values.keep) say(`files in ${path}`);
else rmSync(path, { recursive: true, force: true });
process.exit(faults.length === 0 ? 0 : 1);
