/**
 * A look at the file before it is mapped: where a map reaches beyond the end of its file, or its first page is no page,
 * reading ends the process.
 *
 * A file may rightly be shorter than its newest page says, when those at the end are free. So one that is too short is
 * made longer: what is missing reads as zeros, which LMDB finds to be no page, as soon as something needs it.
 *
 * A file that was made and never flushed may be anything after power loss: its pages are there or are blank, in any mixture.
 * Nobody was told of anything in it, so it is emptied. What was flushed once always has both of its first pages. Where both
 * are blank and others are not it cannot be told, and is refused: better by hand than in silence.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StoreCorruptError } from '../../core/errors.js';

const MAGIC = 0xbeef_c0de;
/** In each of the two meta pages (mdb.c, MDB_page_header and MDB_meta). */
const MAGIC_AT = 24;
const PAGE_SIZE_AT = 48;
const LAST_PAGE_AT = 144;
const TRANSACTION_AT = 152;
const META_BYTES = 160;
const PAGE_BYTES_MAX = 65_536;
/** What the pages of a system may be, where the file does not say. */
const PAGE_BYTES = [4096, 8192, 16_384, 32_768, 65_536];
/** Those of the first open: one for each database, and that of the epoch. What anybody was told of comes later. */
export const FIRST_TRANSACTIONS = 17;
/** The first page may have had one more than the second: of what is known of both, so many are of the first open. */
const KNOWN_MAX = FIRST_TRANSACTIONS - 1;
/** No file that was never flushed is longer. */
const UNFLUSHED_MAX = 2 ** 24;

interface Meta {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: number;
}

/** `blank`: zeros, or beyond the end of the file. */
type Page = Meta | 'blank' | 'damaged';

/** Whether `checkFile` would change it. @throws StoreCorruptError when it is no store's */
export function needsMending(file: string): boolean {
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    if (size === 0) return false;
    const needed = bytesNeeded(fd, file, size);
    return needed === 0 || size < needed;
  } finally {
    closeSync(fd);
  }
}

/** The number of the newest transaction that is visible. */
export function newestTransaction(file: string): number {
  const fd = openSync(file, 'r');
  try {
    const first = readPage(fd, 0);
    const pageBytes = typeof first === 'string' ? pageBytesOf(fd) : first.pageBytes;
    const second = readPage(fd, pageBytes);
    return Math.max(
      ...[first, second].map((page) => (typeof page === 'string' ? 0 : page.transaction)),
    );
  } finally {
    closeSync(fd);
  }
}

/** Does nothing when there is no file yet, or an empty one. @throws StoreCorruptError */
export function checkFile(file: string): void {
  let fd: number;
  try {
    fd = openSync(file, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    const { size } = fstatSync(fd);
    if (size === 0) return;
    const needed = bytesNeeded(fd, file, size);
    if (needed === 0 || size < needed) ftruncateSync(fd, needed);
  } finally {
    closeSync(fd);
  }
}

/** By both meta pages; 0: nothing in it was ever flushed. */
function bytesNeeded(fd: number, file: string, size: number): number {
  const first = readPage(fd, 0);
  const pageBytes = typeof first === 'string' ? pageBytesOf(fd) : first.pageBytes;
  const second = readPage(fd, pageBytes);
  if (typeof first !== 'string' && typeof second !== 'string') {
    return (Math.max(first.lastPage, second.lastPage) + 1) * pageBytes;
  }
  const isUnflushed = isBlankOrFirst(first) && isBlankOrFirst(second);
  const hasMeta = typeof first !== 'string' || typeof second !== 'string';
  if (isUnflushed && size <= UNFLUSHED_MAX && (hasMeta || isBlank(fd, size))) return 0;
  throw new StoreCorruptError(`the store's file '${file}' is damaged: it does not begin as one`);
}

function isBlankOrFirst(page: Page): boolean {
  if (page === 'damaged') return false;
  return page === 'blank' || page.transaction <= KNOWN_MAX;
}

/** As the second page says, if the first is blank. */
function pageBytesOf(fd: number): number {
  return PAGE_BYTES.find((bytes) => typeof readPage(fd, bytes) !== 'string') ?? 4096;
}

function isBlank(fd: number, size: number): boolean {
  const bytes = Buffer.alloc(size);
  readSync(fd, bytes, 0, size, 0);
  return bytes.every((byte) => byte === 0);
}

function readPage(fd: number, at: number): Page {
  const bytes = Buffer.alloc(META_BYTES);
  readSync(fd, bytes, 0, META_BYTES, at);
  if (bytes.every((byte) => byte === 0)) return 'blank';
  if (bytes.readUInt32LE(MAGIC_AT) !== MAGIC) return 'damaged';
  const pageBytes = bytes.readUInt32LE(PAGE_SIZE_AT);
  const lastPage = Number(bytes.readBigUInt64LE(LAST_PAGE_AT));
  const transaction = Number(bytes.readBigUInt64LE(TRANSACTION_AT));
  const isSane = pageBytes >= 256 && pageBytes <= PAGE_BYTES_MAX && lastPage < 2 ** 40;
  return isSane ? { pageBytes, lastPage, transaction } : 'damaged';
}
