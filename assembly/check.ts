// The invariant walk, and two ways to bring about in tests what would take too long or never
// happen. In the release build, which has no assertions, these do nothing.
import { FREE_CHAINS, LEVEL1, LEVEL3_BITS, NO_SLOT, SLOTS, STRIPES } from './constants';
import {
  CHAINS_AT,
  FREE,
  PARKED_FAR,
  RECORD_BYTES,
  RECORDS,
  generationOf,
  handleOf,
  headAt,
  indexOf,
  linkOf,
  lowDueOf,
  nextOf,
  setLink,
  setWord,
} from './layout';
import { isEmpty, isMarked, slotOf, spanBitsOf, startOf } from './level';
import * as timers from './timers';
import * as wheel from './wheel';

// What `check` gives; 0 is a sound wheel.
const BITMAP_WRONG: u32 = 1;
const LINK_WRONG: u32 = 2;
const DUE_OUTSIDE_SLOT: u32 = 3;
const CURSOR_IN_SLOT: u32 = 4;
const EARLIEST_WRONG: u32 = 5;
const FREE_WRONG: u32 = 6;
const COUNT_WRONG: u32 = 7;
const GENERATION_WRONG: u32 = 8;

let walked: u32 = 0;
let smallest: u64 = 0;

/**
 * Walks every record of the wheel; 0, or the number of the broken invariant. O(records + slots).
 */
export function check(): u32 {
  if (ASC_NO_ASSERT) return 0;
  walked = 0;
  smallest = u64.MAX_VALUE;
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    const broken = checkSlot(slot);
    if (broken != 0) return broken;
  }
  if (wheel.earliest != 0 && wheel.earliest != smallest) return EARLIEST_WRONG;
  const free = checkFree();
  return free != 0 ? free : checkCounts();
}

function checkSlot(slot: u32): u32 {
  if (isMarked(slot) == isEmpty(slot)) return BITMAP_WRONG;
  if (isEmpty(slot)) return 0;
  const start = startOf(slot, wheel.cursor);
  if (slot != wheel.cascading && slot >= LEVEL1 && start <= wheel.cursor) return CURSOR_IN_SLOT;
  if (start < wheel.cursor) return CURSOR_IN_SLOT;
  for (let stripe: u32 = 0; stripe < STRIPES; stripe++) {
    let from = headAt(slot, stripe);
    let record = <usize>load<u32>(from);
    while (record != 0) {
      if (linkOf(record) != from || (record - RECORDS) % RECORD_BYTES != 0) return LINK_WRONG;
      if (generationOf(record) == 0) return GENERATION_WRONG;
      const due = wheel.dueOf(record);
      if (due < start || (slot < LEVEL1 && due != start)) return DUE_OUTSIDE_SLOT;
      if ((due >> LEVEL3_BITS) - (wheel.cursor >> LEVEL3_BITS) > 255) return DUE_OUTSIDE_SLOT;
      // Only a due that was moved to later may belong elsewhere, and then after this slot's end.
      const end = start + ((<u64>1) << spanBitsOf(slot));
      if (slot != wheel.cascading && due < end && slotOf(due, wheel.cursor) != slot) {
        return DUE_OUTSIDE_SLOT;
      }
      smallest = min(smallest, due);
      if (++walked > timers.size) return COUNT_WRONG;
      from = record;
      record = nextOf(record);
    }
  }
  return 0;
}

function checkFree(): u32 {
  let count: u32 = 0;
  for (let chain: u32 = 0; chain < FREE_CHAINS; chain++) {
    let record = <usize>load<u32>(CHAINS_AT + <usize>chain * 4);
    let length: u32 = 0;
    while (record != 0) {
      if (linkOf(record) != FREE || generationOf(record) == 0) return FREE_WRONG;
      if (record >= timers.bump || ++count > timers.freeDepth) return FREE_WRONG;
      length += 1;
      record = nextOf(record);
    }
    const expected = (timers.freeDepth + FREE_CHAINS - 1 - chain) / FREE_CHAINS;
    if (length != expected) return FREE_WRONG;
  }
  return count == timers.freeDepth ? 0 : FREE_WRONG;
}

function checkCounts(): u32 {
  let parked: u32 = 0;
  let gone: u32 = 0;
  for (let record = RECORDS; record < timers.bump; record += RECORD_BYTES) {
    const link = linkOf(record);
    if (generationOf(record) == 0) gone += 1;
    else if (link != FREE && link <= PARKED_FAR) parked += 1;
  }
  if (walked + parked != timers.size) return COUNT_WRONG;
  const all = indexOf(timers.bump);
  return walked + parked + timers.freeDepth + gone == all ? 0 : COUNT_WRONG;
}

/** The live timer's handle once its record is in its last generation. */
export function setLastGeneration(handle: f64): f64 {
  if (ASC_NO_ASSERT) return 0;
  const record = timers.recordOf(handle);
  if (record == 0) return 0;
  setWord(record, lowDueOf(record) | (<u64>0xffffff << 40));
  return handleOf(record, indexOf(record));
}

export function retiredCount(): u32 {
  return timers.retired;
}

/** Breaks the live timer's record on purpose, to show that `check` can fail. */
export function damage(handle: f64): void {
  if (ASC_NO_ASSERT) return;
  const record = timers.recordOf(handle);
  if (record != 0) setLink(record, linkOf(record) ^ 8);
}

export function isCascading(): bool {
  return !ASC_NO_ASSERT && wheel.cascading != NO_SLOT;
}
