/** Names of workers, as attempts and events show them: told apart across machines, processes and restarts. */
import { hostname } from 'node:os';

const PROCESS = `${hostname()}:${process.pid}`;

/** Handlers run in the scheduler's own process. */
export const MAIN_WORKER_ID = `${PROCESS}/main`;

/** A thread; a replacement gets a number of its own. */
export function threadWorkerId(number: number): string {
  return `${PROCESS}/thread-${number}`;
}
