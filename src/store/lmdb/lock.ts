/**
 * One process at a time: a file that names its holder by pid, start time and boot. It dies with its holder, never by
 * a timeout: a holder that is not running, or is another process that was given the same pid, has no lock, so a store
 * can be opened right after a SIGKILL.
 */
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { StoreLockedError } from '../../core/errors.js';

interface Holder {
  readonly pid: number;
  /** When the process began, in the kernel's clock ticks since boot; empty where the system does not say. */
  readonly start: string;
  readonly boot: string;
}

export const LOCK_FILE = 'tickwheel.lock';
const TRIES_MAX = 10;

/**
 * @returns what gives the lock free; undefined while the holder is being ended by the system, which takes no longer than
 * its last flush: to be asked again @throws StoreLockedError with the holder's pid
 */
export function acquireLock(path: string): (() => void) | undefined {
  const own: Holder = { pid: process.pid, start: startOf(process.pid), boot: bootId() };
  const text = JSON.stringify(own);
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text);
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (link(draft, path)) return () => release(path, text);
      const held = read(path);
      if (held === undefined) continue;
      const holder = parse(held);
      const life = holder === undefined ? 'dead' : lifeOf(holder);
      if (life === 'dying') return undefined;
      if (life === 'alive') throw locked(path, holder?.pid ?? 0);
      takeAway(path, held);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  throw locked(path, parse(read(path) ?? '')?.pid ?? 0);
}

/** Whether a process holds it that has not ended. */
export function isHeld(path: string): boolean {
  const holder = parse(read(path) ?? '');
  return holder !== undefined && lifeOf(holder) !== 'dead';
}

function locked(path: string, pid: number): StoreLockedError {
  return new StoreLockedError(
    `the store is open in process ${pid} (lock file '${path}'); shut that scheduler down first`,
  );
}

/** A link is made whole or not at all: nobody sees half a lock. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes a dead holder's lock, and not one that somebody else has put there meanwhile. */
function takeAway(path: string, dead: string): void {
  const aside = `${path}.${process.pid}.dead`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (read(aside) !== dead) link(aside, path);
  rmSync(aside, { force: true });
}

function release(path: string, own: string): void {
  if (read(path) === own) rmSync(path, { force: true });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Holder;
    return Number.isInteger(holder.pid) && holder.pid > 0 ? holder : undefined;
  } catch {
    return undefined;
  }
}

function lifeOf(holder: Holder): 'alive' | 'dying' | 'dead' {
  if (holder.boot !== bootId()) return 'dead';
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return 'dead';
  }
  if (startOf(holder.pid) !== holder.start) return 'dead';
  // A zombie has ended, and may stay for ever if its parent does not ask how. Its first thread may become one while
  // another still writes.
  if (!ENDED.test(stateOf(holder.pid))) return 'alive';
  const threads = tryList(`/proc/${holder.pid}/task`);
  return threads.every((thread) => ENDED.test(stateOf(holder.pid, thread))) ? 'dead' : 'dying';
}

/** Zombie, dead: proc(5). */
const ENDED = /^[ZXx]$/;

function bootId(): string {
  return tryRead('/proc/sys/kernel/random/boot_id').trim();
}

function startOf(pid: number): string {
  return fieldsOf(`/proc/${pid}/stat`)[19] ?? '';
}

/** Of its first thread, or of another. A thread that is not there any more is dead. */
function stateOf(pid: number, thread?: string): string {
  const file = thread === undefined ? `/proc/${pid}/stat` : `/proc/${pid}/task/${thread}/stat`;
  return fieldsOf(file)[0] || (thread === undefined ? '' : 'X');
}

/** From the third on: state is the third, start time the 22nd. The second is a name, which may hold brackets, too. */
function fieldsOf(file: string): string[] {
  const stat = tryRead(file);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function tryList(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
