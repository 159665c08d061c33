/**
 * How fast is the wheel, against raw memory over the same footprint in the same run?
 * `npx tsx bench/wheel.ts [millions=1] [rounds=5]`; prints a table, then the raw samples as JSON.
 */
import { cpus } from 'node:os';
import { TimerWheel } from '../src/wheel/timer-wheel.js';

const count = Number(process.argv[2] ?? 1) * 1e6;
const rounds = Number(process.argv[3] ?? 5);
const BATCH = 4096;
const SPREADS = [1e5, 1e6, 1e8, 2.6e9];
const samples: Record<string, number[]> = {};

let state = 1;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

function shuffle(values: Float64Array): void {
  for (let i = values.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const value = values[i]!;
    values[i] = values[j]!;
    values[j] = value;
  }
}

/** Nanoseconds a timer. */
function time(what: string, act: () => void): void {
  const startNs = process.hrtime.bigint();
  act();
  samples[what] ??= [];
  samples[what].push(Number(process.hrtime.bigint() - startNs) / count);
}

function benchFloors(): void {
  const memory = new Float64Array(count * 2).fill(1);
  const order = Uint32Array.from({ length: count }, () => Math.floor(random() * count));
  let sum = 0;
  for (let round = 0; round < rounds; round++) {
    time('floor: sequential 16-byte store', () => {
      for (let i = 0; i < count; i++) {
        memory[i * 2] = i;
        memory[i * 2 + 1] = i;
      }
    });
    time('floor: random 16-byte read-modify-write', () => {
      for (let i = 0; i < count; i++) {
        const at = order[i]! * 2;
        memory[at] = memory[at]! + 1;
        memory[at + 1] = memory[at + 1]! + 1;
      }
    });
    time('floor: random read', () => {
      let read = 0;
      for (let i = 0; i < count; i++) read += memory[order[i]! * 2]!;
      sum += read;
    });
  }
  if (sum < 0) throw new Error('the reads went missing');
}

function expireAll(wheel: TimerWheel, fromTick: number, step: number): number {
  let tick = fromTick;
  while (wheel.size > 0) {
    tick += step;
    while (wheel.advance(tick).more);
  }
  return tick;
}

function benchWheel(wheel: TimerWheel): void {
  const dueTicks = new Float64Array(count);
  const refs = Uint32Array.from({ length: count }, (_, i) => i);
  const handles = new Float64Array(count).fill(1);
  const insertAll = () => {
    for (let from = 0; from < count; from += BATCH) {
      const to = from + BATCH;
      handles.set(wheel.insertMany(dueTicks.subarray(from, to), refs.subarray(from, to)), from);
    }
  };
  let now = 0;
  for (const spread of SPREADS) {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < count; i++) dueTicks[i] = now + 1 + Math.floor(random() * spread);
      const of = `, spread ${spread} ms`;
      time(`insert, batched${of}`, insertAll);
      shuffle(handles);
      time(`random cancel, batched${of}`, () => {
        for (let from = 0; from < count; from += BATCH) {
          wheel.cancelMany(handles.subarray(from, from + BATCH));
        }
      });
      time(`insert, one call each${of}`, () => {
        for (let i = 0; i < count; i++) handles[i] = wheel.insert(dueTicks[i]!, i);
      });
      shuffle(handles);
      time(`random cancel, one call each${of}`, () => {
        for (let i = 0; i < count; i++) wheel.cancel(handles[i]!);
      });
      insertAll();
      time(`expire${of}`, () => {
        now = expireAll(wheel, now, Math.ceil(spread / 2_000));
      });
    }
  }
  for (let round = 0; round < rounds; round++) {
    dueTicks.fill(now + 10_000);
    insertAll();
    time('expire, all on one tick', () => {
      now = expireAll(wheel, now, 10_000);
    });
  }
}

const wheel = await TimerWheel.create({ maxTimers: count });
wheel.reserve(count);
benchFloors();
benchWheel(wheel);
console.log(
  `${cpus()[0]?.model}, Node ${process.version}, ${count} timers, ns each, best of ${rounds}`,
);
for (const [what, nsEach] of Object.entries(samples)) {
  console.log(
    `${Math.min(...nsEach)
      .toFixed(1)
      .padStart(8)}  ${what}`,
  );
}
console.log(JSON.stringify({ count, rounds, memoryBytes: wheel.memoryBytes, samples }));
