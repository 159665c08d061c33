/**
 * The context of one attempt. Made for every run, so that all that a handler may not ask for (dates, the signal,
 * methods bound to it) is made when it is asked for.
 */
import type { Clock } from '../clock/clock.js';
import { AbortedError, type AbortReason } from '../core/errors.js';
import type { Duration } from '../core/units.js';
import type { Logger } from '../observe/log.js';
import type { Run } from './executor.js';
import type { Context, ScheduledTask } from './handler.js';

/** Where a context lives: in the scheduler's process or on a thread. */
export interface Surroundings {
  readonly log: Logger;
  clockOf(ctx: RunContext): Pick<Clock, 'now' | 'sleep'>;
  sleep(ctx: RunContext, duration: Duration): Promise<void>;
  heartbeat(ctx: RunContext, progress: unknown): void;
  schedule(
    ctx: RunContext,
    handler: string,
    payload: unknown,
    options: object | undefined,
  ): Promise<unknown>;
  decode(bytes: Uint8Array): unknown;
  /** A controller's signal; a thread makes `aborted` look at shared memory. */
  makeSignal?(ctx: RunContext, controller: AbortController): AbortSignal;
}

/** For a logger without children, such as `console`: its fields with these before them. */
function withFields(log: Logger, bindings: object): Logger {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object | string, message?: string): void => {
      if (typeof fields === 'string') log[level](bindings, fields);
      else log[level]({ ...bindings, ...fields }, message);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** What of a run its context tells. */
export type RunFacts = Omit<Run, 'payload' | 'alone'>;

export class RunContext implements Context {
  readonly run: RunFacts;
  readonly #surroundings: Surroundings;
  #controller: AbortController | undefined;
  #aborted: AbortedError | undefined;

  constructor(run: RunFacts, surroundings: Surroundings) {
    this.run = run;
    this.#surroundings = surroundings;
  }

  get taskId(): string {
    return this.run.taskId;
  }
  get occurrenceId(): string {
    return this.run.occurrenceId;
  }
  get tenant(): string {
    return this.run.tenant;
  }
  get handler(): string {
    return this.run.handler;
  }
  get handlerVersion(): number {
    return this.run.handlerVersion;
  }
  get attempt(): number {
    return this.run.attempt;
  }
  get retriesLeft(): number {
    return this.run.retriesLeft;
  }
  get fencingToken(): number {
    return this.run.fencingToken;
  }
  get nominalAt(): Date {
    return new Date(this.run.nominalAt);
  }
  get dueAt(): Date {
    return new Date(this.run.dueAt);
  }
  get progress(): unknown {
    const { progress } = this.run;
    return progress === undefined ? undefined : this.#surroundings.decode(progress);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
      this.#surroundings.makeSignal?.(this, this.#controller);
    }
    return this.#controller.signal;
  }

  get sleep(): (duration: Duration) => Promise<void> {
    return (duration) => this.#surroundings.sleep(this, duration);
  }
  get heartbeat(): (progress?: unknown) => void {
    return (progress) => this.#surroundings.heartbeat(this, progress);
  }
  get schedule(): Context['schedule'] {
    return (handler, payload, options) =>
      this.#surroundings.schedule(this, handler, payload, options) as Promise<ScheduledTask>;
  }
  get clock(): Pick<Clock, 'now' | 'sleep'> {
    return this.#surroundings.clockOf(this);
  }
  get log(): Logger {
    const { log } = this.#surroundings;
    const { taskId, occurrenceId, attempt } = this.run;
    const ids = { taskId, occurrenceId, attempt };
    return log.child === undefined ? withFields(log, ids) : log.child(ids);
  }

  /** The first reason stays. */
  abort(why: AbortReason, message: string): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = new AbortedError(message, { why });
    this.#controller?.abort(this.#aborted);
  }
}
