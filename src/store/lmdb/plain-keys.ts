/** The simplest key index: one B-tree. In random order it slows down as it grows (docs/adr). */
import { createHash } from 'node:crypto';
import type { Writer } from './bytes.js';
import type { Db } from './environment.js';
import type { KeyIndex } from './key-index.js';
import { Key } from './keys.js';

const HASH_BYTES = 16;

/** What a key is found by: 16 bytes of SHA-256 over tenant and key, of which the length of one tells them apart. */
export function hashOfKey(tenant: string, key: string): Uint8Array {
  const hash = createHash('sha256').update(`${tenant.length}:${tenant}:${key}`).digest();
  return hash.subarray(0, HASH_BYTES);
}

export class PlainKeyIndex implements KeyIndex {
  readonly #db: Db;
  readonly #writer: Writer;
  readonly #key = new Key();
  /** Not visible yet. */
  readonly #queued = new Map<string, Uint8Array>();

  constructor(db: Db, writer: Writer) {
    this.#db = db;
    this.#writer = writer;
  }

  find(hash: Uint8Array): Uint8Array | undefined {
    if (this.#queued.size > 0) {
      const queued = this.#queued.get(nameOf(hash));
      if (queued !== undefined) return queued;
    }
    const value = this.#db.getBinaryFast(this.#key.clear().raw(hash));
    return value && Uint8Array.prototype.slice.call(value, 0, value.length);
  }

  add(hash: Uint8Array, taskId: Uint8Array): void {
    this.#queued.set(nameOf(hash), Uint8Array.prototype.slice.call(taskId));
    this.#writer.begin(taskId.length);
    this.#writer.raw(taskId, taskId.length);
    this.#db.put(this.#key.clear().raw(hash), this.#writer.end());
  }

  /** Nothing is under way: all that was added is visible, or lost with its commit. */
  settled(): void {
    this.#queued.clear();
  }
}

function nameOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('latin1');
}
