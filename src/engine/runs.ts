/** Occurrences from ready to the end of their attempt, and the attempts that this process has claimed. */
import type { AbortReason } from '../core/errors.js';
import { FlatMap, hashOfNumber } from '../core/flat-map.js';
import type { OccurrenceRecord, TaskRecord } from '../core/model.js';
import type { ReadyEntry } from '../core/ready-queue.js';
import { removeItem, withItem } from '../core/small-list.js';
import type { Run } from '../execution/executor.js';
import type { ActiveTask } from './working-set.js';

/** One object from its lane to its end: the entry of the ready queue, then the run that the executor gets. */
export class ActiveRun implements ReadyEntry {
  readonly active: ActiveTask;
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  /** Once claimed, the version that runs. */
  handlerVersion: number | undefined;
  readonly priority: number;
  readonly readyAtMs: number;
  readonly dueAt: number;
  readonly nominalAt: number;
  readonly alone: boolean;
  throttled = false;
  laneIndex = -1;

  // From the claim on.
  runId = 0;
  fencingToken = 0;
  leaseUntil = 0;
  /** The same end in monotonic time, by which it is judged here. */
  leaseEndsMs = Number.POSITIVE_INFINITY;
  attempt = 0;
  retriesLeft = 0;
  progress: Uint8Array | undefined;
  payload: Uint8Array;

  /** The executor has it. */
  given = false;
  entered = false;
  ended = false;
  /** Why its signal was aborted, once it was. */
  abortWhy: AbortReason | undefined;
  abortMessage = '';
  /** Monotonic time after which silence is a failure; Infinity without a heartbeatTimeout. */
  silentAtMs = Number.POSITIVE_INFINITY;

  constructor(
    active: ActiveTask,
    task: TaskRecord,
    occurrence: OccurrenceRecord,
    readyAtMs: number,
  ) {
    this.active = active;
    this.occurrenceId = occurrence.id;
    this.tenant = occurrence.tenant;
    this.handler = occurrence.handler;
    this.handlerVersion = occurrence.handlerVersion;
    this.priority = task.priority;
    this.readyAtMs = readyAtMs;
    this.dueAt = occurrence.dueAt;
    this.nominalAt = occurrence.nominalAt;
    this.alone = occurrence.alone;
    this.payload = task.payload;
  }

  get taskId(): string {
    return this.active.id;
  }

  /** It was claimed as the record says. */
  claim(runId: number, task: TaskRecord, claimed: OccurrenceRecord): void {
    this.runId = runId;
    this.handlerVersion = claimed.handlerVersion;
    this.fencingToken = claimed.token;
    this.leaseUntil = claimed.leaseUntil ?? 0;
    this.attempt = claimed.attempt;
    this.retriesLeft = Math.max(0, task.policies.maxAttempts - claimed.failures - 1);
    this.progress = claimed.progress;
    // As it is now: an update may have come while it waited.
    this.payload = task.payload;
  }

  /** What the executor is given: a claimed one has its version. */
  toRun(): Run {
    return this as Run;
  }
}

/** The claimed ones; at most as many as the executor takes. */
export class Runs {
  readonly #byId = new FlatMap<number, ActiveRun>(hashOfNumber);
  #nextId = 1;

  get size(): number {
    return this.#byId.size;
  }

  nextId(): number {
    return this.#nextId++;
  }

  add(run: ActiveRun): void {
    this.#byId.set(run.runId, run);
    const { active } = run;
    active.runs = withItem(active.runs, run);
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
    removeItem(run.active.runs, run);
  }
}
