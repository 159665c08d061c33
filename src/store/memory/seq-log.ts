/**
 * Rows in the order in which they were appended, each at a position that is never used again, so that a position is a
 * cursor that stays usable. Removal leaves a hole; a chunk of nothing but holes is freed.
 */
import { assert } from '../../core/assert.js';

const CHUNK_BITS = 12;
const CHUNK = 2 ** CHUNK_BITS;

export class SeqLog {
  /** Chunk 0 of this array holds the positions from `#base` × CHUNK on. */
  readonly #chunks: (Uint32Array | undefined)[] = [];
  readonly #counts: number[] = [];
  #base = 0;
  #end = 0;
  #held = 0;

  /** One more than the newest position. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.#held * CHUNK * 4;
  }

  /** Its position. O(1). */
  append(row: number): number {
    const seq = this.#end++;
    this.#put(seq, row);
    return seq;
  }

  /** Fills a hole again: what was removed and is restored keeps its place. */
  restore(seq: number, row: number): void {
    assert(seq < this.#end, 'only a position that was once given out is restored');
    this.#put(seq, row);
  }

  remove(seq: number): void {
    const index = Math.floor(seq / CHUNK) - this.#base;
    const chunk = this.#chunks[index];
    assert(chunk !== undefined && chunk[seq % CHUNK] !== 0, 'what is removed is in the log');
    chunk[seq % CHUNK] = 0;
    this.#counts[index] -= 1;
    // The newest chunk stays, it is being filled.
    if (this.#counts[index] > 0 || this.#end <= (this.#base + index + 1) * CHUNK) return;
    this.#chunks[index] = undefined;
    this.#held -= 1;
    while (this.#chunks.length > 0 && this.#chunks[0] === undefined) {
      this.#chunks.shift();
      this.#counts.shift();
      this.#base += 1;
    }
  }

  /**
   * Calls `visit` for the rows from position `from` on, until it says false or `looksMax` positions were looked
   * at (a freed chunk counts as one).
   * @returns the position to go on from, -1 when there is no more
   */
  scan(from: number, looksMax: number, visit: (row: number) => boolean): number {
    let seq = Math.max(from, this.#base * CHUNK);
    for (let looks = 0; looks < looksMax && seq < this.#end; looks++) {
      const chunk = this.#chunks[Math.floor(seq / CHUNK) - this.#base];
      if (chunk === undefined) {
        seq = (Math.floor(seq / CHUNK) + 1) * CHUNK;
        continue;
      }
      const row = chunk[seq % CHUNK];
      seq += 1;
      if (row !== 0 && !visit(row)) break;
    }
    return seq < this.#end ? seq : -1;
  }

  #put(seq: number, row: number): void {
    let index = Math.floor(seq / CHUNK) - this.#base;
    while (index < 0) {
      this.#chunks.unshift(undefined);
      this.#counts.unshift(0);
      this.#base -= 1;
      index += 1;
    }
    while (index >= this.#chunks.length) {
      this.#chunks.push(undefined);
      this.#counts.push(0);
    }
    let chunk = this.#chunks[index];
    if (chunk === undefined) {
      chunk = new Uint32Array(CHUNK);
      this.#chunks[index] = chunk;
      this.#held += 1;
    }
    assert(chunk[seq % CHUNK] === 0, 'a position holds one row');
    chunk[seq % CHUNK] = row;
    this.#counts[index] += 1;
  }
}
