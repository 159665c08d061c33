/**
 * What is to be created and when it is due, as a plan that knows no scheduler: the same seed gives
 * the same plan. Times are milliseconds since the start of the load.
 */
export interface Workload {
  /** For people: what this load is. */
  readonly title: string;
  /** Tasks in the whole plan. */
  readonly tasksTotal: number;
  /** Everything is created within this time. */
  readonly lengthMs: number;
  /** All but the preload's tasks are due within this time of the last creation. */
  readonly dueInMs: number;
  tenantName(tenant: number): string;
  /**
   * Overwrites `batch` with tasks to be created before `untilMs` that no earlier call gave,
   * `batch.max` at most. True: more of them are left.
   */
  fill(batch: PlanBatch, untilMs: number): boolean;
}

/**
 * A batch of planned tasks in columns; filled again and again, so a load of millions allocates
 * nothing.
 */
export interface PlanBatch {
  readonly max: number;
  size: number;
  /** Milliseconds since the start of the load, may have fractions. */
  readonly dueMs: Float64Array;
  readonly tenant: Uint32Array;
}

export function createPlanBatch(max: number): PlanBatch {
  return { max, size: 0, dueMs: new Float64Array(max), tenant: new Uint32Array(max) };
}
