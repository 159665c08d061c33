// What memory allows: the accesses that a timer cannot do without, and nothing else, over as much
// memory as the timers take. AssemblyScript, like the wheel, so that both pass the same compilers.
//
//   0      DATA                          order
//   ├──────┼─ cells of 16 bytes … ───────┼─ u32 a cell: the cells in random order … ─▶

const DATA: usize = 64;
const CELL_BYTES: usize = 16;

let order: usize = 0;

/** Makes room for that many cells; gives the address of the order, for the host to fill. */
export function prepare(cells: u32): usize {
  order = DATA + <usize>cells * CELL_BYTES;
  const bytes = order + <usize>cells * 4;
  const pages = <i32>((bytes + 65535) / 65536) - memory.size();
  if (pages > 0) memory.grow(pages);
  return order;
}

export function storeAll(cells: u32): void {
  const end = DATA + <usize>cells * CELL_BYTES;
  const value = i32x4.splat(1);
  for (let at = DATA; at < end; at += CELL_BYTES) v128.store(at, value);
}

/** Reads, changes and writes the first `count` cells of the order. */
export function updateRandom(count: u32): void {
  const end = order + <usize>count * 4;
  const one = i32x4.splat(1);
  for (let at = order; at < end; at += 4) {
    const cell = DATA + <usize>load<u32>(at) * CELL_BYTES;
    v128.store(cell, i32x4.add(v128.load(cell), one));
  }
}

/** Reads the first `count` cells of the order, none of which waits for another; their sum. */
export function readRandom(count: u32): u32 {
  const end = order + <usize>count * 4;
  let sum: u32 = 0;
  for (let at = order; at < end; at += 4) {
    sum += load<u32>(DATA + <usize>load<u32>(at) * CELL_BYTES);
  }
  return sum;
}

/** An empty call: what crossing from JavaScript costs. */
export function nothing(value: f64): f64 {
  return value;
}
