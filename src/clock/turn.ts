/** Resolves in a later turn of the event loop: after I/O had its chance and every microtask has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Calls `run` in a later turn of the event loop. */
export function inNextTurn(run: () => void): void {
  setImmediate(run);
}
