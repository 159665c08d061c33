/** Counts from the records themselves, read through the session: a check that no change went uncounted. */
import type { OccurrenceRecord } from '../../src/core/model.js';
import type { Store, StoreCounts, StoreSession } from '../../src/store/store.js';

type Place = 'pending' | 'ready' | 'running' | 'deadLetters' | 'openTasks';
const NONE = { pending: 0, ready: 0, running: 0, deadLetters: 0, openTasks: 0 };

function placeOf({ state, redrivenAs }: OccurrenceRecord): Place | undefined {
  if (state === 'scheduled' || state === 'retry-wait') return 'pending';
  if (state === 'ready') return 'ready';
  if (state === 'running' || state === 'cancel-requested') return 'running';
  const isDead = (state === 'dead' || state === 'quarantined') && redrivenAs === undefined;
  return isDead ? 'deadLetters' : undefined;
}

/** O(records). */
export async function recount(session: StoreSession): Promise<StoreCounts> {
  const totals = { ...NONE };
  const tenants = new Map<string, typeof totals>();
  const add = (tenant: string, place: Place): void => {
    const counts = tenants.get(tenant) ?? { ...NONE };
    tenants.set(tenant, counts);
    counts[place] += 1;
    totals[place] += 1;
  };
  for (let cursor: string | undefined; ; ) {
    const page = await session.listTasks({ limit: 500, cursor });
    for (const { task } of page.items) {
      if (task.state === 'active' || task.state === 'paused') add(task.tenant, 'openTasks');
      for (let from: string | undefined; ; ) {
        const run = await session.listOccurrences(task.id, { limit: 500, cursor: from });
        for (const record of run.items) {
          const place = placeOf(record);
          if (place !== undefined) add(record.tenant, place);
        }
        from = run.cursor;
        if (from === undefined) break;
      }
    }
    cursor = page.cursor;
    if (cursor === undefined) return { ...totals, tenants, bytes: 0 };
  }
}

/** The store, with a recount of whatever session has it open. */
export function recounting(store: Store): Store & { recount(): Promise<StoreCounts> } {
  let session: StoreSession | undefined;
  return {
    capabilities: store.capabilities,
    open: async (options) => {
      session = await store.open(options);
      return session;
    },
    recount: () => recount(session as StoreSession),
  };
}
