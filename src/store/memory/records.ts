/**
 * The tables with all that leads to their rows. Invariants, which `recount` and the tests walk:
 *
 * 1. Each task is in the index of ids and in the log of creation, once.
 * 2. A task's occurrences form one list through `older` and `newer`, newest first; those that have not ended form
 *    a second one through `liveNext`, oldest first.
 * 3. All occurrences but the newest of their task are in the index of occurrences (a one-off's never is).
 * 4. The key index names at most one task for each (tenant, key): the one flagged `keyed`.
 * 5. Dead or quarantined and not redriven ⇔ in the log of dead letters.
 * 6. The counts of each tenant equal a recount.
 */
import { assert } from '../../core/assert.js';
import type { AttemptRecord, OccurrenceRecord, TaskRecord, TaskView } from '../../core/model.js';
import { occurrenceId, parseOccurrenceId } from '../../core/model.js';
import type { Setting } from '../store.js';
import { isEndedCode, isLiveCode, KIND_CODE, KINDS, OCCURRENCE_STATES } from './codes.js';
import { hashId, parseId } from './hex.js';
import { countedAs, DEAD_LETTERS, OPEN_TASKS, UNCOUNTED } from './lanes.js';
import { type OccurrenceIdentity, OccurrenceTable } from './occurrence-table.js';
import { Pools } from './pools.js';
import { addText, addWord, mix32, RowIndex } from './row-index.js';
import { SeqLog } from './seq-log.js';
import { TaskTable } from './task-table.js';

const ORDINAL_HIGH = 2 ** 32;

export class Records {
  readonly pools = new Pools();
  readonly tasks = new TaskTable(this.pools);
  readonly occurrences = new OccurrenceTable(this.pools);
  readonly created = new SeqLog();
  readonly deadLetters = new SeqLog();
  settings: ReadonlyMap<string, Setting> = new Map();

  // What the indexes' comparisons look for.
  readonly #id = new Uint32Array(4);
  /** Of all ids that were ever added. */
  readonly #newestId = new Uint32Array(4);
  #task = 0;
  #identity: OccurrenceIdentity = { generation: 0, kind: 'nominal', ordinal: 0 };
  #tenant = '';
  #key = '';

  readonly #byId = new RowIndex((row) => this.tasks.isId(row, this.#id));
  readonly #byIdentity = new RowIndex((row) =>
    this.occurrences.isIdentity(row, this.#task, this.#identity),
  );
  readonly #byKey = new RowIndex(
    (row) =>
      this.#tenantOf(row) === this.#tenant &&
      this.pools.blobs.isText(this.tasks.key(row), this.#key),
  );

  /** Bytes of all buffers, in use or free. */
  get bytes(): number {
    return (
      this.tasks.bytes +
      this.occurrences.bytes +
      this.pools.blobs.bytes +
      this.created.bytes +
      this.deadLetters.bytes +
      this.#byId.bytes +
      this.#byIdentity.bytes +
      this.#byKey.bytes
    );
  }

  /**
   * The task's row, 0 for none, also when the text is no id.
   * @param hint a row that it may be: then the index need not be read, which is a cache miss or two
   */
  findTask(id: string, hint = 0): number {
    if (!parseId(id, this.#id)) return 0;
    if (hint !== 0 && hint < this.tasks.rows.end && this.tasks.isId(hint, this.#id)) return hint;
    // Ids grow, so that a new one is not looked for.
    return isLater(this.#id, this.#newestId) ? 0 : this.#byId.find(hashId(this.#id));
  }

  findOccurrence(task: number, identity: OccurrenceIdentity): number {
    const newest = this.tasks.newest(task);
    if (newest === 0 || this.occurrences.isIdentity(newest, task, identity)) return newest;
    this.#task = task;
    this.#identity = identity;
    const { generation, kind, ordinal } = identity;
    return this.#byIdentity.find(hashIdentity(task, generation, KIND_CODE[kind], ordinal));
  }

  /** The task that holds the key, 0 when it is free: never given, or its holder's time with it is over. */
  findHolder(tenant: string, key: string, nowMs: number): number {
    const row = this.findKeyed(tenant, key);
    return row !== 0 && this.keyUntil(row) > nowMs ? row : 0;
  }

  /** The task flagged as the key's, whether or not its time with it is over. */
  findKeyed(tenant: string, key: string): number {
    this.#tenant = tenant;
    this.#key = key;
    return this.#byKey.find(hashKey(tenant, key));
  }

  /** When the task's key becomes free: Infinity while the task has not ended, −Infinity when it holds none. */
  keyUntil(task: number): number {
    const { tasks } = this;
    if (!tasks.isKeyed(task)) return Number.NEGATIVE_INFINITY;
    if (!isEndedCode(tasks.state(task))) return Number.POSITIVE_INFINITY;
    return tasks.endedAt(task) + tasks.idempotencyTtlMs(task);
  }

  /** A new task's row; its key must be free. `seq` gives a restored one its old place. */
  addTask(record: TaskRecord, keyed: boolean, seq?: number): number {
    assert(parseId(record.id, this.#id), 'a task id is a UUID in lower case');
    const row = this.tasks.add(this.#id, seq ?? this.created.end);
    if (seq === undefined) this.created.append(row);
    else this.created.restore(seq, row);
    this.tasks.write(row, record);
    this.#byId.insert(hashId(this.#id), row);
    if (isLater(this.#id, this.#newestId)) this.#newestId.set(this.#id);
    if (keyed && record.idempotencyKey !== undefined) this.#takeKey(row, record.idempotencyKey);
    this.#countTask(row, 1);
    return row;
  }

  #takeKey(row: number, key: string): void {
    const tenant = this.#tenantOf(row);
    const before = this.findKeyed(tenant, key);
    if (before !== 0) this.#dropKey(before);
    this.#byKey.insert(hashKey(tenant, key), row);
    this.tasks.setKeyed(row, true);
  }

  #dropKey(row: number): void {
    const key = this.pools.blobs.getText(this.tasks.key(row)) as string;
    this.#byKey.remove(hashKey(this.#tenantOf(row), key), row);
    this.tasks.setKeyed(row, false);
  }

  writeTask(row: number, record: TaskRecord): void {
    const { tasks } = this;
    const key = tasks.key(row);
    const sameKey =
      record.idempotencyKey === undefined
        ? key === 0
        : this.pools.blobs.isText(key, record.idempotencyKey);
    assert(sameKey && record.tenant === this.#tenantOf(row), 'a task keeps its tenant and its key');
    this.#countTask(row, -1);
    tasks.write(row, record);
    this.#countTask(row, 1);
  }

  /**
   * Sets `lastOccurrenceId`, when the task's occurrences are written. `hint` is the row of that occurrence, where
   * the caller knows it.
   */
  writeLast(row: number, taskId: string, lastId: string | undefined, hint = 0): void {
    const { tasks } = this;
    if (lastId === undefined || hint !== 0) {
      tasks.writeLast(row, hint, undefined);
      return;
    }
    const last = tasks.last(row);
    if (last !== 0 && this.occurrenceIdOf(last, taskId) === lastId) return;
    const identity = parseOccurrenceId(lastId);
    const own = identity !== undefined && identity.taskId === taskId;
    tasks.writeLast(row, own ? this.findOccurrence(row, identity) : 0, lastId);
  }

  #countTask(row: number, by: number): void {
    if (isEndedCode(this.tasks.state(row))) return;
    this.pools.lanes.count(this.tasks.lane(row), OPEN_TASKS, by);
  }

  addOccurrence(task: number, record: OccurrenceRecord, serial?: number): number {
    const { occurrences, tasks } = this;
    const newest = tasks.newest(task);
    const next = newest === 0 ? 1 : occurrences.serial(newest) + 1;
    const row = occurrences.add(task, serial ?? next);
    if (newest !== 0) {
      this.#index(newest);
      occurrences.setNewer(newest, row);
      occurrences.setOlder(row, newest);
    }
    tasks.setNewest(task, row);
    occurrences.write(row, record);
    this.#countOccurrence(row, UNCOUNTED);
    if (isLiveCode(occurrences.state(row))) this.#appendLive(task, row);
    return row;
  }

  writeOccurrence(row: number, record: OccurrenceRecord): void {
    const { occurrences } = this;
    const wasLive = isLiveCode(occurrences.state(row));
    const before = this.#countedAs(row);
    this.pools.lanes.count(occurrences.lane(row), before, -1);
    occurrences.write(row, record);
    this.#countOccurrence(row, before);
    const isLive = isLiveCode(occurrences.state(row));
    if (wasLive === isLive) return;
    if (isLive) this.#appendLive(occurrences.task(row), row);
    else this.#removeLive(occurrences.task(row), row);
  }

  removeOccurrence(row: number): void {
    const { occurrences, tasks } = this;
    const task = occurrences.task(row);
    const place = this.#countedAs(row);
    this.pools.lanes.count(occurrences.lane(row), place, -1);
    if (place === DEAD_LETTERS) this.deadLetters.remove(occurrences.deadSeq(row));
    if (isLiveCode(occurrences.state(row))) this.#removeLive(task, row);
    if (occurrences.isIndexed(row)) this.#byIdentity.remove(this.#hashOfOccurrence(row), row);
    const older = occurrences.older(row);
    const newer = occurrences.newer(row);
    if (older !== 0) occurrences.setNewer(older, newer);
    if (newer !== 0) occurrences.setOlder(newer, older);
    else tasks.setNewest(task, older);
    occurrences.free(row);
  }

  /** The task with all its occurrences and attempts. O(its occurrences). */
  removeTask(row: number): void {
    const { tasks } = this;
    while (tasks.newest(row) !== 0) this.removeOccurrence(tasks.newest(row));
    if (tasks.isKeyed(row)) this.#dropKey(row);
    this.#countTask(row, -1);
    this.created.remove(tasks.seq(row));
    tasks.idWords(row, this.#id);
    this.#byId.remove(hashId(this.#id), row);
    tasks.free(row);
  }

  #countedAs(row: number): number {
    const { occurrences } = this;
    const state = OCCURRENCE_STATES[occurrences.state(row)] as OccurrenceRecord['state'];
    return countedAs(state, occurrences.isRedriven(row));
  }

  /** Counts a row that was just written, and keeps the log of dead letters in step. */
  #countOccurrence(row: number, before: number): void {
    const { occurrences, deadLetters } = this;
    const after = this.#countedAs(row);
    this.pools.lanes.count(occurrences.lane(row), after, 1);
    if (after === before) return;
    if (before === DEAD_LETTERS) {
      deadLetters.remove(occurrences.deadSeq(row));
      occurrences.setDeadSeq(row, Number.NaN);
    }
    if (after === DEAD_LETTERS) occurrences.setDeadSeq(row, deadLetters.append(row));
  }

  /** Gives a restored dead letter its old place. */
  restoreDeadSeq(row: number, seq: number): void {
    const { occurrences, deadLetters } = this;
    deadLetters.remove(occurrences.deadSeq(row));
    deadLetters.restore(seq, row);
    occurrences.setDeadSeq(row, seq);
  }

  #index(row: number): void {
    const { occurrences } = this;
    if (occurrences.isIndexed(row)) return;
    occurrences.setIndexed(row);
    this.#byIdentity.insert(this.#hashOfOccurrence(row), row);
  }

  #appendLive(task: number, row: number): void {
    const { occurrences, tasks } = this;
    const last = tasks.liveLast(task);
    if (last === 0) tasks.setLiveFirst(task, row);
    else occurrences.setLiveNext(last, row);
    tasks.setLiveLast(task, row);
  }

  /** A walk from the oldest: most often it is the one that ends, and at most some 1000 wait behind it. */
  #removeLive(task: number, row: number): void {
    const { occurrences, tasks } = this;
    const next = occurrences.liveNext(row);
    let before = 0;
    for (let at = tasks.liveFirst(task); at !== row; at = occurrences.liveNext(at)) {
      assert(at !== 0, 'a live occurrence is in the list of its task');
      before = at;
    }
    if (before === 0) tasks.setLiveFirst(task, next);
    else occurrences.setLiveNext(before, next);
    if (next === 0) tasks.setLiveLast(task, before);
    occurrences.setLiveNext(row, 0);
  }

  occurrenceIdOf(row: number, taskId: string): string {
    const { occurrences } = this;
    const kind = KINDS[occurrences.kind(row)];
    return occurrenceId(taskId, occurrences.generation(row), kind, occurrences.ordinal(row));
  }

  readTask(row: number, id: string): TaskRecord {
    const last = this.tasks.last(row);
    return this.tasks.read(row, id, last === 0 ? undefined : this.occurrenceIdOf(last, id));
  }

  readView(row: number, id: string): TaskView {
    const { occurrences, tasks } = this;
    const task = this.readTask(row, id);
    const live: OccurrenceRecord[] = [];
    for (let at = tasks.liveFirst(row); at !== 0; at = occurrences.liveNext(at)) {
      live.push(occurrences.read(at, id));
    }
    return { task, live };
  }

  appendAttempt(row: number, record: AttemptRecord): void {
    this.occurrences.appendAttempt(row, record);
  }

  #tenantOf(row: number): string {
    return this.pools.lanes.at(this.tasks.lane(row)).tenant.name;
  }

  #hashOfOccurrence(row: number): number {
    const { occurrences } = this;
    const generation = occurrences.generation(row);
    const kind = occurrences.kind(row);
    return hashIdentity(occurrences.task(row), generation, kind, occurrences.ordinal(row));
  }
}

function isLater(id: Uint32Array, than: Uint32Array): boolean {
  for (let i = 0; i < 4; i++) if (id[i] !== than[i]) return id[i] > than[i];
  return false;
}

function hashIdentity(task: number, generation: number, kind: number, ordinal: number): number {
  const h = addWord(addWord(0, task), generation * 4 + kind);
  return mix32(addWord(addWord(h, ordinal | 0), Math.floor(ordinal / ORDINAL_HIGH)));
}

function hashKey(tenant: string, key: string): number {
  return mix32(addText(addText(0x811c_9dc5, tenant), key));
}
