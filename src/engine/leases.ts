/**
 * Leases of the attempts that this process has claimed. Renewed in rounds of a third of a lease as long as the executor
 * vouches for the worker; of one that is not heard of the lease runs out, and then the attempt has crashed.
 *
 * A round is written, all in one commit, where other processes may have the store open, for these judge by what is stored.
 * Where the store's lock keeps them out it is not: whoever opens the store next knows that its holder died, and with it
 * all that it ran, whatever the leases say.
 *
 * A loop that was itself away (stopped, asleep, blocked) for over a third of a lease may have missed what it would judge
 * by: it renews all leases first, and forgives silence.
 */
import type { AttemptEvent } from '../core/event.js';
import type { Executor } from '../execution/executor.js';
import type { ActiveRun, Runs } from './runs.js';

/** Renew a lease when a third of it has passed. */
const RENEWALS_A_LEASE = 3;

export interface LeaseOptions {
  readonly durationMs: number;
  /** Other processes may have the store open. */
  readonly isShared: boolean;
}

export class Leases {
  readonly #durationMs: number;
  readonly #isShared: boolean;
  readonly #runs: Runs;
  readonly #executor: Executor;
  /** Monotonic time of the next round; Infinity while nothing runs. */
  #roundAtMs = Number.POSITIVE_INFINITY;
  /** Monotonic time at which the lease of a run that nobody vouches for ends. */
  #expiryAtMs = Number.POSITIVE_INFINITY;
  #isAway = false;

  constructor({ durationMs, isShared }: LeaseOptions, runs: Runs, executor: Executor) {
    this.#durationMs = durationMs;
    this.#isShared = isShared;
    this.#runs = runs;
    this.#executor = executor;
  }

  /** Monotonic time at which `events` must be asked; Infinity when nothing runs. */
  get nextMs(): number {
    return Math.min(this.#roundAtMs, this.#expiryAtMs);
  }

  /** Something runs. */
  arm(monotonicMs: number): void {
    if (this.#roundAtMs === Number.POSITIVE_INFINITY) this.#armRound(monotonicMs);
  }

  /** Nothing runs: nothing is to be renewed, and nobody woken for it. */
  disarm(): void {
    this.#roundAtMs = Number.POSITIVE_INFINITY;
    this.#expiryAtMs = Number.POSITIVE_INFINITY;
  }

  #armRound(monotonicMs: number): void {
    this.#roundAtMs = monotonicMs + Math.ceil(this.#durationMs / RENEWALS_A_LEASE);
  }

  /** The attempt was claimed, or its worker heard of. @returns the wall clock time until which it has its lease */
  grant(run: ActiveRun, nowMs: number, monotonicMs: number): number {
    run.leaseUntil = nowMs + this.#durationMs;
    run.leaseEndsMs = monotonicMs + this.#durationMs;
    return run.leaseUntil;
  }

  /**
   * To be called at the beginning of a turn, before anything is judged. When the loop was away, silence says nothing
   * about the handlers.
   */
  noticeAway(monotonicMs: number): void {
    const lateMs = monotonicMs - this.nextMs;
    this.#isAway = lateMs > this.#durationMs / RENEWALS_A_LEASE;
    if (!this.#isAway) return;
    this.#roundAtMs = monotonicMs;
    for (const run of this.#runs.all()) {
      const timeoutMs = run.active.draft?.task.policies.heartbeatTimeoutMs;
      if (timeoutMs !== undefined && run.entered) run.silentAtMs = monotonicMs + timeoutMs;
    }
  }

  /** Renewals that are to be written, and attempts whose lease has run out. */
  events(nowMs: number, monotonicMs: number, expire: (run: ActiveRun) => AttemptEvent) {
    const due: [ActiveRun, AttemptEvent][] = [];
    if (monotonicMs < this.nextMs) return due;
    if (this.#runs.size === 0) {
      this.disarm();
      return due;
    }
    const isRound = monotonicMs >= this.#roundAtMs;
    if (isRound) this.#armRound(monotonicMs);
    this.#expiryAtMs = Number.POSITIVE_INFINITY;
    for (const run of [...this.#runs.all()]) {
      // Not given to the executor yet.
      if (!run.given) continue;
      const isVouchedFor = this.#isAway || this.#executor.vouchesFor?.(run.runId) !== false;
      if (isVouchedFor) {
        if (isRound) this.#renew(run, nowMs, monotonicMs, due);
      } else if (run.leaseEndsMs <= monotonicMs) due.push([run, expire(run)]);
      else this.#expiryAtMs = Math.min(this.#expiryAtMs, run.leaseEndsMs);
    }
    if (this.#runs.size === 0) this.disarm();
    return due;
  }

  #renew(
    run: ActiveRun,
    nowMs: number,
    monotonicMs: number,
    due: [ActiveRun, AttemptEvent][],
  ): void {
    // Renewed or claimed a moment ago: it can wait for the next round. By monotonic time: the wall clock may have gone back.
    if (monotonicMs + this.#durationMs - run.leaseEndsMs < 1) return;
    const { occurrenceId, fencingToken: token } = run;
    const leaseUntil = this.grant(run, nowMs, monotonicMs);
    if (!this.#isShared) return;
    due.push([run, { kind: 'renew', occurrenceId, token, leaseUntil }]);
  }
}
