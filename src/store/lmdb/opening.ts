/** Opens the files of a store whose lock is held: its format is checked and its epoch raised before anything else. */
import { lstatSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../core/assert.js';
import type { StoreOpenOptions, StoreSession } from '../store.js';
import { type Arena, Reader, Writer } from './bytes.js';
import { flushNames } from './directories.js';
import { DATA_FILE, Environment, FORMAT_KEY } from './environment.js';
import { FORMAT } from './formats.js';
import type { KeySizes } from './key-index.js';
import { Key } from './keys.js';
import type { RowLogLimits } from './row-log.js';
import { seal, unsealed } from './seal.js';
import { LmdbSession } from './session.js';
import { translated } from './translated.js';

/** A session's epoch takes 20 bits of a fencing token. */
const EPOCH_MAX = 2 ** 20;
const EPOCH_KEY = 2;

/** Sizes that have good defaults; small ones in tests. */
export interface Tuning {
  readonly keys?: KeySizes;
  readonly rowLog?: RowLogLimits;
  /** How large the file may become. */
  readonly mapBytes?: number;
}

export interface Directory {
  readonly path: string;
  /** The first directory on its path that was made for it. */
  readonly made: string | undefined;
}

/**
 * @param release gives the lock free; called when the session is closed
 * @throws StoreCorruptError, StoreVersionError, StoreUnavailableError
 */
export async function openSession(
  { path, made }: Directory,
  options: StoreOpenOptions,
  release: () => void,
  tuning: Tuning = {},
): Promise<StoreSession> {
  const chainByte = byteArena();
  await makeFile({ path, made }, tuning, chainByte);
  const env = Environment.open(path, tuning);
  try {
    const epoch = await begin(env, chainByte);
    return new LmdbSession({ ...options, ...tuning, env, epoch, chainByte, release });
  } catch (error) {
    await env.close();
    throw translated(error, env.file);
  }
}

/**
 * A store's file gets its name when it has been flushed: before, a loss of power may leave anything of it, and nobody was
 * told of anything in it. So what has the name and does not begin as a store is damaged, never new.
 */
async function makeFile(
  { path, made }: Directory,
  tuning: Tuning,
  chainByte: Arena,
): Promise<void> {
  const file = join(path, DATA_FILE);
  const draft = `${file}.new`;
  try {
    if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) return;
    const remove = (name: string): void => rmSync(name, { force: true });
    remove(draft);
    remove(`${draft}-lock`);
    const env = Environment.make(draft, tuning);
    try {
      await numbered(env, chainByte, [[FORMAT_KEY, FORMAT]]);
    } finally {
      await env.close();
    }
    remove(`${draft}-lock`);
    renameSync(draft, file);
    flushNames(path, made);
  } catch (error) {
    throw translated(error, file);
  }
}

function byteArena(): Arena {
  const writer = new Writer();
  writer.begin(1);
  writer.byte(1);
  return writer.end();
}

/** @returns the newest epoch, 0 in a new store @throws MalformedError */
export function epochOf(env: Environment): number {
  const key = new Key().byte(EPOCH_KEY);
  const value = env.db.meta.getBinaryFast(key);
  if (value === undefined) return 0;
  const number = unsealed('meta', key.bytes, key.length, value);
  return new Reader(number, 0, number.length).varint();
}

/** Raises the epoch, durably: no token of an epoch is ever issued twice. */
async function begin(env: Environment, chainByte: Arena): Promise<number> {
  const epoch = epochOf(env) + 1;
  assert(epoch < EPOCH_MAX, 'a store is opened at most 2^20 times');
  await numbered(env, chainByte, [
    [FORMAT_KEY, FORMAT],
    [EPOCH_KEY, epoch],
  ]);
  return epoch;
}

/** Puts numbers into `meta`, durably. */
async function numbered(
  env: Environment,
  chainByte: Arena,
  numbers: readonly (readonly [key: number, value: number])[],
): Promise<void> {
  const newest = env.newestCommit();
  const key = new Key();
  const writer = new Writer();
  for (const [which, value] of numbers) {
    writer.begin(10);
    writer.varint(value);
    const arena = writer.end();
    seal(key.clear().byte(which), arena);
    env.db.meta.putSealed(key, arena);
  }
  const { visible, flushed } = env.commit(newest, newest + 1, chainByte);
  await visible;
  await flushed;
}
