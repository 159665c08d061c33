/** Reading of a whole database in bounded pieces: between two of them a newer snapshot may be taken. */
import type { Db, Pair } from '../environment.js';
import { Key } from '../keys.js';

const PIECE = 500;
const KEY_MAX = 64;

/** The next pairs behind `after`, copies; empty at the end. @param isRaw with checksums, unchecked */
export function nextPairs(
  db: Db,
  after: Uint8Array | undefined,
  max = PIECE,
  isRaw = false,
): Pair[] {
  const start = after === undefined ? new Key().byte(0) : new Key(after.length + 1).raw(after);
  if (after !== undefined) start.byte(0);
  const end = new Key(KEY_MAX);
  for (let i = 0; i < KEY_MAX; i++) end.byte(255);
  const range = { start, end, limit: max };
  const found: Pair[] = [];
  for (const { key, value } of isRaw ? db.getRawRange(range) : db.getRange(range)) {
    found.push({ key, value: Uint8Array.prototype.slice.call(value, 0, value.length) });
  }
  return found;
}

/** Yields after each piece. */
export function* inPieces(db: Db, look: (pair: Pair) => void, isRaw = false): Generator<void> {
  for (let after: Uint8Array | undefined; ; ) {
    const pairs = nextPairs(db, after, PIECE, isRaw);
    for (const pair of pairs) look(pair);
    if (pairs.length === 0) return;
    after = pairs.at(-1)?.key;
    yield;
  }
}
