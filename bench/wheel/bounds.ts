/** Is one `advance` bounded, whatever is due? By its counters, and by the time of every call. */
import type { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { must } from '../lib/report.js';
import { quantileOf } from '../lib/samples.js';
import { type Bed, HOUR_TICKS } from './workloads.js';

/** What `advance` promises, of expiries and of cascade moves alike. */
export const ADVANCE_MAX = 4096;

export interface Bounds {
  readonly what: string;
  readonly calls: number;
  readonly expiriesMost: number;
  readonly movesMost: number;
  readonly p50Us: number;
  readonly p999Us: number;
  readonly longestUs: number;
}

/** Every call's time and counts while `bed.count` timers that are in the wheel expire by `endTick`. */
function watch(what: string, wheel: TimerWheel, bed: Bed, ticks: Iterable<number>): Bounds {
  const callUs: number[] = [];
  let [expiries, expiriesMost, movesMost] = [0, 0, 0];
  for (const tick of ticks) {
    for (let more = true; more; ) {
      const startNs = process.hrtime.bigint();
      const expired = wheel.advance(tick);
      callUs.push(Number(process.hrtime.bigint() - startNs) / 1000);
      more = expired.more;
      bed.expired.set(expired.refs, expiries);
      expiries += expired.refs.length;
      expiriesMost = Math.max(expiriesMost, expired.refs.length);
      must(wheel.lastAdvance.expiries === expired.refs.length, 'the counter of expiries');
      movesMost = Math.max(movesMost, wheel.lastAdvance.cascadeMoves);
    }
    bed.nowTick = tick;
  }
  must(expiries === bed.count && wheel.size === 0, 'timers expired');
  must(expiriesMost <= ADVANCE_MAX, `${expiriesMost} expiries in one call`);
  must(movesMost <= ADVANCE_MAX, `${movesMost} cascade moves in one call`);
  bed.checkExpired();
  const sorted = Float64Array.from(callUs).sort();
  return {
    what,
    calls: sorted.length,
    expiriesMost,
    movesMost,
    p50Us: quantileOf(sorted, 0.5),
    p999Us: quantileOf(sorted, 0.999),
    longestUs: sorted[sorted.length - 1]!,
  };
}

function* everyMs(fromTick: number, ticks: number): Generator<number> {
  for (let tick = fromTick + 1; tick <= fromTick + ticks; tick++) yield tick;
}

/** The shapes that could stall a loop. */
export function measureBounds(wheel: TimerWheel, bed: Bed): Bounds[] {
  const found: Bounds[] = [];
  const fill = (dueOf: () => number) => {
    for (let i = 0; i < bed.count; i++) bed.dueTicks[i] = dueOf();
    bed.handles.set(wheel.insertMany(bed.dueTicks, bed.refs));
  };
  const minute = 60_000;
  fill(() => bed.nowTick + HOUR_TICKS);
  found.push(watch('all on one tick, jumped to', wheel, bed, [bed.nowTick + HOUR_TICKS]));
  fill(() => bed.nextDue());
  found.push(watch('all in an hour, jumped over', wheel, bed, [bed.nowTick + HOUR_TICKS]));
  // Two coarse slots come down, so every timer moves twice.
  fill(() => bed.nowTick + 1000 * HOUR_TICKS + Math.floor(bed.random() * minute));
  found.push(
    watch('all in a minute in six weeks, jumped to', wheel, bed, [
      bed.nowTick + 1000 * HOUR_TICKS + minute,
    ]),
  );
  fill(() => bed.nowTick + 1 + Math.floor(bed.random() * minute));
  found.push(watch('all in a minute, tick by tick', wheel, bed, everyMs(bed.nowTick, minute)));
  return found;
}
