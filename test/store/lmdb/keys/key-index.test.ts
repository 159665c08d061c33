/** The index of idempotency keys against a Map, with crashes at any moment, merges, and tasks that go. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { StoreCorruptError, StoreVersionError } from '../../../../src/core/errors.js';
import { KeyIndex } from '../../../../src/store/lmdb/keys/key-index.js';
import { Bed, hashOf, Random, type Sizes, taskIdOf } from './bed.js';

const SEED = Number(process.env.KEYS_SEED ?? 20260);

const beds: Bed[] = [];
afterEach(async () => {
  for (const bed of beds.splice(0)) await bed.destroy();
});

function create(sizes: Sizes): Bed {
  const bed = Bed.create(sizes);
  beds.push(bed);
  return bed;
}

function crashed(bed: Bed): Bed {
  const copy = bed.crashed();
  beds.push(copy);
  return copy;
}

async function reopened(bed: Bed): Promise<Bed> {
  const again = await bed.reopened();
  beds[beds.indexOf(bed)] = again;
  return again;
}

/** Newest task of each hash, by their numbers. */
type Model = Map<number, number>;

function expectSame({ keys }: Bed, model: Model, hashes: number): void {
  for (let n = 0; n < hashes; n++) {
    const task = model.get(n);
    const expected = task === undefined ? undefined : taskIdOf(task);
    expect(keys.find(hashOf(n)), `hash ${n}`).toEqual(expected);
  }
}

async function addRange(bed: Bed, from: number, to: number, task = 1): Promise<void> {
  for (let n = from; n < to; n++) {
    bed.keys.add(hashOf(n), taskIdOf(task + n));
    if (n % 50 === 49) await bed.committed();
  }
  await bed.committed();
}

const HASHES = 120;

type Action =
  | { readonly kind: 'add' | 'remove'; readonly hashes: readonly number[] }
  | { readonly kind: 'work'; readonly pieces: number }
  | { readonly kind: 'crash' | 'reopen' };

const hashes = fc.array(fc.nat(HASHES - 1), { minLength: 1, maxLength: 30 });
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('add' as const), hashes }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), hashes }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('work' as const), pieces: fc.nat(25) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('crash' as const, 'reopen' as const) }),
  },
);

describe('the key index', () => {
  it(`finds what a Map finds, whatever crashes, flushes and merges (KEYS_SEED=${SEED})`, async () => {
    let merges = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 20, maxLength: 60 }),
        fc.constantFrom(3, 17, 4096),
        async (actions, workMax) => {
          let bed = create({ entriesMax: 8, workMax });
          const model: Model = new Map();
          let task = 0;
          for (const step of actions) {
            if (step.kind === 'crash' || step.kind === 'reopen') {
              merges += bed.keys.stats.merges;
              bed = step.kind === 'crash' ? crashed(bed) : await reopened(bed);
            } else if (step.kind === 'work') {
              await bed.work(step.pieces);
            } else if (step.kind === 'add' || step.kind === 'remove') {
              for (const n of step.hashes) {
                if (step.kind === 'add') {
                  bed.keys.add(hashOf(n), taskIdOf(++task));
                  model.set(n, task);
                } else {
                  bed.keys.remove(hashOf(n), taskIdOf(model.get(n) ?? 1_000_000));
                  model.delete(n);
                }
              }
              expectSame(bed, model, HASHES);
              await bed.committed();
            }
            expectSame(bed, model, HASHES);
          }
          await bed.work(100_000);
          expectSame(bed, model, HASHES);
          merges += bed.keys.stats.merges;
          for (const each of beds.splice(0)) await each.destroy();
        },
      ),
      { seed: SEED, numRuns: 25, endOnFailure: true },
    );
    expect(merges, 'histories that merge nothing prove little').toBeGreaterThan(25);
  });

  it('has all of it after a crash at each piece of a flush and a merge', async () => {
    const bed = create({ entriesMax: 64, workMax: 16 });
    const model: Model = new Map();
    for (let n = 0; n < 64 * 5 + 3; n++) {
      bed.keys.add(hashOf(n % 300), taskIdOf(n + 1));
      model.set(n % 300, n + 1);
    }
    let crashes = 0;
    bed.keys.seal();
    do {
      // After one commit: now and then a run is whole, and the manifest does not name it yet.
      await bed.env.committed;
      const copy = crashed(bed);
      expectSame(copy, model, 310);
      // What the crash left half done is done again.
      await copy.work(100_000);
      expectSame(copy, model, 310);
      expect(copy.keys.stats.runs).toBeLessThanOrEqual(4);
      expect(copy.runsOnDisk()).toBe(copy.keys.stats.runs);
      crashes++;
    } while (bed.keys.step());
    expect(crashes).toBeGreaterThan(30);
    expect(bed.keys.stats.merges).toBeGreaterThan(0);
  });

  it('loses nothing when commits of its own work fail, as on a full disk', async () => {
    const bed = create({ entriesMax: 64, workMax: 16 });
    const model: Model = new Map();
    const random = new Random(SEED);
    let failures = 0;
    for (let n = 0; n < 64 * 6; n++) {
      bed.keys.add(hashOf(n % 300), taskIdOf(n + 1));
      model.set(n % 300, n + 1);
      bed.keys.seal();
      await bed.committed();
      bed.failing = random.next() < 0.3;
      if (bed.failing) failures++;
      bed.keys.step();
      // Of what fails, now the turn alone, now also what follows from it.
      if (random.next() < 0.5) bed.failing = false;
      await bed.committed();
      bed.failing = false;
      if (n % 16 === 0) {
        expectSame(bed, model, 310);
        const copy = crashed(bed);
        expectSame(copy, model, 310);
        await copy.destroy();
        beds.splice(beds.indexOf(copy), 1);
      }
    }
    await bed.work(100_000);
    expectSame(bed, model, 310);
    expect(failures).toBeGreaterThan(50);
    expect(bed.keys.stats.merges).toBeGreaterThan(0);
    expect(bed.runsOnDisk()).toBe(bed.keys.stats.runs);
  });

  it('rests after a failed commit until something is added', async () => {
    const bed = create({ entriesMax: 8 });
    await addRange(bed, 0, 9);
    bed.failing = true;
    expect(bed.keys.step()).toBe(true);
    await bed.committed();
    bed.failing = false;
    expect(bed.keys.step()).toBe(false);
    bed.keys.add(hashOf(50), taskIdOf(50));
    await bed.committed();
    await bed.work(100_000);
    expect(bed.keys.stats.flushes).toBe(1);
  });

  it('finds an entry before its commit, and the newest of a turn', () => {
    const { keys } = create({});
    keys.add(hashOf(1), taskIdOf(1));
    keys.add(hashOf(1), taskIdOf(2));
    expect(keys.find(hashOf(1))).toEqual(taskIdOf(2));
    expect(keys.find(hashOf(2))).toBeUndefined();
  });

  it('does not free a hash that a newer task has taken', async () => {
    const bed = create({ entriesMax: 8 });
    bed.keys.add(hashOf(1), taskIdOf(1));
    await addRange(bed, 100, 120);
    bed.keys.add(hashOf(1), taskIdOf(2));
    bed.keys.remove(hashOf(1), taskIdOf(1));
    await bed.work(100_000);
    expect(bed.keys.find(hashOf(1))).toEqual(taskIdOf(2));
  });

  it('never brings back the older task of a hash when the newer one is gone', async () => {
    const bed = create({ entriesMax: 8 });
    bed.keys.add(hashOf(1), taskIdOf(1));
    await addRange(bed, 100, 180);
    await bed.work(100_000);
    bed.keys.add(hashOf(1), taskIdOf(500));
    bed.keys.remove(hashOf(1), taskIdOf(500));
    for (let n = 200; n < 300; n++) {
      expect(bed.keys.find(hashOf(1))).toBeUndefined();
      await addRange(bed, n, n + 1);
      await bed.work(3);
    }
    expect(bed.keys.stats.merges).toBeGreaterThan(0);
  });

  it('keeps no more than a few times what lives, however much came and went', async () => {
    const bed = create({ entriesMax: 64 });
    const living = 200;
    for (let n = 0; n < 5000; n++) {
      bed.keys.add(hashOf(n), taskIdOf(n + 1));
      if (n >= living) bed.keys.remove(hashOf(n - living), taskIdOf(n - living + 1));
      if (n % 40 === 39) await bed.committed();
    }
    await bed.committed();
    await bed.work(100_000);
    expect(bed.keys.find(hashOf(4999))).toEqual(taskIdOf(5000));
    expect(bed.keys.find(hashOf(0))).toBeUndefined();
    expect(bed.keys.stats.entries).toBeLessThan(living * 4);
  });

  it('leaves nothing behind of runs that were merged, nor of the log', async () => {
    const bed = create({ entriesMax: 64, workMax: 32 });
    await addRange(bed, 0, 64 * 16 + 1);
    await bed.work(100_000);
    const entries = [...bed.runs.getRange({})]
      .filter(({ key }) => key > 0 && key % 2 ** 26 < 2 ** 25)
      .reduce((sum, { value }) => sum + value.length / 32, 0);
    expect(entries).toBe(64 * 16);
    expect(bed.keys.stats.runs).toBeLessThan(4);
    const logged = [...bed.log.getRange({})].reduce((sum, { value }) => sum + value.length / 32, 0);
    expect(logged).toBe(1);
  });

  it('is right before its filters are loaded, and reads less afterwards', async () => {
    let bed = create({ entriesMax: 1024, workMax: 64 });
    await addRange(bed, 0, 1024 * 3 + 1);
    await bed.work(100_000);
    bed = await reopened(bed);
    const model: Model = new Map(Array.from({ length: 3073 }, (_, n) => [n, n + 1]));
    expectSame(bed, model, 6000);
    const unfiltered = bed.keys.stats.chunksMissed;
    expect(unfiltered).toBeGreaterThan(3 * 2900);
    await bed.work(100_000);
    expectSame(bed, model, 6000);
    expect(bed.keys.stats.chunksMissed - unfiltered).toBeLessThan(unfiltered / 50);
  });

  it('does work in pieces that are bounded, and stops by itself', async () => {
    const bed = create({ entriesMax: 1024, workMax: 100 });
    await addRange(bed, 0, 20_000);
    await bed.work(100_000);
    expect(bed.keys.step()).toBe(false);
    expect(bed.keys.stats.merges).toBeGreaterThan(0);
    expect(bed.keys.stats.workMax).toBeGreaterThanOrEqual(100);
    // A piece ends with the chunk in which it reaches its bound.
    expect(bed.keys.stats.workMax).toBeLessThan(100 + 200);
  });

  it('keeps up by what adds pay, without idle moments', async () => {
    const bed = create({ entriesMax: 256, workMax: 128 });
    let runsMost = 0;
    for (let n = 0; n < 40_000; n += 20) {
      for (let i = n; i < n + 20; i++) bed.keys.add(hashOf(i), taskIdOf(i + 1));
      await bed.committed();
      runsMost = Math.max(runsMost, bed.keys.stats.runs);
    }
    // 156 tables: three runs on each of four levels, and those under way.
    expect(runsMost).toBeLessThanOrEqual(16);
    expect(bed.keys.stats.memoryBytes - bed.keys.stats.filterBytes).toBeLessThan(4 * 256 * 48);
  });

  it('takes small steps on a small memory: filters are under two bytes an entry', async () => {
    const bed = create({ entriesMax: 4096 });
    await addRange(bed, 0, 4096 * 5 + 1);
    await bed.work(100_000);
    const { filterBytes, entries } = bed.keys.stats;
    expect(filterBytes / entries).toBeLessThan(2);
  });

  it('refuses a newer format and a damaged manifest or chunk', async () => {
    let bed = create({ entriesMax: 8 });
    await addRange(bed, 0, 40);
    await bed.work(100_000);
    const chunk = [...bed.runs.getKeys({})].find((key) => key > 0)!;
    await bed.runs.put(chunk, new Uint8Array(33));
    bed = await reopened(bed);
    const findAll = () => {
      for (let n = 0; n < 40; n++) bed.keys.find(hashOf(n));
    };
    expect(findAll).toThrow(StoreCorruptError);
    for (const [text, error] of [
      ['{"version":2}', StoreVersionError],
      ['{"version":1,"runs":[{}]}', StoreCorruptError],
      ['nonsense', StoreCorruptError],
    ] as const) {
      await bed.runs.put(0, new TextEncoder().encode(text));
      const { log, runs } = bed;
      expect(() => KeyIndex.open({ log, runs }), text).toThrow(error);
    }
  });
});
