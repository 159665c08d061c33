/**
 * The state machine: (task with its live occurrences, event) → changes and effects. Pure; the only
 * one there is.
 *
 * Invariants (design: "Invariants"; tests cite these numbers):
 *  2 one occurrence for each (task, generation, nominal): ids are functions of the identity
 *  5 a stale token changes nothing: refused with LeaseLostError
 *  7 cancelled before claim never starts; terminal states absorb
 *  8 nothing becomes ready before its due time
 * 11 a paused task never starts by itself
 * 12 each nominal time is run, skipped or missed, with a reason
 * 16 failures never exceed maxAttempts, crashes never maxCrashes
 *
 * Split by who causes the event: calling.ts (users), advance.ts (time), running.ts (attempts).
 */
import { becomeDue } from './advance.js';
import { assert, unreachable } from './assert.js';
import {
  cancelOccurrence,
  cancelTask,
  createTask,
  deleteTask,
  pauseTask,
  redrive,
  resumeTask,
  trigger,
  updateTask,
} from './calling.js';
import { type Decision, Draft } from './draft.js';
import type { CoreEvent, Facts } from './event.js';
import type { TaskView } from './model.js';
import { attemptEvent, claim } from './running.js';

/**
 * @param view the task as it stands; undefined only for `create`
 * @returns undefined when the event finds nothing to do (already so, or no longer so)
 * @throws a coded error when the event must be refused: TaskEndedError, VersionConflictError,
 *   LeaseLostError, OccurrenceNotFoundError, InvalidArgumentError, InvalidScheduleError
 */
export function decide(
  view: TaskView | undefined,
  event: CoreEvent,
  facts: Facts,
): Decision | undefined {
  const draft = draftOf(view, event, facts);
  return decideOn(draft, event) ? draft.decision() : undefined;
}

/** Where the decisions on one task begin; the records of an owned draft are written to. */
export function draftOf(
  view: TaskView | undefined,
  event: CoreEvent,
  facts: Facts,
  owned = false,
): Draft {
  if (event.kind === 'create') {
    assert(view === undefined, 'a task is created once');
    return createTask(event.task, facts, owned);
  }
  assert(view !== undefined, 'only `create` needs no task');
  return new Draft(view.task, view.live, facts, owned);
}

/**
 * As `decide`, on a draft that earlier events of the same turn may have changed: several events are
 * then one change of each record.
 * @returns false when there was nothing to do
 * @throws as `decide`; the draft is as it was before
 */
export function decideOn(draft: Draft, event: CoreEvent): boolean {
  const movesBefore = draft.moves;
  draft.subject = undefined;
  switch (event.kind) {
    case 'create':
      return true;
    case 'update':
      updateTask(draft, event.patch, event.expectedVersion);
      break;
    case 'cancel':
      cancelTask(draft, event.reason);
      break;
    case 'pause':
      pauseTask(draft);
      break;
    case 'resume':
      resumeTask(draft);
      break;
    case 'trigger':
      trigger(draft);
      break;
    case 'cancelOccurrence':
      cancelOccurrence(draft, event.occurrenceId, event.reason);
      break;
    case 'redrive':
      redrive(draft, event.occurrence);
      break;
    case 'delete':
      deleteTask(draft);
      break;
    case 'due':
      becomeDue(draft, event.occurrenceId);
      break;
    case 'claim':
      claim(draft, event);
      break;
    case 'entered':
    case 'renew':
    case 'progress':
    case 'succeeded':
    case 'failed':
    case 'returned':
    case 'displaced':
    case 'released':
    case 'suspected':
    case 'orphaned':
    case 'crashed':
      attemptEvent(draft, event);
      break;
    default:
      return unreachable(event);
  }
  return draft.moves > movesBefore || draft.remove || draft.subject !== undefined;
}
