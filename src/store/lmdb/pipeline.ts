/**
 * Commits on their way: decided → written (visible) → flushed (durable).
 *
 *   commit() → queue → decided over all before it, puts handed over → visible → durable
 *
 * Several may be between decided and visible: each asks lmdb-js for its predecessor's number within its transaction, so
 * that one which builds on a failed one changes nothing. A store without space fails those on their way, is read
 * again from the disk, and goes on; any other failure ends it until it is opened again.
 */

import type { Clock } from '../../clock/clock.js';
import { inNextTurn, nextTurn } from '../../clock/turn.js';
import { StoreFullError, StoreUnavailableError } from '../../core/errors.js';
import { bytesOf, Deferred } from '../commit-parts.js';
import type { Commit, Refusal, Unit } from '../store.js';
import type { Arena, Writer } from './bytes.js';
import type { CommitContext } from './due/commit-context.js';
import type { Environment } from './environment.js';
import { ReaderGate } from './reader-gate.js';
import { translated } from './translated.js';

export interface PipelineParts {
  readonly env: Environment;
  readonly clock: Clock;
  readonly writer: Writer;
  apply(units: readonly Unit[], context: CommitContext): readonly Refusal[];
  /** Queues all puts of the commit. */
  finish(context: CommitContext): void;
  visible(commit: number): void;
  /**
   * Work that can wait, a bounded piece of it as part of a commit, when nothing else is under way. False: there is no
   * more for now.
   */
  idle(): boolean;
  /** True when a commit with nothing else in it would tidy up. */
  hasLeftovers(visible: number): boolean;
  /** A commit failed: what is in memory is to be read again. */
  reload(): void;
}

/** Changes beside callers' units; to be decided when all that was committed before is visible. */
export type Operation = (context: CommitContext) => void;

interface Step {
  readonly units: readonly Unit[];
  readonly operation: Operation | undefined;
  readonly bytes: number;
  readonly visible: Deferred<readonly Refusal[]>;
  readonly durable: Deferred<void>;
}

/** A commit that was handed over. */
interface Sent {
  readonly number: number;
  readonly step: Step;
  readonly puts: number;
  readonly refusals: readonly Refusal[];
  /** What it was written in. */
  readonly arenas: readonly Arena[];
}

/** Transactions between decided and visible. Above 300,000 puts lmdb-js would block this thread. */
const WRITING_MAX = 4;
const PUTS_MAX = 100_000;

export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #queue: Step[] = [];
  readonly #chainByte: Arena;
  /** Number of the newest commit that was handed over; of the newest that is visible. */
  #number: number;
  #visible: number;
  #writing = 0;
  #putsWriting = 0;
  /** Not yet durable or failed, the queued included. */
  #open = 0;
  #unflushedBytes = 0;
  #failure: Error | undefined;
  /** What the commits on their way fail with. */
  #failing: Error | undefined;
  /** Why they fail, asked of lmdb-js. */
  #cause: Promise<unknown> | undefined;
  /** Handed over and not yet visible, in order. */
  readonly #unseen: Sent[] = [];
  #lastVisible: Promise<unknown> = Promise.resolve();
  #lastDurable: Promise<unknown> = Promise.resolve();
  #whenIdle: (() => void)[] = [];
  /** There may be work that can wait; its turn has been asked for. */
  #hasIdleWork = true;
  #resting = false;
  #closing = false;
  readonly #gate: ReaderGate;

  constructor(parts: PipelineParts, chainByte: Arena) {
    this.#parts = parts;
    this.#chainByte = chainByte;
    this.#gate = new ReaderGate(parts.env.path);
    this.#number = parts.env.newestCommit();
    this.#visible = this.#number;
    parts.env.hearVisible(() => this.#look());
    this.#rest();
  }

  get unflushedBytes(): number {
    return this.#unflushedBytes;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  get visibleCommit(): number {
    return this.#visible;
  }

  commit(units: readonly Unit[]): Commit {
    return this.#enter(units, undefined);
  }

  /** Resolves when what the operation changed is visible. */
  async run(operation: Operation): Promise<void> {
    const { visible, durable } = this.#enter([], operation);
    durable.catch(() => {});
    await visible;
  }

  #enter(units: readonly Unit[], operation: Operation | undefined): Commit {
    const visible = new Deferred<readonly Refusal[]>();
    const durable = new Deferred<void>();
    if (this.#failure !== undefined) {
      visible.reject(this.#failure);
      durable.reject(this.#failure);
    } else {
      const bytes = bytesOf(units);
      this.#unflushedBytes += bytes;
      this.#open += 1;
      this.#queue.push({ units, operation, bytes, visible, durable });
      this.#advance();
    }
    return { visible: visible.promise, durable: durable.promise };
  }

  /**
   * Resolves when nothing is under way, also when that is so because all has failed. Nothing may be committed after it was
   * called.
   */
  close(): Promise<void> {
    this.#closing = true;
    return this.atRest() ?? Promise.resolve();
  }

  /** Resolves when nothing is under way; undefined: that is so now. */
  atRest(): Promise<void> | undefined {
    if (this.#open === 0) return undefined;
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Decides what may be decided now. */
  #advance(): void {
    while (this.#failure === undefined && this.#cause === undefined) {
      const step = this.#queue[0];
      if (step === undefined) break;
      if (this.#writing >= WRITING_MAX || this.#putsWriting > PUTS_MAX) break;
      if (this.#writing > 0 && asksForQuiet(step)) break;
      if (this.#gate.isShut(() => this.#advance())) break;
      this.#queue.shift();
      this.#start(step);
    }
  }

  #start(step: Step): void {
    const { env, writer, clock } = this.#parts;
    const number = this.#number + 1;
    const nowMs = clock.now();
    const context: CommitContext = { number, visible: this.#visible, nowMs, writer };
    let refusals: readonly Refusal[] = [];
    try {
      if (step.units.length > 0) {
        refusals = this.#parts.apply(step.units, context);
        this.#hasIdleWork = true;
      }
      step.operation?.(context);
      this.#parts.finish(context);
    } catch (error) {
      // Half of it is decided, in memory only.
      env.log.clear();
      this.#settle(step, translated(error, env.file));
      this.#fail(translated(error, env.file));
      return;
    }
    const puts = env.log.size;
    if (puts === 0) this.#follow(step, refusals);
    else this.#write(step, number, puts, refusals);
  }

  /** There is nothing to write: it is visible and durable when all before it is. */
  #follow(step: Step, refusals: readonly Refusal[]): void {
    const fail = (error: Error): void => this.#settle(step, error);
    this.#lastVisible.then(() => step.visible.resolve(refusals), fail);
    Promise.all([this.#lastVisible, this.#lastDurable]).then(() => this.#flushed(step), fail);
  }

  #write(step: Step, number: number, puts: number, refusals: readonly Refusal[]): void {
    const { env, writer } = this.#parts;
    const before = this.#number;
    this.#number = number;
    this.#writing += 1;
    this.#putsWriting += puts;
    const { visible, flushed } = env.commit(before, number, this.#chainByte);
    const sent: Sent = { number, step, puts, refusals, arenas: writer.takeArenas() };
    this.#unseen.push(sent);
    this.#lastVisible = step.visible.promise;
    this.#lastDurable = step.durable.promise;
    step.visible.promise.catch(() => {});
    step.durable.promise.catch(() => {});
    visible.then(
      (isWritten) => {
        if (this.#visible >= number) return;
        if (isWritten && this.#cause === undefined) this.#seen(sent);
        else this.#notWritten(sent, new Error('a commit before it failed'));
      },
      (error) => this.#notWritten(sent, error),
    );
    flushed.catch(() => {});
    // A flush that ends before its commit was told would be out of order; one of a refused commit tells nothing.
    step.visible.promise.then(
      () =>
        flushed.then(
          () => this.#flushed(step),
          (error) => this.#flushFailed(step, error),
        ),
      () => {},
    );
  }

  /** A transaction was made visible, before its flush: those of its commits that wait are told now. */
  #look(): void {
    if (this.#unseen.length === 0 || this.#cause !== undefined) return;
    const { env } = this.#parts;
    env.renew();
    const newest = env.newestCommit();
    while (this.#unseen.length > 0 && this.#unseen[0].number <= newest) this.#seen(this.#unseen[0]);
  }

  /** It is visible. */
  #seen(sent: Sent): void {
    const { number, step, refusals } = sent;
    this.#over(sent);
    this.#visible = number;
    this.#parts.visible(number);
    step.visible.resolve(refusals);
    this.#advance();
    this.#tidy();
  }

  /** Its transaction has ended, well or not. */
  #over(sent: Sent): void {
    const at = this.#unseen.indexOf(sent);
    if (at >= 0) this.#unseen.splice(at, 1);
    this.#writing -= 1;
    this.#putsWriting -= sent.puts;
    this.#parts.writer.giveBack(sent.arenas);
  }

  #notWritten(sent: Sent, error: unknown): void {
    const { number, step } = sent;
    if (this.#visible >= number) {
      // Readers saw it already, so it was its flush that failed.
      this.#flushFailed(step, error);
      return;
    }
    this.#cause ??= this.#causeOf(error);
    // Until the cause is known it counts as on its way, so that nothing is decided over what it left in memory.
    void this.#cause.then((cause) => {
      this.#over(sent);
      this.#refused(step, cause);
    });
  }

  #flushFailed(step: Step, error: unknown): void {
    this.#fail(unavailable(error));
    this.#settle(step, this.#failure ?? unavailable(error));
  }

  /** What was left until now to be removed, when nobody else has a commit for it. */
  #tidy(): void {
    if (this.#writing > 0 || this.#queue.length > 0 || this.#failure !== undefined) return;
    if (this.#parts.hasLeftovers(this.#visible)) void this.run(() => {}).catch(() => {});
  }

  #flushed(step: Step): void {
    if (step.durable.isSettled) return;
    this.#unflushedBytes -= step.bytes;
    this.#close();
    step.durable.resolve();
  }

  /** lmdb-js tells why in a promise of its own. */
  async #causeOf(error: unknown): Promise<unknown> {
    const told = (error as { commitError?: PromiseLike<unknown> }).commitError;
    if (told === undefined) return error;
    const unknown = (async () => {
      for (let turns = 0; turns < 100; turns++) await nextTurn();
      return error;
    })();
    return Promise.race([
      Promise.resolve(told).then(
        () => error,
        (cause) => cause,
      ),
      unknown,
    ]);
  }

  #refused(step: Step, cause: unknown): void {
    this.#failing ??= translated(cause, this.#parts.env.file);
    this.#settle(step, this.#failing);
    if (this.#writing > 0) return;
    const failing = this.#failing;
    if (!(failing instanceof StoreFullError)) {
      this.#fail(failing);
      return;
    }
    try {
      this.#parts.reload();
      this.#number = this.#parts.env.newestCommit();
      this.#visible = this.#number;
    } catch (error) {
      this.#fail(translated(error, this.#parts.env.file));
      return;
    }
    this.#failing = undefined;
    this.#cause = undefined;
    this.#lastVisible = Promise.resolve();
    this.#lastDurable = Promise.resolve();
    this.#advance();
  }

  /** Everything rejects from now on. */
  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = unavailable(error);
    for (const step of this.#queue.splice(0)) this.#settle(step, this.#failure);
  }

  #settle(step: Step, error: Error): void {
    step.visible.reject(error);
    if (step.durable.isSettled) return;
    this.#unflushedBytes -= step.bytes;
    step.durable.reject(error);
    this.#close();
  }

  #close(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    const waiting = this.#whenIdle;
    this.#whenIdle = [];
    for (const resolve of waiting) resolve();
    this.#rest();
  }

  /** Nothing is under way: time for what can wait, in a turn of its own. */
  #rest(): void {
    if (this.#resting) return;
    this.#resting = true;
    inNextTurn(() => {
      this.#resting = false;
      const isIdle = this.#open === 0 && this.#failure === undefined && !this.#closing;
      if (!isIdle || !this.#hasIdleWork) return;
      const work = (): void => {
        this.#hasIdleWork = this.#parts.idle();
      };
      this.run(work).catch(() => {
        this.#hasIdleWork = false;
      });
    });
  }
}

/** Their changes read ranges, which must not hold what is not visible yet. */
function asksForQuiet({ units, operation }: Step): boolean {
  if (operation !== undefined) return true;
  for (const unit of units) if (unit.remove !== undefined) return true;
  return false;
}

function unavailable(cause: unknown): Error {
  if (cause instanceof StoreUnavailableError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailableError(`the store failed, open it again: ${message}`, { cause });
}
