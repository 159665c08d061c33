/**
 * npm run simulate -- --seed N --steps M [--seeds K] [--store memory|lmdb] [--trace] [--broken NAME]
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
const PROGRESS_EVERY = 100;
/** Of so many, each seed's hash is told. */
const HASHES_MAX = 20;

// Where errors come from is looked at when a seed is run alone: refusals are many, and their stacks cost time.
if (seeds > 1) Error.stackTraceLimit = 0;
const broken = BROKEN.find(({ name }) => name.includes(values.broken ?? ' '.repeat(9)));
const tally = new Tally();
const beganMs = performance.now();
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
  const done = seed - first + 1;
  if (seeds <= HASHES_MAX) console.log(`seed ${seed}: ${result.hash}`);
  else if (done % PROGRESS_EVERY === 0) console.log(progress(done));
}
console.log(`${seeds} seeds of ${steps} steps, no violation\n${tally}`);
const { missing } = tally;
if (missing.length > 0 && seeds * steps >= ENOUGH_STEPS) {
  console.log(`never occurred: ${missing.join('; ')}`);
  process.exit(1);
}
process.exit(0);

function progress(done: number): string {
  const seconds = (performance.now() - beganMs) / 1000;
  const left = Math.ceil(((seconds / done) * (seeds - done)) / 60);
  const pace = ((1000 * seconds) / done).toFixed(0);
  return `${done} of ${seeds} seeds, ${pace} ms each, ${left} min left; ${tally.sum}`;
}
