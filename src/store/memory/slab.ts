/**
 * Rows of one fixed size, in chunks of typed arrays that are added as rows are needed. A row's number never
 * changes while it is in use; a freed row is the next to be used again. Row 0 is never given out: it is "none".
 *
 *   row ──┬── upper bits: chunk ──→ one ArrayBuffer, seen as f64, u32 and u8
 *         └── lower 12 bits: place in the chunk
 */
import { assert } from '../../core/assert.js';

export const ROW_BITS = 12;
export const ROW_MASK = (1 << ROW_BITS) - 1;
/** Row numbers have 27 bits, as the slots of blobs do. */
export const ROWS_MAX = 2 ** 27 - 1;

export class Slab {
  readonly f64: Float64Array[] = [];
  readonly u32: Uint32Array[] = [];
  readonly u8: Uint8Array[] = [];
  readonly rowBytes: number;
  readonly #rowWords: number;
  #firstFree = 0;
  #end = 1;
  #used = 0;

  /** @param rowBytes a multiple of 8 */
  constructor(rowBytes: number) {
    assert(rowBytes % 8 === 0, 'rows hold whole doubles');
    this.rowBytes = rowBytes;
    this.#rowWords = rowBytes / 4;
  }

  get used(): number {
    return this.#used;
  }

  /** One more than the highest row ever used. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.u8.length * this.rowBytes * (ROW_MASK + 1);
  }

  /** A row, all zeros. O(1), but for a new chunk every 4096 rows. */
  alloc(): number {
    let row = this.#firstFree;
    this.#used += 1;
    if (row === 0) {
      row = this.#end++;
      assert(row <= ROWS_MAX, 'rows are counted before a commit is applied');
      if (row >>> ROW_BITS === this.u8.length) this.#addChunk();
      return row;
    }
    const words = this.u32[row >>> ROW_BITS];
    const base = (row & ROW_MASK) * this.#rowWords;
    this.#firstFree = words[base];
    words.fill(0, base, base + this.#rowWords);
    return row;
  }

  /** What the row refers to must have been freed before. */
  free(row: number): void {
    const words = this.u32[row >>> ROW_BITS];
    const base = (row & ROW_MASK) * this.#rowWords;
    words.fill(0, base, base + this.#rowWords);
    words[base] = this.#firstFree;
    this.#firstFree = row;
    this.#used -= 1;
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

  #addChunk(): void {
    const buffer = new ArrayBuffer(this.rowBytes << ROW_BITS);
    this.f64.push(new Float64Array(buffer));
    this.u32.push(new Uint32Array(buffer));
    this.u8.push(new Uint8Array(buffer));
  }
}
