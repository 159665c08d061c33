type Later = (run: () => void) => void;

let later: Later = (run) => void setImmediate(run);

/** Resolves in a later turn of the event loop: after I/O had its chance and every microtask has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => later(resolve));
}

/** Calls `run` in a later turn of the event loop. */
export function inNextTurn(run: () => void): void {
  later(run);
}

/**
 * For a simulator, which decides itself when the next turn is had, so that a run can be repeated. `given` must call
 * what it is given in order, each after every microtask of the one before.
 * @returns what puts the event loop's own turns back
 */
export function replaceTurns(given: Later): () => void {
  const before = later;
  later = given;
  return () => {
    later = before;
  };
}

/** About 2 ms of reading tasks. */
const UNITS_A_TURN = 200;

/**
 * Lets the event loop have a turn now and then while a caller makes one call after the other that needs none: promises alone
 * would keep timers and I/O of its thread waiting, and with them all due work, until the last of them.
 */
export class Pauses {
  #units = 0;
  #isCounting = false;

  /** To be awaited by a call that has done so much: in a later turn, if much was done since the last. */
  async after(units: number): Promise<void> {
    this.#units += units;
    if (this.#units >= UNITS_A_TURN) {
      this.#units = 0;
      await nextTurn();
      return;
    }
    if (this.#isCounting) return;
    this.#isCounting = true;
    inNextTurn(() => {
      this.#isCounting = false;
      this.#units = 0;
    });
  }
}
