/**
 * Tasks as rows of 112 bytes. What a pending one-off does not have is in a second row, the extension, made when it
 * is first needed.
 *
 *   byte 0    id                    16     byte 72   version        u32    byte 100  newest live     u32
 *        16   definition            16          76   generation     u32         104  extension       u32
 *        32   createdAt             f64         80   revision       u32         108  state           u8
 *        40   once: at, else anchor f64         84   key      (blob) u32        109  priority        u8
 *        48   place in the log      f64         88   last occurrence u32        110  lastEnd         u8
 *        56   lane                  u32         92   newest occurrence u32      111  flags           u8
 *        60   payload        (blob) u32         96   oldest live    u32
 *        64   policies, 68 schedule (interned; schedule 0: once)
 *
 *   extension, 56 bytes: endedAt, pausedAt, anchorAt, cursorAt, taken, extras (f64), endReason u32
 */
import { assert } from '../../core/assert.js';
import type { TaskRecord } from '../../core/model.js';
import type { Schedule } from '../../core/schedule.js';
import {
  fromOptional,
  OCCURRENCE_CODE,
  OCCURRENCE_STATES,
  TASK_CODE,
  TASK_STATES,
  toOptional,
} from './codes.js';
import { formatHex, formatId, parseHex } from './hex.js';
import type { Pools } from './pools.js';
import { ROW_BITS, ROW_MASK, Slab } from './slab.js';

const ROW_BYTES = 112;
const WORDS = ROW_BYTES / 4;
const DOUBLES = ROW_BYTES / 8;

// Places counted in words …
const DEFINITION = 4;
const LANE = 14;
const PAYLOAD = 15;
const POLICIES = 16;
const SCHEDULE = 17;
const VERSION = 18;
const GENERATION = 19;
const REVISION = 20;
const KEY = 21;
const LAST = 22;
const NEWEST = 23;
const LIVE_FIRST = 24;
const LIVE_LAST = 25;
const EXT = 26;
// … in doubles …
const CREATED_AT = 4;
const AT = 5;
const SEQ = 6;
// … and in bytes.
const STATE = 108;
const PRIORITY = 109;
const LAST_END = 110;
const FLAGS = 111;

/** The key index names this row as the key's holder. */
const KEYED = 1;
/** The definition is 32 hex digits; without this flag its first word is a blob's handle. */
const HEX = 2;
/** `last occurrence` is a row of this task; without this flag it is a blob's handle. */
const LAST_IS_ROW = 4;
/** A once schedule whose anchor is another time than its own. */
const ANCHOR_APART = 8;

const EXT_BYTES = 56;
const ENDED_AT = 0;
const PAUSED_AT = 1;
const ANCHOR_AT = 2;
const CURSOR_AT = 3;
const TAKEN = 4;
const EXTRAS = 5;
const END_REASON = 12;

export class TaskTable {
  readonly rows = new Slab(ROW_BYTES);
  readonly extensions = new Slab(EXT_BYTES);
  readonly #pools: Pools;

  constructor(pools: Pools) {
    this.#pools = pools;
  }

  get bytes(): number {
    return this.rows.bytes + this.extensions.bytes;
  }

  /** A row for a new task, with its id; `write` fills it. */
  add(id: Uint32Array, seq: number): number {
    const row = this.rows.alloc();
    const words = this.rows.u32[row >>> ROW_BITS];
    const base = (row & ROW_MASK) * WORDS;
    for (let i = 0; i < 4; i++) words[base + i] = id[i];
    this.rows.setDouble(row, SEQ, seq);
    return row;
  }

  /** All of the record but `lastOccurrenceId`, which may be a row that is not written yet. */
  write(row: number, record: TaskRecord): void {
    const { blobs, lanes, policies, schedules } = this.#pools;
    const words = this.rows.u32[row >>> ROW_BITS];
    const doubles = this.rows.f64[row >>> ROW_BITS];
    const bytes = this.rows.u8[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    const d = (row & ROW_MASK) * DOUBLES;
    const b = (row & ROW_MASK) * ROW_BYTES;
    const isNew = bytes[b + STATE] === 0;

    words[w + LANE] = isNew ? lanes.take(record) : lanes.swap(words[w + LANE], record);
    words[w + PAYLOAD] = blobs.set(words[w + PAYLOAD], record.payload);
    words[w + POLICIES] = policies.set(words[w + POLICIES], record.policies);
    const { schedule } = record;
    const once = schedule.kind === 'once';
    words[w + SCHEDULE] = schedules.set(words[w + SCHEDULE], once ? undefined : schedule);
    doubles[d + AT] = once ? schedule.at : record.anchorAt;
    doubles[d + CREATED_AT] = record.createdAt;
    words[w + VERSION] = record.version;
    words[w + GENERATION] = record.generation;
    words[w + REVISION] = record.revision;

    let flags = bytes[b + FLAGS] & ~ANCHOR_APART;
    if (isNew) {
      const key = record.idempotencyKey;
      words[w + KEY] = key === undefined ? 0 : blobs.putText(key);
    }
    flags = this.#writeDefinition(words, w, flags, record.definition);
    if (once && record.anchorAt !== schedule.at) flags |= ANCHOR_APART;
    bytes[b + FLAGS] = flags;
    bytes[b + STATE] = TASK_CODE[record.state];
    bytes[b + PRIORITY] = record.priority;
    bytes[b + LAST_END] = record.lastEnd === undefined ? 0 : OCCURRENCE_CODE[record.lastEnd];
    if (words[w + EXT] !== 0 || needsExtension(record, flags)) {
      words[w + EXT] = this.#writeExtension(words[w + EXT], record);
    }
  }

  #writeDefinition(
    words: Uint32Array,
    w: number,
    flags: number,
    definition: string | undefined,
  ): number {
    const { blobs } = this.#pools;
    const at = w + DEFINITION;
    if ((flags & HEX) === 0 && words[at] !== 0) blobs.free(words[at]);
    if (definition !== undefined && parseHex(definition, words, at)) return flags | HEX;
    words.fill(0, at, at + 4);
    if (definition !== undefined) words[at] = blobs.putText(definition);
    return flags & ~HEX;
  }

  #writeExtension(row: number, record: TaskRecord): number {
    const { extensions } = this;
    const ext = row === 0 ? extensions.alloc() : row;
    const reason = extensions.word(ext, END_REASON);
    extensions.setDouble(ext, ENDED_AT, fromOptional(record.endedAt));
    extensions.setDouble(ext, PAUSED_AT, fromOptional(record.pausedAt));
    extensions.setDouble(ext, ANCHOR_AT, record.anchorAt);
    extensions.setDouble(ext, CURSOR_AT, fromOptional(record.cursorAt));
    extensions.setDouble(ext, TAKEN, record.taken);
    extensions.setDouble(ext, EXTRAS, record.extras);
    extensions.setWord(ext, END_REASON, this.#pools.texts.set(reason, record.endReason));
    return ext;
  }

  /** `lastOccurrenceId`, as its row where that is one of this task's, else as text. */
  writeLast(row: number, occurrence: number, text: string | undefined): void {
    const { rows } = this;
    const flags = rows.byte(row, FLAGS);
    const before = rows.word(row, LAST);
    if ((flags & LAST_IS_ROW) === 0 && before !== 0) this.#pools.blobs.free(before);
    if (occurrence !== 0) {
      rows.setWord(row, LAST, occurrence);
      rows.setByte(row, FLAGS, flags | LAST_IS_ROW);
    } else {
      rows.setWord(row, LAST, text === undefined ? 0 : this.#pools.blobs.putText(text));
      rows.setByte(row, FLAGS, flags & ~LAST_IS_ROW);
    }
  }

  /** `lastId` is the id of the occurrence at `lastRow`, where it has one. */
  read(row: number, id: string, lastId: string | undefined): TaskRecord {
    const { blobs, lanes, policies } = this.#pools;
    const words = this.rows.u32[row >>> ROW_BITS];
    const doubles = this.rows.f64[row >>> ROW_BITS];
    const bytes = this.rows.u8[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    const d = (row & ROW_MASK) * DOUBLES;
    const b = (row & ROW_MASK) * ROW_BYTES;
    const lane = lanes.at(words[w + LANE]);
    const flags = bytes[b + FLAGS];
    const ext = words[w + EXT];
    const { extensions } = this;
    const extended = ext !== 0;
    const last = words[w + LAST];
    return {
      id,
      tenant: lane.tenant.name,
      handler: lane.handler,
      handlerVersion: lane.version,
      payload: blobs.get(words[w + PAYLOAD]) as Uint8Array,
      schedule: this.#schedule(words[w + SCHEDULE], doubles[d + AT]),
      policies: policies.get(words[w + POLICIES]),
      priority: bytes[b + PRIORITY],
      state: TASK_STATES[bytes[b + STATE]] as TaskRecord['state'],
      pausedAt: extended ? toOptional(extensions.double(ext, PAUSED_AT)) : undefined,
      version: words[w + VERSION],
      generation: words[w + GENERATION],
      revision: words[w + REVISION],
      idempotencyKey: blobs.getText(words[w + KEY]),
      definition:
        (flags & HEX) !== 0
          ? formatHex(words, w + DEFINITION)
          : blobs.getText(words[w + DEFINITION]),
      createdAt: doubles[d + CREATED_AT],
      endedAt: extended ? toOptional(extensions.double(ext, ENDED_AT)) : undefined,
      endReason: extended ? this.#endReason(ext) : undefined,
      anchorAt: (flags & ANCHOR_APART) !== 0 ? extensions.double(ext, ANCHOR_AT) : doubles[d + AT],
      cursorAt: extended ? toOptional(extensions.double(ext, CURSOR_AT)) : undefined,
      taken: extended ? extensions.double(ext, TAKEN) : 0,
      extras: extended ? extensions.double(ext, EXTRAS) : 0,
      lastOccurrenceId: (flags & LAST_IS_ROW) !== 0 ? lastId : blobs.getText(last),
      lastEnd: OCCURRENCE_STATES[bytes[b + LAST_END]],
    };
  }

  #schedule(handle: number, at: number): Schedule {
    return handle === 0 ? { kind: 'once', at } : this.#pools.schedules.get(handle);
  }

  #endReason(ext: number): string | undefined {
    const handle = this.extensions.word(ext, END_REASON);
    return handle === 0 ? undefined : this.#pools.texts.get(handle);
  }

  /** Gives the row and all it refers to free; its occurrences must be gone. */
  free(row: number): void {
    const { blobs, lanes, policies, schedules, texts } = this.#pools;
    const { rows, extensions } = this;
    assert(rows.word(row, NEWEST) === 0, 'a task outlives its occurrences');
    this.writeLast(row, 0, undefined);
    blobs.free(rows.word(row, PAYLOAD));
    blobs.free(rows.word(row, KEY));
    if ((rows.byte(row, FLAGS) & HEX) === 0) blobs.free(rows.word(row, DEFINITION));
    policies.release(rows.word(row, POLICIES));
    schedules.release(rows.word(row, SCHEDULE));
    const ext = rows.word(row, EXT);
    if (ext !== 0) {
      texts.release(extensions.word(ext, END_REASON));
      extensions.free(ext);
    }
    lanes.release(rows.word(row, LANE));
    rows.free(row);
  }

  isId(row: number, id: Uint32Array): boolean {
    const words = this.rows.u32[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    return (
      words[w] === id[0] &&
      words[w + 1] === id[1] &&
      words[w + 2] === id[2] &&
      words[w + 3] === id[3]
    );
  }

  idWords(row: number, id: Uint32Array): void {
    const words = this.rows.u32[row >>> ROW_BITS];
    const w = (row & ROW_MASK) * WORDS;
    for (let i = 0; i < 4; i++) id[i] = words[w + i];
  }

  id(row: number): string {
    return formatId(this.rows.u32[row >>> ROW_BITS], (row & ROW_MASK) * WORDS);
  }

  /** A code of TASK_STATES; 0 for a row not in use. */
  state(row: number): number {
    return this.rows.byte(row, STATE);
  }

  revision(row: number): number {
    return this.rows.word(row, REVISION);
  }

  lane(row: number): number {
    return this.rows.word(row, LANE);
  }

  priority(row: number): number {
    return this.rows.byte(row, PRIORITY);
  }

  /** Place in the log of creation. */
  seq(row: number): number {
    return this.rows.double(row, SEQ);
  }

  /** A blob's handle, 0 without a key. */
  key(row: number): number {
    return this.rows.word(row, KEY);
  }

  isKeyed(row: number): boolean {
    return (this.rows.byte(row, FLAGS) & KEYED) !== 0;
  }

  setKeyed(row: number, keyed: boolean): void {
    const flags = this.rows.byte(row, FLAGS);
    this.rows.setByte(row, FLAGS, keyed ? flags | KEYED : flags & ~KEYED);
  }

  /** NaN while it has not ended. */
  endedAt(row: number): number {
    const ext = this.rows.word(row, EXT);
    return ext === 0 ? Number.NaN : this.extensions.double(ext, ENDED_AT);
  }

  hasSucceeded(row: number): boolean {
    return this.rows.byte(row, LAST_END) === OCCURRENCE_CODE.succeeded;
  }

  idempotencyTtlMs(row: number): number {
    return this.#pools.policies.get(this.rows.word(row, POLICIES)).idempotencyTtlMs;
  }

  /** The row of the last occurrence, 0 when it has none or one that is not here. */
  last(row: number): number {
    return (this.rows.byte(row, FLAGS) & LAST_IS_ROW) === 0 ? 0 : this.rows.word(row, LAST);
  }

  newest(row: number): number {
    return this.rows.word(row, NEWEST);
  }

  setNewest(row: number, occurrence: number): void {
    this.rows.setWord(row, NEWEST, occurrence);
  }

  liveFirst(row: number): number {
    return this.rows.word(row, LIVE_FIRST);
  }

  setLiveFirst(row: number, occurrence: number): void {
    this.rows.setWord(row, LIVE_FIRST, occurrence);
  }

  liveLast(row: number): number {
    return this.rows.word(row, LIVE_LAST);
  }

  setLiveLast(row: number, occurrence: number): void {
    this.rows.setWord(row, LIVE_LAST, occurrence);
  }
}

function needsExtension(record: TaskRecord, flags: number): boolean {
  return (
    record.taken !== 0 ||
    record.extras !== 0 ||
    record.endedAt !== undefined ||
    record.pausedAt !== undefined ||
    record.cursorAt !== undefined ||
    record.endReason !== undefined ||
    (flags & ANCHOR_APART) !== 0
  );
}
