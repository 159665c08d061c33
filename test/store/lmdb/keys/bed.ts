/** A key index in an environment of its own, in a directory that can be copied as a crash would leave it. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { KeyIndex, type KeyIndexOptions } from '../../../../src/store/lmdb/keys/key-index.js';
import type { KeyDatabase } from '../../../../src/store/lmdb/keys/writes.js';

export type Sizes = Pick<KeyIndexOptions, 'entriesMax' | 'workMax'>;

export class Bed {
  readonly directory: string;
  readonly sizes: Sizes;
  readonly env: RootDatabase;
  readonly log: KeyDatabase;
  readonly runs: KeyDatabase;
  readonly keys: KeyIndex;
  /** The key index's writes of this turn come to nothing, as a failed commit's do; to be set between turns. */
  failing = false;

  private constructor(directory: string, sizes: Sizes) {
    this.directory = directory;
    this.sizes = sizes;
    this.env = open({ path: directory, noSync: true, overlappingSync: false, maxDbs: 4 });
    this.log = this.env.openDB<Uint8Array, number>('log', { encoding: 'binary', cache: false });
    this.runs = this.env.openDB<Uint8Array, number>('runs', { encoding: 'binary', cache: false });
    const [log, runs] = [this.#mayFail(this.log), this.#mayFail(this.runs)];
    this.keys = KeyIndex.open({ log, runs, ...sizes });
  }

  static create(sizes: Sizes): Bed {
    return new Bed(mkdtempSync(join(tmpdir(), 'tickwheel-keys-')), sizes);
  }

  /** All that was queued is visible, and what waited for it has gone on. */
  async committed(): Promise<void> {
    this.keys.seal();
    for (let round = 0; round < 3; round++) {
      await this.env.committed;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** As many pieces of work as there are, `max` at most; each is committed. Returns how many. */
  async work(max: number): Promise<number> {
    let pieces = 0;
    while (pieces < max && this.keys.step()) {
      pieces++;
      await this.committed();
    }
    return pieces;
  }

  /** Opens what a crash at this moment would leave: what is committed. */
  crashed(): Bed {
    const copy = mkdtempSync(join(tmpdir(), 'tickwheel-keys-'));
    cpSync(join(this.directory, 'data.mdb'), join(copy, 'data.mdb'));
    return new Bed(copy, this.sizes);
  }

  #mayFail(database: KeyDatabase): KeyDatabase {
    const fail = () => {
      const failed = Promise.reject(new Error('Commit failed'));
      failed.catch(() => {});
      return failed;
    };
    return new Proxy(database, {
      get: (target, name) => {
        if (this.failing && (name === 'put' || name === 'remove')) return fail;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Runs that have any value in the database, finished or not. */
  runsOnDisk(): number {
    const ids = [...this.runs.getKeys({})].map((key) => Math.floor(key / 2 ** 26));
    return new Set(ids.filter((id) => id > 0)).size;
  }

  async reopened(): Promise<Bed> {
    await this.keys.close();
    await this.env.close();
    return new Bed(this.directory, this.sizes);
  }

  async destroy(): Promise<void> {
    await this.keys.close();
    await this.env.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Spread over all of the range by a multiplication, so that order of creation is no order of hashes. */
export function hashOf(n: number): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  for (let word = 0; word < 4; word++) {
    view.setUint32(word * 4, mix(n * 4 + word));
  }
  return bytes;
}

/** A one-to-one function of 32 bits (the finalizer of MurmurHash3). */
function mix(n: number): number {
  let x = n ^ (n >>> 16);
  x = Math.imul(x, 0x85eb_ca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2_ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** Grows with `n`, which is at least 1. */
export function taskIdOf(n: number): Uint8Array {
  const bytes = new Uint8Array(16);
  new DataView(bytes.buffer).setUint32(4, n);
  return bytes;
}

/** Mulberry32: the same numbers for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let x = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }
}
