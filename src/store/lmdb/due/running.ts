/**
 * What runs, as a log: one value for all that began with a commit, removed when the last of them has ended. After a
 * crash it tells which attempts were cut off, without a look at every task.
 *
 *   key    level 7 · number of the commit u64 · part u32
 *   value  (id 16 · serial varint) …
 */
import { Reader } from '../bytes.js';
import type { Db } from '../environment.js';
import { ID_BYTES, idText, Key, readId, readU32, readU64 } from '../keys.js';
import type { CommitContext } from './commit-context.js';
import { placeOf, RUNNING_LEVEL } from './levels.js';

interface Counted {
  left: number;
  parts: number;
}

export interface Begun {
  readonly taskId: string;
  readonly serial: number;
}

interface Found extends Begun {
  readonly commit: number;
  readonly part: number;
}

const PART_MAX = 256;
const ENTRY_MAX = ID_BYTES + 8;
const id = new Uint8Array(ID_BYTES);

export class Running {
  readonly #db: Db;
  readonly #begun = new Map<number, Counted>();
  #added: Begun[] = [];
  #over: number[] = [];
  /** Found at open. */
  #tasks: string[] = [];
  readonly #key = new Key();

  constructor(db: Db) {
    this.#db = db;
  }

  /** Reads all; `isRunning` tells whether it is so still. */
  load(isRunning: (taskId: string, serial: number, place: number) => boolean): void {
    this.#begun.clear();
    this.#added = [];
    this.#over = [];
    const tasks = new Set<string>();
    for (const { commit, part, taskId, serial } of this.#read()) {
      const begun = this.#begun.get(commit) ?? { left: 0, parts: 0 };
      this.#begun.set(commit, begun);
      begun.parts = Math.max(begun.parts, part + 1);
      if (!isRunning(taskId, serial, placeOf(commit, RUNNING_LEVEL))) continue;
      begun.left += 1;
      tasks.add(taskId);
    }
    for (const [commit, { left }] of this.#begun) if (left === 0) this.#over.push(commit);
    this.#tasks = [...tasks];
  }

  #read(): Found[] {
    const start = new Key().byte(RUNNING_LEVEL);
    const end = new Key().byte(RUNNING_LEVEL + 1);
    const found: Found[] = [];
    for (const { key, value } of this.#db.getRange({ start, end })) {
      const commit = readU64(key, 1);
      const part = readU32(key, 9);
      for (const begun of begunIn(value)) found.push({ commit, part, ...begun });
    }
    return found;
  }

  tasks(): readonly string[] {
    return this.#tasks;
  }

  add(taskId: string, serial: number, commit: number): void {
    const begun = this.#begun.get(commit) ?? { left: 0, parts: 0 };
    this.#begun.set(commit, begun);
    begun.left += 1;
    this.#added.push({ taskId, serial });
  }

  remove(commit: number): void {
    const begun = this.#begun.get(commit);
    if (begun === undefined) return;
    begun.left -= 1;
    if (begun.left === 0) this.#over.push(commit);
  }

  /** Queues the puts. */
  finish({ number, writer }: CommitContext): void {
    const added = this.#added;
    let part = 0;
    for (let from = 0; from < added.length; from += PART_MAX, part++) {
      const to = Math.min(from + PART_MAX, added.length);
      writer.begin((to - from) * ENTRY_MAX);
      for (let i = from; i < to; i++) {
        readId(added[i].taskId, id, 0);
        writer.raw(id, ID_BYTES);
        writer.varint(added[i].serial);
      }
      this.#db.put(this.#keyOf(number, part), writer.end());
    }
    this.#added = [];
    const begun = this.#begun.get(number);
    if (begun !== undefined) begun.parts = part;
    for (const commit of this.#over) {
      const over = this.#begun.get(commit);
      if (over === undefined || over.left > 0) continue;
      for (let i = 0; i < over.parts; i++) this.#db.remove(this.#keyOf(commit, i));
      this.#begun.delete(commit);
    }
    this.#over = [];
  }

  #keyOf(commit: number, part: number): Key {
    return this.#key.clear().byte(RUNNING_LEVEL).u64(commit).u32(part);
  }
}

function begunIn(value: Uint8Array): Begun[] {
  const begun: Begun[] = [];
  const reader = new Reader(value, 0, value.length);
  while (!reader.isAtEnd) {
    reader.into(id, ID_BYTES);
    begun.push({ taskId: idText(id), serial: reader.varint() });
  }
  return begun;
}

/** What is logged of the first commit from that one on. */
export function nextRunning(
  db: Db,
  commit: number,
): { readonly number: number; readonly begun: readonly Begun[] } | undefined {
  const start = new Key().byte(RUNNING_LEVEL).u64(commit);
  const end = new Key().byte(RUNNING_LEVEL + 1);
  let number: number | undefined;
  const begun: Begun[] = [];
  for (const { key, value } of db.getRange({ start, end })) {
    number ??= readU64(key, 1);
    if (readU64(key, 1) !== number) break;
    begun.push(...begunIn(value));
  }
  return number === undefined ? undefined : { number, begun };
}
