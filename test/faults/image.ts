/**
 * What may be on the disk after power loss, made of two looks at a file: A, and B some writes later.
 *
 * LMDB never waits for a flush here (MDB_OVERLAPPINGSYNC), so of the pages written between A and B any may have reached
 * the disk and any may not. One thing is in order: the meta of the newest flushed transaction, in the second half of page
 * 0, is written through to the disk after the pages of that transaction and before pages that it freed are used again.
 *
 *   page 0   header 24 · meta of even transactions 144 · … · at 2048: the meta of the newest flushed transaction
 *   page 1   header 24 · meta of odd transactions 144
 *   meta     … 128 · transaction u64 · boot i64
 */
import type { Dice } from '../simulation/dice.js';

export const PAGE_BYTES = 4096;
const HALF_BYTES = PAGE_BYTES / 2;
const TRANSACTION_AT = 152;
const BOOT_AT = 160;
/** Where metas begin. */
const METAS = [0, HALF_BYTES, PAGE_BYTES] as const;

export interface Pair {
  readonly a: Buffer;
  readonly b: Buffer;
}

const transactionAt = (file: Buffer, meta: number): number =>
  Number(file.readBigUInt64LE(meta + TRANSACTION_AT));

/** The newest transaction that is visible. */
export function newestOf(file: Buffer): number {
  return Math.max(transactionAt(file, 0), transactionAt(file, PAGE_BYTES));
}

/**
 * False when a transaction was flushed that began after A: then pages that differ must be on the disk, and nobody knows
 * which. One that was there in A was written in A.
 */
export function isUsable({ a, b }: Pair): boolean {
  return transactionAt(b, HALF_BYTES) <= newestOf(a);
}

/** Whether anything of the file was ever flushed. */
export function isFlushed(file: Buffer): boolean {
  return transactionAt(file, HALF_BYTES) > 0;
}

/** Whether transactions were visible and not flushed at A; at B. */
export function unflushed({ a, b }: Pair): { atA: boolean; atB: boolean } {
  return {
    atA: newestOf(a) > transactionAt(a, HALF_BYTES),
    atB: newestOf(b) > transactionAt(b, HALF_BYTES),
  };
}

/** Pages that differ; those that only B has, too. */
export function changedPages({ a, b }: Pair): number[] {
  const changed: number[] = [];
  for (let page = 0; page * PAGE_BYTES < b.length; page++) {
    const [from, to] = [page * PAGE_BYTES, (page + 1) * PAGE_BYTES];
    if (to > a.length || !a.subarray(from, to).equals(b.subarray(from, to))) changed.push(page);
  }
  return changed;
}

/** A and each of the pages with the probability `share` as it is in B; as another boot of the machine finds it. */
export function imageOf(pair: Pair, pages: readonly number[], share: number, dice: Dice): Buffer {
  const { a, b } = pair;
  const chosen = pages.filter(() => dice.chance(share));
  const last = chosen.at(-1) ?? 0;
  // The length of a file is its own matter: pages beyond those written may be there as zeros.
  const grown = dice.chance(0.5) ? b.length : 0;
  const image = Buffer.alloc(Math.max(a.length, (last + 1) * PAGE_BYTES, grown));
  a.copy(image);
  for (const page of chosen) {
    b.copy(image, page * PAGE_BYTES, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
  }
  b.copy(image, HALF_BYTES, HALF_BYTES, PAGE_BYTES);
  return rebooted(image);
}

/** As another boot of the machine finds it; the image itself. */
export function rebooted(image: Buffer): Buffer {
  for (const meta of METAS) {
    if (meta + BOOT_AT + 8 > image.length) continue;
    const boot = image.readBigInt64LE(meta + BOOT_AT);
    // Zero says that nothing was written there.
    if (boot !== 0n) image.writeBigInt64LE(boot ^ 0x5aa5n, meta + BOOT_AT);
  }
  return image;
}
