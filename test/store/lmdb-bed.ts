/** An LMDB store for each test, in a directory of its own, on a virtual clock. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import type { StoreSession, Unit } from '../../src/store/store.js';
import { START_MS } from './builders.js';
import { RETENTION } from './trial.js';

export class LmdbBed {
  path = '';
  clock = new VirtualClock(START_MS);
  session!: StoreSession;

  async open(): Promise<void> {
    this.path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
    this.clock = new VirtualClock(START_MS);
    this.session = await lmdbStore({ path: this.path }).open(this.#options);
  }

  async close(): Promise<void> {
    await this.session.close();
    rmSync(this.path, { recursive: true, force: true });
  }

  /** The same files, and the same time. */
  async reopen(): Promise<void> {
    await this.session.close();
    this.session = await lmdbStore({ path: this.path }).open(this.#options);
  }

  /** Another store, empty. */
  async anew(): Promise<void> {
    await this.close();
    await this.open();
  }

  get #options() {
    return { clock: this.clock, retention: RETENTION };
  }

  /** None of it is refused. */
  async commit(units: readonly Unit[]): Promise<void> {
    expect(await this.session.commit(units).visible).toEqual([]);
  }
}

/** To be called at the top of a test file. */
export function lmdbBed(): LmdbBed {
  const bed = new LmdbBed();
  beforeEach(() => bed.open());
  afterEach(() => bed.close());
  return bed;
}
