/**
 * The Clock protocol. Two times: `now` is the wall clock (epoch ms; it can jump), `monotonic` only grows and
 * is for durations: timeouts, leases, rates. Nothing outside this folder calls setTimeout or Date.now.
 */
export interface Clock {
  /** Wall clock, epoch milliseconds, whole. */
  now(): number;
  /** Milliseconds since an arbitrary start, never going back; may have fractions. */
  monotonic(): number;
  /**
   * Calls `fire` once, when the wall clock has reached `wallMs` or monotonic time `monotonicMs`, whichever
   * comes first; both may be Infinity. Never early; a wall clock that is set forward is noticed within 30 s.
   */
  arm(at: WakeAt, fire: () => void): Disarm;
  /** Resolves after `ms` of monotonic time; rejects with `signal.reason` when aborted. */
  sleep(duration: number | string, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * Of a clock of real time: resolves when a loop whose last turn began at `lastMs` (monotonic) should have its next, which
   * on a busy thread is a few milliseconds later, so that work gathers. Without it turns follow as soon as they can.
   */
  pace?(lastMs: number): Promise<void>;
  /** A clock that is driven by hand asks its participants whether they are at rest before it moves on. */
  attach?(participant: ClockParticipant): Disarm;
}

export interface WakeAt {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export type Disarm = () => void;

/** What a virtual clock must know of those who live on it (the engine of each scheduler). */
export interface ClockParticipant {
  /** Work under way that needs no time to pass: events queued, a commit in flight, listeners being told. */
  busy(): boolean;
  /** Handlers entered that have neither ended nor wait on this clock, and were not given up on yet. */
  unsettledHandlers(): number;
  /** Their settle timeout has passed: leave them running and count them no more. */
  giveUpOnHandlers(): void;
}
