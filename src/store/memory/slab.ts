/**
 * Rows of one fixed size, in chunks of typed arrays that are added as rows are needed and dropped when none of them is
 * (core/slots.ts). A row's number never changes while it is in use. Row 0 is never given out: it is "none". A row that is
 * not in use reads as zeros.
 *
 *   row ──┬── upper bits: chunk ──→ one ArrayBuffer, seen as f64, u32 and u8
 *         └── lower 12 bits: place in the chunk
 */
import { assert } from '../../core/assert.js';
import { Slots } from '../../core/slots.js';

export const ROW_BITS = 12;
export const ROW_MASK = (1 << ROW_BITS) - 1;
/** Row numbers have 27 bits, as the slots of blobs do. */
export const ROWS_MAX = 2 ** 27 - 1;
/** Of a row, in Slots. */
const LINK_BYTES = 2;

export class Slab {
  readonly f64: Float64Array[] = [];
  readonly u32: Uint32Array[] = [];
  readonly u8: Uint8Array[] = [];
  readonly rowBytes: number;
  readonly #rowWords: number;
  readonly #slots: Slots;
  /** Stands for what was dropped. */
  readonly #zeros: ArrayBuffer;

  /** @param rowBytes a multiple of 8 */
  constructor(rowBytes: number) {
    assert(rowBytes % 8 === 0, 'rows hold whole doubles');
    this.rowBytes = rowBytes;
    this.#rowWords = rowBytes / 4;
    this.#zeros = new ArrayBuffer(rowBytes << ROW_BITS);
    const owner = {
      add: (chunk: number) => this.#set(chunk, new ArrayBuffer(rowBytes << ROW_BITS)),
      drop: (chunk: number) => this.#set(chunk, this.#zeros),
    };
    this.#slots = new Slots(owner, ROW_BITS, ROWS_MAX + 1, 1);
  }

  get used(): number {
    return this.#slots.used;
  }

  /** One more than the highest row ever used, or more. */
  get end(): number {
    return this.#slots.end;
  }

  get bytes(): number {
    return this.#slots.chunks * (this.rowBytes + LINK_BYTES) * (ROW_MASK + 1);
  }

  /** A row, all zeros. O(1), but for a new chunk every 4096 rows. */
  alloc(): number {
    return this.#slots.alloc();
  }

  /** What the row refers to must have been freed before. */
  free(row: number): void {
    const words = this.u32[row >>> ROW_BITS];
    const base = (row & ROW_MASK) * this.#rowWords;
    words.fill(0, base, base + this.#rowWords);
    this.#slots.free(row);
  }

  /** The double at place `field` of the row, counted in doubles. */
  double(row: number, field: number): number {
    return this.f64[row >>> ROW_BITS][(row & ROW_MASK) * (this.#rowWords >>> 1) + field];
  }

  setDouble(row: number, field: number, value: number): void {
    this.f64[row >>> ROW_BITS][(row & ROW_MASK) * (this.#rowWords >>> 1) + field] = value;
  }

  /** The u32 at place `field` of the row, counted in words. */
  word(row: number, field: number): number {
    return this.u32[row >>> ROW_BITS][(row & ROW_MASK) * this.#rowWords + field];
  }

  setWord(row: number, field: number, value: number): void {
    this.u32[row >>> ROW_BITS][(row & ROW_MASK) * this.#rowWords + field] = value;
  }

  byte(row: number, field: number): number {
    return this.u8[row >>> ROW_BITS][(row & ROW_MASK) * this.rowBytes + field];
  }

  setByte(row: number, field: number, value: number): void {
    this.u8[row >>> ROW_BITS][(row & ROW_MASK) * this.rowBytes + field] = value;
  }

  #set(chunk: number, buffer: ArrayBuffer): void {
    this.f64[chunk] = new Float64Array(buffer);
    this.u32[chunk] = new Uint32Array(buffer);
    this.u8[chunk] = new Uint8Array(buffer);
  }
}
