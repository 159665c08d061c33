/** One hundred million timers in one wheel: does it hold them, at what speed, in how much memory? */
import { WheelFullError } from '../../src/core/errors.js';
import { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { randomOf, shuffle } from '../lib/random.js';
import { must, number, progress, Report } from '../lib/report.js';
import { Samples } from '../lib/samples.js';
import { HOUR_TICKS } from './workloads.js';

const BATCH = 65_536;
const STEP_TICKS = 1_000;
/** One in so many is cancelled. */
const CANCEL_EVERY = 50;

/** Due of a ref, computed and not kept: a hash of it, spread over the hour. */
function dueOf(ref: number, seed: number): number {
  let mixed = Math.imul(ref ^ seed, 0x9e37_79b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85eb_ca6b);
  return 1 + (((mixed ^ (mixed >>> 13)) >>> 0) % HOUR_TICKS);
}

export async function runHuge(options: { quick: boolean; seed: number }): Promise<void> {
  const { quick, seed } = options;
  const count = quick ? 200_000 : 100_000_000;
  const samples = new Samples();
  const report = new Report({
    name: 'wheel-huge',
    title: `${number(count)} timers in one wheel`,
    bench: 'wheel',
    seed,
    isKept: !quick,
  });
  const wheel = await TimerWheel.create({ maxTimers: count });
  progress('wheel, huge: reserve');
  samples.time('reserve, ns a timer', count, () => wheel.reserve(count));
  const sample = new Float64Array(Math.ceil(count / CANCEL_EVERY));
  insertAll(wheel, count, seed, sample, samples);
  must(wheel.size === count, 'timers after the inserts');
  const bytes = wheel.memoryBytes;
  const rssBytes = process.memoryUsage.rss();
  must(refusesOneMore(wheel), 'one more than maxTimers is refused');
  shuffle(sample, randomOf(seed));
  const cancelled = samples.time('cancel at random, ns', sample.length, () =>
    wheel.cancelMany(sample),
  );
  must(cancelled === sample.length, 'timers cancelled');
  const longestUs = expireAll(wheel, count, seed, samples);
  report.table({
    title: 'Batched, one pass',
    note:
      `${number(count)} due within an hour of ticks; one in ${CANCEL_EVERY} is cancelled at random, the others expire ` +
      'a second at a time. The count and the order of all are checked, outside of the time taken.',
    columns: ['what', 'measured'],
    rows: [
      ...Object.entries(samples.toJSON()).map(([name, [ns]]) => [name, number(ns!)]),
      ['longest advance, µs', number(longestUs)],
      ['memoryBytes', number(bytes)],
      ['memoryBytes a timer', number(bytes / count)],
      ['resident set of the process, bytes', number(rssBytes)],
      ['one timer more', 'WheelFullError'],
    ],
  });
  report.finish({ samples, bytes, rssBytes, longestUs });
  wheel.close();
}

function insertAll(
  wheel: TimerWheel,
  count: number,
  seed: number,
  sample: Float64Array,
  samples: Samples,
): void {
  const refs = new Uint32Array(BATCH);
  const dueTicks = new Float64Array(BATCH);
  const handles = new Float64Array(BATCH).fill(1);
  let spentNs = 0n;
  let sampled = 0;
  for (let from = 0; from < count; from += BATCH) {
    const size = Math.min(BATCH, count - from);
    for (let i = 0; i < size; i++) {
      refs[i] = from + i;
      dueTicks[i] = dueOf(from + i, seed);
    }
    const startNs = process.hrtime.bigint();
    const into = handles.subarray(0, size);
    wheel.insertMany(dueTicks.subarray(0, size), refs.subarray(0, size), into);
    spentNs += process.hrtime.bigint() - startNs;
    for (let i = 0; i < size; i++) {
      if ((from + i) % CANCEL_EVERY === 0) sample[sampled++] = handles[i]!;
    }
    if (from % (BATCH * 200) === 0) progress(`wheel, huge: ${number(from)} inserted`);
  }
  samples.add('insert, ns', Number(spentNs) / count);
}

function refusesOneMore(wheel: TimerWheel): boolean {
  try {
    wheel.insert(1, 0);
    return false;
  } catch (error) {
    return error instanceof WheelFullError;
  }
}

/** Expires all; the longest call in microseconds. */
function expireAll(wheel: TimerWheel, count: number, seed: number, samples: Samples): number {
  const seen = new Uint8Array(count);
  const left = wheel.size;
  let [spentNs, longestNs, expired, lastTick] = [0, 0, 0, 0];
  for (let tick = STEP_TICKS; tick <= HOUR_TICKS; tick += STEP_TICKS) {
    for (let more = true; more; ) {
      const startNs = process.hrtime.bigint();
      const { refs, more: moreDue } = wheel.advance(tick);
      const callNs = Number(process.hrtime.bigint() - startNs);
      more = moreDue;
      spentNs += callNs;
      longestNs = Math.max(longestNs, callNs);
      for (const ref of refs) {
        const dueTick = dueOf(ref, seed);
        must(dueTick >= lastTick && dueTick <= tick, `due ${dueTick} expired at ${tick}`);
        must(seen[ref] === 0 && ref % CANCEL_EVERY !== 0, `timer ${ref} expired, but was not live`);
        seen[ref] = 1;
        lastTick = dueTick;
      }
      expired += refs.length;
    }
    if (tick % 360_000 === 0) progress(`wheel, huge: ${number(expired)} expired`);
  }
  must(expired === left && wheel.size === 0, 'timers expired');
  samples.add('expire, ns', spentNs / expired);
  return longestNs / 1000;
}
