/**
 * Creates in bulk go beside the turn's own commit: the loop decides the next of them while the store writes the ones before,
 * and due work waits for neither. Nothing else knows of a task until its create is visible; what is asked of one that is
 * visible and not applied yet waits for that. 512 creates for later on the LMDB store take the loop 3 ms and its writer 1.5,
 * which were had one after the other.
 */
import type { Commit } from '../store/store.js';
import type { Apply } from './apply.js';
import { Batch } from './batch.js';
import type { Job } from './job.js';
import type { EngineParts } from './parts.js';

/** Fewer creates in a turn are part of its own commit. */
const BULK_MIN = 64;
/** Commits on their way: the store writes one, and has the next when it is done. */
const OPEN_MAX = 2;

interface Sent {
  readonly batch: Batch;
  readonly commit: Commit;
  /** Visible or failed, and not applied. */
  isOver: boolean;
  error: unknown;
}

export class Bulk {
  readonly #parts: EngineParts;
  readonly #apply: Apply;
  /** Something is over. */
  readonly #onOver: () => void;
  /** In the order in which they were committed, which is that in which they are over. */
  readonly #open: Sent[] = [];

  constructor(parts: EngineParts, apply: Apply, onOver: () => void) {
    this.#parts = parts;
    this.#apply = apply;
    this.#onOver = onOver;
  }

  get isOpen(): boolean {
    return this.#open.length > 0;
  }

  /** Something is to be applied. */
  get isOver(): boolean {
    return this.#open[0]?.isOver === true;
  }

  /** The task was created here, and that is not applied yet. */
  holds(taskId: string): boolean {
    return this.isOpen && this.#parts.working.get(taskId)?.inBulk === true;
  }

  /** Keeps what was committed until it can be applied. */
  add(batch: Batch, commit: Commit): void {
    for (const active of batch.changes) active.inBulk = true;
    const sent: Sent = { batch, commit, isOver: false, error: undefined };
    this.#open.push(sent);
    commit.visible.then(
      (refusals) => {
        batch.refuse(refusals);
        this.#over(sent);
      },
      (error) => {
        sent.error = error;
        this.#over(sent);
      },
    );
  }

  #over(sent: Sent): void {
    sent.isOver = true;
    this.#onOver();
  }

  /** Applies what is over. */
  apply(): void {
    while (this.isOver) {
      const { batch, commit, error } = this.#open[0] as Sent;
      for (const active of batch.changes) active.inBulk = false;
      if (error === undefined) {
        this.#apply.applyTo(batch);
        this.#apply.settleWhenDurable(batch, commit);
      } else this.#apply.undo(batch, error);
      this.#open.shift();
    }
  }

  /** Applies what is over, and waits until there is room for one more. */
  async makeRoom(): Promise<void> {
    await this.#applyUntil(OPEN_MAX - 1);
  }

  /** Waits until all is applied. */
  async applyAll(): Promise<void> {
    await this.#applyUntil(0);
  }

  async #applyUntil(left: number): Promise<void> {
    this.apply();
    for (let first = this.#open[0]; this.#open.length > left; first = this.#open[0]) {
      await first?.commit.visible.then(ignore, ignore);
      this.apply();
    }
  }

  /** Nothing more is applied: callers are told. */
  fail(error: unknown): void {
    for (const { batch } of this.#open.splice(0)) batch.fail(error);
  }
}

/** For those creates of a turn that go beside its own commit, if they are many. */
export function laterOf(jobs: readonly Job[], { facts, monotonicMs }: Batch): Batch | undefined {
  if (jobs.length < BULK_MIN) return undefined;
  let count = 0;
  for (const job of jobs) if (isForLater(job, facts.nowMs)) count++;
  return count < BULK_MIN ? undefined : new Batch(facts, monotonicMs, true);
}

/** It cannot start in this turn; or it has a key, of which the first to come is to have it. */
export function isForLater({ work }: Job, nowMs: number): boolean {
  if (work.kind !== 'task' || work.event.kind !== 'create') return false;
  const { schedule, idempotencyKey } = work.event.task;
  return schedule.kind !== 'once' || schedule.at > nowMs || idempotencyKey !== undefined;
}

function ignore(): void {}
