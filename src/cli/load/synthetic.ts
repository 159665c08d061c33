import { createRandom } from './random.js';
import type { PlanBatch, Workload } from './workload.js';

export interface SyntheticOptions {
  /** Creates a second, ≥ 0; may have fractions. */
  readonly ratePerSecond: number;
  readonly lengthMs: number;
  readonly dueInMs: number;
  readonly tenants: number;
  readonly seed: number;
}

/**
 * A constant rate of creates, each due at a random instant of the next `dueInMs`, tenants at
 * random.
 */
export function syntheticWorkload(options: SyntheticOptions): Workload {
  const { ratePerSecond, lengthMs, dueInMs, tenants } = options;
  const tasksTotal = Math.round((ratePerSecond * lengthMs) / 1000);
  const gapMs = 1000 / ratePerSecond;
  const random = createRandom(options.seed);
  let issued = 0;

  function fill(batch: PlanBatch, untilMs: number): boolean {
    batch.size = 0;
    while (issued < tasksTotal && issued * gapMs < untilMs) {
      if (batch.size === batch.max) return true;
      batch.dueMs[batch.size] = issued * gapMs + random.fraction() * dueInMs;
      batch.tenant[batch.size] = random.below(tenants);
      batch.size += 1;
      issued += 1;
    }
    return false;
  }

  const tenantsText = tenants === 1 ? 'one tenant' : `${tenants} tenants`;
  return {
    title: `synthetic, ${ratePerSecond} tasks/s, ${tenantsText}`,
    tasksTotal,
    lengthMs,
    dueInMs,
    tenantName,
    fill,
  };
}

/**
 * `--pending N --spread T`: all to be created at once, due at random instants of the next
 * `spreadMs`.
 */
export function preloadWorkload(options: {
  readonly tasks: number;
  readonly spreadMs: number;
  readonly tenants: number;
  readonly seed: number;
}): Workload {
  const random = createRandom(options.seed, 1);
  let issued = 0;

  function fill(batch: PlanBatch): boolean {
    batch.size = Math.min(batch.max, options.tasks - issued);
    for (let at = 0; at < batch.size; at += 1) {
      batch.dueMs[at] = random.fraction() * options.spreadMs;
      batch.tenant[at] = random.below(options.tenants);
    }
    issued += batch.size;
    return issued < options.tasks;
  }

  return {
    title: `${options.tasks} tasks stored first`,
    tasksTotal: options.tasks,
    lengthMs: 0,
    dueInMs: options.spreadMs,
    tenantName,
    fill,
  };
}

function tenantName(tenant: number): string {
  return `tenant-${tenant}`;
}
