/**
 * How long a loop gathers work before its next turn. A turn has costs of its own (a commit, a message to each thread that
 * is given work, waking them), so on a busy thread fewer and larger turns do more, while on an idle one waiting would
 * only be late. At 5,000 tasks a second on the LMDB store, turns 5 ms apart took 0.45 of the main thread and 0.75 of a
 * core in all; turns as soon as possible 0.8 and 1.4.
 */
import { nextTurn } from './turn.js';

/** Between the beginnings of two turns, at most. */
const GAP_MAX_MS = 5;
/** Up to this share of its time busy, a thread gathers nothing; from the other share on, for as long as it may. */
const EASY = 0.5;
const BUSY = 0.85;
/** Over which the share is taken. */
const WINDOW_MS = 50;
/** A timer is a millisecond at least; less is not worth one. */
const WAIT_MIN_MS = 0.3;

let seen = performance.eventLoopUtilization();
let seenAtMs = performance.now();
let gapMs = 0;

function gapNow(nowMs: number): number {
  if (nowMs - seenAtMs < WINDOW_MS) return gapMs;
  const current = performance.eventLoopUtilization();
  const { utilization } = performance.eventLoopUtilization(current, seen);
  seen = current;
  seenAtMs = nowMs;
  gapMs = GAP_MAX_MS * Math.min(Math.max((utilization - EASY) / (BUSY - EASY), 0), 1);
  return gapMs;
}

/**
 * Resolves in a later turn of the event loop, for one whose last turn began at `lastMs` (monotonic): at once on a thread
 * with time to spare, else up to 5 ms after that beginning.
 */
export async function pace(lastMs: number): Promise<void> {
  await nextTurn();
  const nowMs = performance.now();
  const leftMs = lastMs + gapNow(nowMs) - nowMs;
  if (leftMs > WAIT_MIN_MS) await new Promise((resolve) => setTimeout(resolve, leftMs));
}
