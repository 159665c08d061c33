/** The table of newest entries, whose slots are in the order of hashes. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compareHashes, ENTRY_WORDS, prefixOf } from '../../../../src/store/lmdb/keys/entry.js';
import { Memtable } from '../../../../src/store/lmdb/keys/memtable.js';

/** Many at both ends of the range, so that slots run full and wrap around. */
const first = fc.oneof(
  fc.integer({ min: 2 ** 32 - 9, max: 2 ** 32 - 1 }),
  fc.nat(9),
  fc.nat(2 ** 32 - 1),
);
const entry = fc
  .tuple(first, fc.nat(3), fc.nat(1000))
  .map(([word, second, id]) => Uint32Array.of(word, second, 0, 0, 0, 0, 0, id));

const keyOf = (words: Uint32Array, at: number): string => `${words[at]} ${words[at + 1]}`;

it('finds the newest of each hash, and gives all in order, prefix by prefix', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 64 }), fc.nat(7), (entries, bits) => {
      const table = new Memtable(64);
      const model = new Map<string, number>();
      for (const each of entries) {
        table.set(each, 0);
        model.set(keyOf(each, 0), each[7]);
      }
      for (const each of entries) {
        expect(table.entries[table.find(each, 0) + 7]).toBe(model.get(keyOf(each, 0)));
      }
      expect(table.count).toBe(model.size);

      const collected: number[] = [];
      for (let prefix = 0; prefix < 2 ** bits; prefix++) {
        const order: number[] = [];
        const looked = table.collect(prefix, bits, order);
        expect(looked).toBeLessThanOrEqual(128);
        expect(order.every((at) => prefixOf(table.entries[at], bits) === prefix)).toBe(true);
        collected.push(...order);
      }
      expect(new Set(collected).size).toBe(model.size);
      for (let i = 1; i < collected.length; i++) {
        const [a, b] = [collected[i - 1], collected[i]];
        expect(compareHashes(table.entries, a, table.entries, b)).toBeLessThan(0);
      }
    }),
    { seed: 20_260, numRuns: 300 },
  );
});

it('is empty after it was cleared', () => {
  const table = new Memtable(4);
  const one = new Uint32Array(ENTRY_WORDS).fill(1);
  table.set(one, 0);
  table.clear();
  expect(table.find(one, 0)).toBe(-1);
  expect(table.count).toBe(0);
});
