/**
 * npm run simulate -- --seed N --steps M [--seeds K] [--store memory] [--trace] [--broken NAME]
 * Runs the seeds N to N + K − 1, stops at the first violation and says how to see it again. What never occurred in all
 * of them fails the run, once there were enough of them.
 */
import { parseArgs } from 'node:util';
import { BROKEN } from './broken.js';
import { Tally } from './report.js';
import { simulate } from './simulate.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '500' },
    seeds: { type: 'string', default: '1' },
    store: { type: 'string', default: 'memory' },
    trace: { type: 'boolean', default: false },
    broken: { type: 'string' },
  },
});
const first = Number(values.seed);
const steps = Number(values.steps);
const seeds = Number(values.seeds);
/** Fewer steps than this need not have seen everything. */
const ENOUGH_STEPS = 10_000;

const broken = BROKEN.find(({ name }) => name.includes(values.broken ?? ' '.repeat(9)));
const tally = new Tally();
for (let seed = first; seed < first + seeds; seed++) {
  const result = await simulate({
    seed,
    steps,
    store: values.store,
    ...(values.trace ? { follow: (line: string) => console.log(line) } : {}),
    ...(broken === undefined ? {} : { broken }),
  });
  tally.add(result.tally);
  if (result.violations.length > 0) {
    if (!values.trace) console.log(result.tail.slice(-60).join('\n'));
    console.log(`\nseed ${seed}, step ${result.step}:`);
    for (const violation of result.violations.slice(0, 20)) console.log(`  ${violation}`);
    console.log(
      `\nnpm run simulate -- --seed ${seed} --steps ${steps} --store ${values.store} --trace`,
    );
    process.exit(1);
  }
  if (seeds <= 20) console.log(`seed ${seed}: ${result.hash}`);
  else if ((seed - first + 1) % 100 === 0) console.log(`${seed - first + 1} seeds`);
}
console.log(String(tally));
const { missing } = tally;
if (missing.length > 0 && seeds * steps >= ENOUGH_STEPS) {
  console.log(`never occurred: ${missing.join('; ')}`);
  process.exit(1);
}
process.exit(0);
