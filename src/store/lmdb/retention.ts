/**
 * What has ended, by when: hints for retention, many to a value. A hint is judged by the record as it stands when its
 * time has come, so one that came to nothing does no harm.
 *
 *   key    class u8 · minute i64 · commit u64
 *   value  (time f64 · id 16 · serial varint, 0: the task) …
 *
 * Classes: what is kept for as long as successes, as failures, and until a time of its own (while an idempotency key holds).
 * The first two hold the time of the end, so another retention than before takes effect at once.
 */
import { Reader, type Writer } from './bytes.js';
import type { Db } from './environment.js';
import { ID_BYTES, idText, Key, readI64, readId } from './keys.js';

export type EndClass = 0 | 1 | 2;
export const SUCCEEDED = 0;
export const FAILED = 1;
export const UNTIL = 2;
const CLASSES: readonly EndClass[] = [SUCCEEDED, FAILED, UNTIL];

export interface EndHint {
  readonly at: number;
  readonly taskId: string;
  /** Of the occurrence; 0: the task. */
  readonly serial: number;
}

export interface EndChunk {
  readonly key: Uint8Array;
  readonly class: EndClass;
  /** When the first of it is due. */
  readonly dueAt: number;
  readonly hints: readonly EndHint[];
}

const MINUTE_MS = 60_000;
const HINT_MAX = 8 + ID_BYTES + 8;
/** Chunks of the first minute that are looked at for the earliest. */
const LOOKS_MAX = 64;
const id = new Uint8Array(ID_BYTES);

export class Ends {
  readonly #db: Db;
  /** Of the commit at hand. */
  readonly #noted = new Map<number, EndHint[]>();
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
    this.#noted.clear();
  }

  finish(commit: number, writer: Writer): void {
    for (const [bucket, hints] of this.#noted) {
      const of = ((bucket % CLASSES.length) + CLASSES.length) % CLASSES.length;
      const minute = Math.floor(bucket / CLASSES.length);
      this.#write(this.#key.clear().byte(of).i64(minute).u64(commit), hints, writer);
    }
    this.#noted.clear();
  }

  /** Puts what is left of a chunk back in its place, or removes it. */
  rewrite(chunk: EndChunk, left: readonly EndHint[], writer: Writer): void {
    const key = this.#key.clear().raw(chunk.key);
    if (left.length === 0) this.#db.remove(key);
    else this.#write(key, left, writer);
  }

  #write(key: Key, hints: readonly EndHint[], writer: Writer): void {
    writer.begin(hints.length * HINT_MAX);
    for (const { at, taskId, serial } of hints) {
      writer.number(at);
      readId(taskId, id, 0);
      writer.raw(id, ID_BYTES);
      writer.varint(serial);
    }
    this.#db.put(key, writer.end());
  }

  /** Hints of what ended in the same minute; of visible commits. */
  inMinuteOf(of: EndClass, at: number): EndHint[] {
    if (!Number.isFinite(at)) return [];
    const minute = Math.floor(at / MINUTE_MS);
    const start = new Key().byte(of).i64(minute);
    const end = new Key().byte(of).i64(minute + 1);
    const found: EndHint[] = [];
    for (const { value } of this.#db.getRange({ start, end })) found.push(...Ends.read(value));
    return found;
  }

  /** The chunks that come first, and the earliest time of them all; of visible commits. */
  first(except: ReadonlySet<string>): EndChunk | undefined {
    let first: EndChunk | undefined;
    for (const of of CLASSES) {
      const chunk = this.#firstOf(of, except);
      if (chunk !== undefined && (first === undefined || chunk.dueAt < first.dueAt)) first = chunk;
    }
    return first;
  }

  #firstOf(of: EndClass, except: ReadonlySet<string>): EndChunk | undefined {
    const start = new Key().byte(of);
    const end = new Key().byte(of + 1);
    let first: EndChunk | undefined;
    let minute: number | undefined;
    let looks = LOOKS_MAX + except.size;
    for (const { key, value } of this.#db.getRange({ start, end })) {
      minute ??= readI64(key, 1);
      if (readI64(key, 1) !== minute || looks-- === 0) break;
      if (except.has(nameOf(key))) {
        minute = undefined;
        continue;
      }
      const hints = Ends.read(value);
      let earliest = Number.POSITIVE_INFINITY;
      for (const { at } of hints) earliest = Math.min(earliest, at);
      const dueAt = earliest + this.#keptMs[of];
      if (first === undefined || dueAt < first.dueAt) first = { key, class: of, dueAt, hints };
    }
    return first;
  }
}

export function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}
