/** A bug, not an operational error: an invariant of this library does not hold. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Kept on in production: a broken invariant must stop the process's work before it spreads. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(`tickwheel bug: ${message}`);
}

/** The default branch of an exhausted union. */
export function unreachable(value: never): never {
  throw new AssertionError(`tickwheel bug: unexpected ${JSON.stringify(value)}`);
}
