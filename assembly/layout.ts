// Where everything lies in linear memory. Addresses are bytes, unsigned 32 bits.
//
//   0          16 KiB                                          RECORDS
//   ├─ static ───┼─ heads ─┼─ bitmap ─┼─ free chains ─┼─ scratch ─┼─ records … grow to the end ─▶
//
//   heads        SLOTS × 8 stripes × u32: address of the list's first record, 0 when empty
//   bitmap       one bit a slot, then one summary bit a 64-bit word
//   free chains  8 × u32: address of the chain's first free record
//   scratch      what batch calls pass: BATCH_MAX × f64 (dues in, handles out), BATCH_MAX × u32
//                (refs); or, after an advance, EXPIRED_MAX × u32 (expired refs)
//
// A record is 20 bytes. Records never move, so links are addresses and a walk computes nothing.
//
//   byte  0          4          8                    16         20
//         ├── next ──┼── link ──┼─────── word ───────┼── ref ────┤
//
//   next  address of the list's next record, 0 at its end; of a parked record: its place in the
//         host's heap
//   link  address of the u32 that points at this record: a head, or the `next` of the record before
//         it (so unlinking has one case); small numbers are states, see below
//   word  generation (24 bits) above the due tick's low 40 bits
//   ref   the caller's
import {
  BATCH_MAX,
  DUE_BITS,
  DUE_MASK,
  FREE_CHAINS,
  INDEX_BITS,
  SLOTS,
  STRIPES,
} from './constants';

/** Static data of the debug build (assertion messages) ends below this. */
export const FIXED: usize = 16384;

const HEAD_BYTES: usize = 4;
const SLOT_BYTES: usize = <usize>STRIPES * HEAD_BYTES;
const WORDS: usize = <usize>SLOTS / 64;

export const HEADS: usize = FIXED;
export const HEADS_END: usize = HEADS + <usize>SLOTS * SLOT_BYTES;
export const WORDS_AT: usize = HEADS_END;
export const SUMMARY_AT: usize = WORDS_AT + WORDS * 8;
export const CHAINS_AT: usize = SUMMARY_AT + ((WORDS + 63) / 64) * 8;
export const SCRATCH: usize = (CHAINS_AT + <usize>FREE_CHAINS * 4 + 63) & ~63;
export const SCRATCH_REFS: usize = SCRATCH + <usize>BATCH_MAX * 8;
const SCRATCH_END: usize = SCRATCH_REFS + <usize>BATCH_MAX * 4;
export const RECORDS: usize = (SCRATCH_END + 63) & ~63;

export const RECORD_BYTES: usize = 20;
const LINK: usize = 4;
const WORD: usize = 8;
const REF: usize = 16;

// Values of `link` that are no address of a pointer: the record is in no list of the wheel.
export const FREE: u32 = 0;
/** In the host's heap of timers whose due lies before the cursor. */
export const PARKED_OVERDUE: u32 = 1;
/** In the host's heap of timers whose due lies beyond the wheel's range. */
export const PARKED_FAR: u32 = 2;

// @ts-ignore: decorator
@inline
export function nextOf(record: usize): usize {
  return load<u32>(record);
}

// @ts-ignore: decorator
@inline
export function setNext(record: usize, next: usize): void {
  store<u32>(record, next);
}

// @ts-ignore: decorator
@inline
export function linkOf(record: usize): usize {
  return load<u32>(record, LINK);
}

// @ts-ignore: decorator
@inline
export function setLink(record: usize, link: usize): void {
  store<u32>(record, link, LINK);
}

// @ts-ignore: decorator
@inline
export function wordOf(record: usize): u64 {
  return load<u64>(record, WORD);
}

// @ts-ignore: decorator
@inline
export function setWord(record: usize, word: u64): void {
  store<u64>(record, word, WORD);
}

/** The due tick's low 40 bits. */
// @ts-ignore: decorator
@inline
export function lowDueOf(record: usize): u64 {
  return wordOf(record) & DUE_MASK;
}

// @ts-ignore: decorator
@inline
export function setDue(record: usize, due: u64): void {
  setWord(record, (wordOf(record) & ~DUE_MASK) | (due & DUE_MASK));
}

// @ts-ignore: decorator
@inline
export function generationOf(record: usize): u64 {
  return wordOf(record) >> DUE_BITS;
}

// @ts-ignore: decorator
@inline
export function refOf(record: usize): u32 {
  return load<u32>(record, REF);
}

// @ts-ignore: decorator
@inline
export function setRef(record: usize, ref: u32): void {
  store<u32>(record, ref, REF);
}

// @ts-ignore: decorator
@inline
export function recordAt(index: u32): usize {
  return RECORDS + <usize>index * RECORD_BYTES;
}

// @ts-ignore: decorator
@inline
export function indexOf(record: usize): u32 {
  return <u32>((record - RECORDS) / RECORD_BYTES);
}

// @ts-ignore: decorator
@inline
export function handleOf(record: usize, index: u32): f64 {
  return <f64>(<i64>((generationOf(record) << INDEX_BITS) | <u64>index));
}

// @ts-ignore: decorator
@inline
export function headAt(slot: u32, stripe: u32): usize {
  return HEADS + <usize>slot * SLOT_BYTES + <usize>stripe * HEAD_BYTES;
}

/** The slot whose head lies at this address. */
// @ts-ignore: decorator
@inline
export function slotOfHead(head: usize): u32 {
  return <u32>((head - HEADS) / SLOT_BYTES);
}
