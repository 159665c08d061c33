/**
 * A look at the pages of a file that nobody writes to, before LMDB follows them. It takes each page for what the pages above
 * it say it is: where that is wrong it ends the process, or finds less than there is and says nothing. Values have checksums
 * (seal.ts); pages have none, so this is what finds a damaged one:
 *
 *   1. a page has its own number, the kind that its depth asks for, and no newer transaction than the newest
 *   2. its nodes fill it from its upper bound to its end, without a gap; their keys ascend, and lie between the keys above
 *   3. no page is in two places, none lies behind the last
 *   4. a tree that was looked at as a whole has as many pages and entries as it says
 *
 *   page   number u64 · transaction u64 · pad u16 · kind u16 · lower u16 · upper u16 (of overflow: how many u32) · where nodes
 *          are, u16 each · free · nodes;  lower, upper and places count from behind the header
 *   node   size of value u32 (in branches: low bits of the child's number) · flags u16 (its high bits) · size of key u16 · key · value
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { StoreCorruptError } from '../../core/errors.js';
import { type Meta, newestMeta, TREE_BYTES, type Tree, treeAt } from './file-check.js';

/** What an open takes a look at: 16 MiB, or with 10 million tasks all pages above the lowest. Some 10 µs each. */
export const PAGES_AT_OPEN = 4096;

/** Pages between two yields. */
const PIECE = 500;

const HEADER_BYTES = 24;
const NODE_BYTES = 8;
const BRANCH = 1;
const LEAF = 2;
const OVERFLOW = 4;
/** Of nodes: the value lies in pages of its own, which a reference names; the value is a tree. */
const IS_REFERENCE = 1;
const IS_TREE = 2;
const REFERENCE_BYTES = 24;
/** Of a tree: lmdb-js keeps versions with its values. No other is set in ours. */
const HAS_VERSIONS = 0x100;
const NO_ROOT = 2n ** 64n - 1n;

/** What is known of a tree so far. */
interface Walk {
  readonly name: string;
  readonly tree: Tree;
  /** Keys are numbers of transactions: other keys ascend byte by byte. */
  readonly isByNumber: boolean;
  branchPages: number;
  leafPages: number;
  overflowPages: number;
  entries: number;
}

/** A page to look at. */
interface Step {
  readonly walk: Walk;
  readonly page: number;
  /** 1: the root. */
  readonly depth: number;
  /** Keys are not less. */
  readonly low: Buffer | undefined;
  /** Keys are less. */
  readonly high: Buffer | undefined;
}

/**
 * Yields after each some hundred pages.
 * @param pagesMax the upper pages first; Infinity: all there are
 * @throws StoreCorruptError naming the file and the page
 */
export function* checkPages(file: string, pagesMax: number): Generator<void> {
  const meta = newestMeta(file);
  const fd = openSync(file, 'r');
  try {
    yield* new PageCheck(fd, file, meta).run(pagesMax);
  } finally {
    closeSync(fd);
  }
}

class PageCheck {
  readonly #fd: number;
  readonly #file: string;
  readonly #meta: Meta;
  readonly #bytes: Buffer;
  readonly #seen: Uint8Array;
  readonly #walks: Walk[] = [];
  #steps: Step[] = [];
  #looks = 0;

  constructor(fd: number, file: string, meta: Meta) {
    this.#fd = fd;
    this.#file = file;
    this.#meta = meta;
    this.#bytes = Buffer.alloc(meta.pageBytes);
    this.#seen = new Uint8Array(Math.ceil((meta.lastPage + 1) / 8));
  }

  *run(pagesMax: number): Generator<void> {
    this.#begin('', this.#meta.main, false);
    this.#begin('(free)', this.#meta.free, true);
    if (pagesMax === Number.POSITIVE_INFINITY) yield* this.#deep();
    else yield* this.#broad(pagesMax);
    if (this.#steps.length > 0) return;
    for (const walk of this.#walks) {
      const { tree } = walk;
      for (const what of ['branchPages', 'leafPages', 'overflowPages', 'entries'] as const) {
        if (walk[what] === tree[what]) continue;
        this.#fail(`'${walk.name}' has ${walk[what]} ${what}, not ${tree[what]}`);
      }
    }
  }

  /** In the order of keys: few steps are noted at a time. */
  *#deep(): Generator<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      this.#look(step);
      if (this.#looks % PIECE === 0) yield;
    }
  }

  /** What lies above others first. */
  *#broad(pagesMax: number): Generator<void> {
    while (this.#steps.length > 0 && this.#looks < pagesMax) {
      const level = this.#steps;
      this.#steps = [];
      for (const [i, step] of level.entries()) {
        if (this.#looks >= pagesMax) {
          this.#steps.push(...level.slice(i));
          return;
        }
        this.#look(step);
        if (this.#looks % PIECE === 0) yield;
      }
    }
  }

  #begin(name: string, tree: Tree, isByNumber: boolean): void {
    const walk = {
      name,
      tree,
      isByNumber,
      branchPages: 0,
      leafPages: 0,
      overflowPages: 0,
      entries: 0,
    };
    this.#walks.push(walk);
    if (tree.root === NO_ROOT) {
      if (tree.depth !== 0) this.#fail(`'${name}' has no root`);
      return;
    }
    if (tree.depth < 1) this.#fail(`'${name}' has no depth`);
    const page = Number(tree.root);
    this.#steps.push({ walk, page, depth: 1, low: undefined, high: undefined });
  }

  #look(step: Step): void {
    const { walk, page, depth } = step;
    const isLeaf = depth === walk.tree.depth;
    const bytes = this.#read(page, isLeaf ? LEAF : BRANCH);
    if (isLeaf) walk.leafPages += 1;
    else walk.branchPages += 1;
    const lower = bytes.readUInt16LE(20);
    const upper = bytes.readUInt16LE(22);
    const room = bytes.length - HEADER_BYTES;
    if (lower % 2 !== 0 || lower > upper || upper > room) this.#fail(`page ${page} has no bounds`);
    const count = lower / 2;
    if (count < (isLeaf ? 1 : 2)) this.#fail(`page ${page} has ${count} nodes`);
    let sizes = 0;
    let before = step.low;
    const children: { page: number; key: Buffer | undefined }[] = [];
    for (let i = 0; i < count; i++) {
      const at = HEADER_BYTES + bytes.readUInt16LE(HEADER_BYTES + 2 * i);
      if (at < HEADER_BYTES + upper || at + NODE_BYTES > bytes.length) {
        this.#fail(`page ${page} has a node outside`);
      }
      const keyBytes = bytes.readUInt16LE(at + 6);
      const keyEnd = at + NODE_BYTES + keyBytes;
      const end = isLeaf ? this.#valueEnd(bytes, at, keyEnd) : keyEnd;
      if (end > bytes.length) this.#fail(`page ${page} has a node that is too long`);
      sizes += end - at + ((end - at) & 1);
      const key = bytes.subarray(at + NODE_BYTES, keyEnd);
      // The first key of a branch stands for all that are less than the second.
      const hasKey = isLeaf || i > 0;
      if (hasKey) {
        const order = before === undefined ? 1 : compare(walk, key, before);
        const isInOrder = order > 0 || (order === 0 && i === (isLeaf ? 0 : 1));
        const isBelow = step.high === undefined || compare(walk, key, step.high) < 0;
        if (!isInOrder || !isBelow) this.#fail(`page ${page} has keys out of order`);
        before = key;
      }
      if (isLeaf) this.#value(walk, bytes, at, key, keyEnd, end);
      else {
        const low = bytes.readUInt32LE(at);
        const child = low + bytes.readUInt16LE(at + 4) * 2 ** 32;
        children.push({ page: child, key: hasKey ? Buffer.from(key) : undefined });
      }
    }
    if (sizes !== room - upper) this.#fail(`page ${page} has a gap`);
    for (let i = children.length - 1; i >= 0; i--) {
      const { page: child, key } = children[i];
      const high = children[i + 1]?.key ?? step.high;
      this.#steps.push({ walk, page: child, depth: depth + 1, low: key ?? step.low, high });
    }
  }

  #valueEnd(bytes: Buffer, at: number, keyEnd: number): number {
    const isReference = (bytes.readUInt16LE(at + 4) & IS_REFERENCE) !== 0;
    return keyEnd + (isReference ? REFERENCE_BYTES : bytes.readUInt32LE(at));
  }

  #value(
    walk: Walk,
    bytes: Buffer,
    at: number,
    key: Buffer,
    keyEnd: number,
    valueEnd: number,
  ): void {
    walk.entries += 1;
    const flags = bytes.readUInt16LE(at + 4);
    const isOfTrees = walk === this.#walks[0];
    if (flags === IS_TREE && isOfTrees && valueEnd - keyEnd === TREE_BYTES) {
      const tree = treeAt(bytes, keyEnd);
      const name = key.toString('latin1');
      if ((tree.flags & ~HAS_VERSIONS) !== 0) this.#fail(`'${name}' is of an unknown kind`);
      this.#begin(name, tree, false);
      return;
    }
    if (flags === 0) return;
    if (flags !== IS_REFERENCE) this.#fail(`'${walk.name}' has an entry of an unknown kind`);
    const valueBytes = bytes.readUInt32LE(at);
    const page = Number(bytes.readBigUInt64LE(keyEnd));
    const count = Number(bytes.readBigUInt64LE(keyEnd + 16));
    const needed = Math.ceil((HEADER_BYTES + valueBytes) / this.#meta.pageBytes);
    if (count !== needed) this.#fail(`a value of ${valueBytes} bytes has ${count} pages`);
    // What is at hand is read again by who called.
    const header = Buffer.alloc(HEADER_BYTES);
    this.#readHeader(header, page, OVERFLOW);
    if (header.readUInt32LE(20) !== count) this.#fail(`page ${page} has no such value`);
    for (let i = 1; i < count; i++) this.#see(page + i);
    walk.overflowPages += count;
  }

  #read(page: number, kind: number): Buffer {
    this.#readHeader(this.#bytes, page, kind);
    return this.#bytes;
  }

  #readHeader(target: Buffer, page: number, kind: number): void {
    this.#see(page);
    this.#looks += 1;
    readSync(this.#fd, target, 0, target.length, page * this.#meta.pageBytes);
    const number = target.readBigUInt64LE(0);
    const transaction = target.readBigUInt64LE(8);
    const isIt = number === BigInt(page) && target.readUInt16LE(18) === kind;
    if (!isIt) this.#fail(`page ${page} is another, or none`);
    if (transaction > this.#meta.transaction) this.#fail(`page ${page} is too new`);
  }

  #see(page: number): void {
    if (page < 2 || page > this.#meta.lastPage) this.#fail(`there is no page ${page}`);
    const bit = 1 << (page & 7);
    if ((this.#seen[page >>> 3] & bit) !== 0) this.#fail(`page ${page} is in two places`);
    this.#seen[page >>> 3] |= bit;
  }

  #fail(what: string): never {
    throw new StoreCorruptError(`the store's file '${this.#file}' is damaged: ${what}`);
  }
}

function compare(walk: Walk, a: Buffer, b: Buffer): number {
  if (!walk.isByNumber) return Buffer.compare(a, b);
  // A number is compared from its most significant byte on.
  for (let i = Math.max(a.length, b.length) - 1; i >= 0; i--) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
