/** Opens the files of a store whose lock is held: its format is checked and its epoch raised before anything else. */
import { assert } from '../../core/assert.js';
import { StoreCorruptError, StoreVersionError } from '../../core/errors.js';
import type { StoreOpenOptions, StoreSession } from '../store.js';
import { type Arena, Reader, Writer } from './bytes.js';
import { flushNames } from './directories.js';
import { Environment, translated } from './environment.js';
import { FORMAT, FORMAT_MIN } from './formats.js';
import type { KeySizes } from './key-index.js';
import { Key } from './keys.js';
import type { RowLogLimits } from './row-log.js';
import { seal, unsealed } from './seal.js';
import { LmdbSession } from './session.js';

/** A session's epoch takes 20 bits of a fencing token. */
const EPOCH_MAX = 2 ** 20;
const FORMAT_KEY = 1;
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
  const env = Environment.open(path, tuning);
  try {
    flushNames(path, made);
    const chainByte = byteArena();
    const epoch = await begin(env, chainByte);
    return new LmdbSession({ ...options, ...tuning, env, epoch, chainByte, release });
  } catch (error) {
    await env.close();
    throw translated(error, env.file);
  }
}

function byteArena(): Arena {
  const writer = new Writer();
  writer.begin(1);
  writer.byte(1);
  return writer.end();
}

/** @returns the newest epoch, 0 in a new store @throws StoreCorruptError, StoreVersionError */
export function checkFormat(env: Environment): number {
  const key = new Key();
  const read = (which: number): Uint8Array | undefined =>
    env.db.meta.getBinaryFast(key.clear().byte(which));
  const number = (value: Uint8Array | undefined): number | undefined =>
    value && new Reader(value, 0, value.length).varint();
  // Before anything is checked: another format may have other checksums.
  const format = number(read(FORMAT_KEY));
  if (format === undefined && env.newestCommit() > 0) {
    throw new StoreCorruptError(`the store's file '${env.file}' is damaged: it names no format`);
  }
  if (format !== undefined && (format < FORMAT_MIN || format > FORMAT)) {
    throw new StoreVersionError(
      `the store's file '${env.file}' has format ${format}; this version reads ${FORMAT_MIN} to ${FORMAT}`,
    );
  }
  const epoch = read(EPOCH_KEY);
  return number(epoch && unsealed('meta', key.bytes, key.length, epoch)) ?? 0;
}

/** Checks the format and raises the epoch, durably: no token of an epoch is ever issued twice. */
async function begin(env: Environment, chainByte: Arena): Promise<number> {
  const epoch = checkFormat(env) + 1;
  const newest = env.newestCommit();
  const { meta } = env.db;
  const key = new Key();
  assert(epoch < EPOCH_MAX, 'a store is opened at most 2^20 times');
  const writer = new Writer();
  const put = (which: number, value: number): void => {
    writer.begin(10);
    writer.varint(value);
    const arena = writer.end();
    seal(key.clear().byte(which), arena);
    meta.putSealed(key, arena);
  };
  put(FORMAT_KEY, FORMAT);
  put(EPOCH_KEY, epoch);
  const { visible, flushed } = env.commit(newest, newest + 1, chainByte);
  await visible;
  await flushed;
  return epoch;
}
