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
