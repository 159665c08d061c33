/**
 * A trace as load: each function is a tenant, each invocation a task due at a random instant of its
 * minute. The tasks of a minute are planned when its first creation comes up, so memory follows the
 * minutes that are open at once (dueIn / minute + 1), not the trace.
 */
import { InvalidArgumentError } from '../../index.js';
import { createRandom } from './random.js';
import { busiestHourStart, type Trace } from './trace.js';
import type { PlanBatch, Workload } from './workload.js';

export interface ReplayOptions {
  readonly trace: Trace;
  readonly source: string;
  /** How many times faster than it was recorded, > 0. */
  readonly speed: number;
  /** Minutes into the trace; undefined: its busiest hour. */
  readonly fromMinute: number | undefined;
  /** How much of the trace is played, in time of this run; undefined: to its end. */
  readonly lengthMs: number | undefined;
  readonly dueInMs: number;
  readonly seed: number;
}

/** Planned tasks of one minute, in order of creation. */
interface MinutePlan {
  readonly createMs: Float64Array;
  readonly dueMs: Float64Array;
  readonly tenant: Uint32Array;
  next: number;
}

/**
 * Creations are ordered to 1/65536 of a minute's creation window: below a slice of the generator.
 */
const ORDER_BUCKETS = 65_536;

/** @throws InvalidArgumentError when `fromMinute` is beyond the trace */
export function replayWorkload(options: ReplayOptions): Workload {
  const { trace, speed, dueInMs } = options;
  const fromMinute = options.fromMinute ?? busiestHourStart(trace);
  if (fromMinute >= trace.minutes) {
    throw new InvalidArgumentError(
      `--from is ${fromMinute}; allowed: 0 to ${trace.minutes - 1}, by ${options.source}`,
    );
  }
  const minuteMs = 60_000 / speed;
  const playedMs = Math.min(
    options.lengthMs ?? Number.POSITIVE_INFINITY,
    (trace.minutes - fromMinute) * minuteMs,
  );
  const minutes = Math.ceil(playedMs / minuteMs);
  const planner = createPlanner(options, { fromMinute, minuteMs, playedMs });
  const open: MinutePlan[] = [];
  let planned = 0;

  function fill(batch: PlanBatch, untilMs: number): boolean {
    while (planned < minutes && planned * minuteMs < untilMs) {
      open.push(planner(planned));
      planned += 1;
    }
    batch.size = 0;
    for (const plan of open) {
      if (!takeUntil(plan, batch, untilMs)) return true;
    }
    while (open.length > 0 && isUsedUp(open[0] as MinutePlan)) open.shift();
    return false;
  }

  return {
    title: `${options.source} from minute ${fromMinute}, ${speed} times as fast`,
    tasksTotal: countPlayed(trace, { fromMinute, minuteMs, playedMs }),
    // Every task is created within `dueIn` before it is due, so creations run from 0 to played +
    // dueIn.
    lengthMs: playedMs + dueInMs,
    dueInMs: 0,
    tenantName: (tenant) => trace.functions[tenant] as string,
    fill,
  };
}

interface Window {
  readonly fromMinute: number;
  readonly minuteMs: number;
  readonly playedMs: number;
}

function countPlayed(trace: Trace, window: Window): number {
  let total = 0;
  for (let minute = 0; minute * window.minuteMs < window.playedMs; minute += 1) {
    forEachPlayed(trace, window, minute, (_tenant, count) => {
      total += count;
    });
  }
  return total;
}

/**
 * Each function's invocations in a minute; in the last one only the share that lies before the end.
 */
function forEachPlayed(
  trace: Trace,
  window: Window,
  minute: number,
  visit: (tenant: number, count: number) => void,
): void {
  const share = lengthOfMinute(window, minute) / window.minuteMs;
  const width = trace.functions.length;
  const row = (window.fromMinute + minute) * width;
  for (let tenant = 0; tenant < width; tenant += 1) {
    const count = Math.round((trace.counts[row + tenant] as number) * share);
    if (count > 0) visit(tenant, count);
  }
}

function lengthOfMinute(window: Window, minute: number): number {
  return Math.min(window.minuteMs, window.playedMs - minute * window.minuteMs);
}

function createPlanner(options: ReplayOptions, window: Window): (minute: number) => MinutePlan {
  return (minute) => {
    // A stream of its own for each minute: its tasks are the same wherever the run starts.
    const random = createRandom(options.seed, 1 + window.fromMinute + minute);
    let total = 0;
    forEachPlayed(options.trace, window, minute, (_tenant, count) => {
      total += count;
    });
    const drawn = emptyPlan(total);
    let at = 0;
    forEachPlayed(options.trace, window, minute, (tenant, count) => {
      for (let left = count; left > 0; left -= 1) {
        const instant =
          minute * window.minuteMs + random.fraction() * lengthOfMinute(window, minute);
        // `dueIn` is added to both, so that the first tasks too can be created ahead of their time.
        drawn.createMs[at] = instant + (1 - random.fraction()) * options.dueInMs;
        drawn.dueMs[at] = instant + options.dueInMs;
        drawn.tenant[at] = tenant;
        at += 1;
      }
    });
    return inOrderOfCreation(drawn, minute * window.minuteMs, window.minuteMs + options.dueInMs);
  };
}

function emptyPlan(size: number): MinutePlan {
  return {
    createMs: new Float64Array(size),
    dueMs: new Float64Array(size),
    tenant: new Uint32Array(size),
    next: 0,
  };
}

/** A counting sort: one pass to count, one to place, no comparator; 1 ms for the busiest minute. */
function inOrderOfCreation(drawn: MinutePlan, startMs: number, spanMs: number): MinutePlan {
  const size = drawn.createMs.length;
  const bucketOf = (at: number): number => {
    const fraction = ((drawn.createMs[at] as number) - startMs) / spanMs;
    return Math.min(ORDER_BUCKETS - 1, Math.floor(fraction * ORDER_BUCKETS));
  };
  const places = new Uint32Array(ORDER_BUCKETS + 1);
  for (let at = 0; at < size; at += 1) places[bucketOf(at) + 1]! += 1;
  for (let bucket = 1; bucket < ORDER_BUCKETS; bucket += 1) places[bucket]! += places[bucket - 1]!;
  const sorted = emptyPlan(size);
  for (let at = 0; at < size; at += 1) {
    const bucket = bucketOf(at);
    const place = places[bucket] as number;
    places[bucket] = place + 1;
    sorted.createMs[place] = drawn.createMs[at] as number;
    sorted.dueMs[place] = drawn.dueMs[at] as number;
    sorted.tenant[place] = drawn.tenant[at] as number;
  }
  return sorted;
}

/**
 * Moves what is to be created before `untilMs` into the batch; false when the batch was full before
 * that.
 */
function takeUntil(plan: MinutePlan, batch: PlanBatch, untilMs: number): boolean {
  while (!isUsedUp(plan) && (plan.createMs[plan.next] as number) < untilMs) {
    if (batch.size === batch.max) return false;
    batch.dueMs[batch.size] = plan.dueMs[plan.next] as number;
    batch.tenant[batch.size] = plan.tenant[plan.next] as number;
    batch.size += 1;
    plan.next += 1;
  }
  return true;
}

function isUsedUp(plan: MinutePlan): boolean {
  return plan.next === plan.createMs.length;
}
