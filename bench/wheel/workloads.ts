/** The workloads. Each checks the count and the order of what it did, outside of the time taken. */
import type { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { shuffle } from '../lib/random.js';
import { must } from '../lib/report.js';
import type { Samples } from '../lib/samples.js';
import type { Subject } from './subjects.js';

export const HOUR_TICKS = 3_600_000;
/** A clock that is read every second: what is due comes in order all the same. */
const STEP_TICKS = 1_000;

export const INSERT = 'insert';
export const CANCEL = 'cancel at random';
/** A lazy heap's cancelled timers leave it. */
export const LEAVE = 'cancelled ones leave';
export const EXPIRE = 'expire';
export const STEADY = 'steady cancel + insert';
export const ONE_TICK = 'expire, all on one tick';
export const REFRESH = 'refresh to later at random';
export const EXPIRE_REFRESHED = 'expire after the refresh';

/** Arrays for `count` timers that all workloads share, and the tick at which the last one ended. */
export class Bed {
  readonly count: number;
  readonly random: () => number;
  readonly dueTicks: Float64Array;
  readonly refs: Uint32Array;
  readonly handles: Float64Array;
  readonly expired: Uint32Array;
  readonly #seen: Uint8Array;
  nowTick = 0;

  constructor(count: number, random: () => number) {
    this.count = count;
    this.random = random;
    // All are written here, so that no workload pays for a first touch of the memory.
    this.dueTicks = new Float64Array(count).fill(1);
    this.handles = new Float64Array(count).fill(1);
    this.refs = Uint32Array.from({ length: count }, (_, i) => i);
    this.expired = new Uint32Array(count).fill(1);
    this.#seen = new Uint8Array(count).fill(1);
  }

  drawDueTicks(): void {
    for (let i = 0; i < this.count; i++) this.dueTicks[i] = this.nextDue();
  }

  nextDue(): number {
    return this.nowTick + 1 + Math.floor(this.random() * HOUR_TICKS);
  }

  /** Every timer is in `expired` once, and none before one that was due earlier. */
  checkExpired(): void {
    this.#seen.fill(0);
    let last = 0;
    for (let i = 0; i < this.count; i++) {
      const ref = this.expired[i]!;
      const dueTick = this.dueTicks[ref]!;
      must(dueTick >= last, `due ${dueTick} expired after due ${last}`);
      must(this.#seen[ref] === 0, `timer ${ref} expired twice`);
      this.#seen[ref] = 1;
      last = dueTick;
    }
  }
}

export interface Measured {
  readonly bed: Bed;
  readonly subject: Subject;
  readonly samples: Samples;
  /** Of the samples' names. */
  readonly prefix: string;
}

/** W1 and W2: N due within an hour are inserted, then cancelled in random order. */
export function insertAndCancel({ bed, subject, samples, prefix }: Measured): void {
  bed.drawDueTicks();
  samples.time(prefix + INSERT, bed.count, () => {
    subject.insertAll(bed.dueTicks, bed.refs, bed.handles);
  });
  must(subject.size === bed.count, 'timers after the inserts');
  shuffle(bed.handles, bed.random);
  const live = samples.time(prefix + CANCEL, bed.count, () => subject.cancelAll(bed.handles));
  must(live === bed.count && subject.size === 0, 'timers cancelled');
}

/** W3: N due within an hour are inserted, then expired, the clock going on a second at a time. */
export function insertAndExpire({ bed, subject, samples, prefix }: Measured): void {
  bed.drawDueTicks();
  samples.time(prefix + INSERT, bed.count, () => {
    subject.insertAll(bed.dueTicks, bed.refs, bed.handles);
  });
  expireAll({ bed, subject, samples, prefix }, EXPIRE, HOUR_TICKS);
}

function expireAll(measured: Measured, name: string, ticks: number): void {
  const { bed, subject, samples, prefix } = measured;
  const endTick = bed.nowTick + ticks;
  const count = samples.time(prefix + name, bed.count, () => {
    let done = 0;
    for (let tick = bed.nowTick; tick < endTick; ) {
      tick = Math.min(tick + STEP_TICKS, endTick);
      done += subject.expire(tick, bed.expired, done);
    }
    return done;
  });
  bed.nowTick = endTick;
  must(count === bed.count && subject.size === 0, `timers expired: ${count} of ${bed.count}`);
  bed.checkExpired();
}

const STEADY_CHUNK = 1_000;

/**
 * W4: N live; each operation cancels one at random and inserts another. The clock goes on a tick
 * every 1000 operations; what expires is inserted again, so N stay live.
 */
export function steady({ bed, subject, samples, prefix }: Measured, operations: number): void {
  bed.drawDueTicks();
  subject.insertAll(bed.dueTicks, bed.refs, bed.handles);
  const handles = new Float64Array(STEADY_CHUNK);
  const refs = new Uint32Array(STEADY_CHUNK);
  const dueTicks = new Float64Array(STEADY_CHUNK);
  const picked = new Uint8Array(bed.count);
  let spentNs = 0n;
  let expired = 0;
  for (let done = 0; done < operations; done += STEADY_CHUNK) {
    for (let i = 0; i < STEADY_CHUNK; i++) {
      let ref = Math.floor(bed.random() * bed.count);
      while (picked[ref] === 1) ref = (ref + 1) % bed.count;
      picked[ref] = 1;
      refs[i] = ref;
      handles[i] = bed.handles[ref]!;
      dueTicks[i] = bed.nextDue();
    }
    const startNs = process.hrtime.bigint();
    const live = subject.cancelAll(handles);
    subject.insertAll(dueTicks, refs, handles);
    const count = subject.expire(bed.nowTick + 1, bed.expired, 0);
    spentNs += process.hrtime.bigint() - startNs;
    must(live === STEADY_CHUNK, `live timers cancelled: ${live}`);
    bed.nowTick += 1;
    for (let i = 0; i < STEADY_CHUNK; i++) {
      const ref = refs[i]!;
      picked[ref] = 0;
      bed.handles[ref] = handles[i]!;
      bed.dueTicks[ref] = dueTicks[i]!;
    }
    for (let i = 0; i < count; i++) again(bed, subject, bed.expired[i]!);
    expired += count;
  }
  samples.add(prefix + STEADY, Number(spentNs) / operations);
  must(subject.size === bed.count, 'timers after the steady state');
  must(expired > 0 || operations < 1e6, 'timers expired in the steady state');
  must(subject.cancelAll(bed.handles) === bed.count, 'handles valid after the steady state');
}

/** An expired timer of the steady state, which must have been due now, is inserted again. */
function again(bed: Bed, subject: Subject, ref: number): void {
  must(bed.dueTicks[ref] === bed.nowTick, `timer due ${bed.dueTicks[ref]} expired otherwise`);
  const dueTick = bed.nextDue();
  const handle = new Float64Array(1);
  subject.insertAll(Float64Array.of(dueTick), Uint32Array.of(ref), handle);
  bed.dueTicks[ref] = dueTick;
  bed.handles[ref] = handle[0]!;
}

/** W5: N on one tick, an hour ahead. */
export function allOnOneTick(measured: Measured): void {
  const { bed, subject } = measured;
  bed.dueTicks.fill(bed.nowTick + HOUR_TICKS);
  subject.insertAll(bed.dueTicks, bed.refs, bed.handles);
  // Near it already: of interest is the tick itself, not the way down to it.
  must(subject.expire(bed.nowTick + HOUR_TICKS - 1, bed.expired, 0) === 0, 'none expired early');
  bed.nowTick += HOUR_TICKS - 1;
  expireAll(measured, ONE_TICK, 1);
}

/** Each timer is moved up to an hour later, in random order. */
export function refresh(measured: Measured, wheel: TimerWheel): void {
  const { bed, subject, samples, prefix } = measured;
  bed.drawDueTicks();
  subject.insertAll(bed.dueTicks, bed.refs, bed.handles);
  const order = shuffle(
    bed.expired.fill(0).map((_, i) => i),
    bed.random,
  );
  const handles = new Float64Array(bed.count);
  const laterTicks = new Float64Array(bed.count);
  for (let i = 0; i < bed.count; i++) {
    const ref = order[i]!;
    handles[i] = bed.handles[ref]!;
    laterTicks[i] = bed.dueTicks[ref]! + 1 + Math.floor(bed.random() * HOUR_TICKS);
    bed.dueTicks[ref] = laterTicks[i]!;
  }
  const live = samples.time(prefix + REFRESH, bed.count, () => {
    let moved = 0;
    for (let i = 0; i < bed.count; i++) {
      if (wheel.reschedule(handles[i]!, laterTicks[i]!)) moved += 1;
    }
    return moved;
  });
  must(live === bed.count && subject.size === bed.count, 'timers after the refresh');
  expireAll(measured, EXPIRE_REFRESHED, 2 * HOUR_TICKS);
}
