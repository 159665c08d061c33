/** What the engine's classes share: wired by engine.ts, used by the loop. */
import type { Clock } from '../clock/clock.js';
import type { AttemptEvent } from '../core/event.js';
import type { ReadyQueue } from '../core/ready-queue.js';
import type { Hub } from '../observe/hub.js';
import type { Logger } from '../observe/log.js';
import type { StoreSession } from '../store/store.js';
import type { Admission } from './admission.js';
import type { Dispatch } from './dispatch.js';
import type { Inbox } from './inbox.js';
import type { Loader } from './loader.js';
import type { Pruning } from './pruning.js';
import type { ActiveRun } from './runs.js';
import type { Scopes } from './scopes.js';
import type { Timing } from './timing.js';
import type { WorkingSet } from './working-set.js';

export interface EngineParts {
  readonly clock: Clock;
  readonly session: StoreSession;
  readonly log: Logger;
  readonly inbox: Inbox;
  readonly working: WorkingSet;
  readonly admission: Admission;
  readonly scopes: Scopes;
  readonly pruning: Pruning;
  readonly ready: ReadyQueue<ActiveRun>;
  readonly hub: Hub;
  readonly latestVersion: (handler: string) => number | undefined;
  /** Longer than this without a turn that was due means that the loop was away (ms). */
  readonly awayAfterMs: number;
  /** Absent until execution begins, and for a producer always. */
  timing: Timing | undefined;
  dispatch: Dispatch | undefined;
  /** Absent for a store that has no due index. */
  loader: Loader | undefined;
  /** The store is being scanned: everything is timed, nothing claimed. */
  holding: boolean;
  /** Shutting down: nothing more is timed or claimed. */
  draining: boolean;
  failure: Error | undefined;
  /** An attempt was heard of; shutdown counts. */
  onRunReport: (run: ActiveRun, event: AttemptEvent) => void;
  fail: (error: unknown) => void;
  /** Have a turn soon. */
  wake: () => void;
}
