/**
 * A sorted run: immutable entries in the runs database, in the order of their hashes.
 *
 *     key                        value
 *     id × 2²⁶ + prefix          the entries whose hash begins with this prefix: 12 to 24 of them on average
 *     id × 2²⁶ + 2²⁵ + piece     a piece of the filter
 *
 * A value that would be empty is not there. All but freak values are below half a page, so that LMDB never has to find
 * several free pages in a row. The prefix is the key: no search, and no index of chunks in memory.
 */
import { assert } from '../../../core/assert.js';
import { StoreCorruptError } from '../../../core/errors.js';
import { compareHashes, ENTRY_WORDS, prefixOf } from './entry.js';
import { Filter, piecesOf } from './filter.js';
import type { RunMeta } from './manifest.js';
import type { KeyDatabase } from './writes.js';

const RUN_KEYS = 2 ** 26;
const FIRST_PIECE = 2 ** 25;
const RUN_IDS = 2 ** 27;
const CHUNK_ENTRIES = 24;

/** Of the first run that there ever was. */
export const FIRST_KEY = RUN_KEYS;

/** Whether a chunk of one of those runs lies under the key. */
export function isChunkOf(key: number, runIds: ReadonlySet<number>): boolean {
  return key % RUN_KEYS < FIRST_PIECE && runIds.has(Math.floor(key / RUN_KEYS));
}

export function chunkKey(runId: number, prefix: number): number {
  return runId * RUN_KEYS + prefix;
}

export function pieceKey(runId: number, piece: number): number {
  return runId * RUN_KEYS + FIRST_PIECE + piece;
}

/** How many bits of the hash make the chunks of a run of so many entries half full to full. */
export function chunkBitsFor(entries: number): number {
  return Math.min(25, Math.max(0, Math.ceil(Math.log2(entries / CHUNK_ENTRIES))));
}

/** Words of values as they were last read; the next read overwrites them. */
export class ChunkReader {
  words: Uint32Array = new Uint32Array(0);
  readonly #database: KeyDatabase;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(database: KeyDatabase) {
    this.#database = database;
  }

  /** How many words it has; 0 when there is none. They are in `words`. */
  read(key: number): number {
    const bytes = this.#database.getBinaryFast(key);
    if (bytes === undefined) return 0;
    const { length } = bytes;
    if (length % 4 !== 0) throw new StoreCorruptError(`value ${key} of the key index is damaged`);
    if (this.#bytes.buffer !== bytes.buffer || this.#bytes.byteOffset !== bytes.byteOffset) {
      // The buffer that lmdb-js copies values to, as a whole: it seldom changes.
      this.#bytes = bytes;
      assert(bytes.byteOffset % 4 === 0, 'lmdb-js reads values to a whole word');
      const words = Math.floor((bytes.buffer.byteLength - bytes.byteOffset) / 4);
      this.words = new Uint32Array(bytes.buffer, bytes.byteOffset, words);
    }
    return length / 4;
  }

  /** Of a chunk: how many words it has. */
  readChunk(runId: number, prefix: number): number {
    const length = this.read(chunkKey(runId, prefix));
    if (length % ENTRY_WORDS !== 0) {
      throw new StoreCorruptError(`chunk ${prefix} of run ${runId} of the key index is damaged`);
    }
    return length;
  }
}

export class Run {
  readonly meta: RunMeta;
  readonly #reader: ChunkReader;
  readonly #filter: Filter;

  constructor(meta: RunMeta, reader: ChunkReader) {
    assert(meta.id < RUN_IDS, 'run ids stay in their range');
    this.meta = meta;
    this.#reader = reader;
    this.#filter = new Filter(meta.blocks);
  }

  get filter(): Filter {
    return this.#filter;
  }

  /** Where the entry begins, in the reader's words; -1: there is none. */
  find(hash: Uint32Array, at: number): number {
    const { id, bits } = this.meta;
    const length = this.#reader.readChunk(id, prefixOf(hash[at], bits));
    return searchChunk(this.#reader.words, length, hash, at);
  }

  /** Loads the next pieces of the filter, `max` at most. Returns how many. */
  loadFilter(max: number): number {
    const filter = this.#filter;
    const { id, blocks } = this.meta;
    const end = Math.min(piecesOf(blocks), filter.piecesLoaded + max);
    const from = filter.piecesLoaded;
    while (filter.piecesLoaded < end) {
      const length = this.#reader.read(pieceKey(id, filter.piecesLoaded));
      filter.load(this.#reader.words, length);
    }
    return end - from;
  }
}

/** By halves: a freak chunk may be long. */
function searchChunk(words: Uint32Array, length: number, hash: Uint32Array, at: number): number {
  let low = 0;
  let high = length / ENTRY_WORDS;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareHashes(words, middle * ENTRY_WORDS, hash, at);
    if (order === 0) return middle * ENTRY_WORDS;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return -1;
}
