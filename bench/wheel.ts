/**
 * How far is the wheel from the limit of the machine, and from what one would use instead?
 *
 *   npm run bench -- wheel [--quick] [--seed N]
 *   npm run bench -- wheel --timers 1000000    that many only: 100000, 1000000 or 10000000
 *   npm run bench -- wheel --huge      100 million timers in one wheel (about 3 GiB)
 *
 * Raw memory floors, the wheel, a heap and setTimeout run in turns, so that a slow spell of the machine
 * touches all of them.
 */
import { TimerWheel } from '../src/wheel/timer-wheel.js';
import { benchOptions } from './lib/options.js';
import { randomOf } from './lib/random.js';
import { must, progress, Report } from './lib/report.js';
import { Samples } from './lib/samples.js';
import { type Bounds, measureBounds } from './wheel/bounds.js';
import { Floors } from './wheel/floors.js';
import { LazyHeap } from './wheel/heap.js';
import { runHuge } from './wheel/huge.js';
import { setAndClear } from './wheel/set-timeout.js';
import { measureShortCalls } from './wheel/short-calls.js';
import { batched, heapOf, oneCallEach, type Subject } from './wheel/subjects.js';
import { FLOORS, HEAP, ONE, TIMEOUTS, WHEEL, wheelTables } from './wheel/tables.js';
import * as work from './wheel/workloads.js';

const { quick, seed, own } = benchOptions({
  huge: { type: 'boolean' },
  timers: { type: 'string', allowed: ['100000', '1000000', '10000000'] },
});
const random = randomOf(seed);
const samples = new Samples();

/** Rounds of each number of timers: more where a round is short. */
const SIZES = quick
  ? [{ count: 20_000, rounds: 2 }]
  : [
      { count: 100_000, rounds: 5 },
      { count: 1_000_000, rounds: 5 },
      { count: 10_000_000, rounds: 2 },
    ].filter(({ count }) => own.timers === undefined || count === Number(own.timers));
/** Of one million live, as W4 and W5 have it. */
const STEADY_COUNT = quick ? 20_000 : 1_000_000;

function newWheel(count: number): Promise<TimerWheel> {
  return TimerWheel.create({ maxTimers: count }).then((wheel) => {
    wheel.reserve(count);
    return wheel;
  });
}

function allWorkloads(bed: work.Bed, subject: Subject, prefix: string): void {
  const measured = { bed, subject, samples, prefix };
  work.insertAndCancel(measured);
  work.insertAndExpire(measured);
}

async function measureSize(count: number, rounds: number): Promise<number> {
  const bed = new work.Bed(count, random);
  const floors = await Floors.create(count, random);
  const wheel = await newWheel(count);
  const bytes = wheel.memoryBytes / count;
  const prefix = `${count} `;
  for (let round = 0; round < rounds; round++) {
    progress(`wheel: ${count} timers, round ${round + 1} of ${rounds}`);
    floors.sample(samples, prefix + FLOORS);
    allWorkloads(bed, batched(wheel), prefix + WHEEL);
    floors.sample(samples, prefix + FLOORS);
    allWorkloads(bed, oneCallEach(wheel), prefix + ONE);
    const one = { bed, subject: oneCallEach(wheel), samples, prefix: prefix + ONE };
    work.refresh(one, wheel);
    if (count > STEADY_COUNT) continue;
    const heap = new LazyHeap(count);
    const measured = { bed, subject: heapOf(heap, count), samples, prefix: prefix + HEAP };
    work.insertAndCancel(measured);
    const left = samples.time(prefix + HEAP + work.LEAVE, count, () =>
      heap.advance(Number.POSITIVE_INFINITY, bed.expired, 0),
    );
    must(left === 0 && heap.isEmpty, 'the cancelled timers leave the heap unexpired');
    work.insertAndExpire(measured);
  }
  wheel.close();
  return bytes;
}

async function measureMillion(rounds: number): Promise<void> {
  const bed = new work.Bed(STEADY_COUNT, random);
  const wheel = await newWheel(STEADY_COUNT);
  const prefix = `${STEADY_COUNT} `;
  for (let round = 0; round < rounds; round++) {
    progress(`wheel: steady state and one tick, round ${round + 1} of ${rounds}`);
    for (const [subject, of] of [
      [batched(wheel), WHEEL],
      [oneCallEach(wheel), ONE],
      [heapOf(new LazyHeap(STEADY_COUNT * 3), STEADY_COUNT * 3), HEAP],
    ] as const) {
      work.steady({ bed, subject, samples, prefix: prefix + of }, STEADY_COUNT);
    }
    work.allOnOneTick({ bed, subject: batched(wheel), samples, prefix: prefix + WHEEL });
    const heap = heapOf(new LazyHeap(STEADY_COUNT), STEADY_COUNT);
    work.allOnOneTick({ bed, subject: heap, samples, prefix: prefix + HEAP });
  }
  wheel.close();
}

function measureTimeouts(): Record<string, number> {
  const bytes: Record<string, number> = {};
  for (const count of quick ? [STEADY_COUNT] : [100_000, 1_000_000]) {
    for (let round = 0; round < 3; round++) {
      progress(`setTimeout: ${count}, round ${round + 1} of 3`);
      bytes[count] = setAndClear(count, random, samples, `${count} ${TIMEOUTS}`);
    }
  }
  return bytes;
}

async function measureBoundsAt(count: number): Promise<Bounds[]> {
  progress(`wheel: bounds of advance, ${count} timers`);
  const wheel = await newWheel(count);
  const bounds = measureBounds(wheel, new work.Bed(count, random));
  wheel.close();
  return bounds;
}

async function main(): Promise<void> {
  const packages = ['assemblyscript', 'tinybench'];
  const report = new Report(
    { name: 'wheel', title: 'The wheel', seed, isKept: !quick && own.timers === undefined },
    packages,
  );
  const bytes: Record<string, number> = {};
  for (const { count, rounds } of SIZES) bytes[count] = await measureSize(count, rounds);
  await measureMillion(quick ? 1 : 3);
  const bounds = await measureBoundsAt(SIZES.at(-1)!.count);
  const shortCalls = await measureShortCalls(
    await newWheel(STEADY_COUNT),
    STEADY_COUNT,
    random,
    quick,
  );
  const timeoutBytes = measureTimeouts();
  const counts = SIZES.map(({ count }) => count);
  for (const table of wheelTables({
    samples,
    counts,
    steadyCount: STEADY_COUNT,
    bytes,
    timeoutBytes,
    bounds,
    shortCalls,
  }))
    report.table(table);
  report.finish({ samples, bytes, timeoutBytes, bounds, shortCalls });
}

await (own.huge === true ? runHuge({ quick, seed }) : main());
