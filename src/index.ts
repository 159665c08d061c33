/**
 * tickwheel: a task scheduler and executor for Node.js. Everything public is exported here.
 * @packageDocumentation
 */
import { systemClock } from './clock/system.js';
import { type NextTimesOptions, nextTimes as nextTimesAt, type Schedule } from './core/schedule.js';

export type { Clock, ClockParticipant, Disarm, WakeAt } from './clock/clock.js';
export { systemClock } from './clock/system.js';
export { VirtualClock } from './clock/virtual.js';
export * from './core/errors.js';
export type { AttemptOutcome, Catchup, Overlap } from './core/model.js';
export {
  cron,
  type CronOptions,
  type CronSchedule,
  fixedDelay,
  type FixedDelayOptions,
  type FixedDelaySchedule,
  fixedRate,
  type FixedRateOptions,
  type FixedRateSchedule,
  type NextTimesOptions,
  type OnceSchedule,
  type Schedule,
} from './core/schedule.js';
export type { Duration, Instant } from './core/units.js';
export type { LatenessStats, ShutdownResult } from './engine/engine.js';
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
export { memoryStore, type MemoryStoreOptions } from './store/memory/memory-store.js';
export type { Store, StoreCapabilities } from './store/store.js';
export type { NameOf, PayloadOf, ScheduleArguments, ScheduleItem, TaskRef } from './types.js';
export { TimerWheel, type TimerHandle } from './wheel/timer-wheel.js';

/**
 * The schedule's next nominal times strictly after `from` (default: now), `count` of them (default 5) or fewer
 * when it ends. The first of a `fixedRate` without start is `from` itself.
 * @throws InvalidArgumentError, InvalidScheduleError
 */
export function nextTimes(schedule: Schedule, options: NextTimesOptions = {}): Date[] {
  return nextTimesAt(schedule, options, systemClock().now());
}
