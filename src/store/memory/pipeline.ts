/**
 * A commit's way: queued → visible → durable, commits one behind the other. Without delays each step is a
 * microtask; with them the injected clock wakes it.
 *
 *   commit() ──microtask or commitDelay──→ applied, `visible` ──microtask or flushDelay──→ `durable`
 *
 * When a step fails, everything not yet durable is taken back, newest first, and the pipeline is dead: what a
 * store would find after a failed flush.
 */
import type { Clock, Disarm } from '../../clock/clock.js';
import { StoreFullError, StoreUnavailableError } from '../../core/errors.js';
import { bytesOf, Deferred } from '../commit-parts.js';
import type { Commit, Refusal, Unit } from '../store.js';
import type { Journal } from './journal.js';

export interface PipelineOptions {
  readonly clock: Clock;
  readonly commitDelayMs: number;
  readonly flushDelayMs: number;
  /** Undefined: what is visible counts as durable, and nothing need be kept to take it back. */
  readonly newJournal: (() => Journal) | undefined;
  apply(units: readonly Unit[], journal: Journal | undefined): readonly Refusal[];
  takeBack(journal: Journal): void;
  failCommit(): Error | undefined;
  failFlush(): Error | undefined;
}

interface Step {
  readonly units: readonly Unit[];
  readonly bytes: number;
  readonly visible: Deferred<readonly Refusal[]>;
  readonly durable: Deferred<void>;
  journal: Journal | undefined;
  /** The wait of the moment is over. */
  isDue: boolean;
  /** Ends a wait on the clock before its time. */
  disarm: Disarm | undefined;
}

export class Pipeline {
  readonly #options: PipelineOptions;
  /** Commits not yet visible, oldest first. */
  readonly #queued: Step[] = [];
  /** Visible and not yet durable, oldest first. */
  readonly #flushing: Step[] = [];
  #waits = 0;
  #unflushedBytes = 0;
  #failure: StoreUnavailableError | undefined;
  #whenIdle: (() => void)[] = [];

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  get unflushedBytes(): number {
    return this.#unflushedBytes;
  }

  get waitsForClock(): boolean {
    return this.#waits > 0;
  }

  get failure(): StoreUnavailableError | undefined {
    return this.#failure;
  }

  /** Of the newest commit that is not durable, if any: what is pruned now can be taken back with it. */
  get newestJournal(): Journal | undefined {
    return this.#flushing.at(-1)?.journal;
  }

  commit(units: readonly Unit[]): Commit {
    const visible = new Deferred<readonly Refusal[]>();
    const durable = new Deferred<void>();
    if (this.#failure !== undefined) {
      visible.reject(this.#failure);
      durable.reject(this.#failure);
    } else {
      const bytes = bytesOf(units);
      const step: Step = {
        units,
        bytes,
        visible,
        durable,
        journal: undefined,
        isDue: false,
        disarm: undefined,
      };
      this.#unflushedBytes += bytes;
      this.#queued.push(step);
      this.#after(this.#options.commitDelayMs, step, this.#makeVisible);
    }
    return { visible: visible.promise, durable: durable.promise };
  }

  /** Resolves when nothing is under way, also when that is so because all has failed. */
  idle(): Promise<void> {
    if (this.#queued.length + this.#flushing.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Takes back what is not durable; from now on everything rejects with `error`. */
  fail(error: StoreUnavailableError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    const flushing = this.#flushing.splice(0);
    const queued = this.#queued.splice(0);
    this.#unflushedBytes = 0;
    this.#waits = 0;
    for (const step of [...flushing, ...queued]) step.disarm?.();
    for (const { journal } of flushing.toReversed()) {
      if (journal !== undefined) this.#options.takeBack(journal);
    }
    for (const { journal, durable } of flushing) {
      // Without a journal it was kept.
      if (journal === undefined) durable.resolve();
      else durable.reject(error);
    }
    for (const { visible, durable } of queued) {
      visible.reject(error);
      durable.reject(error);
    }
    this.#tellIdle();
  }

  /** Clocks may wake two that are due at once in any order: a step goes when all before it have gone. */
  #after(delayMs: number, step: Step, go: () => void): void {
    step.isDue = false;
    if (delayMs <= 0) {
      queueMicrotask(() => {
        step.isDue = true;
        go();
      });
      return;
    }
    this.#waits += 1;
    const { clock } = this.#options;
    const at = { wallMs: Number.POSITIVE_INFINITY, monotonicMs: clock.monotonic() + delayMs };
    step.disarm = clock.arm(at, () => {
      this.#waits -= 1;
      step.disarm = undefined;
      step.isDue = true;
      go();
    });
  }

  readonly #makeVisible = (): void => {
    while (this.#queued.length > 0 && this.#queued[0].isDue) {
      const step = this.#queued[0];
      const error = this.#options.failCommit();
      if (error === undefined) {
        if (!this.#apply(step)) return;
      } else if (error instanceof StoreFullError) {
        this.#queued.shift();
        this.#refuse(step, error);
      } else {
        this.fail(unavailable(error));
        return;
      }
    }
  };

  /** False when the pipeline is dead. */
  #apply(step: Step): boolean {
    step.journal = this.#options.newJournal?.();
    let refusals: readonly Refusal[];
    try {
      refusals = this.#options.apply(step.units, step.journal);
    } catch (error) {
      if (error instanceof StoreFullError) {
        this.#queued.shift();
        this.#refuse(step, error);
        return true;
      }
      this.fail(unavailable(error));
      return false;
    }
    this.#queued.shift();
    this.#flushing.push(step);
    step.visible.resolve(refusals);
    this.#after(this.#options.flushDelayMs, step, this.#makeDurable);
    return true;
  }

  #refuse(step: Step, error: StoreFullError): void {
    this.#unflushedBytes -= step.bytes;
    step.visible.reject(error);
    step.durable.reject(error);
    if (this.#queued.length + this.#flushing.length === 0) this.#tellIdle();
  }

  readonly #makeDurable = (): void => {
    while (this.#flushing.length > 0 && this.#flushing[0].isDue) {
      const error = this.#options.failFlush();
      if (error !== undefined) {
        this.fail(unavailable(error));
        return;
      }
      const step = this.#flushing.shift() as Step;
      this.#unflushedBytes -= step.bytes;
      step.durable.resolve();
    }
    if (this.#queued.length + this.#flushing.length === 0) this.#tellIdle();
  };

  #tellIdle(): void {
    const waiting = this.#whenIdle;
    if (waiting.length === 0) return;
    this.#whenIdle = [];
    for (const resolve of waiting) resolve();
  }
}

function unavailable(cause: unknown): StoreUnavailableError {
  if (cause instanceof StoreUnavailableError) return cause;
  return new StoreUnavailableError('the memory store failed; open it again', { cause });
}
