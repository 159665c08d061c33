/**
 * Runs the suite, one process a benchmark, and writes RESULTS.md from every result that is there.
 *
 *   npm run bench [-- NAME…] [--quick] [--seed N] [the benchmark's own switches]
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { progress, readResults, sectionOf } from './lib/report.js';
import { BENCHES } from './suite.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
const names = args.filter((arg) => BENCHES.some(({ name }) => name === arg));
const passed = args.filter((arg) => !names.includes(arg));
const stray = args.find((arg, at) => !arg.startsWith('-') && !names.includes(arg) && at === 0);
if (stray !== undefined) {
  progress(`no benchmark is named ${stray}; there are ${BENCHES.map((b) => b.name).join(', ')}`);
  process.exit(2);
}

const results = () => readResults(BENCHES.map(({ name }) => name));
const before = JSON.stringify(results());
const failed: string[] = [];
for (const { name, file } of BENCHES) {
  if (names.length > 0 && !names.includes(name)) continue;
  progress(`== ${name}`);
  const { status } = spawnSync(
    process.execPath,
    ['--expose-gc', '--import', 'tsx', file, ...passed],
    { cwd: root, stdio: 'inherit' },
  );
  if (status !== 0) failed.push(name);
}

if (failed.length > 0) {
  progress(`failed: ${failed.join(', ')}`);
  process.exit(1);
}

// A smoke run, or a part of a benchmark, leaves no result: RESULTS.md may be of results that are not here.
const after = results();
if (JSON.stringify(after) !== before) {
  const text = [
    '# Results of the benchmarks',
    'Written by `npm run bench` from raw samples; do not edit. A figure is the median of its samples, with the smallest and the',
    'largest in brackets. Machines differ and are noisy: compare within a section, by its ratios.',
  ];
  const body = after.map(sectionOf).join('\n');
  writeFileSync(
    new URL('RESULTS.md', import.meta.url),
    `${text[0]}\n\n${text[1]}\n${text[2]}\n\n${body}`,
  );
  progress(`wrote bench/RESULTS.md from ${after.map((result) => result.name).join(', ')}`);
}
