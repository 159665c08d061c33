/** As a Map, whatever is put and taken out, and however the hashes fall. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FlatMap, hashOfNumber } from '../../src/core/flat-map.js';

const SEED = Number(process.env.FLAT_MAP_SEED ?? 20_261_130);

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom('set' as const, 'set' as const, 'delete' as const, 'get' as const),
    key: fc.nat(200),
    value: fc.nat(),
  }),
  { maxLength: 600 },
);

it.each([
  ['well spread', hashOfNumber],
  ['all the same', () => -1],
  ['in a few heaps at the end', (key: number) => 60 + (key % 5)],
])(`does what a Map does, hashes %s (FLAT_MAP_SEED=${SEED})`, (_, hash) => {
  fc.assert(
    fc.property(steps, (some) => {
      const map = new FlatMap<number, number>(hash);
      const model = new Map<number, number>();
      for (const { kind, key, value } of some) {
        if (kind === 'set') {
          map.set(key, value);
          model.set(key, value);
        } else if (kind === 'delete') expect(map.delete(key)).toBe(model.delete(key));
        expect(map.get(key)).toBe(model.get(key));
        expect(map.has(key)).toBe(model.has(key));
        expect(map.size).toBe(model.size);
      }
      for (const key of model.keys()) expect(map.get(key)).toBe(model.get(key));
      const values = [...map.values()].sort((a, b) => a - b);
      expect(values).toEqual([...model.values()].sort((a, b) => a - b));
      map.clear();
      expect([map.size, ...map.values()]).toEqual([0]);
    }),
    { seed: SEED, numRuns: 300 },
  );
});
