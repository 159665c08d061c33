/**
 * How many tasks does the engine take a second, and how late does it start them? Memory store, no-op handlers, one
 * listener on, history kept; a task = created, started and finished.
 *
 *   npm run bench -- engine [--quick] [--only throughput | lateness | herd | memory | profile]
 */
import { floorOfCallers } from './engine/floor.js';
import { besideHerd, type Lateness, latenessAt } from './engine/lateness.js';
import { memoryOf } from './engine/memory.js';
import { hottest } from './engine/profile.js';
import { creates, throughput } from './engine/throughput.js';
import { benchOptions } from './lib/options.js';
import { number, progress, Report, spread } from './lib/report.js';
import { Samples } from './lib/samples.js';

const PARTS = ['throughput', 'lateness', 'herd', 'memory', 'profile'] as const;
const { quick, seed, own } = benchOptions({ only: { type: 'string', allowed: PARTS } });
const report = new Report(
  {
    name: 'engine',
    title: 'The engine, on the memory store',
    seed,
    isKept: !quick && own.only === undefined,
  },
  ['piscina', 'msgpackr'],
);
const samples = new Samples();
const does = (part: (typeof PARTS)[number]): boolean => own.only === undefined || own.only === part;

const ROUNDS = quick ? 1 : 3;
const TASKS = quick ? 3_000 : 300_000;
const SECONDS = quick ? 0.2 : 10;

async function measureThroughput(): Promise<void> {
  const parts = [
    ['floor: what callers are given, without an engine', () => floorOfCallers(TASKS)],
    ['no-ops in-process', () => throughput('in-process', TASKS)],
    ['no-ops through the pool, 1 thread', () => throughput('pool', TASKS)],
    ['scheduleMany, due in an hour', () => creates('bulk', Math.max(10_000, TASKS))],
    ['schedule, 1000 callers, due in an hour', () => creates('single', TASKS)],
  ] as const;
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, measure] of parts) {
      progress(`engine: ${name}, round ${round + 1} of ${ROUNDS}`);
      samples.add(name, await measure());
    }
  }
  report.table({
    title: 'Tasks a second',
    note: 'Median (minimum–maximum) of the rounds; of a closed loop the first third is not counted. The floor is bench/engine/floor.ts.',
    columns: ['what', 'tasks/s', 'of the floor'],
    rows: parts.map(([name]) => {
      const { median } = samples.summary(name);
      const share = median / samples.summary(parts[0][0]).median;
      return [name, spread(samples.summary(name)), number(share)];
    }),
  });
}

function latenessRow(name: string, { p50, p99, p999, max }: Lateness): string[] {
  for (const [at, value] of Object.entries({ p50, p99, p999, max })) {
    samples.add(`${name}, ${at} ms`, value);
  }
  return [name, ...[p50, p99, p999, max].map(number)];
}

async function measureLateness(): Promise<void> {
  const cases = quick
    ? [[1000, 1000] as const]
    : ([
        [1_000, 10_000],
        [10_000, 10_000],
        [10_000, 1_000_000],
        [10_000, 5_000_000],
        [30_000, 1_000_000],
        [100_000, 10_000],
      ] as const);
  const rows: string[][] = [];
  for (const [rate, pending] of cases) {
    const name = `${rate.toLocaleString('en-US')} due/s beside ${pending.toLocaleString('en-US')} pending`;
    progress(`engine: ${name}`);
    const { refused, ...late } = await latenessAt(rate, SECONDS, pending);
    samples.add(`${name}, refused`, refused);
    rows.push([...latenessRow(name, late), refused.toLocaleString('en-US')]);
  }
  report.table({
    title: 'Lateness, ms',
    note: `In-process, ${SECONDS} s each, created 2 s ahead; lateness is handler entry minus due. Refused: by admission, with OverloadedError.`,
    columns: ['load', 'p50', 'p99', 'p99.9', 'max', 'refused'],
    rows,
  });
}

async function measureHerd(): Promise<void> {
  const herd = quick ? 2_000 : 1_000_000;
  progress(`engine: a herd of ${herd}`);
  const rows: string[][] = [];
  for (const [due, spanMs] of [
    ['beside a herd due in one second', 1000],
    ['beside a herd due in one millisecond', 0],
  ] as const) {
    rows.push(latenessRow(due, await besideHerd(herd, spanMs, quick ? 0.2 : 20)));
  }
  report.table({
    title: `Lateness of another tenant while ${herd.toLocaleString('en-US')} tasks of one come due, ms`,
    columns: ['the other tenant', 'p50', 'p99', 'p99.9', 'max'],
    rows,
  });
}

function measureMemory(): void {
  const tasks = quick ? 3_000 : 5_000_000;
  progress(`engine: memory of ${tasks.toLocaleString('en-US')} pending`);
  const { before, pending, after } = memoryOf(tasks);
  samples.add('bytes a pending task', (pending - before) / tasks);
  report.table({
    title: `Anonymous memory with ${tasks.toLocaleString('en-US')} tasks pending`,
    note: 'Heap, array buffers and WebAssembly of a process of its own; afterwards all have ended and outlived their retention.',
    columns: ['before', 'pending', 'bytes a task', 'afterwards'],
    rows: [
      [mebibytes(before), mebibytes(pending), number((pending - before) / tasks), mebibytes(after)],
    ],
  });
}

function mebibytes(bytes: number): string {
  return `${number(bytes / 2 ** 20)} MiB`;
}

async function measureProfile(): Promise<void> {
  progress('engine: profile');
  const rows: string[][] = [];
  for (const place of ['in-process', 'pool'] as const) {
    const hot = await hottest(5, () => throughput(place, TASKS));
    rows.push(...hot.map(({ name, share }) => [`${place}: ${name}`, `${number(100 * share)} %`]));
  }
  report.table({
    title: 'The five hottest functions',
    note: 'Share of the main thread’s samples, own time; docs/engine-limits.md says what was done about each.',
    columns: ['function', 'share'],
    rows,
  });
}

if (does('throughput')) await measureThroughput();
if (does('lateness')) await measureLateness();
if (does('herd')) await measureHerd();
if (does('memory')) measureMemory();
if (does('profile')) await measureProfile();
report.finish(samples);
