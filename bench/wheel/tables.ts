/** The wheel's samples as tables: each figure beside the limit or the peer that it is measured by. */
import { number, spread, type Table } from '../lib/report.js';
import type { Samples } from '../lib/samples.js';
import { ADVANCE_MAX, type Bounds } from './bounds.js';
import { EMPTY_CALL, RANDOM_READ, RANDOM_UPDATE, SEQUENTIAL_STORE } from './floors.js';
import type { ShortCall } from './short-calls.js';
import {
  CANCEL,
  EXPIRE,
  EXPIRE_REFRESHED,
  INSERT,
  LEAVE,
  ONE_TICK,
  REFRESH,
  STEADY,
} from './workloads.js';

// Second part of a sample's name, after the number of timers.
export const FLOORS = 'floor: ';
export const WHEEL = 'wheel, batched: ';
export const ONE = 'wheel, one call each: ';
export const HEAP = 'typed-array heap: ';
export const TIMEOUTS = 'setTimeout: ';

export interface WheelFigures {
  readonly samples: Samples;
  readonly counts: readonly number[];
  /** The size of W4 and W5. */
  readonly steadyCount: number;
  /** Bytes a timer, by number of timers. */
  readonly bytes: Readonly<Record<string, number>>;
  readonly timeoutBytes: Readonly<Record<string, number>>;
  readonly bounds: readonly Bounds[];
  readonly shortCalls: readonly ShortCall[];
}

export function wheelTables(figures: WheelFigures): Table[] {
  return [
    targets(figures),
    ...figures.counts.map((count) => phases(figures, count)),
    peers(figures),
    bounds(figures.bounds),
    shortCalls(figures),
  ];
}

/** What an operation on a timer cannot do without. */
const FLOOR_OF: Readonly<Record<string, string>> = {
  [INSERT]: SEQUENTIAL_STORE,
  [CANCEL]: RANDOM_UPDATE,
  [EXPIRE]: RANDOM_READ,
};

function phases({ samples, bytes }: WheelFigures, count: number): Table {
  const rows: string[][] = [];
  for (const of of [FLOORS, WHEEL, ONE]) {
    const names = [SEQUENTIAL_STORE, RANDOM_UPDATE, RANDOM_READ, EMPTY_CALL];
    names.push(INSERT, CANCEL, EXPIRE, STEADY, ONE_TICK, REFRESH, EXPIRE_REFRESHED);
    for (const what of names) {
      const name = `${count} ${of}${what}`;
      if (!samples.has(name)) continue;
      const floor = FLOOR_OF[what];
      const ratio =
        floor === undefined
          ? ''
          : `${number(samples.median(name) / samples.median(`${count} ${FLOORS}${floor}`))}× ${floor}`;
      rows.push([of + what, spread(samples.summary(name)), ratio]);
    }
  }
  return {
    title: `${number(count)} timers`,
    note:
      `Nanoseconds an operation; ${number(bytes[count]!)} bytes a timer in all. Due within an hour of ticks, at random; ` +
      'batches of 4096, handles written into a given array; the clock goes on a second at a time.',
    columns: ['what', 'ns: median (min–max)', 'against the floor'],
    rows,
  };
}

function peers({ samples, timeoutBytes, bytes, counts, steadyCount }: WheelFigures): Table {
  const rows: string[][] = [];
  const all = new Set([...counts, ...Object.keys(timeoutBytes).map(Number)]);
  for (const count of [...all].sort((a, b) => a - b)) {
    for (const of of [WHEEL, HEAP, TIMEOUTS]) {
      const cells = [INSERT, CANCEL, LEAVE, EXPIRE, STEADY, ONE_TICK].map((what) => {
        const name = `${count} ${of}${what}`;
        return samples.has(name) ? spread(samples.summary(name)) : '–';
      });
      if (cells.every((cell) => cell === '–')) continue;
      const each = of === WHEEL ? bytes[count] : of === HEAP ? HEAP_BYTES : timeoutBytes[count];
      rows.push([`${number(count)} ${of.slice(0, -2)}`, ...cells, number(each ?? Number.NaN)]);
    }
  }
  return {
    title: 'What one would use instead',
    note:
      `Nanoseconds an operation: median (min–max). Steady cancel + insert with ${number(steadyCount)} live. The heap only ` +
      'marks a cancelled timer, which leaves when its time comes: a column of its own.',
    columns: ['timers', INSERT, CANCEL, LEAVE, EXPIRE, STEADY, ONE_TICK, 'bytes'],
    rows,
  };
}

/** Due, ref and state. */
const HEAP_BYTES = 13;

function bounds(found: readonly Bounds[]): Table {
  return {
    title: 'One call of advance',
    note: `At most ${ADVANCE_MAX} expiries and ${ADVANCE_MAX} cascade moves a call, by its counters; each call is timed.`,
    columns: ['due', 'calls', 'most expiries', 'most moves', 'p50 µs', 'p99.9 µs', 'longest µs'],
    rows: found.map((each) => [
      each.what,
      number(each.calls),
      String(each.expiriesMost),
      String(each.movesMost),
      number(each.p50Us),
      number(each.p999Us),
      number(each.longestUs),
    ]),
  };
}

function shortCalls({ shortCalls: calls, steadyCount }: WheelFigures): Table {
  return {
    title: 'Short calls',
    note: `By tinybench, a thousand calls a sample, ${number(steadyCount)} timers live; all in the processor's caches.`,
    columns: ['call', 'min ns', 'p50 ns', 'p99 ns'],
    rows: calls.map(({ what, minNs, p50Ns, p99Ns }) => [
      what,
      number(minNs),
      number(p50Ns),
      number(p99Ns),
    ]),
  };
}

/** Each target, what was measured (medians), and whether it is met. */
function targets(figures: WheelFigures): Table {
  const { samples, counts, steadyCount, bytes } = figures;
  const rows: string[][] = [];
  const atMost = (what: string, limit: number, unit: string, value: number) =>
    rows.push([what, `≤ ${limit}${unit}`, number(value) + unit, value <= limit ? 'yes' : 'no']);
  const atLeast = (what: string, limit: number, value: number) =>
    rows.push([what, `≥ ${limit}×`, `${number(value)}×`, value >= limit ? 'yes' : 'no']);
  const sum = (count: number, of: string, ...names: string[]) =>
    names.reduce((total, name) => total + samples.median(`${count} ${of}${name}`), 0);
  for (const count of counts.filter((each) => each >= steadyCount)) {
    for (const [what, limit] of [
      [INSERT, 6],
      [CANCEL, 1.5],
      [EXPIRE, 5],
    ] as const) {
      const ratio = sum(count, WHEEL, what) / sum(count, FLOORS, FLOOR_OF[what]!);
      atMost(`${number(count)}, batched: ${what}, against the floor`, limit, '×', ratio);
    }
  }
  const most = counts.at(-1)!;
  atMost('all on one tick', 8, ' ns', sum(steadyCount, WHEEL, ONE_TICK));
  atMost(`${number(most)}, one call each: insert`, 25, ' ns', sum(most, ONE, INSERT));
  atMost(`${number(most)}, one call each: cancel`, 120, ' ns', sum(most, ONE, CANCEL));
  const against = (of: string, ...names: string[]) =>
    sum(steadyCount, of, ...names) / sum(steadyCount, WHEEL, ...names);
  atLeast('typed-array heap, insert + cancel that only marks', 3, against(HEAP, INSERT, CANCEL));
  const gone = sum(steadyCount, HEAP, INSERT, CANCEL, LEAVE);
  const freed = gone / sum(steadyCount, WHEEL, INSERT, CANCEL);
  atLeast('typed-array heap, insert + cancel until it has left', 3, freed);
  atLeast('typed-array heap, insert + expire', 5, against(HEAP, INSERT, EXPIRE));
  if (samples.has(`${steadyCount} ${TIMEOUTS}${INSERT}`)) {
    atLeast('setTimeout + clearTimeout', 50, against(TIMEOUTS, INSERT, CANCEL));
  }
  atMost(`${number(most)}: bytes a timer`, 20.1, '', bytes[most]!);
  const worst = Math.max(...figures.bounds.map(({ p999Us }) => p999Us));
  atMost('advance, p99.9 of its time', 5, ' ms', worst / 1000);
  return {
    title: 'Targets',
    note: `Medians. ${number(steadyCount)} timers where no number is given.`,
    columns: ['what', 'target', 'measured', 'met'],
    rows,
  };
}
