/**
 * Occurrences as bytes, with their task or by themselves. What an occurrence shares with its task is not written twice,
 * and times are written as distances from others of the same record, which most often take one to five bytes.
 *
 *   state 4 bits, kind 4 bits · flags (varint) · serial · nominal · optional fields
 */
import { type OccurrenceRecord, occurrenceId, type TaskRecord } from '../../core/model.js';
import { millisOfUuid } from '../../core/uuid.js';
import { bytesMax, type Reader, textMax, type Writer } from './bytes.js';
import { KINDS, OCCURRENCE_STATES, OUTCOMES } from './formats.js';
import type { Pool } from './pool.js';
import type { StoredOccurrence } from './row.js';

// Flags, the most frequent first, so that they take few bytes. Beyond 2³¹ would need other arithmetic.
const ORDINAL_IS_NOMINAL = 1;
const DUE_IS_NOMINAL = 2;
const LIKE_TASK = 4;
const VERSION = 8;
const UNMOVED = 16;
const PLACE = 32;
const TRIED = 64;
const LEASE = 128;
const WORKER = 256;
const OUTCOME = 512;
const STARTED = 1024;
const ENDED = 2048;
const RESULT = 4096;
const ERROR = 8192;
const PROGRESS = 16_384;
const TROUBLED = 32_768;
const REASON = 65_536;
const ATTEMPTS = 131_072;
const COUNT = 262_144;
const UNTIL = 524_288;
const CANCEL = 1_048_576;
const REDRIVE_OF = 2_097_152;
const REDRIVEN_AS = 4_194_304;
const ALONE = 8_388_608;
const WAITING = 16_777_216;
const CATCHUP = 33_554_432;
const DEAD = 67_108_864;

/** Fixed parts, generously. */
const FIXED = 240;

/** What an occurrence may be like. */
type Like = Pick<TaskRecord, 'id'> & Partial<Pick<TaskRecord, 'tenant' | 'handler' | 'anchorAt'>>;

export class OccurrenceCodec {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  max(record: OccurrenceRecord): number {
    const texts =
      textMax(record.tenant) +
      textMax(record.handler) +
      textMax(record.workerId) +
      textMax(record.reason) +
      textMax(record.redriveOf) +
      textMax(record.redrivenAs);
    const values = bytesMax(record.progress) + bytesMax(record.result) + bytesMax(record.error);
    return FIXED + texts + values;
  }

  /** `task` may be its id alone, for one that is stored by itself: its task may change while it stays. */
  write(writer: Writer, stored: StoredOccurrence, task: Like): void {
    const { record, attempts, dead, place } = stored;
    const like = task.tenant === record.tenant && task.handler === record.handler;
    const unmoved = record.generation === 1 && record.revision === 1;
    const troubled =
      record.failures !== 0 ||
      record.crashes !== 0 ||
      record.displacements !== 0 ||
      record.deaths !== 0;
    const { nominalAt, dueAt } = record;
    const flags =
      (record.ordinal === nominalAt ? ORDINAL_IS_NOMINAL : 0) |
      (dueAt === nominalAt ? DUE_IS_NOMINAL : 0) |
      (like ? LIKE_TASK : 0) |
      (record.handlerVersion === undefined ? 0 : VERSION) |
      (unmoved ? UNMOVED : 0) |
      (place === 0 ? 0 : PLACE) |
      (record.attempt === 0 && record.token === 0 ? 0 : TRIED) |
      (record.leaseUntil === undefined ? 0 : LEASE) |
      (record.workerId === undefined ? 0 : WORKER) |
      (record.outcome === undefined ? 0 : OUTCOME) |
      (record.startedAt === undefined ? 0 : STARTED) |
      (record.endedAt === undefined ? 0 : ENDED) |
      (record.result === undefined ? 0 : RESULT) |
      (record.error === undefined ? 0 : ERROR) |
      (record.progress === undefined ? 0 : PROGRESS) |
      (troubled ? TROUBLED : 0) |
      (record.reason === undefined ? 0 : REASON) |
      (attempts === 0 ? 0 : ATTEMPTS) |
      (record.count === undefined ? 0 : COUNT) |
      (record.untilAt === undefined ? 0 : UNTIL) |
      (record.cancelRequestedAt === undefined ? 0 : CANCEL) |
      (record.redriveOf === undefined ? 0 : REDRIVE_OF) |
      (record.redrivenAs === undefined ? 0 : REDRIVEN_AS) |
      (record.alone ? ALONE : 0) |
      (record.waiting ? WAITING : 0) |
      (record.catchup ? CATCHUP : 0) |
      (dead === 0 ? 0 : DEAD);
    writer.byte((OCCURRENCE_STATES.code(record.state) << 4) | KINDS.code(record.kind));
    writer.varint(flags);
    writer.varint(stored.serial);
    writer.time(nominalAt, task.anchorAt ?? millisOfUuid(task.id));
    if (record.ordinal !== nominalAt) writer.time(record.ordinal, 0);
    if (dueAt !== nominalAt) writer.time(dueAt, nominalAt);
    if (!like) {
      this.#pool.write(writer, record.tenant);
      this.#pool.write(writer, record.handler);
    }
    if (record.handlerVersion !== undefined) writer.varint(record.handlerVersion);
    if (!unmoved) {
      writer.varint(record.generation);
      writer.varint(record.revision);
    }
    if (place !== 0) writer.varint(place);
    if ((flags & TRIED) !== 0) {
      writer.varint(record.attempt);
      writer.number(record.token);
    }
    if (record.leaseUntil !== undefined) writer.time(record.leaseUntil, dueAt);
    if (record.workerId !== undefined) writer.text(record.workerId);
    if (record.outcome !== undefined) writer.byte(OUTCOMES.code(record.outcome));
    if (record.startedAt !== undefined) writer.time(record.startedAt, dueAt);
    if (record.endedAt !== undefined) writer.time(record.endedAt, dueAt);
    if (record.result !== undefined) writer.bytes(record.result);
    if (record.error !== undefined) writer.bytes(record.error);
    if (record.progress !== undefined) writer.bytes(record.progress);
    if (troubled) {
      writer.varint(record.failures);
      writer.varint(record.crashes);
      writer.varint(record.displacements);
      writer.varint(record.deaths);
    }
    if (record.reason !== undefined) writer.text(record.reason);
    if (attempts !== 0) writer.varint(attempts);
    if (record.count !== undefined) writer.varint(record.count);
    if (record.untilAt !== undefined) writer.time(record.untilAt, nominalAt);
    if (record.cancelRequestedAt !== undefined) writer.time(record.cancelRequestedAt, dueAt);
    if (record.redriveOf !== undefined) writer.text(record.redriveOf);
    if (record.redrivenAs !== undefined) writer.text(record.redrivenAs);
    if (dead !== 0) writer.varint(dead);
  }

  /** @param task as it was written with */
  read(reader: Reader, task: Like): StoredOccurrence {
    const head = reader.byte();
    const flags = reader.varint();
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const serial = reader.varint();
    const nominalAt = reader.time(task.anchorAt ?? millisOfUuid(task.id));
    const kind = KINDS.word(head & 15);
    const ordinal = has(ORDINAL_IS_NOMINAL) ? nominalAt : reader.time(0);
    const dueAt = has(DUE_IS_NOMINAL) ? nominalAt : reader.time(nominalAt);
    const like = has(LIKE_TASK);
    const tenant = like ? (task.tenant as string) : this.#pool.read(reader);
    const handler = like ? (task.handler as string) : this.#pool.read(reader);
    const handlerVersion = has(VERSION) ? reader.varint() : undefined;
    const unmoved = has(UNMOVED);
    const generation = unmoved ? 1 : reader.varint();
    const revision = unmoved ? 1 : reader.varint();
    const place = has(PLACE) ? reader.varint() : 0;
    const tried = has(TRIED);
    const attempt = tried ? reader.varint() : 0;
    const token = tried ? reader.number() : 0;
    const leaseUntil = has(LEASE) ? reader.time(dueAt) : undefined;
    const workerId = has(WORKER) ? reader.text() : undefined;
    const outcome = has(OUTCOME) ? OUTCOMES.word(reader.byte()) : undefined;
    const startedAt = has(STARTED) ? reader.time(dueAt) : undefined;
    const endedAt = has(ENDED) ? reader.time(dueAt) : undefined;
    const result = has(RESULT) ? reader.bytes() : undefined;
    const error = has(ERROR) ? reader.bytes() : undefined;
    const progress = has(PROGRESS) ? reader.bytes() : undefined;
    const troubled = has(TROUBLED);
    const failures = troubled ? reader.varint() : 0;
    const crashes = troubled ? reader.varint() : 0;
    const displacements = troubled ? reader.varint() : 0;
    const deaths = troubled ? reader.varint() : 0;
    const reason = has(REASON) ? reader.text() : undefined;
    const attempts = has(ATTEMPTS) ? reader.varint() : 0;
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
      failures,
      crashes,
      displacements,
      deaths,
      alone: has(ALONE),
      waiting: has(WAITING),
      catchup: has(CATCHUP),
      token,
      leaseUntil,
      workerId,
      progress,
      result,
      error,
      outcome,
      reason,
      count: has(COUNT) ? reader.varint() : undefined,
      untilAt: has(UNTIL) ? reader.time(nominalAt) : undefined,
      cancelRequestedAt: has(CANCEL) ? reader.time(dueAt) : undefined,
      startedAt,
      endedAt,
      redriveOf: has(REDRIVE_OF) ? reader.text() : undefined,
      redrivenAs: has(REDRIVEN_AS) ? reader.text() : undefined,
    };
    return { record, serial, place, dead: has(DEAD) ? reader.varint() : 0, attempts };
  }
}
