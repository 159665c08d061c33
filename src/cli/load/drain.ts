/** After the last creation: wait for what is due, then ask the store what it still holds. */
import type { Audit } from './audit.js';
import type { Creator } from './creator.js';
import type { GeneratorClock } from './generator.js';

/** The part of the scheduler that the audit reads. */
export interface StoreView {
  list(query: { limit: number; cursor?: string }): Promise<{
    readonly items: readonly SeenTask[];
    readonly cursor?: string | undefined;
  }>;
  get(id: string): Promise<SeenTask | undefined>;
}

export interface SeenTask {
  readonly id: string;
  readonly status: string;
  readonly payload: unknown;
}

const POLL_MS = 20;
/** No handler has ended for so long: what is outstanding now is given up. */
const STALLED_AFTER_MS = 10_000;
const PAGE_TASKS = 1000;
/**
 * How often, and how many of, the tasks are looked at again that ended while the store was being
 * read.
 */
const SECOND_LOOKS_MAX = 10;
const SECOND_LOOK_TASKS_MAX = 10_000;
const SECOND_LOOK_AFTER_MS = 100;
const ENDED: ReadonlySet<string> = new Set(['succeeded', 'failed', 'cancelled']);

/**
 * Waits until every call is answered and every accepted task due by `untilMs` (epoch) has left its
 * handler, or nothing has moved for ten seconds.
 */
export async function drain(
  creator: Creator,
  audit: Audit,
  options: {
    readonly untilMs: number;
    readonly clock: GeneratorClock;
    readonly finishes: () => number;
  },
): Promise<void> {
  const { untilMs, clock } = options;
  const moved = stallDetector(clock, () => options.finishes() + audit.accepted + audit.rejected);
  while (creator.callsInFlight > 0 && moved()) await clock.sleep(POLL_MS);
  await clock.sleep(Math.max(0, untilMs - clock.now()));
  let outstanding = audit.nextOutstanding(untilMs, 0);
  while (outstanding !== undefined && moved()) {
    await clock.sleep(POLL_MS);
    outstanding = audit.nextOutstanding(untilMs, outstanding);
  }
}

function stallDetector(clock: GeneratorClock, progress: () => number): () => boolean {
  let last = progress();
  let lastMovedAtMs = clock.monotonic();
  return () => {
    const current = progress();
    if (current !== last) {
      last = current;
      lastMovedAtMs = clock.monotonic();
    }
    return clock.monotonic() - lastMovedAtMs < STALLED_AFTER_MS;
  };
}

/**
 * Reads the store through and tells the audit of every task in it. Costs one pass over what it
 * holds, some 10 µs a task; `onRead` is told how many were read.
 */
export async function takeCensus(
  store: StoreView,
  audit: Audit,
  clock: GeneratorClock,
  onRead: (tasks: number) => void = () => {},
): Promise<void> {
  let again: SeenTask[] = [];
  let cursor: string | undefined;
  let read = 0;
  do {
    const page = await store.list({
      limit: PAGE_TASKS,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const task of page.items) {
      if (note(audit, task.id, task) && again.length < SECOND_LOOK_TASKS_MAX) again.push(task);
    }
    cursor = page.cursor;
    read += page.items.length;
    onRead(read);
  } while (cursor !== undefined);

  // A handler's end is seen at once, its record a moment later.
  for (let look = 0; again.length > 0 && look < SECOND_LOOKS_MAX; look += 1) {
    await clock.sleep(SECOND_LOOK_AFTER_MS);
    const stillOpen: SeenTask[] = [];
    for (const task of again) {
      const now = await store.get(task.id);
      // Gone means ended, and its history past its retention.
      if (note(audit, task.id, now ?? { ...task, status: 'succeeded' })) stillOpen.push(task);
    }
    again = stillOpen;
  }
}

/** True when the task's handler has ended and the store holds it open. */
function note(audit: Audit, id: string, task: SeenTask): boolean {
  const seq = seqOf(task.payload);
  if (seq === undefined) return false;
  audit.seenInStore(seq, { id, open: !ENDED.has(task.status) });
  return audit.isHeldThoughFinished(seq);
}

/** Undefined for a task that is not of a load test: a store on disk may hold others. */
function seqOf(payload: unknown): number | undefined {
  if (typeof payload !== 'object' || payload === null || !('seq' in payload)) return undefined;
  const { seq } = payload;
  return typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0 ? seq : undefined;
}
