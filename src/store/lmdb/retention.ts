/**
 * What has ended, by when: hints for retention, many to a value. A hint is judged by the record as it stands when its
 * time has come, so one that came to nothing does no harm. The key says when the first of a value is due, so that what is
 * not due is never read.
 *
 *   key    class u8 · earliest time i64 · commit u64
 *   value  (time f64 · id 16 · serial varint, 0: the task) …
 *
 * A value's times are of one minute, and a commit has one value a class and minute.
 *
 * Classes: what is kept for as long as successes, as failures, and until a time of its own (while an idempotency key holds).
 * The first two hold the time of the end, so another retention than before takes effect at once.
 */
import { Reader, type Writer } from './bytes.js';
import type { Db } from './environment.js';
import { ID_BYTES, idText, Key, readI64, readId, readU64 } from './keys.js';

export type EndClass = 0 | 1 | 2;
export const SUCCEEDED = 0;
export const FAILED = 1;
export const UNTIL = 2;
export const CLASSES: readonly EndClass[] = [SUCCEEDED, FAILED, UNTIL];

export interface EndHint {
  readonly at: number;
  readonly taskId: string;
  /** Of the occurrence; 0: the task. */
  readonly serial: number;
}

export interface EndChunk {
  readonly key: Uint8Array;
  readonly class: EndClass;
  /** When the first of it is due, or less than a millisecond before. */
  readonly dueAt: number;
}

const MINUTE_MS = 60_000;
/** Of the commit in a key. */
const COMMIT_AT = 9;
const HINT_MAX = 8 + ID_BYTES + 8;
const id = new Uint8Array(ID_BYTES);

export class Ends {
  readonly #db: Db;
  /** Of the commit at hand. */
  #noted = new Map<number, EndHint[]>();
  readonly #key = new Key();
  #keptMs: readonly number[] = [0, 0, 0];

  constructor(db: Db) {
    this.#db = db;
  }

  setRetention(succeededMs: number, failedMs: number): void {
    this.#keptMs = [succeededMs, failedMs, 0];
  }

  keptMs(of: EndClass): number {
    return this.#keptMs[of];
  }

  note(of: EndClass, hint: EndHint): void {
    const minute = Math.floor(hint.at / MINUTE_MS);
    const bucket = minute * CLASSES.length + of;
    const noted = this.#noted.get(bucket);
    if (noted === undefined) this.#noted.set(bucket, [hint]);
    else noted.push(hint);
  }

  /** Of a stored chunk. */
  static read(value: Uint8Array): EndHint[] {
    const reader = new Reader(value, 0, value.length);
    const hints: EndHint[] = [];
    while (!reader.isAtEnd) {
      const at = reader.number();
      reader.into(id, ID_BYTES);
      hints.push({ at, taskId: idText(id), serial: reader.varint() });
    }
    return hints;
  }

  clear(): void {
    // Not `clear`, which would keep them alive (core/flat-map.ts)
    this.#noted = new Map();
  }

  finish(commit: number, writer: Writer): void {
    for (const [bucket, hints] of this.#noted) {
      const of = (((bucket % CLASSES.length) + CLASSES.length) % CLASSES.length) as EndClass;
      this.#write(of, commit, hints, writer);
    }
    // Not `clear`, which would keep them alive (core/flat-map.ts)
    this.#noted = new Map();
  }

  /** Puts what is left of a chunk back, or removes it. */
  rewrite(chunk: EndChunk, left: readonly EndHint[], writer: Writer): void {
    this.#db.remove(this.#key.clear().raw(chunk.key));
    if (left.length > 0) this.#write(chunk.class, readU64(chunk.key, COMMIT_AT), left, writer);
  }

  #write(of: EndClass, commit: number, hints: readonly EndHint[], writer: Writer): void {
    let earliest = Number.POSITIVE_INFINITY;
    writer.begin(hints.length * HINT_MAX);
    for (const { at, taskId, serial } of hints) {
      earliest = Math.min(earliest, at);
      writer.number(at);
      readId(taskId, id, 0);
      writer.raw(id, ID_BYTES);
      writer.varint(serial);
    }
    const key = this.#key.clear().byte(of).i64(Math.floor(earliest)).u64(commit);
    this.#db.put(key, writer.end());
  }

  /** Hints of what ended in the same minute; of visible commits. */
  inMinuteOf(of: EndClass, at: number): EndHint[] {
    if (!Number.isFinite(at)) return [];
    const minute = Math.floor(at / MINUTE_MS);
    const start = new Key().byte(of).i64(minute * MINUTE_MS);
    const end = new Key().byte(of).i64((minute + 1) * MINUTE_MS);
    const found: EndHint[] = [];
    for (const { value } of this.#db.getRange({ start, end })) found.push(...Ends.read(value));
    return found;
  }

  /** The chunk of a class that is due first, or the first after another; of visible commits. Reads one key. */
  first(of: EndClass, after?: EndChunk): EndChunk | undefined {
    const end = new Key().byte(of + 1);
    const start = after === undefined ? new Key().byte(of) : new Key().raw(after.key).byte(0);
    for (const key of this.#db.getKeys({ start, end, limit: 1 })) {
      return { key, class: of, dueAt: readI64(key, 1) + this.#keptMs[of] };
    }
    return undefined;
  }

  hintsOf({ key }: EndChunk): EndHint[] {
    const value = this.#db.getBinaryFast(this.#key.clear().raw(key));
    return value === undefined ? [] : Ends.read(value);
  }
}
