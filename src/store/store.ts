/**
 * The Store protocol and its promises. Every implementation passes the conformance suite in test/store/.
 *
 * 1. A unit is all or nothing: its guards are evaluated inside the write transaction (or over an overlay of
 *    the writes queued before it), never on an older snapshot, and then all of its changes are made or none.
 * 2. A unit whose guard fails is reported alone and does not spoil the others of its batch. Units of one
 *    batch, and batches, take effect in the order given.
 * 3. Visible and durable are two moments: `visible` resolves when every later read sees the changes,
 *    `durable` when they survive power loss. Durable never comes before visible, nor before an earlier commit's.
 * 4. A failed commit rejects with StoreUnavailableError, and so does every later call until the store is
 *    reopened; StoreFullError fails that batch alone.
 * 5. The epoch is raised and durable before `open` resolves, so that a fencing token is never issued twice.
 * 6. A read sees all that was visible when it was called. Reads are bounded: none returns more than it was
 *    asked for, none holds a snapshot across an await.
 * 7. Records given belong to the store until the commit is visible, then to the caller again, who may write to
 *    them; records returned are the caller's. The store keeps neither.
 */

import type { Clock } from '../clock/clock.js';
import type { AttemptRecord, OccurrenceRecord, TaskRecord, TaskView } from '../core/model.js';

/** What a caller names: a place for tasks, opened by one scheduler at a time (or by many, where `shared`). */
export interface Store {
  readonly capabilities: StoreCapabilities;
  /**
   * @throws StoreLockedError when another scheduler has it open and it is not `shared`
   * @throws StoreCorruptError, StoreVersionError, StoreUnavailableError
   */
  open(options: StoreOpenOptions): Promise<StoreSession>;
}

export interface StoreCapabilities {
  readonly kind: 'memory' | 'lmdb' | 'postgres';
  /** What is durable survives the end of the process. */
  readonly durable: boolean;
  /** Several schedulers may have it open at once. */
  readonly shared: boolean;
  /** `schedule` can join a caller's own transaction. */
  readonly transactions: boolean;
  /** It is read and never changed. */
  readonly readOnly?: boolean;
}

export interface StoreOpenOptions {
  readonly clock: Clock;
  readonly retention: Retention;
}

/** How long ended tasks and their history are kept, by how they ended. */
export interface Retention {
  readonly succeededMs: number;
  /** All ends but success. */
  readonly failedMs: number;
}

export interface StoreSession {
  /** Grows with each open; a fencing token is epoch × 2³² + a counter. 1 to 2²⁰. */
  readonly epoch: number;
  /** Bytes accepted and not yet durable; admission refuses creates beyond `limits.maxUnflushedBytes`. */
  readonly unflushedBytes: number;
  /** True while a commit waits for time to pass on the injected clock (tests): a virtual clock may move on. */
  readonly waitsForClock: boolean;

  /**
   * Where it is there, the store knows what is due when, and the engine keeps only what is near in memory. Otherwise the
   * engine reads all that lives at start (`scanLive`).
   */
  readonly due?: DueWindow;

  commit(units: readonly Unit[]): Commit;

  /**
   * Tasks with their live occurrences, in the order of `ids`; undefined where there is none.
   * @param places is given the store's note of each (Placed), where it makes any
   */
  views(ids: readonly string[], places?: number[]): Promise<readonly (TaskView | undefined)[]>;
  /**
   * The task that holds this idempotency key now: not ended, or ended less than its ttl ago. Once the key has
   * passed to a newer task, the older one never holds it again.
   */
  taskIdOfKey(tenant: string, key: string, nowMs: number): Promise<string | undefined>;
  occurrence(id: string): Promise<OccurrenceRecord | undefined>;
  /** Ended attempts other than the newest (AttemptRecord), oldest first. */
  attempts(occurrenceId: string): Promise<readonly AttemptRecord[]>;

  /** In creation order, which is that of ids. Looks at a bounded number of records, so a page may be short, even empty, with a cursor. */
  listTasks(query: TaskQuery): Promise<Page<TaskView>>;
  /** Newest first. */
  listOccurrences(taskId: string, query: PageQuery): Promise<Page<OccurrenceRecord>>;
  /** Occurrences dead or quarantined and not redriven, in the order in which they ended. */
  listDeadLetters(query: DeadLetterQuery): Promise<Page<OccurrenceRecord>>;
  /**
   * Every live occurrence, in no order, in chunks: what the engine loads at start and after the wall clock
   * went back. One that changes while the chunks are read is seen at least once.
   */
  scanLive(query: PageQuery): Promise<Page<LiveEntry>>;

  /** Durable settings: paused tenants and handlers, tenants' limits. Few. */
  settings(): Promise<ReadonlyMap<string, Setting>>;
  counts(): Promise<StoreCounts>;
  /**
   * Removes what is past its retention, `max` records at most. An ended task goes with all of it, by its `lastEnd`,
   * but stays while its idempotency key holds or an occurrence of it lives; of a long history, part may go before.
   * An ended occurrence of a living task goes by its own state, unless it is the task's `lastOccurrenceId`.
   * Says when it next has work (epoch ms, may be in the past), undefined: nothing to wait for.
   */
  prune(nowMs: number, max: number): Promise<{ removed: number; nextAtMs: number | undefined }>;
  /** Waits for what was committed to become durable, then gives the store free. Idempotent. */
  close(): Promise<void>;
}

/**
 * Changes of one task that stand or fall together. Occurrences and attempts of a task that is not there, and is not
 * made by the same unit, are refused (`revision`).
 */
export interface Unit {
  readonly taskId: string;
  /** Beside the task, as long as the caller keeps it in mind: see Placed. */
  readonly at?: Placed;
  readonly task?: Guarded<TaskRecord>;
  readonly occurrences?: readonly Guarded<OccurrenceRecord>[];
  /** Appended as they are. */
  readonly attempts?: readonly AttemptRecord[];
  /** Remove the task and everything of it; the guard is the task's revision. */
  readonly remove?: { readonly revision: number };
  /** Durable settings to set, or to remove with undefined. */
  readonly settings?: readonly (readonly [key: string, value: Setting | undefined])[];
}

/**
 * A note of the store's own, so that it need not look for a task each time: 0, or what the store wrote there or gave
 * with a view. One that is out of date does no harm.
 */
export interface Placed {
  place: number;
}

/** The new record, and the revision that its stored predecessor must have; 0: there must be none. */
export interface Guarded<T> {
  readonly record: T;
  readonly expected: number;
}

/** Small structured data (JSON). */
export type Setting = { readonly [key: string]: string | number | boolean | null | undefined };

export interface Commit {
  /** The units that were refused, by index, ascending; all others are visible. */
  readonly visible: Promise<readonly Refusal[]>;
  readonly durable: Promise<void>;
}

export interface Refusal {
  readonly unit: number;
  /** `revision`: a guard failed. `key`: the new task's idempotency key is held by `holder`. */
  readonly reason: 'revision' | 'key';
  readonly holder?: string;
}

export interface PageQuery {
  /** Records to return at most, ≥ 1. */
  readonly limit: number;
  /** From the page before; opaque, stays usable when records are removed. */
  readonly cursor?: string | undefined;
}

export interface TaskQuery extends PageQuery {
  readonly tenant?: string | undefined;
  readonly handler?: string | undefined;
}

export interface DeadLetterQuery extends PageQuery {
  readonly tenant?: string | undefined;
  readonly handler?: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/** What timing must know of a live occurrence, without its records. */
export interface LiveEntry {
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number | undefined;
  readonly priority: number;
  readonly dueAt: number;
  readonly state: OccurrenceRecord['state'];
  /** Held by a pause (runs triggered during it excepted), or waits for a sibling: it must not be timed. */
  readonly held: boolean;
}

/** Whose work it is, as far as room is given out apart. */
export type Lane = Pick<LiveEntry, 'tenant' | 'handler' | 'handlerVersion'>;

/** How many occurrences more may come near. */
export interface NearRoom {
  readonly total: number;
  /** Of these in this lane, after so many were given in this step. */
  of(lane: Lane, given: number): number;
  /** Of these, too many came near by what was committed: what else comes in of them, the store is to keep until there is room. */
  readonly crowded: readonly Lane[];
}

/**
 * The near window over a store's due index. An occurrence that waits for its time is near when it `isNear`, or was given
 * by `load`. What a commit makes pending is timed by the engine itself when it is near once the commit is visible; all
 * else is given by `load`, at least once: in time, or when there is room for its lane.
 */
export interface DueWindow {
  /** What is near changes only within `load`, and never from near to not for what had room. */
  isNear(lane: Lane, dueAt: number): boolean;
  /** As `isNear`, but false while a step of `load` that would give it may still be to come. */
  isTold(lane: Lane, dueAt: number): boolean;
  /**
   * The next step of what comes near, of at most some 2,000 entries. To be called with no commit of the caller's under
   * way, and again at once while `more`, otherwise at `nextAtMs` (wall clock ms, Infinity: never) or when something was
   * committed or room was made. What it gives may have changed since it was due to be given: then it means nothing.
   */
  load(nowMs: number, room: NearRoom): Promise<DueStep>;
  /** When the first of those that are not near is due, or not long before; undefined when all are near. */
  earliestMs(): number | undefined;
  /** Tasks with an occurrence that was recorded as running when the store was opened. */
  runningTasks(): readonly string[];
}

export interface DueStep {
  readonly entries: readonly LiveEntry[];
  readonly more: boolean;
  readonly nextAtMs: number;
}

/** Occurrences by state, disjoint. Pending: scheduled and in retry-wait. Dead letters: not redriven. */
export interface StateCounts {
  readonly pending: number;
  readonly ready: number;
  readonly running: number;
  readonly deadLetters: number;
}

export interface StoreCounts extends StateCounts {
  /** Tasks that have not ended. */
  readonly openTasks: number;
  readonly tenants: ReadonlyMap<string, StateCounts & { readonly openTasks: number }>;
  readonly bytes: number;
}
