/**
 * Tasks as last written, before they have their place in the tree of tasks. Tasks end in another order than that of
 * their ids: to rewrite each in its place for each change would copy a page of the tree for each, twice in a life. So
 * changes are appended to a log, and a generation of them is moved to the tree together, in the order of ids, some with
 * each commit: what was changed several times is moved once, and neighbours share their page.
 *
 *   key    commit u64 · part u32
 *   value  (id 16 · length u32 · the task as in the tree, length 0: removed · checksum of id and task, to a whole word) …
 *
 * Invariants
 * 1. The newest version of a task is in the log, or in the tree if the log has none. The log is read whole at open.
 * 2. Every task but a removed one is in the tree, in whatever version: a new one is put there at once, for ids grow. So a
 *    range of the tree names all tasks of that range.
 *    Removed is one that is in the tree no more, or in the log as removed.
 * 3. Parts are removed in the order in which they came, when all tasks of their generation are in the tree. So what is
 *    left of a generation holds the newest version of each task that it names.
 */
import { FlatMap, hashOfNumber } from '../../core/flat-map.js';
import { type Arena, MalformedError, Reader, SEAL_BYTES, Writer, wholeWords } from './bytes.js';
import type { CommitContext } from './due/commit-context.js';
import type { Db } from './environment.js';
import { ID_BYTES, idText, Key, readId, readU32, readU64 } from './keys.js';
import { RowOrder } from './row-order.js';
import { sumOf } from './seal.js';

/** Where a version lies: in an arena that is not written to again. Empty: the task is removed. */
export interface Version {
  readonly arena: Uint8Array;
  readonly from: number;
  readonly to: number;
}

interface Logged extends Version {
  readonly id: string;
  readonly arena: Arena;
}

/** The values of one commit. */
interface Part {
  readonly commit: number;
  count: number;
  /** Of those that were read. */
  readonly rows: Logged[];
}

export interface RowLogLimits {
  /** A generation is closed at one of these, and the tasks of one commit come on top. */
  readonly rowsMax: number;
  readonly bytesMax: number;
  /** Moved to the tree with each commit at least; and somewhat more than what the commit itself changes. */
  readonly movesMin: number;
  /** Parts removed from the log with one commit. */
  readonly removalsMax: number;
}

const LIMITS: RowLogLimits = {
  rowsMax: 32_768,
  bytesMax: 16 * 2 ** 20,
  movesMin: 16,
  removalsMax: 256,
};
/** More would not fit into a leaf of LMDB beside another: it would take pages of its own. */
const PART_BYTES = 1900;
/**
 * So that a generation is moved before the next is full, and not much sooner: each that is moved in no order is a page of its
 * own to flush, which the next commit waits for. With 2 in place of it, and 64 as the least, a fifth fewer started where 1.5 million
 * were due in 9 s.
 */
const MOVES_A_CHANGE = 1.25;
/** So many are put in order in the time in which one is moved. */
const ORDERED_A_LOOK = 8;
const LENGTH_BYTES = 4;
const NONE: ReadonlyMap<string, Logged> = new Map();
const NO_ROWS: Logged[] = [];
const NOTHING = new RowOrder<Logged>([], 0, millisOf);
NOTHING.prepare(1);
/** Behind all keys. */
const END = new Key().byte(255);

export class RowLog {
  readonly #log: Db;
  readonly #tasks: Db;
  readonly #limits: RowLogLimits;
  readonly #writer = new Writer(false);
  readonly #key = new Key();
  readonly #id = new Uint8Array(ID_BYTES);
  /** Visible versions of the young generation, and of the one that is being moved to the tree. */
  #young = new Map<string, Logged>();
  #youngBytes = 0;
  #old: ReadonlyMap<string, Logged> = NONE;
  /** Those of `#old` that are not moved. */
  #toMove = NOTHING;
  /** The commit that moves the last. */
  #movedBy = 0;
  /** The last commit of the old generation. */
  #oldCommit = 0;
  /** Parts of commits up to this one may be removed. */
  #overCommit = 0;
  /** By commit, oldest first; those before `#firstPart` are removed. */
  #parts: Part[] = [];
  #firstPart = 0;
  /** Of the commit at hand, with the parts ended so far; of commits on their way. */
  #added: Logged[] = [];
  #part = 0;
  #isPartOpen = false;
  readonly #onTheirWay = new FlatMap<number, readonly Logged[]>(hashOfNumber);

  constructor(log: Db, tasks: Db, limits = LIMITS) {
    this.#limits = limits;
    this.#log = log;
    this.#tasks = tasks;
  }

  /**
   * Reads all.
   * @param newest the number of the newest commit
   * @returns the greatest id in it, '' when it is empty
   * @throws MalformedError also when it knows of a later commit: numbers would be given out twice
   */
  load(newest: number): string {
    this.#young = new Map();
    this.#youngBytes = 0;
    this.#old = NONE;
    this.#toMove = NOTHING;
    this.#overCommit = 0;
    this.#parts = [];
    this.#firstPart = 0;
    this.#added = [];
    this.#part = 0;
    this.#isPartOpen = false;
    this.#movedBy = 0;
    this.#onTheirWay.clear();
    return this.#readFrom(new Key().byte(0), newest);
  }

  /**
   * As `load`, for one who only reads: what was added since, and without what has gone. O(what came and went).
   */
  follow(newest: number): string {
    const [first] = this.#log.getKeys({ start: new Key().byte(0), end: END, limit: 1 });
    const firstCommit = first === undefined ? Number.POSITIVE_INFINITY : readU64(first, 0);
    const staying = this.#parts.findIndex(({ commit }) => commit >= firstCommit);
    const gone = this.#parts.splice(0, staying < 0 ? this.#parts.length : staying);
    for (const { rows } of gone) {
      for (const logged of rows) {
        if (this.#young.get(logged.id) !== logged) continue;
        this.#young.delete(logged.id);
        this.#youngBytes -= logged.to - logged.from;
      }
    }
    // All parts of a commit are seen together.
    const last = this.#parts.at(-1)?.commit ?? 0;
    return this.#readFrom(new Key().u64(last + 1), newest);
  }

  #readFrom(start: Key, newest: number): string {
    let greatest = '';
    for (const { key, value } of this.#log.getRange({ start, end: END })) {
      const commit = readU64(key, 0);
      if (commit > newest) {
        throw new MalformedError(`the newest commit is ${newest}, and there is one of ${commit}`);
      }
      const rows = this.#read(value);
      const last = this.#parts.at(-1);
      if (last?.commit === commit) {
        last.count++;
        last.rows.push(...rows);
      } else this.#parts.push({ commit, count: 1, rows });
      for (const logged of rows) {
        this.#young.set(logged.id, logged);
        this.#youngBytes += logged.to - logged.from;
        if (logged.id > greatest) greatest = logged.id;
      }
    }
    return greatest;
  }

  #read(value: Uint8Array): Logged[] {
    const found: Logged[] = [];
    const reader = new Reader(value, 0, value.length);
    this.#writer.begin(value.length);
    // What lmdb-js lends is longer than the length it names.
    this.#writer.raw(value.subarray(0, value.length), value.length);
    const arena = this.#writer.end();
    const { start } = arena;
    while (!reader.isAtEnd) {
      reader.into(this.#id, ID_BYTES);
      const id = idText(this.#id);
      const from = start + reader.at + LENGTH_BYTES;
      const to = from + reader.u32();
      reader.skip(to - from);
      const sum = reader.u32();
      reader.skip(wholeWords(reader.at) - reader.at);
      const logged = { id, arena, from, to };
      if (sum !== sumOfLogged(logged)) {
        throw new MalformedError(`the newest version of task ${id} is not what was written`);
      }
      found.push(logged);
    }
    return found;
  }

  /** All of which there is a visible version. */
  ids(): readonly string[] {
    return [...this.#young.keys(), ...this.#old.keys()];
  }

  /** The visible version; undefined: the tree has it. */
  find(id: string): Version | undefined {
    return this.#young.get(id) ?? this.#old.get(id);
  }

  /** Appends, with the commit at hand, what `write` writes, of `bytesMax` at most; undefined: the task is removed (see remove). */
  put(
    id: string,
    commit: number,
    bytesMax: number,
    write: ((writer: Writer) => void) | undefined,
  ): void {
    const writer = this.#writer;
    const max = ID_BYTES + LENGTH_BYTES + wholeWords(bytesMax + SEAL_BYTES);
    if (this.#isPartOpen && !writer.hasRoomFor(max)) this.#endPart(commit, writer.size);
    if (!this.#isPartOpen) writer.begin(max);
    this.#isPartOpen = true;
    const before = writer.size;
    readId(id, this.#id, 0);
    writer.raw(this.#id, ID_BYTES);
    const { arena } = writer;
    const from = writer.at + LENGTH_BYTES;
    writer.u32(0);
    write?.(writer);
    const to = writer.at;
    writer.u32At(from - LENGTH_BYTES, to - from);
    const logged = { id, arena, from, to };
    writer.u32(sumOfLogged(logged));
    writer.align();
    this.#added.push(logged);
    if (before > 0 && writer.size > PART_BYTES) {
      // This one begins the next part, where it lies.
      this.#endPart(commit, before);
      this.#isPartOpen = true;
    }
  }

  /**
   * Removes the task with the commit at hand, which must be the only one on its way: from the tree at once when no version
   * of it is in the log, as with most that outlive their retention, else by an entry in the log.
   */
  remove(id: string, commit: number): void {
    const isElsewhere = this.#hasOverParts || this.#onTheirWay.size > 0;
    if (isElsewhere || this.find(id) !== undefined) this.put(id, commit, 0, undefined);
    else this.#tasks.remove(this.#key.clear().knownId(id));
  }

  /** Parts of a generation that is in the tree as a whole are still in the log, where an open would read them. */
  get #hasOverParts(): boolean {
    const next = this.#parts[this.#firstPart];
    return next !== undefined && next.commit <= this.#overCommit;
  }

  /** Puts the first `size` bytes of the value at hand; what is behind them begins the next. */
  #endPart(commit: number, size: number): void {
    this.#log.put(this.#partKey(commit, this.#part++), this.#writer.endAt(size));
    this.#isPartOpen = false;
  }

  #partKey(commit: number, part: number): Key {
    return this.#key.clear().u64(commit).u32(part);
  }

  /**
   * Queues the puts of the commit at hand, and the next moves to the tree.
   * @param isQueued the task is changed by a commit on its way
   */
  finish({ number }: CommitContext, isQueued: (id: string) => boolean): void {
    const added = this.#added;
    if (added.length > 0) {
      if (this.#isPartOpen) this.#endPart(number, this.#writer.size);
      this.#parts.push({ commit: number, count: this.#part, rows: NO_ROWS });
      this.#part = 0;
      this.#onTheirWay.set(number, added);
      this.#added = [];
    }
    const moves = this.#limits.movesMin + MOVES_A_CHANGE * added.length;
    if (this.#old !== NONE) this.#move(number, moves, isQueued);
    this.#removeParts();
  }

  #move(commit: number, looksMax: number, isQueued: (id: string) => boolean): void {
    const rows = this.#toMove;
    if (rows.isOver || !rows.prepare(looksMax * ORDERED_A_LOOK)) return;
    for (let looks = 0; looks < looksMax && !rows.isOver; looks++) {
      const { id, arena, from, to } = rows.next();
      // A newer version takes its place before long; and a task that was made anew is in the tree (2).
      if (this.#young.has(id) || isQueued(id)) continue;
      const key = this.#key.clear().knownId(id);
      if (from === to) this.#tasks.remove(key);
      else {
        arena.start = from;
        arena.end = to + SEAL_BYTES;
        this.#tasks.putSealed(key, arena);
      }
    }
    if (rows.isOver) this.#movedBy = commit;
  }

  #removeParts(): void {
    let left = this.#limits.removalsMax;
    const parts = this.#parts;
    while (left > 0 && this.#firstPart < parts.length) {
      const { commit, count } = parts[this.#firstPart];
      if (commit > this.#overCommit) break;
      for (let part = 0; part < count; part++) this.#log.remove(this.#partKey(commit, part));
      this.#firstPart++;
      left -= count;
    }
    if (this.#firstPart < PARTS_FORGOTTEN) return;
    parts.splice(0, this.#firstPart);
    this.#firstPart = 0;
  }

  /** All up to this commit can be read from the disk. */
  visible(commit: number): void {
    const added = this.#onTheirWay.get(commit);
    if (added !== undefined) {
      this.#onTheirWay.delete(commit);
      for (const logged of added) {
        this.#young.set(logged.id, logged);
        this.#youngBytes += logged.to - logged.from;
      }
    }
    if (this.#movedBy !== 0 && commit >= this.#movedBy) {
      this.#movedBy = 0;
      this.#old = NONE;
      this.#toMove = NOTHING;
      this.#overCommit = this.#oldCommit;
    }
    const { rowsMax, bytesMax } = this.#limits;
    const isFull = this.#young.size >= rowsMax || this.#youngBytes >= bytesMax;
    if (isFull && this.#old === NONE) this.#closeGeneration(commit);
  }

  #closeGeneration(commit: number): void {
    this.#old = this.#young;
    this.#toMove = new RowOrder(this.#young.values(), this.#young.size, millisOf);
    this.#oldCommit = commit;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

/** The same as that of the tree: its key is the id. */
function sumOfLogged({ arena, from, to }: Version): number {
  return sumOf(arena, from - LENGTH_BYTES - ID_BYTES, ID_BYTES, arena, from, to) >>> 0;
}

/** Removed parts are forgotten when there are that many. */
const PARTS_FORGOTTEN = 1024;

/** The beginning of its id (RFC 9562, version 7). */
function millisOf({ arena, from }: Logged): number {
  const at = from - LENGTH_BYTES - ID_BYTES;
  return readU32(arena, at) * 2 ** 16 + (readU32(arena, at + 4) >>> 16);
}
