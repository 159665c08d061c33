/** What callers see of a task, derived from its record and its live occurrences. */
import type { OccurrenceRecord, OccurrenceState, TaskView } from './model.js';

export const TASK_STATUSES = [
  'scheduled',
  'running',
  'retrying',
  'paused',
  'succeeded',
  'failed',
  'cancelled',
] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];

export type OccurrenceStatus =
  | Exclude<OccurrenceState, 'retry-wait' | 'cancel-requested'>
  | 'retrying';

/**
 * The first that holds: cancelled; paused; running; retrying; scheduled; else how the last one
 * ended.
 */
export function taskStatus({ task, live }: TaskView): TaskStatus {
  if (task.state === 'cancelled') return 'cancelled';
  if (task.state === 'paused') return 'paused';
  let retrying = false;
  for (const { state } of live) {
    if (state === 'running' || state === 'cancel-requested') return 'running';
    retrying ||= state === 'retry-wait';
  }
  if (retrying) return 'retrying';
  if (live.length > 0) return 'scheduled';
  return task.lastEnd === 'succeeded' ? 'succeeded' : 'failed';
}

export function occurrenceStatus({ state }: OccurrenceRecord): OccurrenceStatus {
  if (state === 'retry-wait') return 'retrying';
  return state === 'cancel-requested' ? 'running' : state;
}

/** When something of the task starts next by itself, as far as it is known. */
export function nextRunAt({ task, live }: TaskView): number | undefined {
  if (task.state !== 'active') return undefined;
  let nextMs: number | undefined;
  for (const { state, waiting, dueAt } of live) {
    const pending = state === 'scheduled' || state === 'ready' || state === 'retry-wait';
    if (pending && !waiting && (nextMs === undefined || dueAt < nextMs)) nextMs = dueAt;
  }
  return nextMs;
}
