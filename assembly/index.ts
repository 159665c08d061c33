// What the host may call. Ticks and handles are f64 that the host has checked to be integers
// (handles need not be); nothing here traps, whatever the arguments.
import { BATCH_MAX, EXPIRED_MAX, FULL } from './constants';
import { expired, moved } from './expiry';
import {
  PARKED_FAR,
  PARKED_OVERDUE,
  SCRATCH,
  SCRATCH_REFS,
  handleOf,
  indexOf,
  linkOf,
  recordAt,
  setNext,
} from './layout';
import * as timers from './timers';
import * as wheel from './wheel';

export function setUp(startTick: f64, timersMax: u32): void {
  timers.setUp(timersMax);
  wheel.setStart(<u64>(<i64>startTick));
}

/** Where batch calls take f64 dues or handles, and leave f64 handles or u32 expired refs. */
export function scratchAt(): usize {
  return SCRATCH;
}

/** Where batch calls take u32 refs. */
export function scratchRefsAt(): usize {
  return SCRATCH_REFS;
}

export function batchMax(): u32 {
  return BATCH_MAX;
}

export function expiredMax(): u32 {
  return EXPIRED_MAX;
}

export function size(): u32 {
  return timers.size;
}

export function reserve(count: u32): bool {
  return timers.reserve(count);
}

export function touch(count: u32): void {
  timers.touch(count);
}

export function insert(dueTick: f64, ref: u32): f64 {
  return wheel.insertOne(<u64>(<i64>dueTick), ref);
}

export function insertMany(from: u32, count: u32): u32 {
  return wheel.insertBatch(from, count);
}

export function cancel(handle: f64): u32 {
  const outcome = wheel.cancelOne(handle);
  if (outcome != 0) timers.restartIfEmpty();
  return outcome;
}

export function cancelMany(from: u32, count: u32): u32 {
  return wheel.cancelBatch(from, count);
}

export function cancelled(): u32 {
  return wheel.cancelled;
}

export function reschedule(handle: f64, dueTick: f64): u32 {
  return wheel.rescheduleOne(handle, <u64>(<i64>dueTick));
}

/** Expired refs × 2, + 1 when more may be due. */
export function advance(nowTick: f64, expiriesMax: u32, movesMax: u32): u32 {
  const more = wheel.advanceTo(<u64>(<i64>nowTick), min(expiriesMax, EXPIRED_MAX), movesMax);
  return expired * 2 + <u32>more;
}

/** Cascade moves of the last advance. */
export function cascadeMoves(): u32 {
  return moved;
}

export function nextExpiry(): f64 {
  return tickOf(wheel.findEarliest());
}

export function nextWake(): f64 {
  return tickOf(wheel.lowerBound());
}

/** -1 for no tick. */
function tickOf(tick: u64): f64 {
  return tick == u64.MAX_VALUE ? -1 : <f64>(<i64>tick);
}

/** 0 when the wheel can hold this due tick, OVERDUE or FAR when not. */
export function reach(dueTick: f64): i32 {
  return wheel.reach(<u64>(<i64>dueTick));
}

/** 0 stale, 1 in a list, else parked as `cancel` tells it. */
export function stateOf(handle: f64): u32 {
  const record = timers.recordOf(handle);
  if (record == 0) return 0;
  return linkOf(record) <= PARKED_FAR ? wheel.parkedCode(record) : 1;
}

/** The handle of a new parked timer, or FULL. */
export function insertParked(ref: u32, far: bool): f64 {
  const record = wheel.insertParked(ref, far ? PARKED_FAR : PARKED_OVERDUE);
  return record == 0 ? <f64>FULL : handleOf(record, indexOf(record));
}

export function park(index: u32, far: bool): void {
  wheel.park(recordAt(index), far ? PARKED_FAR : PARKED_OVERDUE);
}

/** A parked timer's place in its heap has changed. */
export function setPlace(index: u32, place: u32): void {
  setNext(recordAt(index), place);
}

export function enter(index: u32, dueTick: f64): void {
  wheel.enter(recordAt(index), <u64>(<i64>dueTick));
}

export function expireParked(index: u32): u32 {
  return wheel.expireParked(recordAt(index));
}

// For tests; each does nothing in the release build.
export { check, damage, isCascading, retiredCount, setLastGeneration } from './check';
