/** `stats()`: counts by state, lateness, and how full each bound is. */
import type { Engine, LatenessStats } from './engine/engine.js';
import type { Repairs } from './engine/reconcile.js';
import type { ResolvedOptions } from './options.js';
import type { StateCounts, StoreCounts } from './store/store.js';

/** How full a bound is. */
export interface Bound {
  readonly current: number;
  readonly limit: number | undefined;
}

export interface Stats extends StateCounts {
  /** Tasks that have not ended: what `maxPending` counts, over all tenants. The counts beside it are of occurrences. */
  readonly openTasks: number;
  /** The same by tenant. */
  readonly tenants: Readonly<Record<string, StateCounts>>;
  /** Of work that was allowed to start when it was due; since `start`. */
  readonly latenessMs: LatenessStats;
  readonly bounds: {
    readonly maxReady: Bound;
    readonly maxUnflushedBytes: Bound;
    readonly slots: Bound;
    /** Occurrences that wait for their time or a lane in memory; no limit where the store cannot keep them. */
    readonly timed: Bound;
    /** By tenant: `waiting`, `running`, `startsPerSecond`, and `pending` (tasks that have not ended). */
    readonly tenants: Readonly<Record<string, Readonly<Record<string, Bound>>>>;
    readonly handlers: Readonly<Record<string, Readonly<Record<string, Bound>>>>;
  };
  /** Ready occurrences that no worker here can run, by 'handler@version'. */
  readonly waitingVersions: Readonly<Record<string, number>>;
  /** In-process handlers that were given up but have not ended. */
  readonly zombies: number;
  /** Ends and heartbeats of attempts that had been given up before: refused, they changed nothing. */
  readonly lateReports: number;
  /** What was found to be wrong and put right, since `start`; each is a fault somewhere. */
  readonly repairs: Readonly<Repairs>;
  /** Events that a full listener queue lost. */
  readonly listenerDrops: number;
  /** Due, but held in compact form until their lane has room. */
  readonly overdue: number;
  /** Of what waits for its time; undefined before `start`, when nothing is timed. */
  readonly nextDueAt: Date | undefined;
}

export function statsOf(
  counts: StoreCounts,
  engine: Engine,
  listenerDrops: number,
  options: ResolvedOptions,
): Stats {
  const { figures } = engine;
  const { pending, ready, running, deadLetters, openTasks } = counts;
  // By entries: a tenant may be called `__proto__`.
  const tenants = Object.fromEntries<StateCounts>(
    Array.from(counts.tenants, ([tenant, of]) => [
      tenant,
      { pending: of.pending, ready: of.ready, running: of.running, deadLetters: of.deadLetters },
    ]),
  );
  return {
    pending,
    ready,
    running,
    deadLetters,
    openTasks,
    tenants,
    latenessMs: engine.lateness(),
    bounds: {
      maxReady: { current: figures.ready, limit: options.maxReady },
      maxUnflushedBytes: { current: figures.unflushedBytes, limit: options.maxUnflushedBytes },
      slots: { current: figures.running, limit: figures.slots },
      timed: { current: figures.timed, limit: figures.timedMax },
      tenants: figures.tenants,
      handlers: figures.handlers,
    },
    waitingVersions: Object.fromEntries(figures.waitingVersions),
    zombies: figures.zombies,
    lateReports: figures.lateReports,
    repairs: { ...figures.repairs },
    listenerDrops,
    overdue: figures.overdue,
    nextDueAt: engine.nextDueMs === undefined ? undefined : new Date(engine.nextDueMs),
  };
}
