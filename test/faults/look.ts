/** A look at a store that was opened after a fault. */
import type { StoreCounts, StoreSession } from '../../src/store/store.js';
import { recount } from '../store/recount.js';

/** Invariant 15: the counters equal a recount. */
export async function countsAgree(session: StoreSession): Promise<string[]> {
  const counters = shown(await session.counts());
  const records = shown(await recount(session));
  return counters === records ? [] : [`counters say ${counters}, the records ${records}`];
}

/** Tenants without anything count as absent. */
function shown(counts: StoreCounts): string {
  const tenants = [...counts.tenants].filter(([, of]) => Object.values(of).some((n) => n !== 0));
  const sorted = tenants.map(([name, of]) => [name, Object.entries(of).sort()]).sort();
  const { pending, ready, running, deadLetters, openTasks } = counts;
  return JSON.stringify({ pending, ready, running, deadLetters, openTasks, sorted });
}
