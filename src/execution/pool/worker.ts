/**
 * The entry of a pool's thread: one piscina task that lasts as long as its thread. It loads the handlers' module,
 * then runs what main sends until the thread is ended.
 *
 *   batch → queue ──→ entered (concurrency at most) ──→ told to main, once a turn
 *             └ withdrawn by main meanwhile: dropped
 */

import { type HandlerTable, handlersOfModule } from '../handler.js';
import { encodeStructured } from '../payload-structured.js';
import { watchForCrashes } from './crash.js';
import type { Hello, ThreadStart } from './protocol.js';
import { SharedSlots } from './slots.js';
import { ThreadRuns } from './thread-runs.js';

/** Room for the error of a module that does not load. */
const ERROR_BYTES_MAX = 1024 * 1024;

/** Ends when the module does not load; else never. */
export async function runThread(start: ThreadStart): Promise<void> {
  const { port } = start;
  const slots = new SharedSlots(start.memory);
  const runs = new ThreadRuns(start, slots);
  watchForCrashes(runs);
  let table: HandlerTable;
  try {
    table = handlersOfModule((await import(start.moduleUrl)) as object);
  } catch (error) {
    port.postMessage({ kind: 'broken', error: encodeError(error) } satisfies Hello);
    return;
  }
  runs.open(table);
  port.postMessage({ kind: 'hello', handlers: [...table.list()] } satisfies Hello);
  await new Promise(() => {});
}

function encodeError(error: unknown): Uint8Array {
  try {
    return encodeStructured(error, 'error', ERROR_BYTES_MAX);
  } catch {
    return encodeStructured(new Error(String(error)), 'error', ERROR_BYTES_MAX);
  }
}
