/**
 * Tasks as bytes, with those of their occurrences that are stored with them. A record begins with its form; then what is
 * always there; then flags that say which of the optional fields follow. Times are written as distances from others: that
 * of creation from the one in the id, others from that.
 *
 *   form · state 4 bits, priority 4 bits · flags (varint) · created · anchor · tenant, handler, policies (pool) · revision ·
 *   payload · optional fields · next serial · history · count of occurrences · occurrences (occurrence-codec.ts)
 */
import type { Mutable, Policies, TaskRecord } from '../../core/model.js';
import type { Schedule } from '../../core/schedule.js';
import { millisOfUuid } from '../../core/uuid.js';
import { MalformedError, type Reader, textMax, type Writer } from './bytes.js';
import { OCCURRENCE_STATES, TASK_STATES } from './formats.js';
import { OccurrenceCodec } from './occurrence-codec.js';
import type { Pool } from './pool.js';
import type { Row, StoredOccurrence } from './row.js';

const FORM = 1;

// Flags of a task.
const ONCE = 1;
const AT_ANCHOR = 2;
const HANDLER_VERSION = 4;
const PAUSED_AT = 8;
const KEY = 16;
const DEFINITION = 32;
const ENDED_AT = 64;
const END_REASON = 128;
const CURSOR = 256;
const LAST_IS_NEWEST = 512;
const LAST_OTHER = 1024;
const LAST_END = 2048;
const COUNTS = 4096;

/** Fixed parts, generously. */
const FIXED = 180;

export class RowCodec {
  readonly #pool: Pool;
  readonly #occurrences: OccurrenceCodec;
  /** Policies are few: each is turned into text once, and back. */
  readonly #policyTexts = new WeakMap<Policies, string>();
  readonly #policies = new Map<string, Policies>();

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#occurrences = new OccurrenceCodec(pool);
  }

  /** Of at most `rowMax` bytes, into a value that was begun. */
  writeRow(writer: Writer, row: Row): void {
    writer.byte(FORM);
    const newest = row.occurrences.at(-1);
    this.#writeTask(writer, row.task, newest?.record.id);
    writer.varint(row.nextSerial);
    writer.varint(row.history);
    writer.varint(row.occurrences.length);
    for (const stored of row.occurrences) this.#occurrences.write(writer, stored, row.task);
  }

  readRow(reader: Reader, id: string): Row {
    if (reader.byte() !== FORM) throw new MalformedError('a task has an unknown form');
    const { task, lastIsNewest } = this.#readTask(reader, id);
    const nextSerial = reader.varint();
    const history = reader.varint();
    const occurrences: StoredOccurrence[] = [];
    for (let left = reader.varint(); left > 0; left--) {
      occurrences.push(this.#occurrences.read(reader, task));
    }
    if (!reader.isAtEnd) throw new MalformedError('a task is longer than it should be');
    const newest = occurrences.at(-1);
    if (lastIsNewest) task.lastOccurrenceId = newest?.record.id;
    return {
      id,
      task,
      occurrences,
      nextSerial,
      history,
      commit: 0,
      isBorrowed: false,
      isStored: true,
      slot: 0,
      isRemoved: false,
    };
  }

  /** An occurrence by itself, in the history. */
  writeAlone(writer: Writer, stored: StoredOccurrence): void {
    const { record } = stored;
    writer.begin(this.#occurrences.max(record));
    writer.byte(FORM);
    this.#occurrences.write(writer, stored, { id: record.taskId });
  }

  readAlone(reader: Reader, taskId: string): StoredOccurrence {
    if (reader.byte() !== FORM) throw new MalformedError('an occurrence has an unknown form');
    return this.#occurrences.read(reader, { id: taskId });
  }

  rowMax({ task, occurrences }: Row): number {
    let max = FIXED + task.payload.length + textMax(task.tenant) + textMax(task.handler);
    max += textMax(task.idempotencyKey) + textMax(task.definition) + textMax(task.endReason);
    max += textMax(task.lastOccurrenceId) + this.#policiesText(task.policies).length * 3 + 5;
    if (task.schedule.kind !== 'once') max += JSON.stringify(task.schedule).length * 3 + 5;
    for (const { record } of occurrences) max += this.#occurrences.max(record);
    return max;
  }

  #writeTask(writer: Writer, task: TaskRecord, newestId: string | undefined): void {
    const { schedule } = task;
    const once = schedule.kind === 'once';
    const last = task.lastOccurrenceId;
    const counts =
      task.version !== 1 || task.generation !== 1 || task.taken !== 0 || task.extras !== 0;
    const flags =
      (once ? ONCE : 0) |
      (once && schedule.at === task.anchorAt ? AT_ANCHOR : 0) |
      (task.handlerVersion === undefined ? 0 : HANDLER_VERSION) |
      (task.pausedAt === undefined ? 0 : PAUSED_AT) |
      (task.idempotencyKey === undefined ? 0 : KEY) |
      (task.definition === undefined ? 0 : DEFINITION) |
      (task.endedAt === undefined ? 0 : ENDED_AT) |
      (task.endReason === undefined ? 0 : END_REASON) |
      (task.cursorAt === undefined ? 0 : CURSOR) |
      (last === undefined ? 0 : last === newestId ? LAST_IS_NEWEST : LAST_OTHER) |
      (task.lastEnd === undefined ? 0 : LAST_END) |
      (counts ? COUNTS : 0);
    writer.byte((TASK_STATES.code(task.state) << 4) | task.priority);
    writer.varint(flags);
    writer.time(task.createdAt, millisOfUuid(task.id));
    writer.time(task.anchorAt, task.createdAt);
    this.#pool.write(writer, task.tenant);
    this.#pool.write(writer, task.handler);
    this.#pool.write(writer, this.#policiesText(task.policies));
    writer.varint(task.revision);
    writer.bytes(task.payload);
    if (!once) writer.text(JSON.stringify(schedule));
    else if ((flags & AT_ANCHOR) === 0) writer.time(schedule.at, task.anchorAt);
    if (task.handlerVersion !== undefined) writer.varint(task.handlerVersion);
    if (task.pausedAt !== undefined) writer.time(task.pausedAt, task.createdAt);
    if (task.idempotencyKey !== undefined) writer.text(task.idempotencyKey);
    if (task.definition !== undefined) writer.text(task.definition);
    if (task.endedAt !== undefined) writer.time(task.endedAt, task.anchorAt);
    if (task.endReason !== undefined) writer.text(task.endReason);
    if (task.cursorAt !== undefined) writer.time(task.cursorAt, task.anchorAt);
    if ((flags & LAST_OTHER) !== 0) writer.text(last as string);
    if (task.lastEnd !== undefined) writer.byte(OCCURRENCE_STATES.code(task.lastEnd));
    if (!counts) return;
    writer.varint(task.version);
    writer.varint(task.generation);
    writer.varint(task.taken);
    writer.varint(task.extras);
  }

  #readTask(reader: Reader, id: string): { task: Mutable<TaskRecord>; lastIsNewest: boolean } {
    const head = reader.byte();
    const flags = reader.varint();
    const createdAt = reader.time(millisOfUuid(id));
    const anchorAt = reader.time(createdAt);
    const tenant = this.#pool.read(reader);
    const handler = this.#pool.read(reader);
    const policies = this.#readPolicies(reader);
    const revision = reader.varint();
    const payload = reader.bytes();
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const schedule: Schedule = has(ONCE)
      ? { kind: 'once', at: has(AT_ANCHOR) ? anchorAt : reader.time(anchorAt) }
      : parseSchedule(reader.text());
    const handlerVersion = has(HANDLER_VERSION) ? reader.varint() : undefined;
    const pausedAt = has(PAUSED_AT) ? reader.time(createdAt) : undefined;
    const idempotencyKey = has(KEY) ? reader.text() : undefined;
    const definition = has(DEFINITION) ? reader.text() : undefined;
    const endedAt = has(ENDED_AT) ? reader.time(anchorAt) : undefined;
    const endReason = has(END_REASON) ? reader.text() : undefined;
    const cursorAt = has(CURSOR) ? reader.time(anchorAt) : undefined;
    const lastOccurrenceId = has(LAST_OTHER) ? reader.text() : undefined;
    const lastEnd = has(LAST_END) ? OCCURRENCE_STATES.word(reader.byte()) : undefined;
    const counts = has(COUNTS);
    const task: Mutable<TaskRecord> = {
      id,
      tenant,
      handler,
      handlerVersion,
      payload,
      schedule,
      policies,
      priority: head & 15,
      state: TASK_STATES.word(head >>> 4),
      pausedAt,
      version: counts ? reader.varint() : 1,
      generation: counts ? reader.varint() : 1,
      revision,
      idempotencyKey,
      definition,
      createdAt,
      endedAt,
      endReason,
      anchorAt,
      cursorAt,
      taken: counts ? reader.varint() : 0,
      extras: counts ? reader.varint() : 0,
      lastOccurrenceId,
      lastEnd,
    };
    return { task, lastIsNewest: has(LAST_IS_NEWEST) };
  }

  #policiesText(policies: Policies): string {
    let text = this.#policyTexts.get(policies);
    if (text === undefined) {
      text = JSON.stringify(policies);
      this.#policyTexts.set(policies, text);
    }
    return text;
  }

  #readPolicies(reader: Reader): Policies {
    const text = this.#pool.read(reader);
    let policies = this.#policies.get(text);
    if (policies === undefined) {
      policies = parsePolicies(text);
      if (this.#policies.size > POLICIES_KEPT) this.#policies.clear();
      this.#policies.set(text, policies);
      this.#policyTexts.set(policies, text);
    }
    return policies;
  }
}

const POLICIES_KEPT = 10_000;

function parsePolicies(text: string): Policies {
  const found = parse(text) as Policies;
  // Absent is undefined, in every record.
  return {
    ...found,
    timeoutMs: found.timeoutMs,
    heartbeatTimeoutMs: found.heartbeatTimeoutMs,
    ttlMs: found.ttlMs,
  };
}

function parseSchedule(text: string): Schedule {
  return parse(text) as Schedule;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedError(`a record holds what is no JSON: ${(error as Error).message}`);
  }
}
