// The wheel: a hierarchical timing wheel (Varghese & Lauck 1987, scheme 7), radix by highest
// differing bits.
//
// 1. No record in a list is due before the cursor, nor 2^40 ticks or more after it.
// 2. A record in level 0 is due exactly at its slot's tick.
// 3. A record in a higher slot is due at or after the slot's first tick. It may be due after its
//    last: a reschedule to later only rewrites the due, and the cascade or the scan that meets it
//    sorts it in.
// 4. The cursor stands in no occupied slot above level 0, but for the one that is being cascaded.
// 5. `earliest`, when known, is the smallest due of all records in lists.
import {
  DUE_BITS,
  DUE_MASK,
  FAR,
  FULL,
  INDEX_BITS,
  LEVEL1,
  LEVEL1_BITS,
  LEVEL3_BITS,
  LEVEL3_SLOTS,
  NO_SLOT,
  OVERDUE,
  STRIPES,
} from './constants';
import { moved, putExpired, setExpired, setMoved, startCounting, expired } from './expiry';
import {
  PARKED_FAR,
  SCRATCH,
  SCRATCH_REFS,
  handleOf,
  headAt,
  indexOf,
  linkOf,
  lowDueOf,
  nextOf,
  refOf,
  setDue,
  setLink,
  setNext,
  setRef,
  setWord,
  wordOf,
} from './layout';
import {
  firstOccupied,
  isEmpty,
  link,
  markEmpty,
  mend,
  occupiedStripes,
  slotOf,
  spanBitsOf,
  startOf,
  touchFirsts,
  unlink,
} from './level';
import { allocate, heldOf, recordOf, release, restartIfEmpty } from './timers';

const NONE_EARLIEST: u64 = u64.MAX_VALUE;
/** `earliest` has to be searched again. Tick 0 itself is just never remembered. */
const UNKNOWN: u64 = 0;

/** The tick that is being drained; all before it are done. */
export let cursor: u64 = 0;
/** The slot whose records are on their way down, or NO_SLOT. */
export let cascading: u32 = NO_SLOT;
export let earliest: u64 = NONE_EARLIEST;

export function setStart(tick: u64): void {
  cursor = tick;
}

/** 0 when the wheel can hold this due tick, else OVERDUE or FAR: the host's heaps hold those. */
// @ts-ignore: decorator
@inline
export function reach(due: u64): i32 {
  if (due - cursor < rangeFrom(cursor)) return 0;
  return due < cursor ? OVERDUE : FAR;
}

/** Ticks from the cursor on that the wheel can hold: its top slot and the 255 after it. */
// @ts-ignore: decorator
@inline
function rangeFrom(tick: u64): u64 {
  return (((tick >> LEVEL3_BITS) + LEVEL3_SLOTS) << LEVEL3_BITS) - tick;
}

// @ts-ignore: decorator
@inline
function place(record: usize, due: u64, stripe: u32): void {
  link(record, slotOf(due, cursor), stripe);
  if (due < earliest) earliest = due;
}

/** The whole due tick, of which the record keeps the low 40 bits. */
// @ts-ignore: decorator
@inline
export function dueOf(record: usize): u64 {
  return cursor + ((lowDueOf(record) - cursor) & DUE_MASK);
}

// @ts-ignore: decorator
@inline
function forget(lowDue: u64): void {
  if (lowDue == (earliest & DUE_MASK)) earliest = UNKNOWN;
}

/** A handle, or FULL, OVERDUE or FAR. O(1). */
// @ts-ignore: decorator
@inline
export function insertOne(due: u64, ref: u32): f64 {
  const outside = reach(due);
  if (outside != 0) return <f64>outside;
  const record = allocate();
  if (record == 0) return <f64>FULL;
  setRef(record, ref);
  setDue(record, due);
  const index = indexOf(record);
  place(record, due, index % STRIPES);
  return handleOf(record, index);
}

/**
 * Inserts scratch entries `from` to `count`; gives the first one that could not be, or `count`. As
 * `insertOne`, but each global and each record's word is read once: 7.6 ns instead of 10.4 with 1M
 * timers, 11.7 instead of 15.2 with 10M.
 */
export function insertBatch(from: u32, count: u32): u32 {
  const now = cursor;
  const range = rangeFrom(now);
  let soonest = earliest;
  let i = from;
  for (; i < count; i++) {
    const at = SCRATCH + <usize>i * 8;
    const due = <u64>(<i64>load<f64>(at));
    if (due - now >= range) break;
    const record = allocate();
    if (record == 0) break;
    const index = indexOf(record);
    const generation = wordOf(record) >> DUE_BITS;
    setWord(record, (generation << DUE_BITS) | (due & DUE_MASK));
    setRef(record, load<u32>(SCRATCH_REFS + <usize>i * 4));
    link(record, slotOf(due, now), index % STRIPES);
    if (due < soonest) soonest = due;
    store<f64>(at, <f64>(<i64>((generation << INDEX_BITS) | <u64>index)));
  }
  earliest = soonest;
  return i;
}

/**
 * 0: stale. 1: cancelled. Else the record was parked and is free now; the host removes it from its
 * heap: place × 2 + (1 if far) + 2. O(1).
 */
// @ts-ignore: decorator
@inline
export function cancelOne(handle: f64): u32 {
  const record = recordOf(handle);
  if (record == 0) return 0;
  let outcome: u32 = 1;
  if (linkOf(record) <= PARKED_FAR) outcome = parkedCode(record);
  else {
    forget(lowDueOf(record));
    unlink(record);
  }
  release(record);
  return outcome;
}

export function parkedCode(record: usize): u32 {
  return <u32>nextOf(record) * 2 + (linkOf(record) == PARKED_FAR ? 1 : 0) + 2;
}

/** Where cancelBatch stopped, and how many it cancelled so far. */
export let cancelled: u32 = 0;

/** Cancels scratch handles `from` to `count`; stops before a parked one, or gives `count`. */
export function cancelBatch(from: u32, count: u32): u32 {
  if (from == 0) cancelled = 0;
  let touchedTo = from;
  for (let i = from; i < count; i++) {
    if (i == touchedTo) {
      touchedTo = min(i + CANCEL_AHEAD, count);
      touchHandles(i, touchedTo);
    }
    const record = recordOf(load<f64>(SCRATCH + <usize>i * 8));
    if (record == 0) continue;
    if (linkOf(record) <= PARKED_FAR) return i;
    forget(lowDueOf(record));
    unlink(record);
    release(record);
    cancelled += 1;
  }
  restartIfEmpty();
  return count;
}

/**
 * Handles that a batch of cancels looks ahead. With 10M timers a cancel took 90 ns instead of 133
 * in one run, while others used the memory too; with 1M, which the caches nearly hold, 33 instead
 * of 29. See docs/adr/0009.
 */
const CANCEL_AHEAD: u32 = 32;

let touchSum: u32 = 0;

/**
 * Loads the records that scratch handles `from` to `to` name, then the neighbours to which those
 * link, so that they come from memory all at once: nothing here waits for the load before it.
 */
function touchHandles(from: u32, to: u32): void {
  let sum: u32 = 0;
  const end = SCRATCH + <usize>to * 8;
  for (let at = SCRATCH + <usize>from * 8; at < end; at += 8) {
    sum += <u32>linkOf(heldOf(load<f64>(at)));
  }
  for (let at = SCRATCH + <usize>from * 8; at < end; at += 8) {
    const record = heldOf(load<f64>(at));
    sum += <u32>linkOf(nextOf(record)) + load<u32>(linkOf(record));
  }
  touchSum = sum; // A load whose value goes nowhere would be dropped.
}

/**
 * 1: done. 0: stale. 2: the timer is parked or the due is out of reach, so the host must do it.
 * O(1).
 */
export function rescheduleOne(handle: f64, due: u64): u32 {
  const record = recordOf(handle);
  if (record == 0) return 0;
  if (linkOf(record) <= PARKED_FAR || reach(due) != 0) return 2;
  const old = dueOf(record);
  forget(old & DUE_MASK);
  setDue(record, due);
  if (due >= old && ((old ^ cursor) & DUE_MASK) >> LEVEL1_BITS != 0) {
    // Invariant 3: it stays in its slot above level 0. Such a slot never holds a record for which
    // this test sees level 0: its first tick, and so the due, lies outside the cursor's 4096 ticks.
    if (due < earliest) earliest = due;
    return 1;
  }
  unlink(record);
  place(record, due, indexOf(record) % STRIPES);
  return 1;
}

/**
 * Expires what is due at or before `now`, in order of due tick, into the scratch area. At most
 * `expiredMax` expiries and `movedMax` cascade moves. True when there may be more.
 */
export function advanceTo(now: u64, expiredMax: u32, movedMax: u32): bool {
  startCounting();
  if (now < cursor) return false;
  const more = work(now, expiredMax, movedMax);
  if (expired != 0) {
    earliest = UNKNOWN;
    restartIfEmpty();
  }
  return more;
}

function work(now: u64, expiredMax: u32, movedMax: u32): bool {
  while (true) {
    if (cascading != NO_SLOT && !cascade(movedMax)) return true;
    const slot = firstOccupied(cursor);
    if (slot == NO_SLOT) break;
    const start = startOf(slot, cursor);
    if (start > now) break;
    cursor = start;
    if (slot >= LEVEL1) cascading = slot;
    else if (!drain(slot, expiredMax)) return true;
  }
  // Nothing is occupied up to now, so however far this jumps, the cursor passes no record.
  cursor = now;
  return false;
}

/** Expires the records of a slot of level 0; false when the bound stopped it. */
function drain(slot: u32, expiredMax: u32): bool {
  let count = expired;
  let stripes = occupiedStripes(slot);
  while (stripes != 0) {
    for (let rest = stripes; rest != 0; rest &= rest - 1) {
      if (count == expiredMax) {
        setExpired(count);
        mend(slot);
        return false;
      }
      const record = takeFirst(headAt(slot, ctz(rest)));
      putExpired(count, refOf(record));
      count += 1;
      release(record);
    }
    stripes = occupiedStripes(slot);
  }
  setExpired(count);
  markEmpty(slot);
  return true;
}

/** Moves records of the cascading slot down; false when the bound stopped it. */
function cascade(movedMax: u32): bool {
  const slot = cascading;
  let count = moved;
  let stripes = occupiedStripes(slot);
  if (stripes != 0) {
    do {
      touchFirsts(slot, stripes);
      for (let rest = stripes; rest != 0; rest &= rest - 1) {
        if (count == movedMax) {
          setMoved(count);
          mend(slot);
          return false;
        }
        const stripe = ctz(rest);
        const record = takeFirst(headAt(slot, stripe));
        link(record, slotOf(lowDueOf(record), cursor), stripe);
        count += 1;
      }
      stripes = occupiedStripes(slot);
    } while (stripes != 0);
    setMoved(count);
    markEmpty(slot);
  }
  cascading = NO_SLOT;
  return true;
}

/** The first record of a list, which then begins with the next one; `mend` sets that one's link. */
// @ts-ignore: decorator
@inline
function takeFirst(head: usize): usize {
  const record = <usize>load<u32>(head);
  store<u32>(head, nextOf(record));
  return record;
}

/** A lower bound of the earliest due tick, or u64.MAX_VALUE. O(levels). */
export function lowerBound(): u64 {
  if (earliest != UNKNOWN) return earliest;
  if (cascading != NO_SLOT && !isEmpty(cascading)) return cursor;
  const slot = firstOccupied(cursor);
  return slot == NO_SLOT ? NONE_EARLIEST : startOf(slot, cursor);
}

/** The earliest due tick, or u64.MAX_VALUE. Scans the first occupied slot unless it is known. */
export function findEarliest(): u64 {
  if (earliest != UNKNOWN) return earliest;
  let best = NONE_EARLIEST;
  if (cascading != NO_SLOT && !isEmpty(cascading)) best = scan(cascading, NONE_EARLIEST);
  while (true) {
    const slot = firstOccupied(cursor);
    if (slot == NO_SLOT) break;
    const start = startOf(slot, cursor);
    if (slot < LEVEL1) {
      best = min(best, start);
      break;
    }
    const end = start + ((<u64>1) << spanBitsOf(slot));
    const found = scan(slot, end);
    if (found < end) {
      best = min(best, found);
      break;
    }
    // All in it were rescheduled to later; they are in their own slots now, and this one is empty.
  }
  earliest = best;
  return best;
}

/**
 * The smallest due in a slot. Records due at or after `end` are moved to the slots where they
 * belong.
 */
function scan(slot: u32, end: u64): u64 {
  let best = NONE_EARLIEST;
  for (let stripe: u32 = 0; stripe < STRIPES; stripe++) {
    let record = <usize>load<u32>(headAt(slot, stripe));
    while (record != 0) {
      const next = nextOf(record);
      const due = dueOf(record);
      if (due < end) best = min(best, due);
      else {
        unlink(record);
        link(record, slotOf(due, cursor), stripe);
      }
      record = next;
    }
  }
  return best;
}

// Parked records: live, but in one of the host's heaps instead of a list. The host keeps each one's
// place in its heap up to date here, so that a handle finds it.

/** A record in no list, for the host's heap; 0 when the wheel is full. */
export function insertParked(ref: u32, kind: u32): usize {
  const record = allocate();
  if (record == 0) return 0;
  setRef(record, ref);
  setLink(record, kind);
  setNext(record, 0);
  return record;
}

/** Takes a record out of its list (or its heap, the host having removed it there) and parks it. */
export function park(record: usize, kind: u32): void {
  if (linkOf(record) > PARKED_FAR) {
    forget(lowDueOf(record));
    unlink(record);
  }
  setLink(record, kind);
}

/** A parked record, removed from its heap, enters the wheel. */
export function enter(record: usize, due: u64): void {
  assert(reach(due) == 0, 'a timer enters the wheel out of its reach');
  setDue(record, due);
  place(record, due, indexOf(record) % STRIPES);
}

/** Expires a parked record, removed from its heap; gives its ref. */
export function expireParked(record: usize): u32 {
  assert(linkOf(record) <= PARKED_FAR, 'an expired overdue timer was not parked');
  const ref = refOf(record);
  release(record);
  restartIfEmpty();
  return ref;
}
