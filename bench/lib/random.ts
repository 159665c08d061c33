/** Seeded numbers from 0 to below 1 (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Fisher and Yates, in place. */
export function shuffle<T extends Float64Array | Uint32Array>(values: T, random: () => number): T {
  for (let i = values.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const value = values[i]!;
    values[i] = values[j]!;
    values[j] = value;
  }
  return values;
}

/** 0 to below `count`, each once, in random order. */
export function permutation(count: number, random: () => number): Uint32Array {
  return shuffle(
    Uint32Array.from({ length: count }, (_, i) => i),
    random,
  );
}
