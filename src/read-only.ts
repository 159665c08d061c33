/** What works on a store that was opened for reading only. */
import { SchedulerStateError } from './core/errors.js';
import type { Store } from './store/store.js';

const LOOKING: ReadonlySet<string> = new Set([
  'get',
  'list',
  'occurrences',
  'occurrence',
  'attempts',
  'deadLetters',
  'stats',
  'on',
]);

/** @throws SchedulerStateError when the call would change something, or would wait for a change */
export function assertAllowed(call: string, { capabilities }: Store): void {
  if (capabilities.readOnly && !LOOKING.has(call)) {
    throw new SchedulerStateError(`${call}: the store was opened for reading only`);
  }
}
