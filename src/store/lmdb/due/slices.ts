/** Entries on their way from one chunk to another. */
import type { Writer } from '../bytes.js';

/** An entry where it lies. */
export interface Slice {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/** Chunks that one commit moves at most: they are numbered behind its own number. */
export const NUMBERS_A_COMMIT = 4096;

/** Begins a value of these. */
export function writeSlices(slices: readonly Slice[], writer: Writer): void {
  let bytesMax = 0;
  for (const { from, to } of slices) bytesMax += to - from;
  writer.begin(bytesMax);
  for (const { bytes, from, to } of slices) writer.raw(bytes.subarray(from, to), to - from);
}
