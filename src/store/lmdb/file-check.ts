/**
 * A look at the file before it is mapped: where a map reaches beyond the end of its file, reading ends the process.
 *
 * A file may rightly be shorter than its newest page says, when those at the end are free. So one that is too short is
 * made longer: what is missing reads as zeros, which LMDB finds to be no page, as soon as something needs it.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StoreCorruptError } from '../../core/errors.js';

const MAGIC = 0xbeef_c0de;
/** In each of the two meta pages (mdb.c, MDB_page_header and MDB_meta). */
const MAGIC_AT = 24;
const PAGE_SIZE_AT = 48;
const LAST_PAGE_AT = 144;
const META_BYTES = 160;
const PAGE_BYTES_MAX = 65_536;

/** Whether it is shorter than it says; changes nothing. @throws StoreCorruptError when it is no store's */
export function lacksItsEnd(file: string): boolean {
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    return size > 0 && size < bytesNeeded(fd, file);
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
    const needed = bytesNeeded(fd, file);
    if (size < needed) ftruncateSync(fd, needed);
  } finally {
    closeSync(fd);
  }
}

/** By the meta pages that are whole. */
function bytesNeeded(fd: number, file: string): number {
  const first = readMeta(fd, 0);
  const pageBytes = first?.pageBytes ?? 4096;
  const second = readMeta(fd, pageBytes);
  if (first === undefined && second === undefined) {
    throw new StoreCorruptError(`the store's file '${file}' is damaged: it does not begin as one`);
  }
  const last = Math.max(first?.lastPage ?? 0, second?.lastPage ?? 0);
  return (last + 1) * pageBytes;
}

function readMeta(fd: number, at: number): { pageBytes: number; lastPage: number } | undefined {
  const bytes = Buffer.alloc(META_BYTES);
  if (readSync(fd, bytes, 0, META_BYTES, at) < META_BYTES) return undefined;
  if (bytes.readUInt32LE(MAGIC_AT) !== MAGIC) return undefined;
  const pageBytes = bytes.readUInt32LE(PAGE_SIZE_AT);
  const lastPage = Number(bytes.readBigUInt64LE(LAST_PAGE_AT));
  const isSane = pageBytes >= 256 && pageBytes <= PAGE_BYTES_MAX && lastPage < 2 ** 40;
  return isSane ? { pageBytes, lastPage } : undefined;
}
