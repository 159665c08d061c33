/**
 * A look at the file before it is mapped: where a map reaches beyond the end of its file, or its first page is no page,
 * reading ends the process.
 *
 * A file may rightly be shorter than its newest page says, when those at the end are free. So one that is too short is
 * made longer: what is missing reads as zeros, which page-check.ts finds to be no page, if it is needed.
 *
 * A store's file gets its name when it has been flushed (opening.ts), so one that lacks a first page is damaged, never new.
 *
 *   page 0   header 24 · meta of even transactions 144 · … · in its middle: the meta of the newest flushed transaction
 *   page 1   header 24 · meta of odd transactions 144
 *   meta     magic u32 · version u32 · address 8 · map size 8 · tree of what is free 48 · tree of databases 48 · last page u64
 *            · transaction u64 · boot i64
 *   tree     pad u32 · flags u16 · depth u16 · branch pages u64 · leaf pages u64 · overflow pages u64 · entries u64 · root u64
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync } from 'node:fs';
import { StoreCorruptError, StoreVersionError } from '../../core/errors.js';

const MAGIC = 0xbeef_c0de;
/** Of LMDB's files, not of what we keep in them. */
const VERSION = 2;
/** What kind of page it is; that of one with a meta. */
const KIND_AT = 18;
const META_PAGE = 8;
const META_AT = 24;
const META_BYTES = 144;
/** Within a meta. */
const VERSION_AT = 4;
const FREE_AT = 24;
const MAIN_AT = 72;
const LAST_PAGE_AT = 120;
const TRANSACTION_AT = 128;
const BOOT_AT = 136;
/** Of a tree; that of what is free has the size of a page as its pad. */
export const TREE_BYTES = 48;
/** MDB_OVERLAPPINGSYNC, in a meta that was not flushed when it was written. */
const IS_UNFLUSHED = 0x1000;
/** MDB_NOSUBDIR, and MDB_INTEGERKEY of the tree of what is free: no more is set in any meta of ours. */
const FLAGS = 0x4008;
const PAGE_BYTES_MAX = 65_536;
/** Of a page, unless the first says otherwise. */
const PAGE_BYTES = 4096;
const TRIES_MAX = 100;
/** Address space, not memory or disk: reserved once, since moving a map stops everything that reads it. */
export const MAP_BYTES = 2 ** 40;

/** A B-tree: a database, the list of them, or what is free. */
export interface Tree {
  readonly flags: number;
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  readonly root: bigint;
}

export interface Meta {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: number;
  readonly isUnflushed: boolean;
  readonly boot: bigint;
  readonly free: Tree;
  readonly main: Tree;
}

export function treeAt(bytes: Buffer, at: number): Tree {
  return {
    flags: bytes.readUInt16LE(at + 4),
    depth: bytes.readUInt16LE(at + 6),
    branchPages: Number(bytes.readBigUInt64LE(at + 8)),
    leafPages: Number(bytes.readBigUInt64LE(at + 16)),
    overflowPages: Number(bytes.readBigUInt64LE(at + 24)),
    entries: Number(bytes.readBigUInt64LE(at + 32)),
    root: bytes.readBigUInt64LE(at + 40),
  };
}

type Found = Meta | 'other version' | undefined;

/** Of a page that has one. */
function metaPageAt(head: Buffer, at: number): Found {
  if (head.length < at + META_AT + META_BYTES) return undefined;
  if (head.readUInt16LE(at + KIND_AT) !== META_PAGE) return undefined;
  const bytes = head.subarray(at + META_AT, at + META_AT + META_BYTES);
  if (bytes.readUInt32LE(0) !== MAGIC) return undefined;
  if (bytes.readUInt16LE(VERSION_AT) !== VERSION) return 'other version';
  return metaOf(bytes);
}

/** LMDB writes it from its map size on: it has neither magic nor version. Undefined: nothing was flushed, or it is damaged. */
function flushedMetaOf(head: Buffer, pageBytes: number): Meta | undefined {
  const at = pageBytes / 2 + META_AT;
  return metaOf(head.subarray(at, at + META_BYTES));
}

/** The first two pages; what is not there reads as zeros. */
function readHead(fd: number, pageBytes: number): Buffer {
  const head = Buffer.alloc(2 * pageBytes);
  readSync(fd, head, 0, head.length, 0);
  return head;
}

function metaOf(bytes: Buffer): Meta | undefined {
  const pageBytes = bytes.readUInt32LE(FREE_AT);
  const lastPage = Number(bytes.readBigUInt64LE(LAST_PAGE_AT));
  const isSane = pageBytes >= 256 && pageBytes <= PAGE_BYTES_MAX;
  if (!isSane || (lastPage + 1) * pageBytes > MAP_BYTES) return undefined;
  const free = treeAt(bytes, FREE_AT);
  const main = treeAt(bytes, MAIN_AT);
  if ((free.flags & ~IS_UNFLUSHED) !== FLAGS || main.flags !== 0) return undefined;
  return {
    pageBytes,
    lastPage,
    transaction: Number(bytes.readBigUInt64LE(TRANSACTION_AT)),
    isUnflushed: (free.flags & IS_UNFLUSHED) !== 0,
    boot: bytes.readBigInt64LE(BOOT_AT),
    free,
    main,
  };
}

interface Metas {
  readonly newest: Meta;
  readonly older: Meta;
  /** That of the newest flushed transaction, once there was one. */
  readonly flushed: Meta | undefined;
}

/**
 * A writer at work may have written one meta after the other was read: that passes, and damage stays.
 * @throws StoreCorruptError, StoreVersionError
 */
function readMetas(fd: number, file: string): Metas {
  for (let tries = 1; ; tries++) {
    try {
      return metasOf(fd, file);
    } catch (error) {
      if (tries === TRIES_MAX || !(error instanceof StoreCorruptError)) throw error;
    }
  }
}

function metasOf(fd: number, file: string): Metas {
  let head = readHead(fd, PAGE_BYTES);
  const asUsual = metaPageAt(head, 0);
  const pageBytes = typeof asUsual === 'object' ? asUsual.pageBytes : PAGE_BYTES;
  if (pageBytes !== PAGE_BYTES) head = readHead(fd, pageBytes);
  const first = metaPageAt(head, 0);
  const second = metaPageAt(head, pageBytes);
  if (first === 'other version' && second === first) {
    throw new StoreVersionError(`the store's file '${file}' is of another version of LMDB`);
  }
  if (typeof first !== 'object' || typeof second !== 'object') {
    const what = fstatSync(fd).size === 0 ? 'it is empty' : 'it does not begin as one';
    throw new StoreCorruptError(`the store's file '${file}' is damaged: ${what}`);
  }
  const flushed = flushedMetaOf(head, pageBytes);
  const isFirst = first.transaction >= second.transaction;
  const newest = isFirst ? first : second;
  const older = isFirst ? second : first;
  // Each transaction writes the other meta. Where the machine went down in between, one may have been lost.
  const isTorn = isOfThisBoot(newest) && newest.transaction !== older.transaction + 1;
  if (isTorn || (flushed?.transaction ?? 0) > newest.transaction) {
    throw new StoreCorruptError(`the store's file '${file}' is damaged: its newest state is gone`);
  }
  return { newest, older, flushed };
}

/** Of the newest transaction that is visible. @throws StoreCorruptError, StoreVersionError */
export function newestMeta(file: string): Meta {
  return reading(file, 'r', (fd) => readMetas(fd, file).newest);
}

/**
 * Whether who opens it for reading would see what is not whole: it is too short, or what was visible and not flushed when
 * the machine went down is in it, which who opens it for writing takes back. @throws StoreCorruptError
 */
export function needsMending(file: string): boolean {
  return reading(file, 'r', (fd) => {
    const metas = readMetas(fd, file);
    const { newest, flushed } = metas;
    if (fstatSync(fd).size < bytesNeeded(metas)) return true;
    if (!newest.isUnflushed || isOfThisBoot(newest)) return false;
    return (flushed?.transaction ?? 0) < newest.transaction;
  });
}

/** Makes it as long as it must be. @throws StoreCorruptError */
export function checkFile(file: string): void {
  reading(file, 'r+', (fd) => {
    const needed = bytesNeeded(readMetas(fd, file));
    if (fstatSync(fd).size < needed) ftruncateSync(fd, needed);
  });
}

function bytesNeeded({ newest, older }: Metas): number {
  return (Math.max(newest.lastPage, older.lastPage) + 1) * newest.pageBytes;
}

function reading<T>(file: string, flags: 'r' | 'r+', read: (fd: number) => T): T {
  const fd = openSync(file, flags);
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}

function isOfThisBoot({ boot }: Meta): boolean {
  return boot !== 0n && boot === bootOfNow();
}

/** As LMDB writes it: the beginning of the system's name of this boot. */
function bootOfNow(): bigint {
  try {
    const name = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1');
    return BigInt(`0x${name.slice(0, name.indexOf('-'))}`);
  } catch {
    return 0n;
  }
}
