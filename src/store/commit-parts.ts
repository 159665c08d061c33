/** What the pipelines of all stores have in common: the promises of a commit, and its size. */
import type { Unit } from './store.js';

/** A promise that its maker settles; once. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  isSettled = false;
  #resolve!: (value: T) => void;
  #reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(value: T): void {
    this.isSettled = true;
    this.#resolve(value);
  }

  /** Who waits for the other of a commit's two promises alone must not meet an unhandled rejection. */
  reject(error: Error): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.promise.catch(() => {});
    this.#reject(error);
  }
}

/** About what a record takes without its bytes, with its index entries. */
const RECORD_BYTES = 128;

/** What the units take until they are durable, about: what admission counts. */
export function bytesOf(units: readonly Unit[]): number {
  let bytes = 0;
  for (const { task, occurrences, attempts } of units) {
    if (task !== undefined) bytes += RECORD_BYTES + task.record.payload.length;
    if (occurrences !== undefined) {
      for (const { record } of occurrences) bytes += RECORD_BYTES + valueBytes(record);
    }
    if (attempts !== undefined) {
      for (const { progress, error } of attempts) {
        bytes += RECORD_BYTES + (progress?.length ?? 0) + (error?.length ?? 0);
      }
    }
  }
  return bytes;
}

function valueBytes(values: {
  readonly progress: Uint8Array | undefined;
  readonly result: Uint8Array | undefined;
  readonly error: Uint8Array | undefined;
}): number {
  const { progress, result, error } = values;
  return (progress?.length ?? 0) + (result?.length ?? 0) + (error?.length ?? 0);
}
