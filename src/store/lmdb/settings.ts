/** Durable settings: few, all in memory. JSON, in which a field that is undefined is kept by name. */
import type { Setting, Unit } from '../store.js';
import { Reader, type Writer } from './bytes.js';
import type { Db } from './environment.js';
import { Key } from './keys.js';

const PREFIX = 1;

export class Settings {
  readonly #db: Db;
  readonly #writer: Writer;
  /** A new map with each change: those given out before never change. */
  all: ReadonlyMap<string, Setting> = new Map();

  constructor(db: Db, writer: Writer) {
    this.#db = db;
    this.#writer = writer;
  }

  load(): void {
    const all = new Map<string, Setting>();
    const start = new Key().byte(PREFIX);
    const end = new Key().byte(PREFIX + 1);
    for (const { value } of this.#db.getRange({ start, end })) {
      const reader = new Reader(value, 0, value.length);
      const name = reader.text();
      const fields = JSON.parse(reader.text()) as [string, Setting[string]][];
      all.set(name, Object.fromEntries(fields.map(([field, held]) => [field, held])));
    }
    this.all = all;
  }

  apply(changes: NonNullable<Unit['settings']>): void {
    const all = new Map(this.all);
    for (const [name, setting] of changes) {
      const bytes = Buffer.from(name);
      const key = new Key(bytes.length + 1).byte(PREFIX).raw(bytes);
      if (setting === undefined) {
        all.delete(name);
        this.#db.remove(key);
        continue;
      }
      all.set(name, structuredClone(setting));
      const text = JSON.stringify(Object.entries(setting).map(entryOf));
      this.#writer.begin(bytes.length + text.length * 3 + 10);
      this.#writer.text(name);
      this.#writer.text(text);
      this.#db.put(key, this.#writer.end());
    }
    this.all = all;
  }
}

/** An array's undefined would become null. */
function entryOf([field, held]: [string, Setting[string]]): [string, Setting[string]] | [string] {
  return held === undefined ? [field] : [field, held];
}
