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
const LMDB_SEEDS = SEEDS.slice(0, 6);
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

  it('saw every legal transition and every fault', () => {
    expect(tally.missing).toEqual([]);
  });
});

describe('any world on LMDB', () => {
  it.each(LMDB_SEEDS)(
    'keeps the invariants (seed %i), and is the same when it is run again',
    async (seed) => {
      const first = await simulate({ seed, steps: STEPS, store: 'lmdb' });
      expect(
        first.violations,
        `npm run simulate -- --store lmdb --seed ${seed} --steps ${STEPS} --trace`,
      ).toEqual([]);
      lmdbTally.add(first.tally);
      const second = await simulate({ seed, steps: STEPS, store: 'lmdb' });
      expect(second.hash).toBe(first.hash);
    },
  );

  it('saw processes die with commits under way, of which some were kept and some lost', () => {
    for (const fault of ['kept', 'lost']) {
      expect(lmdbTally.faults.get(`unflushed commits ${fault}`)).toBeGreaterThan(0);
    }
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

  it('exists for each invariant that code can break', () => {
    const broken = new Set(BROKEN.map(({ breaks }) => breaks));
    expect(broken.size).toBeGreaterThanOrEqual(12);
  });
});
