/**
 * Tasks and occurrences as bytes. A record begins with its form; then what is always there; then flags that say which
 * of the optional fields follow. What a one-off's occurrence shares with its task is not written twice.
 *
 *   task        form · state 4 bits, priority 4 bits · flags u16 (varint) · created f64 · anchor f64 · tenant,
 *               handler, policies (pool) · revision · payload · optional fields · next serial · history ·
 *               count of occurrences · occurrences
 *   occurrence  state 4 bits, kind 4 bits · flags (varint) · serial · generation · revision · nominal f64 ·
 *               optional fields
 */
import {
  type AttemptRecord,
  type OccurrenceRecord,
  occurrenceId,
  type Policies,
  type TaskRecord,
} from '../../core/model.js';
import type { Schedule } from '../../core/schedule.js';
import { bytesMax, MalformedError, type Reader, textMax, type Writer } from './bytes.js';
import { KINDS, OCCURRENCE_STATES, OUTCOMES, TASK_STATES } from './formats.js';
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

// Flags of an occurrence. Beyond 2³¹ would need other arithmetic.
const ORDINAL_IS_NOMINAL = 1;
const DUE_IS_NOMINAL = 2;
const LIKE_TASK = 4;
const VERSION = 8;
const TRIED = 16;
const TROUBLED = 32;
const LEASE = 64;
const WORKER = 128;
const PROGRESS = 256;
const RESULT = 512;
const ERROR = 1024;
const OUTCOME = 2048;
const REASON = 4096;
const COUNT = 8192;
const UNTIL = 16_384;
const CANCEL = 32_768;
const STARTED = 65_536;
const ENDED = 131_072;
const REDRIVE_OF = 262_144;
const REDRIVEN_AS = 524_288;
const ALONE = 1_048_576;
const WAITING = 2_097_152;
const CATCHUP = 4_194_304;
const PLACE = 8_388_608;
const DEAD = 16_777_216;
const ATTEMPTS = 33_554_432;

/** Fixed parts, generously. */
const TASK_FIXED = 160;
const OCCURRENCE_FIXED = 220;

export class RowCodec {
  readonly #pool: Pool;
  /** Policies are few: each is turned into text once, and back. */
  readonly #policyTexts = new WeakMap<Policies, string>();
  readonly #policies = new Map<string, Policies>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Of at most `rowMax` bytes, into a value that was begun. */
  writeRow(writer: Writer, row: Row): void {
    writer.byte(FORM);
    const newest = row.occurrences.at(-1);
    this.#writeTask(writer, row.task, newest?.record.id);
    writer.varint(row.nextSerial);
    writer.varint(row.history);
    writer.varint(row.occurrences.length);
    for (const stored of row.occurrences) this.#writeOccurrence(writer, stored, row.task);
  }

  readRow(reader: Reader, id: string): Row {
    if (reader.byte() !== FORM) throw new MalformedError('a task has an unknown form');
    const { task, lastIsNewest } = this.#readTask(reader, id);
    const nextSerial = reader.varint();
    const history = reader.varint();
    const occurrences: StoredOccurrence[] = [];
    for (let left = reader.varint(); left > 0; left--) {
      occurrences.push(this.#readOccurrence(reader, task));
    }
    if (!reader.isAtEnd) throw new MalformedError('a task is longer than it should be');
    const newest = occurrences.at(-1);
    const whole =
      lastIsNewest && newest !== undefined ? { ...task, lastOccurrenceId: newest.record.id } : task;
    return {
      id,
      task: whole,
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
    writer.begin(this.#occurrenceMax(stored.record));
    writer.byte(FORM);
    // Not like its task: that may change while this stays.
    this.#writeOccurrence(writer, stored, undefined);
  }

  readAlone(reader: Reader, taskId: string): StoredOccurrence {
    if (reader.byte() !== FORM) throw new MalformedError('an occurrence has an unknown form');
    return this.#readOccurrence(reader, { id: taskId });
  }

  rowMax({ task, occurrences }: Row): number {
    let max = TASK_FIXED + task.payload.length + textMax(task.tenant) + textMax(task.handler);
    max += textMax(task.idempotencyKey) + textMax(task.definition) + textMax(task.endReason);
    max += textMax(task.lastOccurrenceId) + this.#policiesText(task.policies).length * 3 + 5;
    if (task.schedule.kind !== 'once') max += JSON.stringify(task.schedule).length * 3 + 5;
    for (const { record } of occurrences) max += this.#occurrenceMax(record);
    return max;
  }

  #occurrenceMax(record: OccurrenceRecord): number {
    const texts =
      textMax(record.tenant) +
      textMax(record.handler) +
      textMax(record.workerId) +
      textMax(record.reason) +
      textMax(record.redriveOf) +
      textMax(record.redrivenAs);
    const values = bytesMax(record.progress) + bytesMax(record.result) + bytesMax(record.error);
    return OCCURRENCE_FIXED + texts + values;
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
    writer.number(task.createdAt);
    writer.number(task.anchorAt);
    this.#pool.write(writer, task.tenant);
    this.#pool.write(writer, task.handler);
    this.#pool.write(writer, this.#policiesText(task.policies));
    writer.varint(task.revision);
    writer.bytes(task.payload);
    if (!once) writer.text(JSON.stringify(schedule));
    else if ((flags & AT_ANCHOR) === 0) writer.number(schedule.at);
    if (task.handlerVersion !== undefined) writer.varint(task.handlerVersion);
    if (task.pausedAt !== undefined) writer.number(task.pausedAt);
    if (task.idempotencyKey !== undefined) writer.text(task.idempotencyKey);
    if (task.definition !== undefined) writer.text(task.definition);
    if (task.endedAt !== undefined) writer.number(task.endedAt);
    if (task.endReason !== undefined) writer.text(task.endReason);
    if (task.cursorAt !== undefined) writer.number(task.cursorAt);
    if ((flags & LAST_OTHER) !== 0) writer.text(last as string);
    if (task.lastEnd !== undefined) writer.byte(OCCURRENCE_STATES.code(task.lastEnd));
    if (!counts) return;
    writer.varint(task.version);
    writer.varint(task.generation);
    writer.varint(task.taken);
    writer.varint(task.extras);
  }

  #readTask(reader: Reader, id: string): { task: TaskRecord; lastIsNewest: boolean } {
    const head = reader.byte();
    const flags = reader.varint();
    const createdAt = reader.number();
    const anchorAt = reader.number();
    const tenant = this.#pool.read(reader);
    const handler = this.#pool.read(reader);
    const policies = this.#readPolicies(reader);
    const revision = reader.varint();
    const payload = reader.bytes();
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const schedule: Schedule = has(ONCE)
      ? { kind: 'once', at: has(AT_ANCHOR) ? anchorAt : reader.number() }
      : parseSchedule(reader.text());
    const handlerVersion = has(HANDLER_VERSION) ? reader.varint() : undefined;
    const pausedAt = has(PAUSED_AT) ? reader.number() : undefined;
    const idempotencyKey = has(KEY) ? reader.text() : undefined;
    const definition = has(DEFINITION) ? reader.text() : undefined;
    const endedAt = has(ENDED_AT) ? reader.number() : undefined;
    const endReason = has(END_REASON) ? reader.text() : undefined;
    const cursorAt = has(CURSOR) ? reader.number() : undefined;
    const lastOccurrenceId = has(LAST_OTHER) ? reader.text() : undefined;
    const lastEnd = has(LAST_END) ? OCCURRENCE_STATES.word(reader.byte()) : undefined;
    const counts = has(COUNTS);
    const task: TaskRecord = {
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

  #writeOccurrence(writer: Writer, stored: StoredOccurrence, task: TaskRecord | undefined): void {
    const { record, attempts, dead, place } = stored;
    const like =
      task !== undefined && task.tenant === record.tenant && task.handler === record.handler;
    const troubled =
      record.failures !== 0 ||
      record.crashes !== 0 ||
      record.displacements !== 0 ||
      record.deaths !== 0;
    const flags =
      (record.ordinal === record.nominalAt ? ORDINAL_IS_NOMINAL : 0) |
      (record.dueAt === record.nominalAt ? DUE_IS_NOMINAL : 0) |
      (like ? LIKE_TASK : 0) |
      (record.handlerVersion === undefined ? 0 : VERSION) |
      (record.attempt === 0 && record.token === 0 ? 0 : TRIED) |
      (troubled ? TROUBLED : 0) |
      (record.leaseUntil === undefined ? 0 : LEASE) |
      (record.workerId === undefined ? 0 : WORKER) |
      (record.progress === undefined ? 0 : PROGRESS) |
      (record.result === undefined ? 0 : RESULT) |
      (record.error === undefined ? 0 : ERROR) |
      (record.outcome === undefined ? 0 : OUTCOME) |
      (record.reason === undefined ? 0 : REASON) |
      (record.count === undefined ? 0 : COUNT) |
      (record.untilAt === undefined ? 0 : UNTIL) |
      (record.cancelRequestedAt === undefined ? 0 : CANCEL) |
      (record.startedAt === undefined ? 0 : STARTED) |
      (record.endedAt === undefined ? 0 : ENDED) |
      (record.redriveOf === undefined ? 0 : REDRIVE_OF) |
      (record.redrivenAs === undefined ? 0 : REDRIVEN_AS) |
      (record.alone ? ALONE : 0) |
      (record.waiting ? WAITING : 0) |
      (record.catchup ? CATCHUP : 0) |
      (place === 0 ? 0 : PLACE) |
      (dead === 0 ? 0 : DEAD) |
      (attempts === 0 ? 0 : ATTEMPTS);
    writer.byte((OCCURRENCE_STATES.code(record.state) << 4) | KINDS.code(record.kind));
    writer.varint(flags);
    writer.varint(stored.serial);
    writer.varint(record.generation);
    writer.varint(record.revision);
    writer.number(record.nominalAt);
    if (record.ordinal !== record.nominalAt) writer.number(record.ordinal);
    if (record.dueAt !== record.nominalAt) writer.number(record.dueAt);
    if (!like) {
      this.#pool.write(writer, record.tenant);
      this.#pool.write(writer, record.handler);
    }
    if (record.handlerVersion !== undefined) writer.varint(record.handlerVersion);
    if ((flags & TRIED) !== 0) {
      writer.varint(record.attempt);
      writer.number(record.token);
    }
    if (troubled) {
      writer.varint(record.failures);
      writer.varint(record.crashes);
      writer.varint(record.displacements);
      writer.varint(record.deaths);
    }
    if (record.leaseUntil !== undefined) writer.number(record.leaseUntil);
    if (record.workerId !== undefined) writer.text(record.workerId);
    if (record.progress !== undefined) writer.bytes(record.progress);
    if (record.result !== undefined) writer.bytes(record.result);
    if (record.error !== undefined) writer.bytes(record.error);
    if (record.outcome !== undefined) writer.byte(OUTCOMES.code(record.outcome));
    if (record.reason !== undefined) writer.text(record.reason);
    if (record.count !== undefined) writer.varint(record.count);
    if (record.untilAt !== undefined) writer.number(record.untilAt);
    if (record.cancelRequestedAt !== undefined) writer.number(record.cancelRequestedAt);
    if (record.startedAt !== undefined) writer.number(record.startedAt);
    if (record.endedAt !== undefined) writer.number(record.endedAt);
    if (record.redriveOf !== undefined) writer.text(record.redriveOf);
    if (record.redrivenAs !== undefined) writer.text(record.redrivenAs);
    if (place !== 0) writer.varint(place);
    if (dead !== 0) writer.varint(dead);
    if (attempts !== 0) writer.varint(attempts);
  }

  /** `task` may be its id alone, for an occurrence that was not written as being like its task. */
  #readOccurrence(
    reader: Reader,
    task: { readonly id: string; readonly tenant?: string; readonly handler?: string },
  ): StoredOccurrence {
    const head = reader.byte();
    const flags = reader.varint();
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const serial = reader.varint();
    const generation = reader.varint();
    const revision = reader.varint();
    const nominalAt = reader.number();
    const kind = KINDS.word(head & 15);
    const ordinal = has(ORDINAL_IS_NOMINAL) ? nominalAt : reader.number();
    const dueAt = has(DUE_IS_NOMINAL) ? nominalAt : reader.number();
    const like = has(LIKE_TASK);
    const tenant = like ? (task.tenant as string) : this.#pool.read(reader);
    const handler = like ? (task.handler as string) : this.#pool.read(reader);
    const handlerVersion = has(VERSION) ? reader.varint() : undefined;
    const tried = has(TRIED);
    const attempt = tried ? reader.varint() : 0;
    const token = tried ? reader.number() : 0;
    const troubled = has(TROUBLED);
    const record: OccurrenceRecord = {
      id: occurrenceId(task.id, generation, kind, ordinal),
      taskId: task.id,
      tenant,
      handler,
      generation,
      kind,
      ordinal,
      nominalAt,
      dueAt,
      state: OCCURRENCE_STATES.word(head >>> 4),
      revision,
      handlerVersion,
      attempt,
      failures: troubled ? reader.varint() : 0,
      crashes: troubled ? reader.varint() : 0,
      displacements: troubled ? reader.varint() : 0,
      deaths: troubled ? reader.varint() : 0,
      alone: has(ALONE),
      waiting: has(WAITING),
      catchup: has(CATCHUP),
      token,
      leaseUntil: has(LEASE) ? reader.number() : undefined,
      workerId: has(WORKER) ? reader.text() : undefined,
      progress: has(PROGRESS) ? reader.bytes() : undefined,
      result: has(RESULT) ? reader.bytes() : undefined,
      error: has(ERROR) ? reader.bytes() : undefined,
      outcome: has(OUTCOME) ? OUTCOMES.word(reader.byte()) : undefined,
      reason: has(REASON) ? reader.text() : undefined,
      count: has(COUNT) ? reader.varint() : undefined,
      untilAt: has(UNTIL) ? reader.number() : undefined,
      cancelRequestedAt: has(CANCEL) ? reader.number() : undefined,
      startedAt: has(STARTED) ? reader.number() : undefined,
      endedAt: has(ENDED) ? reader.number() : undefined,
      redriveOf: has(REDRIVE_OF) ? reader.text() : undefined,
      redrivenAs: has(REDRIVEN_AS) ? reader.text() : undefined,
    };
    return {
      record,
      serial,
      place: has(PLACE) ? reader.varint() : 0,
      dead: has(DEAD) ? reader.varint() : 0,
      attempts: has(ATTEMPTS) ? reader.varint() : 0,
    };
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

export function writeAttempt(writer: Writer, record: AttemptRecord): void {
  writer.begin(64 + textMax(record.workerId) + bytesMax(record.progress) + bytesMax(record.error));
  writer.byte(FORM);
  const { startedAt, endedAt, progress, outcome, error, workerId } = record;
  writer.byte(
    (workerId === undefined ? 0 : 1) |
      (startedAt === undefined ? 0 : 2) |
      (endedAt === undefined ? 0 : 4) |
      (progress === undefined ? 0 : 8) |
      (outcome === undefined ? 0 : 16) |
      (error === undefined ? 0 : 32),
  );
  writer.varint(record.attempt);
  writer.number(record.fencingToken);
  if (workerId !== undefined) writer.text(workerId);
  if (startedAt !== undefined) writer.number(startedAt);
  if (endedAt !== undefined) writer.number(endedAt);
  if (progress !== undefined) writer.bytes(progress);
  if (outcome !== undefined) writer.byte(OUTCOMES.code(outcome));
  if (error !== undefined) writer.bytes(error);
}

export function readAttempt(reader: Reader, occurrenceId: string): AttemptRecord {
  if (reader.byte() !== FORM) throw new MalformedError('an attempt has an unknown form');
  const flags = reader.byte();
  const has = (flag: number): boolean => (flags & flag) !== 0;
  return {
    occurrenceId,
    attempt: reader.varint(),
    fencingToken: reader.number(),
    workerId: has(1) ? reader.text() : undefined,
    startedAt: has(2) ? reader.number() : undefined,
    endedAt: has(4) ? reader.number() : undefined,
    progress: has(8) ? reader.bytes() : undefined,
    outcome: has(16) ? OUTCOMES.word(reader.byte()) : undefined,
    error: has(32) ? reader.bytes() : undefined,
  };
}
