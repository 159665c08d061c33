import { signalOf } from '../core/arguments.js';
import { AbortedError } from '../core/errors.js';
import { parseDurationMs } from '../core/units.js';
import type { Clock, Disarm, WakeAt } from './clock.js';
import { pace } from './pace.js';

/**
 * The longest time that is slept at once. A timer counts monotonic time, so a wall clock that was set
 * forward meanwhile (or a machine that slept) is only noticed on waking. Also far below setTimeout's
 * limit of 2³¹ − 1 ms, above which Node fires at once.
 */
const SLEEP_MAX_MS = 30_000;

/** The machine's clocks: `Date.now` and `performance.now`. */
export function systemClock(): Clock {
  return SYSTEM;
}

const SYSTEM: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  arm,
  sleep,
  pace,
};

function arm(at: WakeAt, fire: () => void): Disarm {
  let timer: NodeJS.Timeout | undefined;
  const check = (): void => {
    const leftMs = Math.min(at.wallMs - Date.now(), at.monotonicMs - performance.now());
    // Node's timers may be up to a millisecond early: look again rather than fire early.
    if (leftMs <= 0) fire();
    else timer = setTimeout(check, Math.min(Math.ceil(leftMs), SLEEP_MAX_MS));
  };
  const leftMs = Math.min(at.wallMs - Date.now(), at.monotonicMs - performance.now());
  timer = setTimeout(check, Math.min(Math.max(Math.ceil(leftMs), 0), SLEEP_MAX_MS));
  return () => clearTimeout(timer);
}

function sleep(duration: number | string, options?: { signal?: AbortSignal }): Promise<void> {
  return sleepOn(SYSTEM, duration, options?.signal);
}

/** `Clock.sleep` in terms of `arm`, for any clock. */
export function sleepOn(
  clock: Pick<Clock, 'arm' | 'monotonic'>,
  duration: number | string,
  given: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const ms = parseDurationMs(duration, 'sleep duration');
    const signal = signalOf(given);
    if (signal?.aborted) {
      reject(reasonOf(signal));
      return;
    }
    const onAbort = (): void => {
      disarm();
      reject(reasonOf(signal as AbortSignal));
    };
    const wakeAt = { wallMs: Number.POSITIVE_INFINITY, monotonicMs: clock.monotonic() + ms };
    const disarm = clock.arm(wakeAt, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function reasonOf(signal: AbortSignal): unknown {
  return signal.reason ?? new AbortedError('the sleep was aborted', { why: 'cancelled' });
}
