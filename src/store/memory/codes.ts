/** The bytes that rows hold for the words of the model. 0 always means: none. */
import type {
  AttemptOutcome,
  OccurrenceKind,
  OccurrenceState,
  TaskState,
} from '../../core/model.js';

function codesOf<T extends string>(words: readonly (T | undefined)[]): Record<T, number> {
  return Object.fromEntries(words.map((word, code) => [word, code])) as Record<T, number>;
}

export const TASK_STATES: readonly (TaskState | undefined)[] = [
  undefined,
  'active',
  'paused',
  'completed',
  'cancelled',
];
export const TASK_CODE = codesOf<TaskState>(TASK_STATES);

/** The live states come first. */
export const OCCURRENCE_STATES: readonly (OccurrenceState | undefined)[] = [
  undefined,
  'scheduled',
  'ready',
  'running',
  'cancel-requested',
  'retry-wait',
  'succeeded',
  'dead',
  'quarantined',
  'cancelled',
  'skipped',
  'missed',
];
export const OCCURRENCE_CODE = codesOf<OccurrenceState>(OCCURRENCE_STATES);

export const KINDS: readonly OccurrenceKind[] = ['nominal', 'sequence', 'trigger', 'redrive'];
export const KIND_CODE = codesOf<OccurrenceKind>(KINDS);

export const OUTCOMES: readonly (AttemptOutcome | undefined)[] = [
  undefined,
  'succeeded',
  'failed',
  'timedOut',
  'cancelled',
  'crashed',
  'leaseExpired',
  'released',
];
export const OUTCOME_CODE = codesOf<AttemptOutcome>(OUTCOMES);

export function isLiveCode(code: number): boolean {
  return code > 0 && code <= OCCURRENCE_CODE['retry-wait'];
}

export function isEndedCode(code: number): boolean {
  return code >= TASK_CODE.completed;
}

/** Absent times are NaN in a row. */
export function fromOptional(value: number | undefined): number {
  return value === undefined ? Number.NaN : value;
}

export function toOptional(value: number): number | undefined {
  // biome-ignore lint/suspicious/noSelfCompare: the quickest test for NaN
  return value === value ? value : undefined;
}
