/**
 * npm run test:kill -- [--rounds 50] [--seed N] [--keep]
 *
 * Kills a process that accepts and runs tasks, again and again, and judges what it leaves. The moments of the kills are
 * the machine's as much as the seed's; what the callers do is the seed's.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/index.js';
import { runKills } from './kill.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    seed: { type: 'string' },
    /** Leaves the files of the store and the journals where they are. */
    keep: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed ?? systemClock().now() % 2 ** 31);
const path = mkdtempSync(join(tmpdir(), 'tickwheel-kill-'));
const say = (line: string): void => console.log(line);

say(`seed ${seed}, ${rounds} rounds`);
const { faults, tally } = await runKills({ rounds, seed, path, say });
say(JSON.stringify(tally));
for (const fault of faults.slice(0, 50)) say(`FAULT ${fault}`);
say(faults.length === 0 ? 'no fault' : `${faults.length} faults; again: --seed ${seed}`);
if (values.keep) say(`files in ${path}`);
else rmSync(path, { recursive: true, force: true });
process.exit(faults.length === 0 ? 0 : 1);
