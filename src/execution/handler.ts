/** What users write: handlers, maps of them, and the context that a handler is given. */
import type { Clock } from '../clock/clock.js';
import { InvalidArgumentError } from '../core/errors.js';
import type { Duration } from '../core/units.js';
import { describe } from '../core/units.js';
import type { Logger } from '../observe/log.js';

/** Runs one attempt. What it returns is the result; what it throws fails the attempt. */
// biome-ignore lint/suspicious/noExplicitAny: any payload and result, so that typed handlers fit in a map
export type Handler<P = any, R = any> = (payload: P, ctx: Context) => R | PromiseLike<R>;

/** Handlers by name; a plain function is version 1. */
export type HandlerMap = { [name: string]: Handler | { [version: number]: Handler } };

/** The handlers of a module: its default export, or its exported functions. */
export type HandlersOf<M extends object> = string extends keyof M
  ? HandlerMap
  : M extends { default: infer D extends HandlerMap }
    ? D
    : { [K in keyof M as M[K] extends Handler ? K : never]: M[K] };

/** What a handler knows of its attempt, and can do. Its methods may be taken apart from it. */
export interface Context {
  readonly taskId: string;
  /** Stable across retries: the key for the handler's effects. */
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number;
  /** 1-based, crashes included. */
  readonly attempt: number;
  /** Failures still allowed after this attempt. */
  readonly retriesLeft: number;
  /** A safe integer that only grows from attempt to attempt. */
  readonly fencingToken: number;
  /** The time that the schedule names. */
  readonly nominalAt: Date;
  /** The time from which it was allowed to start. */
  readonly dueAt: Date;
  /** What the last attempt reported; a value of its own. */
  readonly progress: unknown;
  /**
   * Aborted with an AbortedError when the attempt is cancelled, timed out, or the scheduler stops. On a thread
   * `signal.aborted` is up to date even in a loop that never yields.
   */
  readonly signal: AbortSignal;
  /** On the scheduler's clock. Rejects with `signal.reason`. */
  readonly sleep: (duration: Duration) => Promise<void>;
  /**
   * Says that the attempt is alive, and how far it has come.
   * @throws PayloadNotSerializableError, PayloadTooLargeError; LeaseLostError once the attempt was given up
   */
  readonly heartbeat: (progress?: unknown) => void;
  /** Schedules another task, of this tenant unless the options say otherwise; as `Scheduler.schedule`. */
  readonly schedule: (
    handler: string,
    payload?: unknown,
    options?: object,
  ) => Promise<ScheduledTask>;
  readonly log: Logger;
  /** The scheduler's clock. */
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
}

/** A task as plain data. */
export interface ScheduledTask {
  readonly id: string;
  /** False: it existed under the same idempotency key. */
  readonly created: boolean;
  readonly [field: string]: unknown;
}

/** The handlers of one process or thread, checked. */
export class HandlerTable {
  readonly #versions = new Map<string, ReadonlyMap<number, Handler>>();

  /** @throws InvalidArgumentError on a name or version that is none, or a value that is no function */
  constructor(handlers: unknown) {
    if (typeof handlers !== 'object' || handlers === null || Array.isArray(handlers)) {
      throw new InvalidArgumentError(
        `handlers is ${describe(handlers)}; allowed: an object of functions by name`,
      );
    }
    for (const [name, handler] of Object.entries(handlers)) {
      if (name === '') throw new InvalidArgumentError("a handler's name is empty");
      this.#versions.set(name, versionsOf(name, handler));
    }
  }

  get(name: string, version: number): Handler | undefined {
    return this.#versions.get(name)?.get(version);
  }

  /** Names, and the versions of each in ascending order. */
  list(): Map<string, readonly number[]> {
    const list = new Map<string, readonly number[]>();
    for (const [name, versions] of this.#versions) {
      list.set(
        name,
        [...versions.keys()].sort((a, b) => a - b),
      );
    }
    return list;
  }
}

function versionsOf(name: string, handler: unknown): ReadonlyMap<number, Handler> {
  if (typeof handler === 'function') return new Map([[1, handler as Handler]]);
  const versions = new Map<number, Handler>();
  for (const [key, each] of Object.entries(isRecord(handler) ? handler : {})) {
    const version = Number(key);
    const named = Number.isSafeInteger(version) && version >= 1 && String(version) === key;
    if (!named || typeof each !== 'function') {
      throw new InvalidArgumentError(
        `handler '${name}' has ${describe(each)} as version '${key}'; allowed: functions by whole numbers ≥ 1`,
      );
    }
    versions.set(version, each as Handler);
  }
  if (versions.size > 0) return versions;
  throw new InvalidArgumentError(
    `handler '${name}' is ${describe(handler)}; allowed: a function, or functions by version`,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The handlers that a module holds: its default export, or its exported functions. */
export function handlersOfModule(module: object): HandlerTable {
  if ('default' in module) return new HandlerTable(module.default);
  const exported = Object.entries(module).filter(([, each]) => typeof each === 'function');
  return new HandlerTable(Object.fromEntries(exported));
}
