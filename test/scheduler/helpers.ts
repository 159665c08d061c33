/** Schedulers on a virtual clock and a memory store, checked and shut down after each test. */
import { afterEach, expect } from 'vitest';
import type { Disarm, WakeAt } from '../../src/clock/clock.js';
import {
  type Event,
  type HandlerMap,
  type OpenOptions,
  Scheduler,
  VirtualClock,
} from '../../src/index.js';
import type { MemoryStore } from '../../src/store/memory/memory-store.js';
import { SpinGuard } from '../spin-guard.js';
import { newStore, type TestStore } from './stores.js';

export type { MemoryStore };

export const START_MS = Date.UTC(2026, 0, 1);

/** Repeatable ids and jitter: one sequence for all schedulers of a run, so that reopening never repeats an id. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = seeded(20_260_101);

export interface Bed<H extends object> {
  readonly scheduler: Scheduler<H>;
  readonly clock: VirtualClock;
  readonly store: TestStore;
  /** All that listeners of '*' were told. */
  readonly events: Event[];
  /** What `onError` was told. */
  readonly errors: { error: unknown; source: string }[];
}

type Opened = Pick<Bed<HandlerMap>, 'clock' | 'store'> & {
  readonly scheduler: Scheduler;
};
const opened: Opened[] = [];

export type BedOptions = Omit<OpenOptions, 'clock' | 'store'> & {
  clock?: VirtualClock;
  store?: TestStore;
};

/** A scheduler that was opened and not started. */
export async function openBed<H extends HandlerMap>(
  handlers: H,
  options: BedOptions = {},
): Promise<Bed<H>> {
  const clock = options.clock ?? newClock();
  const store = options.store ?? newStore();
  const errors: { error: unknown; source: string }[] = [];
  const scheduler = await Scheduler.open<H>({
    random,
    onError: (error, { source }) => errors.push({ error, source }),
    ...options,
    handlers,
    clock,
    store,
  });
  opened.push({ scheduler: scheduler as unknown as Scheduler, clock, store });
  const events: Event[] = [];
  scheduler.on('*', (event) => events.push(event));
  return { scheduler, clock, store, events, errors };
}

/** A scheduler that runs. */
export async function startBed<H extends HandlerMap>(
  handlers: H,
  options: BedOptions = {},
): Promise<Bed<H>> {
  const bed = await openBed(handlers, options);
  await bed.scheduler.start();
  await bed.clock.advance(0);
  return bed;
}

/** Fails what spins. */
class GuardedClock extends VirtualClock {
  readonly #guard = new SpinGuard();

  override arm(at: WakeAt, fire: () => void): Disarm {
    const spins = this.#guard.armed(at, this.now(), this.monotonic());
    if (spins !== undefined) throw new Error(spins);
    return super.arm(at, fire);
  }
}

/** Handlers that do not end are given up on soon: these tests have some on purpose. */
export function newClock(): VirtualClock {
  return new GuardedClock(START_MS, { settleTimeout: 20 });
}

/** Shuts down, with the clock moving for what waits on it. */
export async function close(bed: Pick<Opened, 'clock'> & { scheduler: { shutdown: unknown } }) {
  const { scheduler, clock } = bed as Opened;
  const done = scheduler.shutdown({ drain: false });
  done.catch(() => {});
  for (let i = 0; i < 20 && scheduler.state !== 'closed'; i++) await clock.advance('1s');
  return done;
}

afterEach(async () => {
  for (const bed of opened.splice(0)) {
    if (bed.scheduler.state === 'closed') continue;
    await assertCounts(bed);
    await close(bed).catch(() => {});
  }
});

/** Invariant 15: counters equal a recount. Of a scheduler whose store has failed nothing is known. */
async function assertCounts({ scheduler, clock, store }: Opened): Promise<void> {
  await clock.advance(0);
  const stats = await scheduler.stats().catch(() => undefined);
  if (stats === undefined) return;
  const { pending, ready, running, deadLetters } = await store.recount();
  expect(stats).toMatchObject({ pending, ready, running, deadLetters });
}

/** ms since the start of the test's clock. */
export function since(date: Date | number | undefined): number | undefined {
  return date === undefined ? undefined : Number(date) - START_MS;
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  if ('error' in outcome) return outcome.error;
  throw new Error(`resolved with ${JSON.stringify(outcome.value)}`);
}

/** A promise to settle by hand. */
export function gate<T = void>() {
  let open!: (value: T) => void;
  let fail!: (error: unknown) => void;
  const passed = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { open, fail, passed };
}
