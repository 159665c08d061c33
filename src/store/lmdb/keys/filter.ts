/**
 * A blocked Bloom filter (Putze, Sanders, Singler 2007) over the hashes of one run: all bits of a hash lie in one block
 * of 64 bytes, a cache line. Blocks are in the order of hashes, so that a run that is written in that order writes its
 * filter from front to back too, and a filter of which only the first blocks are loaded is of use already.
 */

const BLOCK_WORDS = 16;
const BLOCK_BITS = BLOCK_WORDS * 32;
/** With eight bits set a hash, about 0.25 % of absent hashes pass; 1.75 bytes of memory a hash. */
const BITS_PER_HASH = 14;
/** Blocks are stored in pieces of this many: 1984 bytes, so that two of them share a page of LMDB. */
export const PIECE_BLOCKS = 31;
export const PIECE_WORDS = PIECE_BLOCKS * BLOCK_WORDS;

export function blocksFor(hashes: number): number {
  return Math.max(1, Math.ceil((hashes * BITS_PER_HASH) / BLOCK_BITS));
}

export function piecesOf(blocks: number): number {
  return Math.ceil(blocks / PIECE_BLOCKS);
}

/** Grows with the hash. */
export function blockOf(firstWord: number, blocks: number): number {
  return Math.floor((firstWord * blocks) / 2 ** 32);
}

/** Sets the bits of the hash in the block that begins at word `block` of `words`. */
export function setBits(words: Uint32Array, block: number, hash: Uint32Array, at: number): void {
  for (let probe = 0; probe < 8; probe++) {
    const bit = bitOf(hash, at, probe);
    words[block + (bit >>> 5)] |= 1 << (bit & 31);
  }
}

function hasBits(words: Uint32Array, block: number, hash: Uint32Array, at: number): boolean {
  for (let probe = 0; probe < 8; probe++) {
    const bit = bitOf(hash, at, probe);
    if ((words[block + (bit >>> 5)] & (1 << (bit & 31))) === 0) return false;
  }
  return true;
}

/** Nine bits of words 1 to 3 of the hash, three times from each; word 0 chose the block. */
function bitOf(hash: Uint32Array, at: number, probe: number): number {
  return (hash[at + 1 + ((probe * 11) >> 5)] >>> ((probe % 3) * 9)) & (BLOCK_BITS - 1);
}

export class Filter {
  readonly #blocks: number;
  readonly #words: Uint32Array;
  #piecesLoaded = 0;

  constructor(blocks: number) {
    this.#blocks = blocks;
    this.#words = new Uint32Array(blocks * BLOCK_WORDS);
  }

  get memoryBytes(): number {
    return this.#words.byteLength;
  }

  get isLoaded(): boolean {
    return this.#piecesLoaded === piecesOf(this.#blocks);
  }

  /** Which piece to load next. */
  get piecesLoaded(): number {
    return this.#piecesLoaded;
  }

  /** Takes the next piece: so many words; none when none of its bits is set. */
  load(piece: Uint32Array, words: number): void {
    const at = this.#piecesLoaded * PIECE_WORDS;
    // The last piece is stored whole, also when its last blocks are beyond the filter.
    const length = Math.min(words, PIECE_WORDS, this.#words.length - at);
    for (let word = 0; word < length; word++) this.#words[at + word] = piece[word];
    this.#piecesLoaded++;
  }

  /**
   * 0 only if the hash is not in the run; three of eight bits are looked at, without a branch. To be asked of all filters
   * before `mayHold` is of any: then their loads from memory do not wait for one another.
   */
  glance(hash: Uint32Array, at: number): number {
    const block = blockOf(hash[at], this.#blocks);
    if (block >= this.#piecesLoaded * PIECE_BLOCKS) return 1;
    const words = this.#words;
    const from = block * BLOCK_WORDS;
    const bits = hash[at + 1];
    const one = words[from + ((bits >>> 5) & 15)] >>> (bits & 31);
    const two = words[from + ((bits >>> 14) & 15)] >>> ((bits >>> 9) & 31);
    const three = words[from + ((bits >>> 23) & 15)] >>> ((bits >>> 18) & 31);
    return one & two & three & 1;
  }

  /** False only if the hash is not in the run. True where the filter is not loaded yet. */
  mayHold(hash: Uint32Array, at: number): boolean {
    const block = blockOf(hash[at], this.#blocks);
    if (block >= this.#piecesLoaded * PIECE_BLOCKS) return true;
    return hasBits(this.#words, block * BLOCK_WORDS, hash, at);
  }
}
