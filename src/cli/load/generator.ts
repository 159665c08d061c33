/**
 * The generator is an open loop: what is due to be created by now is created now, whether or not
 * earlier calls have been answered. A scheduler that falls behind meets a growing queue, not a
 * patient caller.
 */
import type { Creator } from './creator.js';
import { createPlanBatch, type Workload } from './workload.js';

export interface GeneratorClock {
  /** Epoch milliseconds. */
  now(): number;
  monotonic(): number;
  sleep(duration: number): Promise<void>;
}

/**
 * Creations are issued in slices of this time: short against what is measured, long against a
 * timer's cost.
 */
const SLICE_MS = 5;
/**
 * A `scheduleMany` call carries this many at most: more would hold the event loop for milliseconds.
 */
const BATCH_TASKS_MAX = 1000;
/**
 * After a stall of its own the generator catches up in bursts of this many calls a turn of the
 * loop.
 */
const CALLS_PER_TURN_MAX = 4;
/** The preload is a closed loop: this many calls are unanswered at once. */
const PRELOAD_CALLS_MAX = 4;

/** Creates the plan in its own time; resolves when the last call has been issued (not answered). */
export async function generate(
  workload: Workload,
  creator: Creator,
  clock: GeneratorClock,
): Promise<void> {
  const batch = createPlanBatch(BATCH_TASKS_MAX);
  const startMs = clock.now();
  const startedAtMs = clock.monotonic();
  for (;;) {
    const elapsedMs = clock.monotonic() - startedAtMs;
    let behind = true;
    for (let call = 0; behind && call < CALLS_PER_TURN_MAX; call += 1) {
      behind = workload.fill(batch, elapsedMs);
      if (batch.size > 0) creator.create(batch, workload, startMs);
    }
    if (!behind && elapsedMs >= workload.lengthMs) return;
    const leftMs = Math.max(0, workload.lengthMs - elapsedMs);
    await clock.sleep(behind ? 0 : Math.min(SLICE_MS, leftMs));
  }
}

/**
 * Stores the whole plan as fast as the scheduler takes it; resolves when all calls are answered.
 */
export async function preload(
  workload: Workload,
  creator: Creator,
  clock: GeneratorClock,
): Promise<void> {
  const batch = createPlanBatch(BATCH_TASKS_MAX);
  const startMs = clock.now();
  for (let more = workload.tasksTotal > 0; more; ) {
    more = workload.fill(batch, Number.POSITIVE_INFINITY);
    creator.create(batch, workload, startMs);
    await creator.inFlightAtMost(PRELOAD_CALLS_MAX - 1);
  }
  await creator.inFlightAtMost(0);
}
