import { describe, expect, it } from 'vitest';
import type { NativeWheel } from '../../src/wheel/native.js';
import type { TimerWheel } from '../../src/wheel/timer-wheel.js';
import { expectSound, openWheel, randomOf } from './helpers.js';

/** Replay a failure with FUZZ_SEED=<seed> npx vitest run test/wheel/fuzz.test.ts */
const SEED = Number(process.env.FUZZ_SEED ?? 20_260_131);

interface Shape {
  readonly name: string;
  /** Ticks ahead of (or, negative, behind) now. */
  readonly delay: (random: () => number) => number;
  readonly step: (random: () => number) => number;
  readonly liveMax: number;
  readonly operations: number;
}

const upTo = (random: () => number, bits: number) => Math.floor(2 ** (random() * bits));

const SHAPES: readonly Shape[] = [
  {
    name: 'near: many timers a tick',
    delay: (random) => Math.floor(random() * 300),
    step: (random) => Math.floor(random() * 60),
    liveMax: 4_000,
    operations: 700_000,
  },
  {
    name: 'over the edges of level 0',
    delay: (random) => Math.floor(random() * 20_000) - 50,
    step: (random) => Math.floor(random() * 4_500),
    liveMax: 10_000,
    operations: 700_000,
  },
  {
    name: 'every level and beyond',
    delay: (random) => upTo(random, 44) - upTo(random, 12),
    step: (random) => upTo(random, 42),
    liveMax: 20_000,
    operations: 600_000,
  },
  {
    name: 'days, advanced by hours',
    delay: (random) => Math.floor(random() * 2 ** 33),
    step: (random) => upTo(random, 26),
    liveMax: 50_000,
    operations: 700_000,
  },
];

/** The wheel and what must be in it: due ticks by ref, and who is live by ref and at random. */
class Twin {
  readonly wheel: TimerWheel;
  readonly native: NativeWheel;
  readonly random: () => number;
  readonly shape: Shape;
  now: number;
  /** The last expired due tick; orders successive calls until something earlier is inserted. */
  floor = 0;
  readonly dues: Float64Array;
  readonly handles: Float64Array;
  /** Live refs in `order[0..live)`, and where each is. */
  readonly order: Uint32Array;
  readonly places: Uint32Array;
  live = 0;

  constructor(
    wheel: TimerWheel,
    native: NativeWheel,
    shape: Shape,
    random: () => number,
    now: number,
  ) {
    this.wheel = wheel;
    this.native = native;
    this.shape = shape;
    this.random = random;
    this.now = now;
    this.dues = new Float64Array(shape.liveMax);
    this.handles = new Float64Array(shape.liveMax);
    this.order = Uint32Array.from({ length: shape.liveMax }, (_, i) => i);
    this.places = Uint32Array.from(this.order);
  }

  due(): number {
    return Math.max(0, Math.min(this.now + this.shape.delay(this.random), Number.MAX_SAFE_INTEGER));
  }

  add(due: number): number {
    const ref = this.order[this.live]!;
    this.live += 1;
    this.dues[ref] = due;
    this.floor = Math.min(this.floor, due);
    return ref;
  }

  drop(ref: number): void {
    const place = this.places[ref]!;
    if (place >= this.live) throw new Error(`ref ${ref} was not live`);
    this.live -= 1;
    const last = this.order[this.live]!;
    this.order[place] = last;
    this.places[last] = place;
    this.order[this.live] = ref;
    this.places[ref] = this.live;
  }

  anyRef(): number {
    return this.order[Math.floor(this.random() * this.live)]!;
  }

  insertOne(): void {
    if (this.live === this.shape.liveMax) return;
    const due = this.due();
    const ref = this.add(due);
    this.handles[ref] = this.wheel.insert(due, ref);
  }

  insertMany(): number {
    const count = Math.min(Math.floor(this.random() * 300), this.shape.liveMax - this.live);
    const dues = new Float64Array(count).map(() => this.due());
    const refs = Uint32Array.from(dues, (due) => this.add(due));
    const handles = this.wheel.insertMany(dues, refs);
    for (let i = 0; i < count; i++) this.handles[refs[i]!] = handles[i]!;
    return count;
  }

  cancelOne(): void {
    if (this.live === 0) return;
    const ref = this.anyRef();
    must(this.wheel.cancel(this.handles[ref]!), 'cancel of a live timer');
    must(!this.wheel.cancel(this.handles[ref]!), 'cancel of a stale handle');
    this.drop(ref);
  }

  cancelMany(): number {
    const count = Math.min(Math.floor(this.random() * 200), this.live);
    const handles = new Float64Array(count * 2);
    for (let i = 0; i < count; i++) {
      const ref = this.anyRef();
      handles[i] = this.handles[ref]!;
      handles[count + i] = handles[i]!;
      this.drop(ref);
    }
    must(this.wheel.cancelMany(handles) === count, 'count of cancelMany');
    return count;
  }

  reschedule(): void {
    if (this.live === 0) return;
    const ref = this.anyRef();
    const due = this.due();
    must(this.wheel.reschedule(this.handles[ref]!, due), 'reschedule of a live timer');
    this.dues[ref] = due;
    this.floor = Math.min(this.floor, due);
  }

  /** One bounded call; the order holds over calls, and nothing due is left when it says so. */
  advance(): number {
    const { refs, more } = this.wheel.advance(this.now, 1 + Math.floor(this.random() * 400));
    for (const ref of refs) {
      const due = this.dues[ref]!;
      must(due <= this.now, `early: due ${due} at ${this.now}`);
      must(due >= this.floor, `out of order: ${due} after ${this.floor}`);
      this.floor = due;
      this.drop(ref);
      must(!this.wheel.cancel(this.handles[ref]!), 'cancel of an expired timer');
    }
    if (!more) {
      const earliest = this.earliest();
      must(earliest > this.now, `left behind: due ${earliest} at ${this.now}`);
      this.now = Math.min(this.now + this.shape.step(this.random), 2 ** 52);
    }
    return refs.length;
  }

  earliest(): number {
    let earliest = Infinity;
    for (let i = 0; i < this.live; i++) earliest = Math.min(earliest, this.dues[this.order[i]!]!);
    return earliest;
  }

  checkNext(): void {
    const earliest = this.earliest();
    must((this.wheel.nextWake() ?? Infinity) <= earliest, 'nextWake is a lower bound');
    must((this.wheel.nextExpiry() ?? Infinity) === earliest, `nextExpiry is ${earliest}`);
    must(this.wheel.size === this.live, 'size');
  }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** One random operation; how many timers it concerned. */
function step(twin: Twin): number {
  const dice = twin.random();
  if (dice < 0.3) twin.insertOne();
  else if (dice < 0.34) return twin.insertMany();
  else if (dice < 0.55) twin.cancelOne();
  else if (dice < 0.56) return twin.cancelMany();
  else if (dice < 0.9) twin.reschedule();
  else if (dice < 0.97) return 1 + twin.advance();
  else if (dice < 0.972) twin.checkNext();
  return 1;
}

function run(twin: Twin): void {
  let next = 0;
  for (let done = 0; done < twin.shape.operations; ) {
    done += step(twin);
    if (done < next) continue;
    next = done + twin.shape.operations / 30;
    expectSound(twin.native);
    twin.checkNext();
  }
  while (twin.live > 0) {
    twin.now = Math.max(twin.now, twin.earliest());
    twin.advance();
  }
  twin.checkNext();
  expectSound(twin.native);
}

describe(`random operations against a model, FUZZ_SEED=${SEED}`, () => {
  it.each(SHAPES)('case 9: $name', async (shape) => {
    const random = randomOf(SEED);
    const startTick = random() < 0.5 ? 0 : Math.floor(random() * 2 ** 45);
    const { wheel, native } = await openWheel({ startTick, maxTimers: shape.liveMax });
    const twin = new Twin(wheel, native, shape, random, startTick);
    try {
      run(twin);
    } catch (error) {
      throw new Error(`FUZZ_SEED=${SEED}: ${(error as Error).message}`, { cause: error });
    }
    expect(wheel.size).toBe(0);
  });
});
