/**
 * Names that many records share (tenants, handlers, workers, policies), each stored once and named in a record by a
 * small number. Numbers are never reused. The pool is read whole at open, so it is bounded: what comes when it is
 * full is written in full into its record.
 */
import { MalformedError, type Reader, type Writer } from './bytes.js';
import type { Db } from './environment.js';
import { Key, readU32 } from './keys.js';

const NAMES_MAX = 100_000;
/** Longer ones are not kept in memory. */
const LENGTH_MAX = 1024;
/** The number that says: written in full, here. */
const IN_FULL = 0;

export class Pool {
  readonly #db: Db;
  readonly #names: string[] = [''];
  readonly #numbers = new Map<string, number>();
  /** Names below this are stored or queued to be. */
  #stored = 1;
  readonly #key = new Key();

  constructor(db: Db) {
    this.#db = db;
  }

  /** Reads all; also after a commit failed, since its names were not stored. */
  load(): void {
    this.#names.length = 1;
    this.#numbers.clear();
    const start = new Key().byte(0);
    const end = new Key().u32(0xffff_ffff);
    for (const { key, value } of this.#db.getRange({ start, end })) {
      const number = readU32(key, 0);
      this.#names[number] = Buffer.from(value.subarray(0, value.length)).toString('utf8');
      this.#numbers.set(this.#names[number], number);
    }
    this.#stored = this.#names.length;
  }

  write(writer: Writer, name: string): void {
    const number = this.numberOf(name);
    writer.varint(number);
    if (number === IN_FULL) writer.text(name);
  }

  /** The number of that name, which it is given if it has none; 0: it can have none. */
  numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    if (this.#names.length > NAMES_MAX || name.length > LENGTH_MAX) return IN_FULL;
    const number = this.#names.length;
    this.#names.push(name);
    this.#numbers.set(name, number);
    return number;
  }

  read(reader: Reader): string {
    const number = reader.varint();
    return number === IN_FULL ? reader.text() : this.name(number);
  }

  /** @throws MalformedError when there is none with that number */
  name(number: number): string {
    const name = this.#names[number];
    if (number === IN_FULL || name === undefined) {
      throw new MalformedError(`a record names ${number}, which is not there`);
    }
    return name;
  }

  /** Queues the puts of names that came in with the commit at hand. */
  flush(writer: Writer): void {
    for (; this.#stored < this.#names.length; this.#stored++) {
      const bytes = Buffer.from(this.#names[this.#stored]);
      writer.begin(bytes.length);
      writer.raw(bytes, bytes.length);
      this.#db.put(this.#key.clear().u32(this.#stored), writer.end());
    }
  }
}
