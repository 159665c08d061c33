import { optionsOf, refuse } from '../core/arguments.js';
import { InvalidArgumentError } from '../core/errors.js';
import {
  type Duration,
  describe,
  type Instant,
  parseDurationMs,
  parseInstantMs,
} from '../core/units.js';
import type { Clock, ClockParticipant, Disarm, WakeAt } from './clock.js';
import { sleepOn } from './system.js';
import { nextTurn } from './turn.js';

interface Alarm {
  readonly at: WakeAt;
  readonly order: number;
  readonly fire: () => void;
  readonly isSleep: boolean;
  armed: boolean;
}

/** Turns of the event loop without any work after which everybody counts as at rest. */
const QUIET_TURNS = 2;
const OPTIONS = new Set(['settleTimeout'] as const);
/** Where a clock without a start begins. */
const DEFAULT_START_MS = Date.UTC(2026, 0, 1);

/**
 * A clock that moves only when told to, for tests: a delay of twelve hours passes in milliseconds.
 *
 * `advance` stops at each instant at which something is due, in order, and goes on when all who live on the
 * clock are at rest: commits done, listeners told, and every handler that was entered has ended or waits on
 * this clock. A handler that does neither within `settleTimeout` of real time is left running.
 */
export class VirtualClock implements Clock {
  #monotonicMs = 0;
  /** Wall clock minus monotonic time. */
  #wallOffsetMs: number;
  #order = 0;
  #sleepers = 0;
  readonly #alarms = new Set<Alarm>();
  readonly #participants = new Set<ClockParticipant>();
  readonly #settleTimeoutMs: number;
  #moving = false;

  /**
   * @param start the wall clock's first time, 1970 or later; default 2026-01-01T00:00Z
   * @throws InvalidArgumentError
   */
  constructor(start: Instant = DEFAULT_START_MS, options: { settleTimeout?: Duration } = {}) {
    this.#wallOffsetMs = sinceEpoch(parseInstantMs(start, 'VirtualClock start'), start);
    const { settleTimeout = 100 } = optionsOf(options, 'VirtualClock options', OPTIONS);
    this.#settleTimeoutMs = parseDurationMs(settleTimeout, 'settleTimeout');
  }

  /** Epoch milliseconds, whole: monotonic time may have fractions. */
  now(): number {
    return Math.floor(this.#monotonicMs + this.#wallOffsetMs);
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  /** Alarms armed now, sleeps not counted: one for each idle scheduler. */
  get armed(): number {
    return this.#alarms.size - this.#sleepers;
  }

  /** Calls of `sleep` that have not ended. */
  get sleepers(): number {
    return this.#sleepers;
  }

  arm(at: WakeAt, fire: () => void): Disarm {
    return this.#arm(at, fire, false);
  }

  sleep(duration: Duration, options: { signal?: AbortSignal } = {}): Promise<void> {
    const clock = {
      arm: (at: WakeAt, fire: () => void) => this.#arm(at, fire, true),
      monotonic: () => this.#monotonicMs,
    };
    return sleepOn(clock, duration, options.signal);
  }

  attach(participant: ClockParticipant): Disarm {
    this.#participants.add(participant);
    return () => this.#participants.delete(participant);
  }

  /**
   * Moves both times on by `duration`.
   * @throws InvalidArgumentError on a bad duration, or when another `advance` is under way
   */
  async advance(duration: Duration): Promise<void> {
    await this.#moveTo(this.#monotonicMs + parseDurationMs(duration, 'advance duration'));
  }

  /** Moves both times on until the wall clock shows `instant`; an earlier one only lets all come to rest. */
  async advanceTo(instant: Instant): Promise<void> {
    const wallMs = parseInstantMs(instant, 'advanceTo instant');
    await this.#moveTo(Math.max(this.#monotonicMs, wallMs - this.#wallOffsetMs));
  }

  /**
   * Sets the wall clock forward, or back with a negative number of ms or a string such as `'-1h'`; monotonic
   * time stands still. Resolves when all are at rest again.
   */
  async jumpWall(duration: Duration): Promise<void> {
    this.#wallOffsetMs += parseSignedMs(duration);
    this.#fireDue();
    await this.#settle();
  }

  async #moveTo(targetMs: number): Promise<void> {
    if (this.#moving) {
      throw new InvalidArgumentError(
        'advance was called while another advance is under way: await it',
      );
    }
    this.#moving = true;
    try {
      await this.#settle();
      for (;;) {
        const nextMs = this.#earliest();
        if (nextMs > targetMs) break;
        this.#monotonicMs = Math.max(this.#monotonicMs, nextMs);
        this.#fireDue();
        await this.#settle();
      }
      this.#monotonicMs = targetMs;
      await this.#settle();
    } finally {
      this.#moving = false;
    }
  }

  #arm(at: WakeAt, fire: () => void, isSleep: boolean): Disarm {
    const alarm: Alarm = { at, order: this.#order++, fire, isSleep, armed: true };
    this.#alarms.add(alarm);
    if (isSleep) this.#sleepers++;
    return () => this.#disarm(alarm);
  }

  #disarm(alarm: Alarm): void {
    if (!alarm.armed) return;
    alarm.armed = false;
    this.#alarms.delete(alarm);
    if (alarm.isSleep) this.#sleepers--;
  }

  /** When the alarm fires, in monotonic time as the wall clock stands now. */
  #dueMs(alarm: Alarm): number {
    return Math.min(alarm.at.monotonicMs, alarm.at.wallMs - this.#wallOffsetMs);
  }

  #earliest(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const alarm of this.#alarms) earliestMs = Math.min(earliestMs, this.#dueMs(alarm));
    return earliestMs;
  }

  #fireDue(): void {
    const due = [...this.#alarms].filter((alarm) => this.#dueMs(alarm) <= this.#monotonicMs);
    due.sort((a, b) => this.#dueMs(a) - this.#dueMs(b) || a.order - b.order);
    for (const alarm of due) {
      if (!alarm.armed) continue;
      this.#disarm(alarm);
      alarm.fire();
    }
  }

  async #settle(): Promise<void> {
    let quietTurns = 0;
    let unsettledBefore = -1;
    /** So many are left although all were given up: nothing that this clock could wait for. */
    let ignored = 0;
    let waitingSince = performance.now();
    while (quietTurns < QUIET_TURNS) {
      await nextTurn();
      if (this.#some((participant) => participant.busy())) {
        quietTurns = 0;
        continue;
      }
      const unsettled = this.#unsettled();
      if (unsettled <= ignored) {
        quietTurns++;
        continue;
      }
      quietTurns = 0;
      if (unsettled !== unsettledBefore) {
        unsettledBefore = unsettled;
        waitingSince = performance.now();
      } else if (performance.now() - waitingSince >= this.#settleTimeoutMs) {
        for (const participant of this.#participants) participant.giveUpOnHandlers();
        ignored = this.#unsettled();
      }
    }
  }

  #some(test: (participant: ClockParticipant) => boolean): boolean {
    for (const participant of this.#participants) if (test(participant)) return true;
    return false;
  }

  #unsettled(): number {
    let count = 0;
    for (const participant of this.#participants) count += participant.unsettledHandlers();
    return count;
  }
}

/** Wheels and ids count from 1970 on. */
function sinceEpoch(ms: number, given: unknown): number {
  if (ms < 0) refuse('VirtualClock start', given, '1970-01-01T00:00Z or later');
  return ms;
}

function parseSignedMs(duration: unknown): number {
  if (typeof duration === 'number' && Number.isSafeInteger(duration)) return duration;
  if (typeof duration === 'string') {
    const back = duration.startsWith('-');
    const ms = parseDurationMs(back ? duration.slice(1) : duration, 'jumpWall duration');
    return back ? -ms : ms;
  }
  throw new InvalidArgumentError(
    `jumpWall duration is ${describe(duration)}; allowed: whole milliseconds, negative ones too, or a string such as '1h' or '-1h'`,
  );
}
