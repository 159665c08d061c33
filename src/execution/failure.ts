/** What a thrown value means for the attempt. */
import { type StoredError, toStoredError } from '../core/errors.js';

export interface Failure {
  readonly error: StoredError;
  /** From UnrecoverableError. */
  readonly unrecoverable: boolean;
  /** From RetryAfterError, ms. */
  readonly retryAfterMs: number | undefined;
}

/** Errors are told by their code, so that they may come from another realm or copy of this library. */
export function failureOf(thrown: unknown): Failure {
  const error = toStoredError(thrown);
  return {
    error,
    unrecoverable: error.code === 'TICKWHEEL_UNRECOVERABLE',
    retryAfterMs: error.code === 'TICKWHEEL_RETRY_AFTER' ? delayOf(thrown) : undefined,
  };
}

function delayOf(thrown: unknown): number | undefined {
  try {
    const { delayMs, retryAfterMs } = thrown as { delayMs?: unknown; retryAfterMs?: unknown };
    const ms = delayMs ?? retryAfterMs;
    return typeof ms === 'number' && ms >= 0 ? ms : undefined;
  } catch {
    return undefined;
  }
}
