/**
 * Admission: the only gate that refuses work, and only creates pass it. Judged before anything is written, item
 * by item; retries, successors, redrives and finishes never ask.
 */
import { OverloadedError, QuotaExceededError, type TickwheelError } from '../core/errors.js';

export interface AdmissionOptions {
  readonly maxUnflushedBytes: number;
  readonly maxPendingOf: (tenant: string) => number | undefined;
  /** Bytes accepted by the store and not yet durable. */
  readonly unflushedBytes: () => number;
}

/** After how long a refused caller is likely to be let in: a few flushes, or a few ends of tasks. */
const RETRY_AFTER_MS = { overloaded: 50, quota: 1000 };

export class Admission {
  readonly #options: AdmissionOptions;
  /** Tasks that have not ended, by tenant; those on their way to the store included. */
  readonly #open: Map<string, number>;
  /** Refusals of one kind share one error: making it (its stack) costs more than all else of a refused create. */
  #overloaded: OverloadedError | undefined;
  /** Bytes accepted here that the store has not seen. */
  #queuedBytes = 0;

  constructor(options: AdmissionOptions, openTasks: Iterable<readonly [string, number]>) {
    this.#options = options;
    this.#open = new Map(openTasks);
  }

  get unflushedBytes(): number {
    return this.#queuedBytes + this.#options.unflushedBytes();
  }

  openTasks(tenant: string): number {
    return this.#open.get(tenant) ?? 0;
  }

  /** Lets a create in, or says why not; what is let in must be `settled` once the store has it, or not. */
  admit(tenant: string, bytes: number): TickwheelError | undefined {
    const refusal = this.refusal(tenant, bytes);
    if (refusal === undefined) this.readmit(tenant, bytes);
    return refusal;
  }

  /** Why a create would be refused now. */
  refusal(tenant: string, bytes: number): TickwheelError | undefined {
    const { maxUnflushedBytes, maxPendingOf } = this.#options;
    if (this.unflushedBytes + bytes > maxUnflushedBytes) {
      this.#overloaded ??= new OverloadedError(
        `${this.unflushedBytes} bytes wait for their flush; allowed: ${maxUnflushedBytes} (limits.maxUnflushedBytes)`,
        { retryAfterMs: RETRY_AFTER_MS.overloaded },
      );
      return this.#overloaded;
    }
    this.#overloaded = undefined;
    const maxPending = maxPendingOf(tenant);
    if (maxPending === undefined) return undefined;
    const open = this.openTasks(tenant);
    if (open < maxPending) return undefined;
    return new QuotaExceededError(
      `tenant '${tenant}' has ${open} tasks that have not ended; allowed: ${maxPending} (maxPending)`,
      { retryAfterMs: RETRY_AFTER_MS.quota },
    );
  }

  /** Tasks that have not ended, by tenant. */
  get open(): ReadonlyMap<string, number> {
    return this.#open;
  }

  /** Some task has not ended. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Nothing is between a caller and the store. */
  get isSettled(): boolean {
    return this.#queuedBytes === 0;
  }

  /** Takes over what the store counts. @returns the tenants of which another count was held here */
  correct(counted: ReadonlyMap<string, { readonly openTasks: number }>): string[] {
    const names = new Set([...this.#open.keys(), ...counted.keys()]);
    const wrong = [...names].filter(
      (name) => this.openTasks(name) !== (counted.get(name)?.openTasks ?? 0),
    );
    for (const name of wrong) {
      const openTasks = counted.get(name)?.openTasks ?? 0;
      if (openTasks > 0) this.#open.set(name, openTasks);
      else this.#open.delete(name);
    }
    return wrong;
  }

  /** Lets in without judging: what was admitted before and has to be tried again. */
  readmit(tenant: string, bytes: number): void {
    this.#queuedBytes += bytes;
    this.opened(tenant);
  }

  /** The store has taken over these bytes, or never will. */
  settled(bytes: number): void {
    this.#queuedBytes -= bytes;
  }

  opened(tenant: string): void {
    this.#open.set(tenant, this.openTasks(tenant) + 1);
  }

  /** A task has ended, or its create came to nothing. */
  closed(tenant: string): void {
    const open = this.openTasks(tenant) - 1;
    if (open > 0) this.#open.set(tenant, open);
    else this.#open.delete(tenant);
  }
}
