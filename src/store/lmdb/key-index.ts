/**
 * Where idempotency keys are found: from a key's hash to the newest task that was given it. The store judges what is
 * found by the task's own record (tenant, key, not expired), so an entry may outlive its task.
 */
export interface KeyIndex {
  /** The id (16 bytes) of the newest task that was added under this hash (16 bytes). */
  find(hash: Uint8Array): Uint8Array | undefined;
  /** Seen by `find` at once; its puts are queued in the commit at hand. */
  add(hash: Uint8Array, taskId: Uint8Array): void;
}
