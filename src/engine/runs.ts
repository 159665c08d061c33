/** The attempts that this process has claimed and not seen the end of; at most as many as there are slots. */
import type { AbortReason } from '../core/errors.js';
import type { Run } from '../execution/executor.js';
import type { ActiveTask, ReadyItem } from './working-set.js';

export class ActiveRun {
  readonly runId: number;
  readonly active: ActiveTask;
  readonly item: ReadyItem;
  readonly occurrenceId: string;
  readonly token: number;
  leaseUntil: number;
  /** What the executor is given, until it was. */
  run: Run | undefined;
  entered = false;
  ended = false;
  /** Why its signal was aborted, once it was. */
  abortWhy: AbortReason | undefined;
  abortMessage = '';
  /** Monotonic time after which silence is a failure; Infinity without a heartbeatTimeout. */
  silentAtMs = Number.POSITIVE_INFINITY;

  constructor(
    item: ReadyItem,
    claimed: { runId: number; token: number; leaseUntil: number },
    run: Run,
  ) {
    this.runId = claimed.runId;
    this.active = item.active;
    this.item = item;
    this.occurrenceId = item.occurrenceId;
    this.token = claimed.token;
    this.leaseUntil = claimed.leaseUntil;
    this.run = run;
  }
}

export class Runs {
  readonly #byId = new Map<number, ActiveRun>();
  #nextId = 1;

  get size(): number {
    return this.#byId.size;
  }

  nextId(): number {
    return this.#nextId++;
  }

  add(run: ActiveRun): void {
    this.#byId.set(run.runId, run);
    run.active.runs.push(run);
  }

  get(runId: number): ActiveRun | undefined {
    return this.#byId.get(runId);
  }

  all(): IterableIterator<ActiveRun> {
    return this.#byId.values();
  }

  remove(run: ActiveRun): void {
    run.ended = true;
    this.#byId.delete(run.runId);
    const { runs } = run.active;
    const index = runs.indexOf(run);
    if (index >= 0) runs.splice(index, 1);
  }
}
