// Slots: their lists, and the bitmap of those that are occupied.
//
// 1. A slot's bit is set exactly when one of its lists holds a record; a summary bit exactly when
//    its word is not 0.
// 2. `link` of each record in a list is the address of the u32 that points at the record.
import {
  DUE_MASK,
  LEVEL1,
  LEVEL1_BITS,
  LEVEL2,
  LEVEL2_BITS,
  LEVEL3,
  LEVEL3_BITS,
  LEVEL3_SLOTS,
  NO_SLOT,
} from './constants';
import {
  HEADS_END,
  SUMMARY_AT,
  WORDS_AT,
  headAt,
  linkOf,
  nextOf,
  setLink,
  setNext,
  slotOfHead,
} from './layout';

/**
 * The slot of a due tick as seen from the cursor: at the level of the highest bits in which the two
 * differ. So the slots of one level follow each other in time, all of them after the level below,
 * and the cursor's own slot of each level above 0 is empty.
 */
// @ts-ignore: decorator
@inline
export function slotOf(due: u64, cursor: u64): u32 {
  const apart = (due ^ cursor) & DUE_MASK;
  if (apart >> LEVEL1_BITS == 0) return <u32>due & (LEVEL1 - 1);
  if (apart >> LEVEL2_BITS == 0) return LEVEL1 + (<u32>(due >> LEVEL1_BITS) & 1023);
  if (apart >> LEVEL3_BITS == 0) return LEVEL2 + (<u32>(due >> LEVEL2_BITS) & 1023);
  return LEVEL3 + (<u32>(due >> LEVEL3_BITS) & 255);
}

/** The slot's first tick. */
export function startOf(slot: u32, cursor: u64): u64 {
  if (slot < LEVEL1) return (cursor & ~(<u64>4095)) | <u64>slot;
  if (slot < LEVEL2) {
    return ((cursor >> LEVEL2_BITS) << LEVEL2_BITS) | (<u64>(slot - LEVEL1) << LEVEL1_BITS);
  }
  if (slot < LEVEL3) {
    return ((cursor >> LEVEL3_BITS) << LEVEL3_BITS) | (<u64>(slot - LEVEL2) << LEVEL2_BITS);
  }
  // The top level is a ring: its slots before the cursor's belong to the next round.
  const turn = cursor >> LEVEL3_BITS;
  const ahead = (<u64>(slot - LEVEL3) - turn) & <u64>(LEVEL3_SLOTS - 1);
  return (turn + ahead) << LEVEL3_BITS;
}

/** Ticks that a slot spans, as a power of two. */
export function spanBitsOf(slot: u32): u64 {
  if (slot < LEVEL1) return 0;
  return slot < LEVEL2 ? LEVEL1_BITS : slot < LEVEL3 ? LEVEL2_BITS : LEVEL3_BITS;
}

// @ts-ignore: decorator
@inline
function wordAt(slot: u32): usize {
  return WORDS_AT + <usize>(slot >> 6) * 8;
}

// @ts-ignore: decorator
@inline
function summaryAt(slot: u32): usize {
  return SUMMARY_AT + <usize>(slot >> 12) * 8;
}

// @ts-ignore: decorator
@inline
function markOccupied(slot: u32): void {
  const word = wordAt(slot);
  store<u64>(word, load<u64>(word) | ((<u64>1) << (<u64>slot & 63)));
  const summary = summaryAt(slot);
  store<u64>(summary, load<u64>(summary) | ((<u64>1) << (<u64>(slot >> 6) & 63)));
}

export function markEmpty(slot: u32): void {
  const word = wordAt(slot);
  const rest = load<u64>(word) & ~((<u64>1) << (<u64>slot & 63));
  store<u64>(word, rest);
  if (rest != 0) return;
  const summary = summaryAt(slot);
  store<u64>(summary, load<u64>(summary) & ~((<u64>1) << (<u64>(slot >> 6) & 63)));
}

export function isMarked(slot: u32): bool {
  return ((load<u64>(wordAt(slot)) >> (<u64>slot & 63)) & 1) != 0;
}

/** Whether all lists of the slot are empty. */
// @ts-ignore: decorator
@inline
export function isEmpty(slot: u32): bool {
  const heads = headAt(slot, 0);
  return !v128.any_true(v128.or(v128.load(heads), v128.load(heads, 16)));
}

/** A bit for each of the slot's lists that holds a record. */
// @ts-ignore: decorator
@inline
export function occupiedStripes(slot: u32): u32 {
  const heads = headAt(slot, 0);
  const none = i32x4.splat(0);
  const low = i32x4.bitmask(i32x4.ne(v128.load(heads), none));
  return low | (i32x4.bitmask(i32x4.ne(v128.load(heads, 16), none)) << 4);
}

let touched: u32 = 0;

/**
 * Loads the first record of each of these lists, so that they come from memory all at once. The
 * processor looks ahead by itself, but no further than some hundred instructions: about five
 * records.
 */
// @ts-ignore: decorator
@inline
export function touchFirsts(slot: u32, stripes: u32): void {
  let sum: u32 = 0;
  for (let rest = stripes; rest != 0; rest &= rest - 1) {
    sum += load<u32>(<usize>load<u32>(headAt(slot, ctz(rest))));
  }
  touched = sum; // A load whose value goes nowhere would be dropped.
}

/** The occupied slot that comes first in time, or NO_SLOT. Counts trailing zeros: O(levels). */
export function firstOccupied(cursor: u64): u32 {
  const near = load<u64>(SUMMARY_AT);
  if (near != 0) {
    const word = <u32>ctz(near);
    return word * 64 + <u32>ctz(load<u64>(WORDS_AT + <usize>word * 8));
  }
  const far = load<u64>(SUMMARY_AT, 8);
  if (far == 0) return NO_SLOT;
  const word = LEVEL1 / 64 + <u32>ctz(far);
  if (word < LEVEL3 / 64) return word * 64 + <u32>ctz(load<u64>(WORDS_AT + <usize>word * 8));
  return firstOfRing(<u32>(cursor >> LEVEL3_BITS) & (LEVEL3_SLOTS - 1));
}

/** Level 3 from `from` on and around: its slots lie in four words. */
function firstOfRing(from: u32): u32 {
  const ring = WORDS_AT + <usize>(LEVEL3 / 64) * 8;
  for (let step: u32 = 0; step <= LEVEL3_SLOTS / 64; step++) {
    const index = ((from >> 6) + step) % (LEVEL3_SLOTS / 64);
    let word = load<u64>(ring + <usize>index * 8);
    const below = ((<u64>1) << (<u64>from & 63)) - 1;
    if (step == 0) word &= ~below;
    if (step == LEVEL3_SLOTS / 64) word &= below;
    if (word != 0) return LEVEL3 + index * 64 + <u32>ctz(word);
  }
  return NO_SLOT;
}

/** Puts a record at the front of one of the slot's lists. */
// @ts-ignore: decorator
@inline
export function link(record: usize, slot: u32, stripe: u32): void {
  const head = headAt(slot, stripe);
  const first = <usize>load<u32>(head);
  setNext(record, first);
  setLink(record, head);
  store<u32>(head, record);
  if (first != 0) setLink(first, record);
  else markOccupied(slot);
}

/** Takes a record out of its list, wherever in it. */
// @ts-ignore: decorator
@inline
export function unlink(record: usize): void {
  const next = nextOf(record);
  const from = linkOf(record);
  store<u32>(from, next);
  if (next != 0) setLink(next, from);
  else if (from < HEADS_END) {
    const slot = slotOfHead(from);
    if (isEmpty(slot)) markEmpty(slot);
  }
}

/**
 * Makes the slot whole again after records were taken from the front of its lists and some are
 * left: first records link to their heads.
 */
export function mend(slot: u32): void {
  for (let rest = occupiedStripes(slot); rest != 0; rest &= rest - 1) {
    const head = headAt(slot, ctz(rest));
    setLink(<usize>load<u32>(head), head);
  }
}
