// Records: where they come from and where they go.
//
// 1. A record is live (in a list of the wheel, or parked), free, retired, or at or above `bump`.
// 2. Freeing raises the generation, so a handle given out before matches nothing any more.
// 3. A record whose generation would wrap is retired: its generation is 0 and it is never used
//    again.
// 4. Free records are one stack cut into 8 chains: the k-th from the bottom is in chain k mod 8. It
//    is last in, first out, so a cancel and an insert use the same warm record, and yet eight pops
//    in a row wait for eight loads at once.
// 5. When the last timer goes, the stack is dropped and `bump` starts over, so a wheel that was
//    emptied hands out neighbouring records again. Records below `fresh` keep their generations.
import {
  DUE_BITS,
  FREE_CHAINS,
  GENERATION_FIRST,
  INDEX_BITS,
  INDEX_MASK,
  PAGE_BYTES,
  TIMERS_MAX,
} from './constants';
import {
  CHAINS_AT,
  FIXED,
  FREE,
  RECORDS,
  RECORD_BYTES,
  generationOf,
  nextOf,
  recordAt,
  setLink,
  setNext,
  setWord,
  wordOf,
} from './layout';

const GROW_BYTES_MIN: usize = 256 << 10;
const GROW_BYTES_MAX: usize = 8 << 20;
/** Memory grows by this part of itself, within the bounds above. */
const GROW_PART: usize = 8;

/** Live timers, parked ones included. */
export let size: u32 = 0;
export let retired: u32 = 0;
export let freeDepth: u32 = 0;
/** The next record that was never handed out since the wheel was last empty. */
export let bump: usize = RECORDS;
/** The first record that was never handed out at all. */
export let fresh: usize = RECORDS;
let sizeMax: u32 = TIMERS_MAX;
/** Records end here; the memory behind them ends less than a record later. */
let recordsEnd: usize = RECORDS;

export function setUp(timersMax: u32): void {
  assert(__heap_base <= FIXED, 'static data reaches into the wheel');
  sizeMax = timersMax;
  const missing = (RECORDS + PAGE_BYTES) / PAGE_BYTES - <usize>memory.size();
  if (<isize>missing > 0) memory.grow(<i32>missing);
  measure();
}

function measure(): void {
  const end = <usize>memory.size() * PAGE_BYTES;
  recordsEnd = end < RECORDS ? RECORDS : end - ((end - RECORDS) % RECORD_BYTES);
}

/** Grows the memory to hold `count` records more at once; false when there is no more. */
function grow(count: u32): bool {
  const bytes = <usize>memory.size() * PAGE_BYTES;
  const neededEnd = bump + <usize>count * RECORD_BYTES;
  let step = bytes / GROW_PART;
  step = min(max(step, GROW_BYTES_MIN), GROW_BYTES_MAX);
  // Retired records take room too; without them this is exactly what `timersMax` timers need.
  const fullEnd = recordAt(sizeMax) + <usize>retired * RECORD_BYTES;
  const end = max(min(bytes + step, fullEnd), neededEnd);
  const pages = (end + PAGE_BYTES - 1) / PAGE_BYTES - bytes / PAGE_BYTES;
  if (memory.grow(<i32>pages) < 0) {
    const fewer = (neededEnd + PAGE_BYTES - 1) / PAGE_BYTES - bytes / PAGE_BYTES;
    if (memory.grow(<i32>fewer) < 0) return false;
  }
  measure();
  return true;
}

/** Makes sure that `count` timers can be inserted without failing. */
export function reserve(count: u32): bool {
  if (count > sizeMax - size) return false;
  const atHand = <u64>freeDepth + <u64>((recordsEnd - bump) / RECORD_BYTES);
  const wanted = <u64>count + <u64>retired;
  return wanted <= atHand || grow(<u32>(wanted - <u64>freeDepth));
}

/**
 * Writes to each page that `count` further timers would use first, so that no insert pays for it.
 */
export function touch(count: u32): void {
  const end = min(fresh + <usize>count * RECORD_BYTES, recordsEnd);
  for (let at = fresh; at < end; at += 4096) store<u8>(at, 0);
}

/** A record, its generation set, in no list; 0 when the wheel is full. */
// @ts-ignore: decorator
@inline
export function allocate(): usize {
  if (size >= sizeMax) return 0;
  if (freeDepth != 0) {
    freeDepth -= 1;
    const chain = CHAINS_AT + <usize>(freeDepth % FREE_CHAINS) * 4;
    const record = <usize>load<u32>(chain);
    store<u32>(chain, nextOf(record));
    size += 1;
    return record;
  }
  const record = bump;
  if (record == fresh || generationOf(record) == 0) return allocateNew();
  bump = record + RECORD_BYTES;
  size += 1;
  return record;
}

/** The next record that is not retired, or else one that was never handed out. */
function allocateNew(): usize {
  let record = bump;
  while (record < fresh) {
    bump = record + RECORD_BYTES;
    if (generationOf(record) != 0) {
      size += 1;
      return record;
    }
    record = bump; // Retired.
  }
  if (record == recordsEnd && !grow(1)) return 0;
  bump = record + RECORD_BYTES;
  fresh = bump;
  setWord(record, GENERATION_FIRST << DUE_BITS);
  size += 1;
  return record;
}

/** Frees a record that is in no list any more. */
// @ts-ignore: decorator
@inline
export function release(record: usize): void {
  const word = wordOf(record) + ((<u64>1) << DUE_BITS);
  setWord(record, word);
  setLink(record, FREE);
  size -= 1;
  if (word >> DUE_BITS == 0) {
    retired += 1;
    return;
  }
  const chain = CHAINS_AT + <usize>(freeDepth % FREE_CHAINS) * 4;
  setNext(record, load<u32>(chain));
  store<u32>(chain, record);
  freeDepth += 1;
}

/** Starts over with neighbouring records once no timer is left. */
// @ts-ignore: decorator
@inline
export function restartIfEmpty(): void {
  if (size == 0 && bump != RECORDS) restart();
}

function restart(): void {
  bump = RECORDS;
  freeDepth = 0;
  memory.fill(CHAINS_AT, 0, <usize>FREE_CHAINS * 4);
}

/** The live record that this handle names, or 0: any number is allowed. */
// @ts-ignore: decorator
@inline
export function recordOf(handle: f64): usize {
  const bits = <u64>(<i64>handle);
  const record = recordAt(<u32>(bits & INDEX_MASK));
  if (<f64>(<i64>bits) != handle || record >= bump) return 0;
  if (generationOf(record) != bits >> INDEX_BITS) return 0;
  return load<u32>(record, 4) == FREE ? 0 : record;
}

/** The record of this handle's index, stale or not, to be read only; any number is allowed. */
// @ts-ignore: decorator
@inline
export function heldOf(handle: f64): usize {
  const record = recordAt(<u32>(<u64>(<i64>handle) & INDEX_MASK));
  return record < bump ? record : RECORDS;
}
