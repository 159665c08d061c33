/** A file that is flushed is still not there after power loss if its name is not: names are flushed with their directory. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/** Where a system has no such thing as flushing a directory. */
const IS_NOT_DONE: ReadonlySet<string | undefined> = new Set([
  'EISDIR',
  'EPERM',
  'EINVAL',
  'EACCES',
]);

/** @param made the first of the directories on its path that were made, if any was (fs.mkdirSync) */
export function flushNames(path: string, made: string | undefined): void {
  const last = made === undefined ? path : dirname(made);
  for (let directory = path; ; directory = dirname(directory)) {
    flush(directory);
    if (directory === last || directory === dirname(directory)) return;
  }
}

function flush(directory: string): void {
  try {
    const fd = openSync(directory, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (!IS_NOT_DONE.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}
