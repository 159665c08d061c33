/**
 * What a turn has to tell once its commit is durable, and no more of it: a flush takes as long as many turns, and what is
 * held until then survives the young generation. With whole batches held, a third of the time of creates on the LMDB store
 * was garbage collection.
 */
import type { Hub } from '../observe/hub.js';
import type { Batch } from './batch.js';
import type { Job, JobGroup, Outcome } from './job.js';

export class Telling {
  readonly #tells: Batch['tells'];
  readonly #changedIds: readonly string[];
  /** Of each job that has its outcome: group, index in it, and that. */
  readonly #groups: JobGroup[] = [];
  readonly #indexes: number[] = [];
  readonly #outcomes: Outcome[] = [];
  /** Another writer was first: to be decided again, on what it left. */
  readonly again: Job[] = [];

  /** @param batch is visible, but for the refused units */
  constructor({ changes, refused, tells, answers }: Batch) {
    this.#tells = tells;
    const changed = refused.size === 0 ? changes : changes.filter((active) => !refused.has(active));
    this.#changedIds = changed.map((active) => active.id);
    for (const { job, active, outcome } of answers) {
      const refusal = active === undefined ? undefined : refused.get(active);
      if (refusal !== undefined && refusal.reason !== 'key') {
        this.again.push(job);
        continue;
      }
      this.#groups.push(job.group);
      this.#indexes.push(job.index);
      this.#outcomes.push(
        refusal === undefined ? outcome : { kind: 'held', holder: refusal.holder as string },
      );
    }
  }

  /** Listeners first, then those who wait for a task, then callers. */
  tell(hub: Hub): void {
    for (const event of this.#tells) hub.tell(event);
    for (const id of this.#changedIds) hub.changed(id);
    for (let i = 0; i < this.#groups.length; i++) {
      (this.#groups[i] as JobGroup).settle(
        this.#indexes[i] as number,
        this.#outcomes[i] as Outcome,
      );
    }
  }

  /** It will never be durable. */
  fail(error: unknown): void {
    const failed = { kind: 'failed', error } as const;
    for (let i = 0; i < this.#groups.length; i++) {
      (this.#groups[i] as JobGroup).settle(this.#indexes[i] as number, failed);
    }
    for (const { group, index } of this.again) group.settle(index, failed);
  }
}
