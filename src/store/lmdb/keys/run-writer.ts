/** Writes a run from entries that come in the order of their hashes: chunks and filter, both from front to back. */
import { ENTRY_WORDS, isTombstone, prefixOf } from './entry.js';
import { blockOf, PIECE_BLOCKS, PIECE_WORDS, setBits } from './filter.js';
import type { RunMeta } from './manifest.js';
import { chunkKey, pieceKey } from './run.js';
import type { KeyDatabase, Writes } from './writes.js';

export class RunWriter {
  readonly #database: KeyDatabase;
  readonly #writes: Writes;
  readonly #planned: RunMeta;
  #count = 0;
  #tombstones = 0;
  #chunk = new Uint32Array(64 * ENTRY_WORDS);
  #chunkLength = 0;
  #prefix = 0;
  readonly #piece = new Uint32Array(PIECE_WORDS);
  #pieceNumber = 0;
  #pieceIsEmpty = true;

  /** `planned` gives id, level, bits and blocks; counts are found while it is written. */
  constructor(database: KeyDatabase, writes: Writes, planned: RunMeta) {
    this.#database = database;
    this.#writes = writes;
    this.#planned = planned;
  }

  /** Of what was written so far. */
  get meta(): RunMeta {
    return { ...this.#planned, count: this.#count, tombstones: this.#tombstones };
  }

  /** A copy of the entry at `at`; its hash is above that of the one before. */
  add(words: Uint32Array, at: number): void {
    const { bits, blocks } = this.#planned;
    const prefix = prefixOf(words[at], bits);
    if (prefix !== this.#prefix) this.#endChunk(prefix);
    this.#append(words, at);
    const block = blockOf(words[at], blocks);
    const piece = Math.floor(block / PIECE_BLOCKS);
    if (piece !== this.#pieceNumber) this.#endPiece(piece);
    setBits(this.#piece, (block - piece * PIECE_BLOCKS) * (PIECE_WORDS / PIECE_BLOCKS), words, at);
    this.#pieceIsEmpty = false;
    this.#count++;
    if (isTombstone(words, at)) this.#tombstones++;
  }

  finish(): void {
    this.#endChunk(0);
    this.#endPiece(0);
  }

  #append(words: Uint32Array, at: number): void {
    if (this.#chunkLength === this.#chunk.length) {
      const longer = new Uint32Array(this.#chunk.length * 2);
      longer.set(this.#chunk);
      this.#chunk = longer;
    }
    for (let word = 0; word < ENTRY_WORDS; word++) {
      this.#chunk[this.#chunkLength + word] = words[at + word];
    }
    this.#chunkLength += ENTRY_WORDS;
  }

  #endChunk(next: number): void {
    if (this.#chunkLength > 0) {
      const key = chunkKey(this.#planned.id, this.#prefix);
      this.#writes.put(this.#database, key, this.#chunk, this.#chunkLength);
    }
    this.#chunkLength = 0;
    this.#prefix = next;
  }

  #endPiece(next: number): void {
    if (!this.#pieceIsEmpty) {
      const key = pieceKey(this.#planned.id, this.#pieceNumber);
      this.#writes.put(this.#database, key, this.#piece, PIECE_WORDS);
      this.#piece.fill(0);
    }
    this.#pieceIsEmpty = true;
    this.#pieceNumber = next;
  }
}
