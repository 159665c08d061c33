/**
 * Who opens the files to read them beside a process that writes.
 *
 * LMDB's opening puts into the lock file, which both share, which transaction is the newest, as the opener had read it a
 * moment before. If one was committed meanwhile, the writer goes on from an older state: its next commit fails, or
 * worse. So an opener shuts this gate, a file beside the store's; the writer begins no commit while it is shut. When no
 * transaction has come for a while the opener opens, looks whether it is still so, and opens the gate again.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../clock/system.js';
import { StoreLockedError } from '../../core/errors.js';
import { newestMeta } from './file-check.js';
import { acquireLock, LOCK_FILE } from './lock.js';

const GATE_FILE = 'tickwheel.opening';
/** Without a transaction for so long, none is under way; a writer waits for about twice this. */
const QUIET_MS = 20;
const POLL_MS = 2;
/** A writer waits no longer: who shut the gate was stopped, or has died. */
const WAIT_MAX_MS = 2000;
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

/** The gate as a process sees it that writes. */
export class ReaderGate {
  readonly #file: string;
  #shutSinceMs: number | undefined;
  #isWaiting = false;

  constructor(path: string) {
    this.#file = join(path, GATE_FILE);
  }

  /** True while somebody opens the files: then `again` is called a little later. A few microseconds. */
  isShut(again: () => void): boolean {
    if (!existsSync(this.#file)) {
      this.#shutSinceMs = undefined;
      return false;
    }
    const clock = systemClock();
    this.#shutSinceMs ??= clock.monotonic();
    if (clock.monotonic() - this.#shutSinceMs > WAIT_MAX_MS) {
      takeFromTheDead(this.#file);
      return false;
    }
    if (!this.#isWaiting) {
      this.#isWaiting = true;
      void clock.sleep(POLL_MS).then(() => {
        this.#isWaiting = false;
        again();
      });
    }
    return true;
  }
}

function takeFromTheDead(file: string): void {
  try {
    acquireLock(file)?.();
  } catch (error) {
    if (!(error instanceof StoreLockedError)) throw error;
  }
}

/** Opens `file`, of the store in the directory `path`, while nobody commits. @throws what `open` does */
export async function openBeside<T extends { close(): Promise<void> }>(
  path: string,
  file: string,
  open: () => T,
): Promise<T> {
  if (!existsSync(join(path, LOCK_FILE)) || !existsSync(file)) return open();
  const openGate = await shutGate(join(path, GATE_FILE));
  if (openGate === undefined) return open();
  try {
    for (;;) {
      const newest = await whenQuiet(file);
      const opened = open();
      await systemClock().sleep(QUIET_MS);
      if (newestMeta(file).transaction === newest) return opened;
      await opened.close();
    }
  } finally {
    openGate();
  }
}

/** One opener at a time. Undefined: the directory is read only, and LMDB shares nothing with the writer then. */
async function shutGate(file: string): Promise<(() => void) | undefined> {
  for (;;) {
    try {
      const release = acquireLock(file);
      if (release !== undefined) return release;
    } catch (error) {
      if (READ_ONLY.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
      if (!(error instanceof StoreLockedError)) throw error;
    }
    await systemClock().sleep(POLL_MS);
  }
}

/** @returns the newest transaction, when there was none for a while */
async function whenQuiet(file: string): Promise<number> {
  for (let newest = newestMeta(file).transaction; ; ) {
    await systemClock().sleep(QUIET_MS);
    const now = newestMeta(file).transaction;
    if (now === newest) return newest;
    newest = now;
  }
}
