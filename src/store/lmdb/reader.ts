/**
 * A store that is only read, as a rule beside a process that writes to it. Reads of one turn see one snapshot; each
 * turn sees a newer one, and what is kept in memory is read again when there was a commit.
 */
import { Writer } from './bytes.js';
import { Counts } from './counts.js';
import type { Environment } from './environment.js';
import { KeyHolders } from './key-holders.js';
import { StoredKeys } from './key-index.js';
import { Pool } from './pool.js';
import { Queries } from './queries.js';
import { Records } from './records.js';
import { RowCache } from './row-cache.js';
import { RowCodec } from './row-codec.js';
import { Settings } from './settings.js';

export class StoreReader {
  readonly env: Environment;
  readonly pool: Pool;
  readonly records: Records;
  readonly counts: Counts;
  readonly settings: Settings;
  readonly queries: Queries;
  readonly #cache = new RowCache();
  readonly #keys: StoredKeys;
  readonly #holders: KeyHolders;
  #commit = -1;
  #keysCommit = -1;

  constructor(env: Environment) {
    this.env = env;
    const { db } = env;
    // Never used: nothing is put.
    const writer = new Writer();
    this.pool = new Pool(db.pool);
    this.records = new Records(env, new RowCodec(this.pool), this.#cache, writer);
    this.counts = new Counts(db.counts);
    this.settings = new Settings(db.settings, writer);
    this.queries = new Queries(env, this.records);
    this.#keys = new StoredKeys({ log: db.keyLog, runs: db.keyRuns, writer });
    this.#holders = new KeyHolders(this.#keys, this.records);
  }

  /** The newest commit that this turn sees. */
  get commit(): number {
    return this.#commit;
  }

  /** Sees the newest there is. To be called before the reads of a turn. */
  refresh(): void {
    this.env.renew();
    const commit = this.env.newestCommit();
    if (commit === this.#commit) return;
    this.#cache.clear(commit);
    this.pool.load();
    this.records.follow();
    this.counts.load();
    this.settings.load();
    this.#commit = commit;
  }

  /** As of this turn. Reads the index's log again if there was a commit: up to half a second where keys are many. */
  get keys(): StoredKeys {
    if (this.#keysCommit !== this.#commit) this.#keys.load();
    this.#keysCommit = this.#commit;
    return this.#keys;
  }

  /** As of this turn or one before. */
  get keysOfLate(): StoredKeys {
    return this.#keysCommit < 0 ? this.keys : this.#keys;
  }

  get holders(): KeyHolders {
    void this.keys;
    return this.#holders;
  }

  async close(): Promise<void> {
    this.#keys.close();
    await this.env.close();
  }
}
