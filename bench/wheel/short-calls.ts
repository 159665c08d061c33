/** Single calls that are too short for a phase of their own: tinybench finds how often to repeat. */
import { Bench } from 'tinybench';
import type { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { must } from '../lib/report.js';
import { HOUR_TICKS } from './workloads.js';

export interface ShortCall {
  readonly what: string;
  readonly minNs: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
}

/** In one sample, as the clock is no finer than some 50 ns. */
const CALLS = 1_000;

/** With `count` live timers due within an hour, two of them those that the calls are about. */
export async function measureShortCalls(
  wheel: TimerWheel,
  count: number,
  random: () => number,
  quick: boolean,
): Promise<ShortCall[]> {
  const farTick = 2 * HOUR_TICKS;
  for (let ref = 2; ref < count; ref++) wheel.insert(1 + Math.floor(random() * HOUR_TICKS), ref);
  const moving = wheel.insert(farTick, 0);
  const stale = wheel.insert(farTick, 1);
  wheel.cancel(stale);
  const earliestTick = wheel.nextExpiry()!;
  let [movingTick, wrong] = [farTick, 0];
  const calls: Readonly<Record<string, () => boolean>> = {
    'insert, then cancel it': () => wheel.cancel(wheel.insert(farTick, 1)),
    'cancel with a stale handle': () => !wheel.cancel(stale),
    'reschedule to a tick later': () => wheel.reschedule(moving, ++movingTick),
    nextWake: () => wheel.nextWake()! <= earliestTick,
    'nextExpiry, known': () => wheel.nextExpiry() === earliestTick,
    'advance with nothing due': () => !wheel.advance(0).more,
  };
  const bench = new Bench({ time: quick ? 5 : 300, warmupTime: quick ? 1 : 100, throws: true });
  for (const [what, call] of Object.entries(calls)) {
    bench.add(what, () => {
      for (let i = 0; i < CALLS; i++) if (!call()) wrong += 1;
    });
  }
  await bench.run();
  must(wrong === 0, `${wrong} short calls gave a wrong result`);
  must(wheel.size === count - 1, 'timers after the short calls');
  return bench.tasks.map(({ name, result }) => {
    must('latency' in result, `${name} did not complete`);
    const { min, p50, p99 } = result.latency;
    const nsOf = (ms: number) => (ms * 1e6) / CALLS;
    return { what: name, minNs: nsOf(min), p50Ns: nsOf(p50), p99Ns: nsOf(p99) };
  });
}
