/**
 * The state machine: (task with its live occurrences, event) → changes and effects. Pure; the only one there is.
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
 * @throws a coded error when the event must be refused: TaskEndedError, VersionConflictError, LeaseLostError,
 *   OccurrenceNotFoundError, InvalidArgumentError, InvalidScheduleError
 */
export function decide(
  view: TaskView | undefined,
  event: CoreEvent,
  facts: Facts,
): Decision | undefined {
  if (event.kind === 'create') {
    assert(view === undefined, 'a task is created once');
    return createTask(event.task, facts).decision();
  }
  assert(view !== undefined, 'only `create` needs no task');
  const draft = new Draft(view.task, view.live, facts);
  switch (event.kind) {
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
  const nothing =
    !draft.taskChanged &&
    draft.changed.length === 0 &&
    !draft.remove &&
    draft.subject === undefined;
  return nothing ? undefined : draft.decision();
}
