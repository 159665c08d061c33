/** Checksums of stored values: what was changed, or lies under another key, is not taken for what was written. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Writer } from '../../src/store/lmdb/bytes.js';
import { Key } from '../../src/store/lmdb/keys.js';
import { isWhole, seal, sealed, unsealed } from '../../src/store/lmdb/seal.js';

const SEED = Number(process.env.SEAL_SEED ?? 20_261_130);
const bytes = fc.uint8Array({ minLength: 1, maxLength: 300 });

describe('a seal', () => {
  it(`holds for what was written, wherever it lies, and for nothing that differs in a byte (SEAL_SEED=${SEED})`, () => {
    const property = fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      bytes,
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      fc.nat(7),
      (key, value, pick, change, shift) => {
        const whole = sealed(key, value);
        expect(isWhole(key, key.length, whole)).toBe(true);
        expect([...unsealed('tasks', key, key.length, whole)]).toEqual([...value]);
        // Where it does not begin at a whole word.
        const moved = new Uint8Array(whole.length + shift);
        moved.set(whole, shift);
        expect(isWhole(key, key.length, moved.subarray(shift))).toBe(true);
        const at = pick % whole.length;
        whole[at] = (whole[at] ?? 0) ^ change;
        expect(isWhole(key, key.length, whole)).toBe(false);
        whole[at] = (whole[at] ?? 0) ^ change;
        const other = Uint8Array.from(key);
        other[pick % other.length] = (other[pick % other.length] ?? 0) ^ change;
        expect(isWhole(other, other.length, whole)).toBe(false);
        expect(() => unsealed('tasks', other, other.length, whole)).toThrow(
          `record ${Buffer.from(other).toString('hex')} of 'tasks' is not what was written`,
        );
      },
    );
    fc.assert(property, { seed: SEED, numRuns: 500 });
  });

  it('is the same for a value in its arena, among others', () => {
    const writer = new Writer();
    const values = Array.from({ length: 50 }, (_, n) =>
      Uint8Array.from({ length: n * 7 + 1 }, (__, i) => n + i),
    );
    const stored = values.map((value, n) => {
      writer.begin(value.length + 10);
      writer.raw(value, value.length);
      const arena = writer.end();
      seal(new Key().u32(n), arena);
      return { arena, from: arena.start, to: arena.end };
    });
    for (const [n, { arena, from, to }] of stored.entries()) {
      const key = new Key().u32(n);
      expect(arena.subarray(from, to)).toEqual(
        sealed(key.bytes.slice(0, 4), values[n] as Uint8Array),
      );
    }
  });
});
