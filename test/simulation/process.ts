/**
 * The clock of one process of the world: it can be stopped (SIGSTOP: alarms come when it goes on), and ends with the
 * process. The world's own clock knows nothing of that.
 */
import type { Clock, ClockParticipant, Disarm, WakeAt } from '../../src/clock/clock.js';
import { sleepOn } from '../../src/clock/system.js';
import type { VirtualClock } from '../../src/index.js';
import { SpinGuard } from '../spin-guard.js';

export class ProcessClock implements Clock {
  readonly #world: VirtualClock;
  readonly #ends = new Set<Disarm>();
  readonly #guard = new SpinGuard();
  readonly #fault: (message: string) => void;
  #state: 'running' | 'stopped' | 'dead' = 'running';
  /** Alarms that came while it was stopped. */
  #held: (() => void)[] = [];
  /** A broken variant's clock is wrong by this much (ms). */
  readonly skewMs: number;

  constructor(world: VirtualClock, fault: (message: string) => void, skewMs = 0) {
    this.#world = world;
    this.#fault = fault;
    this.skewMs = skewMs;
  }

  now(): number {
    return this.#world.now() + this.skewMs;
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  arm(at: WakeAt, fire: () => void): Disarm {
    if (this.#state === 'dead') return () => {};
    const spins = this.#guard.armed(at, this.now(), this.monotonic());
    if (spins !== undefined) {
      this.#fault(spins);
      return () => {};
    }
    let over = false;
    const run = () => {
      if (over || this.#state === 'dead') return;
      over = true;
      this.#ends.delete(end);
      fire();
    };
    const disarm = this.#world.arm({ ...at, wallMs: at.wallMs - this.skewMs }, () => {
      if (this.#state === 'stopped') this.#held.push(run);
      else run();
    });
    const end = () => {
      over = true;
      this.#ends.delete(end);
      disarm();
    };
    this.#ends.add(end);
    return end;
  }

  sleep(duration: number | string, options: { signal?: AbortSignal } = {}): Promise<void> {
    return sleepOn(this, duration, options.signal);
  }

  attach(participant: ClockParticipant): Disarm {
    const isHere = () => this.#state === 'running';
    const detach = this.#world.attach({
      busy: () => isHere() && participant.busy(),
      unsettledHandlers: () => (isHere() ? participant.unsettledHandlers() : 0),
      giveUpOnHandlers: () => participant.giveUpOnHandlers(),
    });
    this.#ends.add(detach);
    return () => {
      this.#ends.delete(detach);
      detach();
    };
  }

  stop(): void {
    this.#state = 'stopped';
  }

  goOn(): void {
    if (this.#state !== 'stopped') return;
    this.#state = 'running';
    for (const run of this.#held.splice(0)) run();
  }

  kill(): void {
    this.#state = 'dead';
    this.#held = [];
    for (const end of [...this.#ends]) end();
  }
}
