/**
 * Occurrences as rows of 64 bytes, one cache line. What one that has never been claimed does not have is in a
 * second row, the extension, made when it is first needed. Attempts other than the newest are rows in a list.
 *
 *   byte 0   ordinal    f64     byte 28  lane        u32     byte 48  newer           u32
 *        8   nominalAt  f64          32  generation  u32          52  next live       u32
 *        16  dueAt      f64          36  revision    u32          56  serial          u32
 *        24  task row   u32          40  extension   u32          60  state, kind, flags, outcome  u8
 *                                    44  older       u32
 *
 *   extension, 120 bytes: token, leaseUntil, untilAt, cancelRequestedAt, startedAt, endedAt, count, place among
 *   the dead letters (f64); attempt, failures, crashes, displacements, deaths, worker, progress, result, error,
 *   reason, redriveOf, redrivenAs, oldest attempt, newest attempt (u32)
 *
 *   attempt, 48 bytes: token, startedAt, endedAt (f64); next, attempt, worker, progress, error, outcome (u32)
 */
import { type AttemptRecord, type OccurrenceRecord, occurrenceId } from '../../core/model.js';
import {
  fromOptional,
  KIND_CODE,
  KINDS,
  OCCURRENCE_CODE,
  OCCURRENCE_STATES,
  OUTCOME_CODE,
  OUTCOMES,
  toOptional,
} from './codes.js';
import type { Pools } from './pools.js';
import { ROW_BITS, ROW_MASK, Slab } from './slab.js';

const ROW_BYTES = 64;
const WORDS = ROW_BYTES / 4;
const DOUBLES = ROW_BYTES / 8;

const ORDINAL = 0;
const NOMINAL_AT = 1;
const DUE_AT = 2;

const TASK = 6;
const LANE = 7;
const GENERATION = 8;
const REVISION = 9;
const EXT = 10;
const OLDER = 11;
const NEWER = 12;
const LIVE_NEXT = 13;
const SERIAL = 14;

const STATE = 60;
const KIND = 61;
const FLAGS = 62;
const OUTCOME = 63;

const ALONE = 1;
const WAITING = 2;
const CATCHUP = 4;
/** The index of occurrences names this row (records.ts). */
const INDEXED = 8;

const EXT_BYTES = 120;
const TOKEN = 0;
const LEASE_UNTIL = 1;
const UNTIL_AT = 2;
const CANCEL_REQUESTED_AT = 3;
const STARTED_AT = 4;
const ENDED_AT = 5;
const COUNT = 6;
const DEAD_SEQ = 7;
const ATTEMPT = 16;
const FAILURES = 17;
const CRASHES = 18;
const DISPLACEMENTS = 19;
const DEATHS = 20;
const WORKER = 21;
const PROGRESS = 22;
const RESULT = 23;
const ERROR = 24;
const REASON = 25;
const REDRIVE_OF = 26;
const REDRIVEN_AS = 27;
const ATTEMPTS_FIRST = 28;
const ATTEMPTS_LAST = 29;

const ATTEMPT_BYTES = 48;
const A_TOKEN = 0;
const A_STARTED_AT = 1;
const A_ENDED_AT = 2;
const A_NEXT = 6;
const A_ATTEMPT = 7;
const A_WORKER = 8;
const A_PROGRESS = 9;
const A_ERROR = 10;
const A_OUTCOME = 11;

export class OccurrenceTable {
  readonly rows = new Slab(ROW_BYTES);
  readonly extensions = new Slab(EXT_BYTES);
  readonly attempts = new Slab(ATTEMPT_BYTES);
  readonly #pools: Pools;

  constructor(pools: Pools) {
    this.#pools = pools;
  }

  get bytes(): number {
    return this.rows.bytes + this.extensions.bytes + this.attempts.bytes;
  }

  /** A row for a new occurrence; `write` fills it. */
  add(task: number, serial: number): number {
    const row = this.rows.alloc();
    this.rows.setWord(row, TASK, task);
    this.rows.setWord(row, SERIAL, serial);
    return row;
  }

  write(row: number, record: OccurrenceRecord): void {
    const { lanes } = this.#pools;
    const words = this.rows.u32[row >>> ROW_BITS];
    const doubles = this.rows.f64[row >>> ROW_BITS];
    const bytes = this.rows.u8[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    const d = (row & ROW_MASK) * DOUBLES;
    const b = (row & ROW_MASK) * ROW_BYTES;
    const isNew = bytes[b + STATE] === 0;
    words[w + LANE] = isNew ? lanes.take(record) : lanes.swap(words[w + LANE], record);
    doubles[d + ORDINAL] = record.ordinal;
    doubles[d + NOMINAL_AT] = record.nominalAt;
    doubles[d + DUE_AT] = record.dueAt;
    words[w + GENERATION] = record.generation;
    words[w + REVISION] = record.revision;
    bytes[b + STATE] = OCCURRENCE_CODE[record.state];
    bytes[b + KIND] = KIND_CODE[record.kind];
    bytes[b + OUTCOME] = record.outcome === undefined ? 0 : OUTCOME_CODE[record.outcome];
    bytes[b + FLAGS] =
      (bytes[b + FLAGS] & INDEXED) |
      (record.alone ? ALONE : 0) |
      (record.waiting ? WAITING : 0) |
      (record.catchup ? CATCHUP : 0);
    if (words[w + EXT] !== 0 || needsExtension(record)) {
      words[w + EXT] = this.#writeExtension(words[w + EXT], record);
    }
  }

  #writeExtension(row: number, r: OccurrenceRecord): number {
    const ext = row === 0 ? this.#addExtension() : row;
    const { blobs, texts } = this.#pools;
    const chunk = ext >>> ROW_BITS;
    const doubles = this.extensions.f64[chunk];
    const words = this.extensions.u32[chunk];
    const d = ((ext & ROW_MASK) * EXT_BYTES) / 8;
    const w = d * 2;
    doubles[d + TOKEN] = r.token;
    doubles[d + LEASE_UNTIL] = fromOptional(r.leaseUntil);
    doubles[d + UNTIL_AT] = fromOptional(r.untilAt);
    doubles[d + CANCEL_REQUESTED_AT] = fromOptional(r.cancelRequestedAt);
    doubles[d + STARTED_AT] = fromOptional(r.startedAt);
    doubles[d + ENDED_AT] = fromOptional(r.endedAt);
    doubles[d + COUNT] = fromOptional(r.count);
    words[w + ATTEMPT] = r.attempt;
    words[w + FAILURES] = r.failures;
    words[w + CRASHES] = r.crashes;
    words[w + DISPLACEMENTS] = r.displacements;
    words[w + DEATHS] = r.deaths;
    words[w + WORKER] = texts.set(words[w + WORKER], r.workerId);
    words[w + PROGRESS] = blobs.set(words[w + PROGRESS], r.progress);
    words[w + RESULT] = blobs.set(words[w + RESULT], r.result);
    words[w + ERROR] = blobs.set(words[w + ERROR], r.error);
    words[w + REASON] = texts.set(words[w + REASON], r.reason);
    words[w + REDRIVE_OF] = this.#setId(words[w + REDRIVE_OF], r.redriveOf);
    words[w + REDRIVEN_AS] = this.#setId(words[w + REDRIVEN_AS], r.redrivenAs);
    return ext;
  }

  #addExtension(): number {
    const ext = this.extensions.alloc();
    this.extensions.setDouble(ext, DEAD_SEQ, Number.NaN);
    return ext;
  }

  /** Ids of other occurrences never repeat, so they are not interned. */
  #setId(handle: number, id: string | undefined): number {
    const { blobs } = this.#pools;
    if (id !== undefined && handle !== 0 && blobs.isText(handle, id)) return handle;
    blobs.free(handle);
    return id === undefined ? 0 : blobs.putText(id);
  }

  read(row: number, taskId: string): OccurrenceRecord {
    const { blobs, lanes, texts } = this.#pools;
    const words = this.rows.u32[row >>> ROW_BITS];
    const doubles = this.rows.f64[row >>> ROW_BITS];
    const bytes = this.rows.u8[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    const d = (row & ROW_MASK) * DOUBLES;
    const b = (row & ROW_MASK) * ROW_BYTES;
    const lane = lanes.at(words[w + LANE]);
    const generation = words[w + GENERATION];
    const kind = KINDS[bytes[b + KIND]];
    const ordinal = doubles[d + ORDINAL];
    const flags = bytes[b + FLAGS];
    const ext = words[w + EXT];
    const extended = ext !== 0;
    // Row 0 of the first chunk is all zeros; without an extension its chunk is not looked at.
    const x = extended ? this.extensions.u32[ext >>> ROW_BITS] : words;
    const y = extended ? this.extensions.f64[ext >>> ROW_BITS] : doubles;
    const e = ((ext & ROW_MASK) * EXT_BYTES) / 8;
    const v = e * 2;
    return {
      id: occurrenceId(taskId, generation, kind, ordinal),
      taskId,
      tenant: lane.tenant.name,
      handler: lane.handler,
      generation,
      kind,
      ordinal,
      nominalAt: doubles[d + NOMINAL_AT],
      dueAt: doubles[d + DUE_AT],
      state: OCCURRENCE_STATES[bytes[b + STATE]] as OccurrenceRecord['state'],
      revision: words[w + REVISION],
      handlerVersion: lane.version,
      attempt: extended ? x[v + ATTEMPT] : 0,
      failures: extended ? x[v + FAILURES] : 0,
      crashes: extended ? x[v + CRASHES] : 0,
      displacements: extended ? x[v + DISPLACEMENTS] : 0,
      deaths: extended ? x[v + DEATHS] : 0,
      alone: (flags & ALONE) !== 0,
      waiting: (flags & WAITING) !== 0,
      catchup: (flags & CATCHUP) !== 0,
      token: extended ? y[e + TOKEN] : 0,
      leaseUntil: extended ? toOptional(y[e + LEASE_UNTIL]) : undefined,
      workerId: extended ? textOf(texts, x[v + WORKER]) : undefined,
      progress: extended ? blobs.get(x[v + PROGRESS]) : undefined,
      result: extended ? blobs.get(x[v + RESULT]) : undefined,
      error: extended ? blobs.get(x[v + ERROR]) : undefined,
      outcome: OUTCOMES[bytes[b + OUTCOME]],
      reason: extended ? textOf(texts, x[v + REASON]) : undefined,
      count: extended ? toOptional(y[e + COUNT]) : undefined,
      untilAt: extended ? toOptional(y[e + UNTIL_AT]) : undefined,
      cancelRequestedAt: extended ? toOptional(y[e + CANCEL_REQUESTED_AT]) : undefined,
      startedAt: extended ? toOptional(y[e + STARTED_AT]) : undefined,
      endedAt: extended ? toOptional(y[e + ENDED_AT]) : undefined,
      redriveOf: extended ? blobs.getText(x[v + REDRIVE_OF]) : undefined,
      redrivenAs: extended ? blobs.getText(x[v + REDRIVEN_AS]) : undefined,
    };
  }

  /** Gives the row, its extension and its attempts free; it must be out of all lists. */
  free(row: number): void {
    const { blobs, lanes, texts } = this.#pools;
    const { extensions } = this;
    const ext = this.rows.word(row, EXT);
    if (ext !== 0) {
      for (const field of [PROGRESS, RESULT, ERROR, REDRIVE_OF, REDRIVEN_AS]) {
        blobs.free(extensions.word(ext, field));
      }
      texts.release(extensions.word(ext, WORKER));
      texts.release(extensions.word(ext, REASON));
      let attempt = extensions.word(ext, ATTEMPTS_FIRST);
      while (attempt !== 0) {
        const next = this.attempts.word(attempt, A_NEXT);
        this.#freeAttempt(attempt);
        attempt = next;
      }
      extensions.free(ext);
    }
    lanes.release(this.rows.word(row, LANE));
    this.rows.free(row);
  }

  #freeAttempt(attempt: number): void {
    const { blobs, texts } = this.#pools;
    texts.release(this.attempts.word(attempt, A_WORKER));
    blobs.free(this.attempts.word(attempt, A_PROGRESS));
    blobs.free(this.attempts.word(attempt, A_ERROR));
    this.attempts.free(attempt);
  }

  appendAttempt(row: number, record: AttemptRecord): void {
    const { blobs, texts } = this.#pools;
    const { attempts, extensions } = this;
    const attempt = attempts.alloc();
    attempts.setDouble(attempt, A_TOKEN, record.fencingToken);
    attempts.setDouble(attempt, A_STARTED_AT, fromOptional(record.startedAt));
    attempts.setDouble(attempt, A_ENDED_AT, fromOptional(record.endedAt));
    attempts.setWord(attempt, A_ATTEMPT, record.attempt);
    attempts.setWord(attempt, A_WORKER, texts.set(0, record.workerId));
    attempts.setWord(attempt, A_PROGRESS, blobs.set(0, record.progress));
    attempts.setWord(attempt, A_ERROR, blobs.set(0, record.error));
    const outcome = record.outcome === undefined ? 0 : OUTCOME_CODE[record.outcome];
    attempts.setWord(attempt, A_OUTCOME, outcome);
    const ext = this.#extensionOf(row);
    const last = extensions.word(ext, ATTEMPTS_LAST);
    if (last === 0) extensions.setWord(ext, ATTEMPTS_FIRST, attempt);
    else attempts.setWord(last, A_NEXT, attempt);
    extensions.setWord(ext, ATTEMPTS_LAST, attempt);
  }

  /** Oldest first. */
  readAttempts(row: number, occurrenceId: string): AttemptRecord[] {
    const { blobs, texts } = this.#pools;
    const { attempts } = this;
    const records: AttemptRecord[] = [];
    const ext = this.rows.word(row, EXT);
    let attempt = ext === 0 ? 0 : this.extensions.word(ext, ATTEMPTS_FIRST);
    for (; attempt !== 0; attempt = attempts.word(attempt, A_NEXT)) {
      records.push({
        occurrenceId,
        attempt: attempts.word(attempt, A_ATTEMPT),
        fencingToken: attempts.double(attempt, A_TOKEN),
        workerId: textOf(texts, attempts.word(attempt, A_WORKER)),
        startedAt: toOptional(attempts.double(attempt, A_STARTED_AT)),
        endedAt: toOptional(attempts.double(attempt, A_ENDED_AT)),
        progress: blobs.get(attempts.word(attempt, A_PROGRESS)),
        outcome: OUTCOMES[attempts.word(attempt, A_OUTCOME)],
        error: blobs.get(attempts.word(attempt, A_ERROR)),
      });
    }
    return records;
  }

  /** An extension's row of an occurrence that may have none yet; then one that says "nothing of all this". */
  #extensionOf(row: number): number {
    const ext = this.rows.word(row, EXT);
    if (ext !== 0) return ext;
    const made = this.#addExtension();
    const absent = [LEASE_UNTIL, UNTIL_AT, CANCEL_REQUESTED_AT, STARTED_AT, ENDED_AT, COUNT];
    for (const field of absent) this.extensions.setDouble(made, field, Number.NaN);
    this.rows.setWord(row, EXT, made);
    return made;
  }

  isIdentity(row: number, task: number, of: OccurrenceIdentity): boolean {
    const { rows } = this;
    return (
      rows.word(row, TASK) === task &&
      rows.double(row, ORDINAL) === of.ordinal &&
      rows.word(row, GENERATION) === of.generation &&
      KINDS[rows.byte(row, KIND)] === of.kind
    );
  }

  /** A code of OCCURRENCE_STATES; 0 for a row not in use. */
  state(row: number): number {
    return this.rows.byte(row, STATE);
  }

  task(row: number): number {
    return this.rows.word(row, TASK);
  }

  lane(row: number): number {
    return this.rows.word(row, LANE);
  }

  revision(row: number): number {
    return this.rows.word(row, REVISION);
  }

  generation(row: number): number {
    return this.rows.word(row, GENERATION);
  }

  kind(row: number): number {
    return this.rows.byte(row, KIND);
  }

  ordinal(row: number): number {
    return this.rows.double(row, ORDINAL);
  }

  dueAt(row: number): number {
    return this.rows.double(row, DUE_AT);
  }

  isWaiting(row: number): boolean {
    return (this.rows.byte(row, FLAGS) & WAITING) !== 0;
  }

  isCatchup(row: number): boolean {
    return (this.rows.byte(row, FLAGS) & CATCHUP) !== 0;
  }

  isIndexed(row: number): boolean {
    return (this.rows.byte(row, FLAGS) & INDEXED) !== 0;
  }

  setIndexed(row: number): void {
    this.rows.setByte(row, FLAGS, this.rows.byte(row, FLAGS) | INDEXED);
  }

  isRedriven(row: number): boolean {
    const ext = this.rows.word(row, EXT);
    return ext !== 0 && this.extensions.word(ext, REDRIVEN_AS) !== 0;
  }

  /** NaN while it has not ended. */
  endedAt(row: number): number {
    const ext = this.rows.word(row, EXT);
    return ext === 0 ? Number.NaN : this.extensions.double(ext, ENDED_AT);
  }

  /** Place among the dead letters; NaN when it is none. */
  deadSeq(row: number): number {
    const ext = this.rows.word(row, EXT);
    return ext === 0 ? Number.NaN : this.extensions.double(ext, DEAD_SEQ);
  }

  setDeadSeq(row: number, seq: number): void {
    this.extensions.setDouble(this.#extensionOf(row), DEAD_SEQ, seq);
  }

  /** Counts the occurrences of a task; modulo 2³². */
  serial(row: number): number {
    return this.rows.word(row, SERIAL);
  }

  older(row: number): number {
    return this.rows.word(row, OLDER);
  }

  setOlder(row: number, older: number): void {
    this.rows.setWord(row, OLDER, older);
  }

  newer(row: number): number {
    return this.rows.word(row, NEWER);
  }

  setNewer(row: number, newer: number): void {
    this.rows.setWord(row, NEWER, newer);
  }

  liveNext(row: number): number {
    return this.rows.word(row, LIVE_NEXT);
  }

  setLiveNext(row: number, next: number): void {
    this.rows.setWord(row, LIVE_NEXT, next);
  }
}

export type OccurrenceIdentity = Pick<OccurrenceRecord, 'generation' | 'kind' | 'ordinal'>;

function textOf(texts: Pools['texts'], handle: number): string | undefined {
  return handle === 0 ? undefined : texts.get(handle);
}

function needsExtension(record: OccurrenceRecord): boolean {
  return (
    record.attempt !== 0 ||
    record.token !== 0 ||
    record.endedAt !== undefined ||
    record.reason !== undefined ||
    record.redriveOf !== undefined ||
    record.redrivenAs !== undefined ||
    record.failures !== 0 ||
    record.crashes !== 0 ||
    record.displacements !== 0 ||
    record.deaths !== 0 ||
    record.leaseUntil !== undefined ||
    record.workerId !== undefined ||
    record.progress !== undefined ||
    record.result !== undefined ||
    record.error !== undefined ||
    record.count !== undefined ||
    record.untilAt !== undefined ||
    record.cancelRequestedAt !== undefined ||
    record.startedAt !== undefined
  );
}
