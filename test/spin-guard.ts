/** Finds a loop that spins: it arms an alarm for a time that has come, is woken at once, and does so again and again. */
import type { WakeAt } from '../src/clock/clock.js';

/** Alarms for what is due already, at one instant. A crowd needs some: a turn takes a part of it. */
const AT_ONCE_MAX = 10_000;

export class SpinGuard {
  #instant = '';
  #atOnce = 0;

  /** What is wrong, if this is one alarm too many. */
  armed(at: WakeAt, wallMs: number, monotonicMs: number): string | undefined {
    if (at.wallMs > wallMs && at.monotonicMs > monotonicMs) return undefined;
    const instant = `${wallMs}/${monotonicMs}`;
    if (instant !== this.#instant) {
      this.#instant = instant;
      this.#atOnce = 0;
    }
    if (++this.#atOnce <= AT_ONCE_MAX) return undefined;
    return `the loop spins: at ${instant} it was armed for ${at.wallMs}/${at.monotonicMs} again`;
  }
}
