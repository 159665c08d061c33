/**
 * A store between the engine and the real one: it tells an observer of each commit as it is given, visible and durable,
 * injects what stores do (slow, full, failing), and is where a process dies: at the boundaries of a commit.
 */
import { StoreFullError, StoreUnavailableError } from '../../src/index.js';
import type {
  Commit,
  DueWindow,
  Refusal,
  Store,
  StoreCapabilities,
  StoreOpenOptions,
  StoreSession,
  Unit,
} from '../../src/store/store.js';
import type { RawReader } from './oracle/raw.js';
import type { ProcessClock } from './process.js';

export type Boundary = 'before' | 'visible' | 'durable';

export interface StoreObserver {
  /** The store was opened: its records may be read before anybody writes. */
  opened(session: StoreSession): Promise<void>;
  committing(commit: number, units: readonly Unit[]): void;
  visible(commit: number, refusals: readonly Refusal[]): void;
  durable(commit: number): void;
  /** The commit came to nothing. */
  dropped(commit: number): void;
  /** A dead session's call was answered. */
  boundary(boundary: Boundary): void;
}

/** What goes wrong, as the world sets it. */
export interface StoreFaults {
  /** Each commit is held up by so long before the store gets it. */
  delayMs: number;
  /** Commits are refused for want of space. */
  full: () => boolean;
  /** The next commit, or flush, fails for good. */
  failNext: 'commit' | 'flush' | undefined;
}

/** A real store, and how its process dies. */
export interface RealStore {
  readonly store: Store;
  /** Of a store with a due index: the occurrences that the near window holds. */
  readonly windowMax?: number | undefined;
  /** A death, or a failed flush, is near: what is not durable by then is to be lost. */
  arm?(): void;
  /** The process dies: what is not durable is lost, or some of it; the lock is free. */
  crash(): void | Promise<void>;
  /** What it really does at this moment, and must end before the world goes on. */
  underWay?(): Promise<unknown> | undefined;
  /** What it has on the disk, past all that it keeps in memory. To be called when nothing is under way. */
  look?(nowMs: number): Promise<Look>;
  /** Frees what it holds; it was closed, or its process died. */
  dispose?(): Promise<void>;
}

export interface Look {
  readonly reader: RawReader;
  /** What does not agree in it. */
  readonly faults: readonly string[];
  close(): Promise<void>;
}

/** Lets a broken variant stand between the store and who watches it, or between that and the engine. */
export interface SessionWraps {
  readonly session?: ((session: StoreSession) => StoreSession) | undefined;
  readonly writes?: ((session: StoreSession) => StoreSession) | undefined;
}

const itself = (session: StoreSession): StoreSession => session;

/** A promise of its own each time: one for all would keep in memory whoever waits for it. */
const never = (): Promise<never> => new Promise(() => {});

export class WatchedStore implements Store {
  readonly capabilities: StoreCapabilities;
  readonly faults: StoreFaults = { delayMs: 0, full: () => false, failNext: undefined };
  readonly #real: RealStore;
  readonly #observer: StoreObserver;
  readonly #wraps: SessionWraps;
  #commits = 0;
  session: WatchedSession | undefined;
  /** Of the process that opens next. */
  clock!: ProcessClock;

  constructor(real: RealStore, observer: StoreObserver, wraps: SessionWraps) {
    this.#real = real;
    // Leases are renewed in writing only where others may have the store open.
    this.capabilities = { ...real.store.capabilities, shared: true };
    this.#observer = observer;
    this.#wraps = wraps;
  }

  async open(options: StoreOpenOptions): Promise<StoreSession> {
    const inner = await this.#real.store.open(options);
    const { session = itself, writes = itself } = this.#wraps;
    this.session = new WatchedSession(session(inner), {
      observer: this.#observer,
      faults: this.faults,
      clock: this.clock,
      next: () => ++this.#commits,
      crash: () => this.#real.crash(),
    });
    await this.#observer.opened(inner);
    return writes(this.session);
  }

  underWay(): Promise<unknown> | undefined {
    return this.#real.underWay?.();
  }

  arm(): void {
    this.#real.arm?.();
  }

  /** The process dies, and with it all that it had begun. */
  async kill(): Promise<void> {
    this.session?.die();
    this.session = undefined;
    await this.#real.crash();
  }
}

interface Surroundings {
  readonly observer: StoreObserver;
  readonly faults: StoreFaults;
  readonly clock: ProcessClock;
  next(): number;
  crash(): void | Promise<void>;
}

type Rejecting = { reject: (error: unknown) => void };

class WatchedSession implements StoreSession {
  readonly #inner: StoreSession;
  readonly #around: Surroundings;
  /** Nobody is left to be answered. */
  #dead = false;
  #failure: StoreUnavailableError | undefined;
  readonly #open = new Map<number, Rejecting[]>();
  /** Commits held up, in order. */
  #held: (() => void)[] = [];
  #waits = 0;

  readonly due?: DueWindow;

  constructor(inner: StoreSession, around: Surroundings) {
    this.#inner = inner;
    this.#around = around;
    if (inner.due !== undefined) this.due = this.#windowOf(inner.due);
  }

  #windowOf(due: DueWindow): DueWindow {
    return {
      isNear: (lane, dueAt) => due.isNear(lane, dueAt),
      isTold: (lane, dueAt) => due.isTold(lane, dueAt),
      load: (nowMs, room) => this.#read(() => due.load(nowMs, room)),
      earliestMs: () => due.earliestMs(),
      runningTasks: () => due.runningTasks(),
    };
  }

  /** Of what is due, nothing is left to be told: the store had more than the near window has room for, or was just opened. */
  hasTold(nowMs: number): boolean {
    return (this.due?.earliestMs() ?? Number.POSITIVE_INFINITY) > nowMs;
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Commits that were given and are not durable. */
  get underWay(): number {
    return this.#open.size;
  }

  die(): void {
    this.#dead = true;
    this.#held = [];
    for (const commit of this.#open.keys()) this.#around.observer.dropped(commit);
    this.#open.clear();
  }

  get epoch(): number {
    return this.#inner.epoch;
  }
  get unflushedBytes(): number {
    return this.#inner.unflushedBytes;
  }
  get waitsForClock(): boolean {
    return this.#waits > 0 || this.#inner.waitsForClock;
  }

  commit(units: readonly Unit[]): Commit {
    if (this.#dead) return { visible: never(), durable: never() };
    if (this.#failure !== undefined) return rejected(this.#failure);
    const { observer, faults, next } = this.#around;
    const commit = next();
    observer.committing(commit, units);
    this.#open.set(commit, []);
    observer.boundary('before');
    if (this.#dead) return { visible: never(), durable: never() };
    if (faults.full()) {
      this.#drop(commit);
      return rejected(new StoreFullError('the simulated disk is full'));
    }
    if (faults.failNext === 'commit') {
      faults.failNext = undefined;
      this.#fail();
      return rejected(this.#failure as unknown as StoreUnavailableError);
    }
    const visible = this.#promise<readonly Refusal[]>(commit);
    const durable = this.#promise<void>(commit);
    this.#whenLetThrough(() => this.#forward(commit, units, visible, durable));
    return { visible: visible.promise, durable: durable.promise };
  }

  #promise<T>(commit: number) {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    promise.catch(() => {});
    this.#open.get(commit)?.push({ reject });
    return { promise, resolve, reject };
  }

  #whenLetThrough(go: () => void): void {
    const { delayMs } = this.#around.faults;
    if (delayMs === 0 && this.#held.length === 0) {
      go();
      return;
    }
    // In order, also when the delay grows shorter.
    this.#held.push(go);
    this.#waits++;
    const { clock } = this.#around;
    const at = { wallMs: Number.POSITIVE_INFINITY, monotonicMs: clock.monotonic() + delayMs };
    clock.arm(at, () => {
      this.#waits--;
      this.#held.shift()?.();
    });
  }

  #forward(
    commit: number,
    units: readonly Unit[],
    visible: Deferred<readonly Refusal[]>,
    durable: Deferred<void>,
  ): void {
    const { observer, faults } = this.#around;
    if (this.#dead || this.#failure !== undefined) return;
    const given = this.#inner.commit(units);
    const isOver = () => this.#dead || this.#failure !== undefined;
    const failed = (error: unknown): void => {
      if (isOver()) return;
      this.#drop(commit);
      visible.reject(error);
      durable.reject(error);
    };
    given.visible.then((refusals) => {
      if (isOver()) return;
      observer.visible(commit, refusals);
      observer.boundary('visible');
      if (isOver()) return;
      visible.resolve(refusals);
      if (faults.failNext !== 'flush') return;
      faults.failNext = undefined;
      this.#fail();
    }, failed);
    given.durable.then(() => {
      if (isOver()) return;
      this.#open.delete(commit);
      observer.durable(commit);
      durable.resolve();
      observer.boundary('durable');
    }, failed);
  }

  #drop(commit: number): void {
    this.#open.delete(commit);
    this.#around.observer.dropped(commit);
  }

  /** A failed flush is never tried again: all that is not durable is gone, and the store with it. */
  #fail(): void {
    const failure = new StoreUnavailableError('the simulated disk failed');
    this.#failure = failure;
    this.#held = [];
    void this.#around.crash();
    for (const [commit, promises] of [...this.#open]) {
      this.#drop(commit);
      for (const { reject } of promises) reject(failure);
    }
  }

  #read<T>(read: () => Promise<T>): Promise<T> {
    if (this.#dead) return never();
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return read().then((answer) => (this.#dead ? never() : answer));
  }

  views: StoreSession['views'] = (ids) => this.#read(() => this.#inner.views(ids));
  taskIdOfKey: StoreSession['taskIdOfKey'] = (tenant, key, nowMs) =>
    this.#read(() => this.#inner.taskIdOfKey(tenant, key, nowMs));
  occurrence: StoreSession['occurrence'] = (id) => this.#read(() => this.#inner.occurrence(id));
  attempts: StoreSession['attempts'] = (id) => this.#read(() => this.#inner.attempts(id));
  listTasks: StoreSession['listTasks'] = (query) => this.#read(() => this.#inner.listTasks(query));
  listOccurrences: StoreSession['listOccurrences'] = (id, query) =>
    this.#read(() => this.#inner.listOccurrences(id, query));
  listDeadLetters: StoreSession['listDeadLetters'] = (query) =>
    this.#read(() => this.#inner.listDeadLetters(query));
  scanLive: StoreSession['scanLive'] = (query) => this.#read(() => this.#inner.scanLive(query));
  settings: StoreSession['settings'] = () => this.#read(() => this.#inner.settings());
  counts: StoreSession['counts'] = () => this.#read(() => this.#inner.counts());
  prune: StoreSession['prune'] = (nowMs, max) => this.#read(() => this.#inner.prune(nowMs, max));

  async close(): Promise<void> {
    if (this.#dead) return never();
    if (this.#failure === undefined) await this.#inner.close();
    else await this.#inner.close().catch(() => {});
  }
}

type Deferred<T> = { resolve: (value: T) => void; reject: (error: unknown) => void };

function rejected(error: Error): Commit {
  const promise = Promise.reject(error);
  promise.catch(() => {});
  return { visible: promise, durable: promise };
}
