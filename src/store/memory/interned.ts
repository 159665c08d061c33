/**
 * Values that repeat from task to task, kept once: policies, recurring schedules, reasons, workers' names. A row
 * holds a u32 handle. Distinct values are held as objects up to a bound; beyond it a value is written to the
 * blobs as text, so that a caller whose values never repeat costs time, not JavaScript heap.
 *
 *   handle:  class 31 | index + 1 (interned)    or    a blob's handle (blobs.ts)          0: none
 */
import type { Policies } from '../../core/model.js';
import { type Schedule, scheduleKey } from '../../core/schedule.js';
import { type Blobs, FOREIGN, SLOT_BITS, SLOT_MASK } from './blobs.js';

export interface Codec<T> {
  /** Equal for equal values, and enough to make the value again. */
  keyOf(value: T): string;
  parse(key: string): T;
  /** What is kept of a value given: itself if it can't change. */
  keep(value: T, key: string): T;
}

interface Entry<T> {
  readonly key: string;
  readonly value: T;
  refs: number;
}

/** Distinct values held as objects. */
const ENTRIES_MAX = 4096;

export class Interned<T> {
  readonly #blobs: Blobs;
  readonly #codec: Codec<T>;
  readonly #entries: (Entry<T> | undefined)[] = [];
  readonly #indexes = new Map<string, number>();
  readonly #free: number[] = [];
  /** The value given last and where it is: most callers share one object. */
  #lastGiven: T | undefined;
  #lastIndex = -1;

  constructor(blobs: Blobs, codec: Codec<T>) {
    this.#blobs = blobs;
    this.#codec = codec;
  }

  get size(): number {
    return this.#indexes.size;
  }

  /** Replaces what `handle` holds (0: nothing yet); undefined gives it free. */
  set(handle: number, value: T | undefined): number {
    if (value === undefined) {
      this.release(handle);
      return 0;
    }
    const interned = handle >>> SLOT_BITS === FOREIGN;
    if (interned) {
      const index = (handle & SLOT_MASK) - 1;
      const isLast = value === this.#lastGiven && index === this.#lastIndex;
      if (isLast || this.#entries[index]?.value === value) return handle;
    }
    const next = this.#take(value);
    this.release(handle);
    return next;
  }

  /** The handle must not be 0. */
  get(handle: number): T {
    if (handle >>> SLOT_BITS === FOREIGN) {
      return (this.#entries[(handle & SLOT_MASK) - 1] as Entry<T>).value;
    }
    return this.#codec.parse(this.#blobs.getText(handle) as string);
  }

  release(handle: number): void {
    if (handle >>> SLOT_BITS !== FOREIGN) {
      this.#blobs.free(handle);
      return;
    }
    const index = (handle & SLOT_MASK) - 1;
    const entry = this.#entries[index] as Entry<T>;
    entry.refs -= 1;
    if (entry.refs > 0) return;
    this.#entries[index] = undefined;
    this.#indexes.delete(entry.key);
    this.#free.push(index);
    if (index === this.#lastIndex) {
      this.#lastGiven = undefined;
      this.#lastIndex = -1;
    }
  }

  #take(value: T): number {
    let index = value === this.#lastGiven ? this.#lastIndex : -1;
    if (index < 0) {
      const key = this.#codec.keyOf(value);
      index = this.#indexes.get(key) ?? -1;
      if (index < 0) {
        if (this.#indexes.size >= ENTRIES_MAX) return this.#blobs.putText(key);
        index = this.#add(key, this.#codec.keep(value, key));
      }
      this.#lastGiven = value;
      this.#lastIndex = index;
    }
    (this.#entries[index] as Entry<T>).refs += 1;
    return ((FOREIGN << SLOT_BITS) | (index + 1)) >>> 0;
  }

  #add(key: string, value: T): number {
    const index = this.#free.pop() ?? this.#entries.length;
    this.#entries[index] = { key, value, refs: 0 };
    this.#indexes.set(key, index);
    return index;
  }
}

/** Short strings as they are. */
export const TEXT: Codec<string> = {
  keyOf: (value) => value,
  parse: (key) => key,
  keep: (value) => value,
};

export const SCHEDULE: Codec<Schedule> = {
  keyOf: scheduleKey,
  parse: (key) => Object.freeze(JSON.parse(key) as Schedule),
  keep: (value, key) => (Object.isFrozen(value) ? value : SCHEDULE.parse(key)),
};

export const POLICIES: Codec<Policies> = {
  keyOf: (p) =>
    `${p.maxAttempts},${p.initialBackoffMs},${p.backoffMultiplier},${p.maxBackoffMs},` +
    `${p.backoffJitter},${p.timeoutMs},${p.heartbeatTimeoutMs},${p.ttlMs},${p.maxCrashes},` +
    `${p.overlap},${p.catchup},${p.catchupWindowMs},${p.onExhausted},${p.idempotencyTtlMs}`,
  parse: parsePolicies,
  keep: (_, key) => parsePolicies(key),
};

function parsePolicies(key: string): Policies {
  const parts = key.split(',');
  return Object.freeze({
    maxAttempts: Number(parts[0]),
    initialBackoffMs: Number(parts[1]),
    backoffMultiplier: Number(parts[2]),
    maxBackoffMs: Number(parts[3]),
    backoffJitter: Number(parts[4]),
    timeoutMs: optional(parts[5]),
    heartbeatTimeoutMs: optional(parts[6]),
    ttlMs: optional(parts[7]),
    maxCrashes: Number(parts[8]),
    overlap: parts[9] as Policies['overlap'],
    catchup: parts[10] as Policies['catchup'],
    catchupWindowMs: Number(parts[11]),
    onExhausted: parts[12] as Policies['onExhausted'],
    idempotencyTtlMs: Number(parts[13]),
  });
}

function optional(text: string): number | undefined {
  return text === 'undefined' ? undefined : Number(text);
}
