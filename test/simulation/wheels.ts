/**
 * Wheels made before they are needed: WebAssembly takes an instance to the world in real time, and how many turns of the
 * event loop that takes would be another thing in each run.
 */
import { TimerWheel } from '../../src/index.js';

/** Wheels that one step may take: for a start, and for a clock that was set back. */
const SPARE = 4;

export class Wheels {
  readonly #spare: TimerWheel[] = [];

  /** To be called when all are at rest. */
  async fill(): Promise<void> {
    while (this.#spare.length < SPARE) this.#spare.push(await TimerWheel.create({ startTick: 0 }));
  }

  take(startTick: number): Promise<TimerWheel> {
    const wheel = this.#spare.pop();
    if (wheel === undefined) throw new Error('a step took more wheels than were made for it');
    wheel.advance(startTick);
    return Promise.resolve(wheel);
  }
}
