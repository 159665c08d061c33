// The numbers that fix the wheel's shape. Ticks are milliseconds.

/** Bits of a due tick that a record keeps: 2^40 ms, 34.8 years, is the wheel's range. */
export const DUE_BITS: u64 = 40;
export const DUE_MASK: u64 = (1 << DUE_BITS) - 1;

// Level k has one slot for each value of its bits of the due tick:
//
//   due tick   39      32 31        22 21        12 11          0
//             ├── lvl 3 ─┼── level 2 ─┼── level 1 ─┼── level 0 ──┤
//   slots          256        1024         1024         4096
//   a slot is   49.7 days   70 minutes   4.1 s        1 ms
export const LEVEL1_BITS: u64 = 12;
export const LEVEL2_BITS: u64 = 22;
export const LEVEL3_BITS: u64 = 32;
export const LEVEL0_SLOTS: u32 = 4096;
export const LEVEL1_SLOTS: u32 = 1024;
export const LEVEL2_SLOTS: u32 = 1024;
export const LEVEL3_SLOTS: u32 = 256;

// All levels' slots are numbered in one row, so one bitmap and one table of list heads serve them
// all.
export const LEVEL1: u32 = LEVEL0_SLOTS;
export const LEVEL2: u32 = LEVEL1 + LEVEL1_SLOTS;
export const LEVEL3: u32 = LEVEL2 + LEVEL2_SLOTS;
export const SLOTS: u32 = LEVEL3 + LEVEL3_SLOTS;
/** No slot: what the search for the first occupied one gives when there is none. */
export const NO_SLOT: u32 = u32.MAX_VALUE;

/**
 * A slot is this many lists, walked in lockstep: a list's next record is known only when the one
 * before it has come from memory, so eight walks at once wait for eight loads at once.
 */
export const STRIPES: u32 = 8;
/** The free records are as many stacks as well, for the same reason. */
export const FREE_CHAINS: u32 = 8;

// A handle is generation × 2^27 + index: 51 bits, a safe integer.
export const INDEX_BITS: u64 = 27;
export const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
export const TIMERS_MAX: u32 = 1 << 27;
/** A record's first generation; 0 marks one that is retired, and no handle carries it. */
export const GENERATION_FIRST: u64 = 1;

/** Timers a batch call takes at once; the scratch area holds this many dues and refs. */
export const BATCH_MAX: u32 = 4096;
/** Expired refs that one advance can give; they lie in the same scratch area. */
export const EXPIRED_MAX: u32 = BATCH_MAX * 3;

export const PAGE_BYTES: usize = 65536;

// What `insert` and its like give instead of a handle (handles are ≥ 2^27).
export const FULL: i32 = 0;
export const OVERDUE: i32 = -1;
export const FAR: i32 = -2;
