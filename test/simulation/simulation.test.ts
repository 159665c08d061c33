/**
 * The real scheduler in a world of faults, judged by an oracle that knows nothing of its code. A failing seed is replayed
 * by `npm run simulate -- --seed N --steps M --trace`; many more seeds by `npm run simulate -- --seeds 10000`.
 */
import { describe, expect, it } from 'vitest';
import { BROKEN } from './broken.js';
import { Tally } from './report.js';
import { simulate } from './simulate.js';

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const STEPS = 300;
/** On real files, which take longer. */
const LMDB_SEEDS = SEEDS.slice(0, 9);
/** And with so little room in memory that most of it waits on disk. */
const LMDB_FEW_SEEDS = SEEDS.slice(0, 4);
/** Broken variants are looked for in these, one after the other, until one of them catches it. */
const CATCH_SEEDS = SEEDS.slice(0, 10);

const tally = new Tally();
const lmdbTally = new Tally();

describe('any world', () => {
  it.each(SEEDS)(
    'keeps the invariants (seed %i), and is the same when it is run again',
    async (seed) => {
      const first = await simulate({ seed, steps: STEPS });
      expect(
        first.violations,
        `npm run simulate -- --seed ${seed} --steps ${STEPS} --trace`,
      ).toEqual([]);
      tally.add(first.tally);
      const second = await simulate({ seed, steps: STEPS });
      expect(second.hash).toBe(first.hash);
    },
  );

  it('knows that a task whose key another took lives again without it (seed 2667: its redrive)', async () => {
    const { violations } = await simulate({ seed: 2667, steps: 500 });
    expect(violations).toEqual([]);
  });

  it('saw every legal transition and every fault', () => {
    console.info(`memory, ${SEEDS.length} seeds\n${tally}`);
    expect(tally.missing).toEqual([]);
  });
});

const LMDB_RUNS = [
  ...LMDB_SEEDS.map((seed) => ({ store: 'lmdb', seed })),
  ...LMDB_FEW_SEEDS.map((seed) => ({ store: 'lmdb-few', seed })),
];

describe('any world on LMDB', () => {
  it.each(LMDB_RUNS)(
    'keeps the invariants ($store, seed $seed), and is the same when it is run again',
    async ({ store, seed }) => {
      const first = await simulate({ seed, steps: STEPS, store });
      expect(
        first.violations,
        `npm run simulate -- --store ${store} --seed ${seed} --steps ${STEPS} --trace`,
      ).toEqual([]);
      lmdbTally.add(first.tally);
      const second = await simulate({ seed, steps: STEPS, store });
      expect(second.hash).toBe(first.hash);
    },
  );

  it('saw every legal transition and every fault', () => {
    console.info(`LMDB, ${LMDB_RUNS.length} seeds\n${lmdbTally}`);
    expect(lmdbTally.missing).toEqual([]);
  });
});

const VARIANTS = BROKEN.flatMap((broken) =>
  (broken.stores ?? ['memory']).map((store) => ({ ...broken, store })),
);

describe('a broken variant', () => {
  it.each(VARIANTS)('is caught on $store: $name (invariant $breaks)', async (variant) => {
    const { store, ...broken } = variant;
    const seen: string[] = [];
    for (const seed of CATCH_SEEDS) {
      const { violations } = await simulate({ seed, steps: STEPS, store, broken });
      seen.push(...violations.slice(0, 3));
      const number = broken.seenAs ?? broken.breaks;
      if (violations.some((violation) => violation.startsWith(`${number} `))) return;
    }
    expect.fail(`no seed caught it; seen: ${seen.join('; ')}`);
  });

  it('exists for each of the 16 invariants', () => {
    const broken = [...new Set(BROKEN.map(({ breaks }) => breaks))].sort((a, b) => a - b);
    expect(broken).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
  });
});
