/** Reading and writing of tasks, their history and their attempts, through what is in memory of them. */
import type { AttemptRecord, OccurrenceKind, OccurrenceRecord } from '../../core/model.js';
import { parseOccurrenceId } from '../../core/model.js';
import { readAttempt, writeAttempt } from './attempt-codec.js';
import { Reader, type Writer } from './bytes.js';
import type { CommitContext } from './due/commit-context.js';
import type { Environment } from './environment.js';
import { KINDS } from './formats.js';
import { ID_BYTES, idText, Key } from './keys.js';
import type { Row, StoredOccurrence } from './row.js';
import { findOccurrence } from './row.js';
import type { RowCache } from './row-cache.js';
import type { RowCodec } from './row-codec.js';
import { RowLog, type RowLogLimits, type Version } from './row-log.js';

/** What names an occurrence within its task. */
export interface Identity {
  readonly generation: number;
  readonly kind: OccurrenceKind;
  readonly ordinal: number;
}

/** Behind all ids. */
const END = new Uint8Array(ID_BYTES + 1).fill(255);
const SERIAL_END = 0xffff_ffff;

export class Records {
  readonly #env: Environment;
  readonly #codec: RowCodec;
  readonly #cache: RowCache;
  readonly #writer: Writer;
  readonly #reader = new Reader(new Uint8Array(0));
  readonly #key = new Key();
  readonly #rowLog: RowLog;
  /** Of all ids that are stored, or named in the log. */
  #greatestId = '';

  constructor(
    env: Environment,
    codec: RowCodec,
    cache: RowCache,
    writer: Writer,
    limits?: RowLogLimits,
  ) {
    this.#env = env;
    this.#rowLog = new RowLog(env.db.rowlog, env.db.tasks, limits);
    this.#codec = codec;
    this.#cache = cache;
    this.#writer = writer;
  }

  /** Reads the log of rows, and finds the greatest id. */
  load(): void {
    this.#greatestId = this.#rowLog.load(this.#env.newestCommit());
    this.#findGreatest();
  }

  /** As `load` again, for one who only reads: the log is read on from where it was left. */
  follow(): void {
    const greatest = this.#rowLog.follow(this.#env.newestCommit());
    if (greatest > this.#greatestId) this.#greatestId = greatest;
    this.#findGreatest();
  }

  #findGreatest(): void {
    const start = new Key().raw(END);
    const end = new Key().byte(0);
    for (const key of this.#env.db.tasks.getKeys({ start, end, reverse: true, limit: 1 })) {
      const id = idText(key);
      if (id > this.#greatestId) this.#greatestId = id;
    }
  }

  /** The task as it is after all commits given so far. The row is not to be changed but within a commit. */
  row(id: string, slot = 0): Row | undefined {
    const known = this.#cache.row(id, slot);
    if (known !== undefined) return known ?? undefined;
    const key = this.#key.clear();
    // Ids grow: a new one need not be looked for.
    if (id > this.#greatestId || !key.id(id)) return undefined;
    const row = this.#stored(id, key);
    if (row !== undefined) this.#cache.keep(row);
    return row;
  }

  /** The task as it is visible: what readers are told. */
  visibleRow(id: string): Row | undefined {
    if (!this.#cache.isQueued(id)) return this.row(id);
    return this.#stored(id, this.#key.clear().knownId(id));
  }

  #stored(id: string, key: Key): Row | undefined {
    const version = this.#rowLog.find(id);
    if (version !== undefined) return this.#rowOf(id, version);
    const value = this.#env.db.tasks.getBinaryFast(key);
    if (value === undefined) return undefined;
    this.#reader.reset(value, 0, value.length);
    return this.#codec.readRow(this.#reader, id);
  }

  #rowOf(id: string, { arena, from, to }: Version): Row | undefined {
    if (from === to) return undefined;
    this.#reader.reset(arena, from, to);
    return this.#codec.readRow(this.#reader, id);
  }

  /** Tasks of which the log has a version, the removed included; as they are now. */
  loggedIds(): readonly string[] {
    return this.#rowLog.ids();
  }

  /** Both visible versions of a task; undefined where there is none, or it is removed. */
  versions(id: string): { logged: Row | undefined; stored: Row | undefined } {
    const version = this.#rowLog.find(id);
    const value = this.#env.db.tasks.getBinaryFast(this.#key.clear().knownId(id));
    const stored = value && this.#codec.readRow(new Reader(value, 0, value.length), id);
    return { logged: version && this.#rowOf(id, version), stored };
  }

  /** Visible tasks from there on, in the order of ids. */
  *visibleRows(start: Key): Generator<Row> {
    for (const { key, value } of this.#env.db.tasks.getRange({ start, end: new Key().raw(END) })) {
      const id = idText(key);
      const row = this.rowOfTree(id, value);
      if (row !== undefined) yield row;
    }
  }

  /** The task of which the tree has this value, as it stands: a newer version may be in the log. Undefined: removed. */
  rowOfTree(id: string, value: Uint8Array): Row | undefined {
    const version = this.#rowLog.find(id);
    if (version !== undefined) return this.#rowOf(id, version);
    return this.#codec.readRow(new Reader(value, 0, value.length), id);
  }

  putRow(row: Row, commit: number): void {
    const { id } = row;
    const max = this.#codec.rowMax(row);
    const mayBeLogged = id <= this.#greatestId;
    if (!row.isStored) {
      row.isStored = true;
      if (!mayBeLogged) this.#greatestId = id;
      this.#writer.begin(max);
      this.#codec.writeRow(this.#writer, row);
      this.#env.db.tasks.put(this.#key.clear().knownId(id), this.#writer.end());
      // One that was removed may be in the log still, which would be believed.
      if (!mayBeLogged) return;
    }
    this.#rowLog.put(id, commit, max, (writer) => this.#codec.writeRow(writer, row));
  }

  removeRow(id: string, commit: number): void {
    this.#rowLog.remove(id, commit);
  }

  /** Queues the puts of the commit at hand that were kept back. */
  finish(context: CommitContext): void {
    this.#rowLog.finish(context, (id) => this.#cache.isQueued(id));
  }

  visible(commit: number): void {
    this.#rowLog.visible(commit);
  }

  /** Where it is stored: with its task, or in the history. */
  find(row: Row, record: OccurrenceRecord): StoredOccurrence | undefined {
    return findOccurrence(row, record.id) ?? this.#inHistory(row, record.id, record);
  }

  findById(row: Row, id: string): StoredOccurrence | undefined {
    const found = findOccurrence(row, id);
    if (found !== undefined || row.history === 0) return found;
    const identity = parseOccurrenceId(id);
    return identity && this.#inHistory(row, id, identity);
  }

  #inHistory(row: Row, id: string, identity: Identity): StoredOccurrence | undefined {
    const known = this.#cache.history(id);
    if (known !== undefined) return known ?? undefined;
    if (row.history === 0) return undefined;
    const value = this.#env.db.names.getBinaryFast(this.#nameKey(row.id, identity));
    if (value === undefined) return undefined;
    const serial = new Reader(value, 0, value.length).varint();
    return this.historyAt(row.id, serial);
  }

  historyAt(taskId: string, serial: number): StoredOccurrence | undefined {
    const value = this.#env.db.history.getBinaryFast(this.#serialKey(taskId, serial));
    if (value === undefined) return undefined;
    return this.#asItIs(this.#codec.readAlone(new Reader(value, 0, value.length), taskId));
  }

  /** What is stored may have been changed or removed by a commit that is not visible yet. */
  #asItIs(stored: StoredOccurrence): StoredOccurrence | undefined {
    const known = this.#cache.history(stored.record.id);
    return known === undefined ? stored : (known ?? undefined);
  }

  #nameKey(taskId: string, { generation, kind, ordinal }: Identity): Key {
    const key = this.#key.clear().knownId(taskId).u32(generation).byte(KINDS.code(kind));
    // A trigger's and the like are counts, nominal times may be negative, too.
    return key.i64(ordinal);
  }

  #serialKey(taskId: string, serial: number): Key {
    return this.#key.clear().knownId(taskId).u32(serial);
  }

  putHistory(row: Row, stored: StoredOccurrence, commit: number): void {
    const { record, serial } = stored;
    this.#codec.writeAlone(this.#writer, stored);
    this.#env.db.history.put(this.#serialKey(row.id, serial), this.#writer.end());
    this.#cache.setHistory(record.id, stored, commit);
  }

  /** Puts one that was with its task into the history. */
  enterHistory(row: Row, stored: StoredOccurrence, commit: number): void {
    this.putHistory(row, stored, commit);
    this.#writer.begin(8);
    this.#writer.varint(stored.serial);
    this.#env.db.names.put(this.#nameKey(row.id, stored.record), this.#writer.end());
    row.history += 1;
  }

  leaveHistory(row: Row, { record, serial }: StoredOccurrence, commit: number): void {
    this.#env.db.history.remove(this.#serialKey(row.id, serial));
    this.#env.db.names.remove(this.#nameKey(row.id, record));
    this.#cache.setHistory(record.id, undefined, commit);
    row.history -= 1;
  }

  /** An occurrence of a visible row. */
  visibleById(row: Row, id: string): StoredOccurrence | undefined {
    const found = findOccurrence(row, id);
    if (found !== undefined || row.history === 0) return found;
    const identity = parseOccurrenceId(id);
    if (identity === undefined) return undefined;
    const value = this.#env.db.names.getBinaryFast(this.#nameKey(row.id, identity));
    if (value === undefined) return undefined;
    return this.visibleAt(row.id, new Reader(value, 0, value.length).varint());
  }

  visibleAt(taskId: string, serial: number): StoredOccurrence | undefined {
    const value = this.#env.db.history.getBinaryFast(this.#serialKey(taskId, serial));
    return value && this.#codec.readAlone(new Reader(value, 0, value.length), taskId);
  }

  decodeAlone(taskId: string, value: Uint8Array): StoredOccurrence {
    return this.#codec.readAlone(new Reader(value, 0, value.length), taskId);
  }

  /** By its name; undefined: it has none in the history. */
  serialInHistory(taskId: string, identity: Identity): number | undefined {
    const value = this.#env.db.names.getBinaryFast(this.#nameKey(taskId, identity));
    return value && new Reader(value, 0, value.length).varint();
  }

  /** The visible history, newest first, with serials below `before`. */
  listHistory(taskId: string, before: number, max: number): StoredOccurrence[] {
    const start = new Key().knownId(taskId).u32(Math.max(0, before - 1));
    const end = new Key().knownId(taskId);
    const found: StoredOccurrence[] = [];
    for (const { value } of this.#env.db.history.getRange({
      start,
      end,
      reverse: true,
      limit: max,
    })) {
      found.push(this.#codec.readAlone(new Reader(value, 0, value.length), taskId));
    }
    return found;
  }

  /** The history, oldest first, from that serial on; what entered it must be visible. */
  scanHistory(taskId: string, from: number, max: number): StoredOccurrence[] {
    const start = new Key().knownId(taskId).u32(from);
    const end = new Key().knownId(taskId).u32(SERIAL_END);
    const found: StoredOccurrence[] = [];
    for (const { value } of this.#env.db.history.getRange({ start, end, limit: max })) {
      const stored = this.#asItIs(
        this.#codec.readAlone(new Reader(value, 0, value.length), taskId),
      );
      if (stored !== undefined) found.push(stored);
    }
    return found;
  }

  // --- attempts --------------------------------------------------------------------------------------

  appendAttempt(row: Row, stored: StoredOccurrence, record: AttemptRecord): void {
    writeAttempt(this.#writer, record);
    const key = this.#serialKey(row.id, stored.serial).u32(stored.attempts);
    this.#env.db.attempts.put(key, this.#writer.end());
    stored.attempts += 1;
  }

  removeAttempts(row: Row, { serial, attempts }: StoredOccurrence): void {
    for (let number = 0; number < attempts; number++) {
      this.#env.db.attempts.remove(this.#serialKey(row.id, serial).u32(number));
    }
  }

  attempts(row: Row, stored: StoredOccurrence): AttemptRecord[] {
    const start = new Key().knownId(row.id).u32(stored.serial);
    const end = new Key().knownId(row.id).u32(stored.serial).u32(stored.attempts);
    const found: AttemptRecord[] = [];
    if (stored.attempts === 0) return found;
    for (const { value } of this.#env.db.attempts.getRange({ start, end })) {
      found.push(readAttempt(new Reader(value, 0, value.length), stored.record.id));
    }
    return found;
  }

  // --- dead letters ----------------------------------------------------------------------------------

  putDead(row: Row, { dead, serial }: StoredOccurrence): void {
    const id = new Key().knownId(row.id);
    this.#writer.begin(id.length + 8);
    this.#writer.raw(id.bytes, id.length);
    this.#writer.varint(serial);
    this.#env.db.dead.put(this.#key.clear().u64(dead), this.#writer.end());
  }

  /** Whether that number names that occurrence. */
  isDeadLetter(dead: number, taskId: string, serial: number): boolean {
    const value = this.#env.db.dead.getBinaryFast(this.#key.clear().u64(dead));
    if (value === undefined || idText(value) !== taskId) return false;
    return new Reader(value, ID_BYTES, value.length).varint() === serial;
  }

  removeDead(dead: number): void {
    this.#env.db.dead.remove(this.#key.clear().u64(dead));
  }
}
