/** The error that a caller is told for one of the system, of lmdb-js or of the decoder. */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  StoreCorruptError,
  StoreFullError,
  StoreUnavailableError,
  StoreVersionError,
  TickwheelError,
} from '../../core/errors.js';
import { MalformedError } from './bytes.js';

/** MDB_INVALID, MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC and what their messages say. */
const CORRUPT =
  /MDB_INVALID|MDB_CORRUPTED|MDB_PAGE_NOTFOUND|not an LMDB file|page not found|corrupt/i;
const VERSION = /MDB_VERSION_MISMATCH|version mismatch/i;
const FULL = /MDB_MAP_FULL|ENOSPC|No space left|EFBIG|File too large|EDQUOT|quota exceeded/i;

/** LMDB's word for a write that was cut off, as on a disk that becomes full in the midst of it. */
const CUT_OFF = /EIO|Input\/output error/i;
const NO_SPACE_BYTES = 2 ** 20;

function isFull(file: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize < NO_SPACE_BYTES;
  } catch {
    return false;
  }
}

export function translated(error: unknown, file: string): Error {
  if (error instanceof TickwheelError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  const said = `${message} ${typeof code === 'string' ? code : ''}`;
  if (error instanceof MalformedError || CORRUPT.test(said)) {
    return new StoreCorruptError(`the store's file '${file}' is damaged: ${message}`, {
      cause: error,
    });
  }
  if (VERSION.test(said)) {
    return new StoreVersionError(`the store's file '${file}' has another format: ${message}`, {
      cause: error,
    });
  }
  if (FULL.test(said) || (CUT_OFF.test(said) && isFull(file))) {
    return new StoreFullError(`no space for the store's file '${file}': ${message}`, {
      cause: error,
    });
  }
  return new StoreUnavailableError(`the store's file '${file}' can't be used: ${message}`, {
    cause: error,
  });
}
