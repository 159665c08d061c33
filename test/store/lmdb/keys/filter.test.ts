/** Filters: what is in a run always passes; of what is not, next to nothing. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { wordsOf } from '../../../../src/store/lmdb/keys/entry.js';
import {
  blockOf,
  blocksFor,
  Filter,
  PIECE_BLOCKS,
  PIECE_WORDS,
  piecesOf,
  setBits,
} from '../../../../src/store/lmdb/keys/filter.js';
import { hashOf } from './bed.js';

/** As a run writes and loads it: in pieces. */
function filterOf(hashes: readonly Uint32Array[], blocks: number, piecesLoaded: number): Filter {
  const pieces = Array.from({ length: piecesOf(blocks) }, () => new Uint32Array(PIECE_WORDS));
  for (const hash of hashes) {
    const block = blockOf(hash[0], blocks);
    const piece = pieces[Math.floor(block / PIECE_BLOCKS)];
    setBits(piece, (block % PIECE_BLOCKS) * (PIECE_WORDS / PIECE_BLOCKS), hash, 0);
  }
  const filter = new Filter(blocks);
  for (const piece of pieces.slice(0, piecesLoaded)) filter.load(piece, PIECE_WORDS);
  return filter;
}

const word = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1), fc.nat(2 ** 32 - 1));
const hash = fc.tuple(word, word, word, word).map((words) => Uint32Array.from(words));

it('lets all of its hashes pass, loaded in whole or in part, well sized or too small', () => {
  fc.assert(
    fc.property(
      fc.array(hash, { maxLength: 300 }),
      fc.integer({ min: 1, max: 200 }),
      fc.nat(8),
      (hashes, blocks, loaded) => {
        const filter = filterOf(hashes, blocks, loaded);
        return hashes.every((each) => filter.mayHold(each, 0) && filter.glance(each, 0) === 1);
      },
    ),
    { seed: 20_260 },
  );
});

it('keeps out 99 of 100 others', () => {
  const words = (n: number): Uint32Array => {
    const made = new Uint32Array(4);
    wordsOf(hashOf(n), made, 0);
    return made;
  };
  const blocks = blocksFor(50_000);
  const filter = filterOf(
    Array.from({ length: 50_000 }, (_, n) => words(n)),
    blocks,
    piecesOf(blocks),
  );
  let passed = 0;
  for (let n = 100_000; n < 200_000; n++) if (filter.mayHold(words(n), 0)) passed++;
  expect(passed).toBeLessThan(1000);
  let glanced = 0;
  for (let n = 100_000; n < 200_000; n++) glanced += filter.glance(words(n), 0);
  expect(glanced).toBeLessThan(20_000);
});
