/**
 * The puts of a commit, noted until all of it has been decided: only then are they handed to lmdb-js, which can't take
 * one back. Nothing is made for a put: its key is copied behind the others, its value lies in an arena.
 */
import type { Arena } from './bytes.js';
import type { Db, Pair, RangeOptions, RawDb } from './environment.js';
import { Key } from './keys.js';
import { seal, unsealed } from './seal.js';

/** What is noted of each put. */
interface Columns {
  readonly dbs: RawDb[];
  readonly keyEnds: number[];
  /** Undefined: a removal. */
  readonly arenas: (Arena | undefined)[];
  readonly starts: number[];
  readonly ends: number[];
}

function newColumns(): Columns {
  return { dbs: [], keyEnds: [], arenas: [], starts: [], ends: [] };
}

/** Of a larger commit the columns are given back. */
const PLACES_KEPT = 16_384;

export class PutLog {
  #keys = new Uint8Array(64 * 1024);
  #keysEnd = 0;
  /** The columns' places up to this one are of the commit at hand; those beyond stay, to be written over. */
  #size = 0;
  #columns = newColumns();
  readonly #key = new Key(0);

  get size(): number {
    return this.#size;
  }

  add(db: RawDb, key: Key, value: Arena | undefined): void {
    const { length, bytes, at } = key;
    if (this.#keysEnd + length > this.#keys.length) this.#grow(length);
    const keys = this.#keys;
    const to = this.#keysEnd;
    for (let i = 0; i < length; i++) keys[to + i] = bytes[at + i];
    this.#keysEnd = to + length;
    const { dbs, keyEnds, arenas, starts, ends } = this.#columns;
    const place = this.#size++;
    dbs[place] = db;
    keyEnds[place] = this.#keysEnd;
    arenas[place] = value;
    starts[place] = value === undefined ? 0 : value.start;
    ends[place] = value === undefined ? 0 : value.end;
  }

  #grow(more: number): void {
    const grown = new Uint8Array(Math.max(this.#keys.length * 2, this.#keys.length + more));
    grown.set(this.#keys);
    this.#keys = grown;
  }

  /** Hands all to lmdb-js, in order. */
  execute(): void {
    const key = this.#key;
    const { dbs, keyEnds, arenas, starts, ends } = this.#columns;
    key.bytes = this.#keys;
    let at = 0;
    for (let i = 0; i < this.#size; i++) {
      const end = keyEnds[i];
      key.at = at;
      key.length = end - at;
      at = end;
      const arena = arenas[i];
      // Its promise of its own rejects when the commit fails, which the commit tells.
      if (arena === undefined) dbs[i].remove(key).then(undefined, ignore);
      else {
        arena.start = starts[i];
        arena.end = ends[i];
        void dbs[i].put(key, arena);
      }
    }
    this.clear();
  }

  clear(): void {
    if (this.#size > PLACES_KEPT) this.#columns = newColumns();
    this.#keysEnd = 0;
    this.#size = 0;
  }
}

function ignore(): void {}

/** Reads at once, and notes what is put. Seals what it puts and checks what it reads (seal.ts), unless it is plain. */
export class LoggedDb implements Db {
  readonly name: string;
  readonly isSealed: boolean;
  readonly #db: RawDb;
  readonly #log: PutLog;

  constructor(db: RawDb, log: PutLog, name: string, isSealed: boolean) {
    this.#db = db;
    this.#log = log;
    this.name = name;
    this.isSealed = isSealed;
  }

  put(key: Key, value: Arena): void {
    if (this.isSealed) seal(key, value);
    this.#log.add(this.#db, key, value);
  }

  putSealed(key: Key, value: Arena): void {
    this.#log.add(this.#db, key, value);
  }

  remove(key: Key): void {
    this.#log.add(this.#db, key, undefined);
  }

  getBinaryFast(key: Key): Uint8Array | undefined {
    const value = this.#db.getBinaryFast(key);
    if (value === undefined || !this.isSealed) return value;
    return unsealed(this.name, key.bytes, key.length, value);
  }

  *getRange(options: RangeOptions): Iterable<Pair> {
    for (const { key, value } of this.#db.getRange(options)) {
      yield this.isSealed
        ? { key, value: unsealed(this.name, key, key.length, value) }
        : { key, value };
    }
  }

  getRawRange(options: RangeOptions): Iterable<Pair> {
    return this.#db.getRange(options);
  }

  getKeys(options: RangeOptions): Iterable<Uint8Array> {
    return this.#db.getKeys(options);
  }
}
