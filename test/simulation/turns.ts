/**
 * The turns of the simulated world, instead of those of the event loop: each is had as soon as all microtasks of the one
 * before have run, unless something real is under way (a store that writes its files): then everything stands still
 * until that is over. However long it takes, the world sees the same.
 */
import { replaceTurns } from '../../src/clock/turn.js';

export class Turns {
  readonly #queue: (() => void)[] = [];
  readonly #underWay: () => Promise<unknown> | undefined;
  #asked = false;

  /** @param underWay what must be over before the next turn */
  constructor(underWay: () => Promise<unknown> | undefined) {
    this.#underWay = underWay;
  }

  /** @returns what puts the event loop's own turns back */
  install(): () => void {
    return replaceTurns((run) => {
      this.#queue.push(run);
      this.#ask();
    });
  }

  /** Node calls what was given to `nextTick` when there is no microtask left, and without a look at timers and I/O. */
  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    process.nextTick(this.#turn);
  }

  readonly #turn = (): void => {
    const real = this.#underWay();
    if (real !== undefined) {
      const again = () => process.nextTick(this.#turn);
      real.then(again, again);
      return;
    }
    this.#asked = false;
    const run = this.#queue.shift();
    if (this.#queue.length > 0) this.#ask();
    run?.();
  };
}
