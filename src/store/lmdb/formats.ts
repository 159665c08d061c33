/**
 * Stored numbers for the words of the model. They are part of the file format: append, never change.
 */
import type {
  AttemptOutcome,
  OccurrenceKind,
  OccurrenceState,
  TaskState,
} from '../../core/model.js';
import { MalformedError } from './bytes.js';

/** Of the file as a whole; a store refuses one that is greater, or less than the least. */
export const FORMAT = 3;
export const FORMAT_MIN = 3;

class Words<T extends string> {
  readonly #words: readonly T[];
  readonly #codes = new Map<T, number>();

  constructor(words: readonly T[]) {
    this.#words = words;
    for (const [code, word] of words.entries()) this.#codes.set(word, code);
  }

  code(word: T): number {
    return this.#codes.get(word) as number;
  }

  word(code: number): T {
    const word = this.#words[code];
    if (word === undefined) throw new MalformedError(`a record has an unknown word, ${code}`);
    return word;
  }
}

export const TASK_STATES = new Words<TaskState>(['active', 'paused', 'completed', 'cancelled']);

export const OCCURRENCE_STATES = new Words<OccurrenceState>([
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
]);

export const KINDS = new Words<OccurrenceKind>(['nominal', 'sequence', 'trigger', 'redrive']);

export const OUTCOMES = new Words<AttemptOutcome>([
  'succeeded',
  'failed',
  'timedOut',
  'cancelled',
  'crashed',
  'leaseExpired',
  'released',
]);
