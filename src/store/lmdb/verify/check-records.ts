/** From the records to the indexes: all that a task's record says is where it says. */
import { isTerminal, type OccurrenceRecord, type TaskRecord } from '../../../core/model.js';
import { countedAs } from '../counts.js';
import { type BucketName, Chunks, groupOf } from '../due/chunks.js';
import { laneKey, MIXED } from '../due/lane.js';
import { commitOf, levelOf, RUNNING_LEVEL, startOf } from '../due/levels.js';
import { nextRunning } from '../due/running.js';
import { keyUntil } from '../key-holders.js';
import { keyHash } from '../keys/hash.js';
import { idText, Key } from '../keys.js';
import type { StoreReader } from '../reader.js';
import { Ends, FAILED, SUCCEEDED, UNTIL } from '../retention.js';
import {
  hasEnded,
  hasLive,
  isHeldBack,
  isRunning,
  type Row,
  type StoredOccurrence,
} from '../row.js';
import { type Findings, Recount } from './findings.js';
import { HintSet } from './hint-set.js';
import { inPieces, nextPairs } from './pieces.js';

const HISTORY_PIECE = 500;

export interface Looked {
  tasks: number;
  occurrences: number;
  attempts: number;
}

export class RecordsCheck {
  readonly recount = new Recount();
  readonly looked: Looked = { tasks: 0, occurrences: 0, attempts: 0 };
  readonly #reader: StoreReader;
  readonly #findings: Findings;
  readonly #nowMs: number;
  readonly #chunks: Chunks;
  readonly #ends: Ends;
  readonly #hints = new HintSet();
  #hintsCommit = 0;
  /** Of the piece at hand: entries of chunks, and of the log of what runs. */
  #entries = new Map<string, ReadonlySet<string>>();
  #running = new Map<number, ReadonlySet<string>>();

  constructor(reader: StoreReader, findings: Findings, nowMs: number) {
    this.#reader = reader;
    this.#findings = findings;
    this.#nowMs = nowMs;
    const { db } = reader.env;
    this.#chunks = new Chunks(db.due, reader.pool);
    this.#ends = new Ends(db.ends);
  }

  *run(): Generator<void> {
    const { db } = this.#reader.env;
    this.#hintsCommit = this.#reader.commit;
    yield* inPieces(db.ends, ({ value }) => {
      for (const { taskId, serial } of Ends.read(value)) this.#hints.add(taskId, serial);
    });
    for (let after: Uint8Array | undefined; ; ) {
      this.#entries.clear();
      this.#running.clear();
      const pairs = nextPairs(db.tasks, after);
      for (const { key, value } of pairs) this.#tryRow(idText(key), value);
      if (pairs.length === 0) return;
      after = pairs.at(-1)?.key;
      yield;
    }
  }

  #tryRow(id: string, value: Uint8Array): void {
    try {
      const row = this.#reader.records.rowOfTree(id, value);
      if (row !== undefined) this.#checkRow(row);
    } catch (error) {
      this.#findings.add(`task ${id} can't be read: ${(error as Error).message}`);
    }
  }

  #checkRow(row: Row): void {
    const { task, occurrences } = row;
    this.looked.tasks += 1;
    if (!hasEnded(task)) this.recount.add(task.tenant, 'openTasks');
    for (const stored of occurrences) this.#checkOccurrence(row, stored);
    let history = 0;
    for (let from = 0; ; ) {
      const some = this.#reader.records.scanHistory(row.id, from, HISTORY_PIECE);
      for (const stored of some) this.#checkHistory(row, stored);
      history += some.length;
      if (some.length < HISTORY_PIECE) break;
      from = (some.at(-1) as StoredOccurrence).serial + 1;
    }
    if (history !== row.history) {
      this.#findings.add(
        `task ${row.id} counts ${row.history} in its history, there are ${history}`,
      );
    }
    const isAtRest = hasEnded(task) && task.endedAt !== undefined && !hasLive(row);
    if (isAtRest) this.#checkHint(row, 0, task.endedAt as number);
    this.#checkKey(row);
  }

  #checkOccurrence(row: Row, stored: StoredOccurrence): void {
    const { record, serial } = stored;
    this.looked.occurrences += 1;
    this.recount.addOccurrence(record);
    if (serial >= row.nextSerial) {
      this.#findings.add(
        `occurrence ${record.id} has number ${serial}, the next is ${row.nextSerial}`,
      );
    }
    this.#checkPlace(row, stored);
    this.#checkDead(row, stored);
    this.#checkAttempts(row, stored);
    const { state, endedAt } = record;
    const isPast = isTerminal(state) && row.task.lastOccurrenceId !== record.id;
    if (isPast && endedAt !== undefined && !hasEnded(row.task)) {
      this.#checkHint(row, serial, endedAt);
    }
  }

  #checkHistory(row: Row, stored: StoredOccurrence): void {
    const { record, serial } = stored;
    this.#checkOccurrence(row, stored);
    if (!isTerminal(record.state)) {
      this.#findings.add(`occurrence ${record.id} is in the history and has not ended`);
    }
    if (this.#reader.records.serialInHistory(row.id, record) !== serial) {
      this.#findings.add(`occurrence ${record.id} is in the history and not found by its name`);
    }
  }

  // --- the due index -----------------------------------------------------------------------------------

  #checkPlace(row: Row, { record, serial, place }: StoredOccurrence): void {
    const isTimed =
      !isTerminal(record.state) && (isRunning(record) || !isHeldBack(row.task, record));
    if (!isTimed) {
      if (place !== 0) this.#findings.add(`occurrence ${record.id} is in the due index in vain`);
      return;
    }
    const isInRunning = place !== 0 && levelOf(place) === RUNNING_LEVEL;
    if (isRunning(record)) {
      const isLogged = isInRunning && this.#runningOf(commitOf(place)).has(`${row.id} ${serial}`);
      if (!isLogged) this.#findings.add(`occurrence ${record.id} runs and is not in the log of it`);
      return;
    }
    if (place === 0 || isInRunning || !this.#isEntered(place, row, record)) {
      this.#findings.add(`occurrence ${record.id} is pending and not in the due index`);
    }
  }

  #isEntered(place: number, { task }: Row, record: OccurrenceRecord): boolean {
    const { tenant, handler, handlerVersion, dueAt, id } = record;
    const { priority } = task;
    const own = laneKey(this.#reader.pool, { tenant, handler, handlerVersion, priority });
    const top = levelOf(place);
    for (let level = top; level >= 0; level--) {
      const bucket = { level, start: startOf(level, dueAt) };
      for (const lane of own === undefined ? [MIXED] : [own, MIXED]) {
        const entries = this.#entriesOf(bucket, lane, top - level, commitOf(place));
        if (entries.has(`${id} ${dueAt}`)) return true;
      }
    }
    return false;
  }

  #entriesOf(
    bucket: BucketName,
    lane: Uint8Array,
    splits: number,
    commit: number,
  ): ReadonlySet<string> {
    const name = `${bucket.level} ${bucket.start} ${lane} ${splits} ${groupOf(commit, splits)}`;
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const found = new Set<string>();
    for (const { bytes } of this.#chunks.readGroup(bucket, lane, splits, commit)) {
      for (const { occurrenceId, dueAt } of this.#chunks.entries(bytes)) {
        found.add(`${occurrenceId} ${dueAt}`);
      }
    }
    this.#entries.set(name, found);
    return found;
  }

  #runningOf(commit: number): ReadonlySet<string> {
    const known = this.#running.get(commit);
    if (known !== undefined) return known;
    const logged = nextRunning(this.#reader.env.db.due, commit);
    const begun = logged?.number === commit ? logged.begun : [];
    const found = new Set(begun.map(({ taskId, serial }) => `${taskId} ${serial}`));
    this.#running.set(commit, found);
    return found;
  }

  // --- the others --------------------------------------------------------------------------------------

  #checkDead(row: Row, { record, serial, dead }: StoredOccurrence): void {
    const isDead = countedAs(record) === 'deadLetters';
    const isListed = dead !== 0 && this.#reader.records.isDeadLetter(dead, row.id, serial);
    if (isDead && !isListed) {
      this.#findings.add(`occurrence ${record.id} is a dead letter and not listed as one`);
    }
    if (!isDead && dead !== 0) {
      this.#findings.add(`occurrence ${record.id} is listed as a dead letter and is none`);
    }
  }

  #checkAttempts(row: Row, { record, serial, attempts }: StoredOccurrence): void {
    if (attempts === 0) return;
    const start = new Key().knownId(row.id).u32(serial);
    const end = new Key().knownId(row.id).u32(serial + 1);
    let found = 0;
    for (const _ of this.#reader.env.db.attempts.getKeys({ start, end })) found += 1;
    this.looked.attempts += found;
    if (found === attempts) return;
    this.#findings.add(`occurrence ${record.id} counts ${attempts} attempts, there are ${found}`);
  }

  #checkHint(row: Row, serial: number, endedAt: number): void {
    if (this.#hints.has(row.id, serial)) return;
    // It may have ended since the hints were read.
    const isNewer = this.#hintsCommit !== this.#reader.commit;
    if (isNewer && this.#hasHint(row, serial, endedAt)) return;
    const what = serial === 0 ? 'the task' : `its occurrence number ${serial}`;
    this.#findings.add(`task ${row.id}: ${what} has ended and retention does not know of it`);
  }

  #hasHint(row: Row, serial: number, endedAt: number): boolean {
    const isIt = (hint: { taskId: string; serial: number }): boolean =>
      hint.taskId === row.id && hint.serial === serial;
    return (
      this.#ends.inMinuteOf(SUCCEEDED, endedAt).some(isIt) ||
      this.#ends.inMinuteOf(FAILED, endedAt).some(isIt) ||
      (serial === 0 && this.#ends.inMinuteOf(UNTIL, keyUntil(row.task)).some(isIt))
    );
  }

  /** The task that was found by its key; or the one to which it passed: the clock may have gone back since. */
  #holds(foundId: string, id: string, task: TaskRecord): boolean {
    if (foundId === id) return true;
    const other = this.#reader.records.row(foundId)?.task;
    return (
      other !== undefined &&
      other.idempotencyKey === task.idempotencyKey &&
      other.tenant === task.tenant &&
      other.createdAt >= keyUntil(task)
    );
  }

  #checkKey({ id, task }: Row): void {
    const { idempotencyKey, tenant, extras } = task;
    // One that a redrive revived may have lost its key before.
    if (idempotencyKey === undefined || extras > 0 || keyUntil(task) <= this.#nowMs) return;
    const hash = keyHash(tenant, idempotencyKey);
    const found = [this.#reader.keysOfLate.find(hash), this.#reader.keys.find(hash)];
    for (const other of found) {
      if (other !== undefined && this.#holds(idText(other), id, task)) return;
    }
    this.#findings.add(`task ${id} holds an idempotency key and is not found by it`);
  }
}
