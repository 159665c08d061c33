/**
 * Finds out whose fault it is when something goes wrong outside of a handler's own promise: the run that the
 * failing callback descends from (AsyncLocalStorage), or the only one that was entered.
 */
import { syncBuiltinESMExports } from 'node:module';
import type { ThreadRuns } from './thread-runs.js';

/** Before the handlers' module is loaded: it may take `exit` from node:process by name. */
export function watchForCrashes(runs: ThreadRuns): void {
  const exit = process.exit.bind(process);
  process.exit = ((code?: number | string | null) => {
    const shown = code ?? process.exitCode ?? 0;
    runs.crashed(new Error(`process.exit(${shown}) was called on the handler's thread`), true);
    return exit(code);
  }) as typeof process.exit;
  syncBuiltinESMExports();

  // A module that listens itself decides itself.
  process.on('uncaughtException', (error, origin) => {
    if (process.listenerCount('uncaughtException') > 1) return;
    if (origin === 'uncaughtException') runs.crashed(error, true);
  });
  process.on('unhandledRejection', (reason) => {
    if (process.listenerCount('unhandledRejection') > 1) return;
    // The others on the thread go on when it is known who must answer for it.
    runs.crashed(reason, false);
  });
}
