/**
 * A seeded generator of random numbers: sfc32 (Chris Doty-Humphrey, PractRand 2010), seeded by 32
 * bits and warmed up as its author advises. The same seed gives the same load on every machine.
 */
export interface Random {
  /** A whole number, 0 to 2³² − 1. */
  uint32(): number;
  /** A fraction in [0, 1), 32 bits of it. */
  fraction(): number;
  /** A whole number in [0, below); `below` at most 2³². */
  below(below: number): number;
}

const WARM_UP_ROUNDS = 15;

/** `seed`: a whole number, 0 to 2³² − 1. `stream` gives independent sequences under one seed. */
export function createRandom(seed: number, stream = 0): Random {
  let a = seed | 0;
  let b = stream | 0;
  let c = 0x9e3779b9 | 0;
  let counter = 1;

  function uint32(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return sum >>> 0;
  }

  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) uint32();
  return {
    uint32,
    fraction: () => uint32() / 2 ** 32,
    below: (below) => Math.floor((uint32() / 2 ** 32) * below),
  };
}
