/** The hash of tenant and key: no two pairs meet by the way in which they are put together. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { keyHash } from '../../../../src/store/lmdb/keys/hash.js';

const hex = (tenant: string, key: string): string =>
  Buffer.from(keyHash(tenant, key)).toString('hex');

it('has 16 bytes, always the same', () => {
  // SHA-1 of ["default","order-1"], as any other tool gives it. What is stored depends on it.
  expect(hex('default', 'order-1')).toBe('e5ca21620dcd77ebb2cfe43ed9f9338f');
});

it('tells apart what only differs in where the tenant ends', () => {
  const pairs = [
    ['a', 'bc'],
    ['ab', 'c'],
    ['a\0b', 'c'],
    ['a', 'b\0c'],
    ['a","b', 'c'],
    ['a', 'b","c'],
    ['', 'abc'],
    ['abc', ''],
  ] as const;
  expect(new Set(pairs.map(([tenant, key]) => hex(tenant, key))).size).toBe(pairs.length);
});

it('tells apart halves of surrogates, which UTF-8 does not', () => {
  expect(hex('t', '\ud800')).not.toBe(hex('t', '\ud801'));
  expect(hex('t', '\ud800')).not.toBe(hex('t', '\\ud800'));
});

it('differs for different pairs, whatever is in them', () => {
  const text = fc.string({ unit: 'binary', maxLength: 6 });
  fc.assert(
    fc.property(text, text, text, text, (a, b, c, d) => {
      expect(hex(a, b) === hex(c, d)).toBe(a === c && b === d);
    }),
    { seed: 20_260 },
  );
});
