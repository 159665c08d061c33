/**
 * tickwheel: a task scheduler and executor for Node.js. Everything public is exported here.
 * @packageDocumentation
 */
import { systemClock } from './clock/system.js';
import { optionsOf } from './core/arguments.js';
import { type NextTimesOptions, nextTimes as nextTimesAt, type Schedule } from './core/schedule.js';
import { directoryOf } from './store/lmdb/lmdb-store.js';
import type { Verification } from './store/lmdb/verify/verify.js';

export type { Clock, ClockParticipant, Disarm, WakeAt } from './clock/clock.js';
export { systemClock } from './clock/system.js';
export { VirtualClock } from './clock/virtual.js';
export * from './core/errors.js';
export type { AttemptOutcome, Catchup, Overlap } from './core/model.js';
export {
  type CronOptions,
  type CronSchedule,
  cron,
  type FixedDelayOptions,
  type FixedDelaySchedule,
  type FixedRateOptions,
  type FixedRateSchedule,
  fixedDelay,
  fixedRate,
  type NextTimesOptions,
  type OnceSchedule,
  type Schedule,
} from './core/schedule.js';
export { TASK_STATUSES } from './core/status.js';
export type { Duration, Instant } from './core/units.js';
export type { LatenessStats, ShutdownResult } from './engine/engine.js';
export type { Repairs } from './engine/reconcile.js';
export type {
  Context,
  Handler,
  HandlerMap,
  HandlersOf,
  ScheduledTask,
} from './execution/handler.js';
export type { Logger } from './observe/log.js';
export type { HandlerLimits, OpenOptions, StoredBytesCodec, TenantLimits } from './options.js';
export type {
  Attempt,
  Event,
  EventDetails,
  EventOf,
  EventType,
  Occurrence,
  OccurrenceStatus,
  Task,
  TaskOptions,
  TaskStatus,
} from './present.js';
export type {
  PolicyOptions,
  Priority,
  RetryOptions,
  ScheduleOptions,
  UpdateOptions,
  When,
} from './request.js';
export {
  type ListOptions,
  type Page,
  type PageOptions,
  Scheduler,
  type SchedulerState,
  type ShutdownOptions,
} from './scheduler.js';
export type { Bound, Stats } from './stats.js';
export { type LmdbStoreOptions, lmdbStore } from './store/lmdb/lmdb-store.js';
export type { Verification } from './store/lmdb/verify/verify.js';
export { type MemoryStoreOptions, memoryStore } from './store/memory/memory-store.js';
export type { Store, StoreCapabilities } from './store/store.js';
export type { NameOf, PayloadOf, ScheduleArguments, ScheduleItem, TaskRef } from './types.js';
export { type TimerHandle, TimerWheel } from './wheel/timer-wheel.js';

/**
 * The schedule's next nominal times strictly after `from` (default: now), `count` of them (default 5) or fewer
 * when it ends. The first of a `fixedRate` without start is `from` itself.
 * @throws InvalidArgumentError, InvalidScheduleError
 */
export function nextTimes(schedule: Schedule, options: NextTimesOptions = {}): Date[] {
  return nextTimesAt(schedule, options, systemClock().now());
}

/**
 * Recounts every counter of an LMDB store and compares every index with the records, both ways; it changes nothing, and
 * a scheduler may have the store open meanwhile. Reads all of it.
 * @throws InvalidArgumentError, StoreCorruptError, StoreVersionError; StoreUnavailableError when there is no store
 */
export async function verifyStore(options: { readonly path: string }): Promise<Verification> {
  const given = optionsOf(options, 'verifyStore options', VERIFY);
  const path = directoryOf(given.path, 'verifyStore path');
  const { verifyStore: verify } = await import('./store/lmdb/verify/verify.js');
  const clock = systemClock();
  return verify({ path, nowMs: () => clock.now() });
}

const VERIFY = new Set(['path'] as const);
