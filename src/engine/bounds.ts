/**
 * How much one turn takes on, so that a flood of one kind never holds up the others.
 *
 * What a turn creates, starts and will hear the end of soon costs little: it goes from its job to its thread as one object,
 * and is written twice. What it creates and cannot start is written a third time, waits in the near table, and is read again
 * when its turn has come: twice the work. So of creates that are due at once a turn takes no more than can start, as long as
 * that leaves callers waiting for no longer than their tasks would.
 */
import type { ReadyQueue } from '../core/ready-queue.js';
import type { Dispatch } from './dispatch.js';
import type { ActiveRun } from './runs.js';

/**
 * Small turns: each task is gone through four or five times in a turn, and what a turn has at hand should fit the cache (about
 * 3 KB a task) and be gone before the young generation is full. 256 instead of 1,024 to 4,096: a sixth more finished in an
 * overload through the pool, a third more created by `scheduleMany`. With 128 the turn's own costs outweigh it.
 */
export const DUE_MAX = 256;
/** Creates that a turn takes, and that it takes at least of those that could not start. */
export const CREATES_MAX = 512;
const CREATES_MIN = 128;
const CALLS_MAX = 512;
/** Ready work that is aimed at: so much, or what so many turns claim. */
const READY_MIN = 256;
const READY_TURNS = 2;

/** What a turn takes of the creates that wait. */
export interface JobBounds {
  readonly all: number;
  /** Creates of tasks that are due by now. */
  readonly dueAtOnce: number;
}

/** Of all jobs that create nothing. */
export const CALL_BOUNDS: JobBounds = { all: CALLS_MAX, dueAtOnce: CALLS_MAX };

/** Ready work enough for this turn and the next: what waits longer does so in the backlog, which is no object. */
export function aimOf(dispatch: Dispatch, claimedLast: number): number {
  return Math.max(READY_MIN, READY_TURNS * Math.max(dispatch.room, claimedLast));
}

/**
 * How many more occurrences could start in this turn than wait for it.
 * @param behind what waits in the backlog and could start, were there a slot
 */
export function startable(
  dispatch: Dispatch,
  ready: ReadyQueue<ActiveRun>,
  behind: number,
): number {
  return Math.max(0, Math.min(DUE_MAX, dispatch.room) - ready.size - behind);
}

/** Where work is overdue already, creates wait, and are refused when too many do. */
export function createsOf(behind: number, canStart: number): JobBounds {
  const dueAtOnce = Math.max(CREATES_MIN, canStart);
  return { all: behind > 0 ? dueAtOnce : CREATES_MAX, dueAtOnce };
}
