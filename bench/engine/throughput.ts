/** Tasks created, started and finished a second; and created alone. */
import { memoryStore, Scheduler } from '../../src/index.js';
import { must } from '../lib/report.js';
import { type Bed, CHUNK, createAll, items, openBed, type Place } from './load.js';

/** Bulk calls of a thousand that are not finished at once. */
const CHUNKS_AHEAD = 4;

/** A closed loop of no-ops; tasks a second, the first third not counted. */
export async function throughput(place: Place, total: number): Promise<number> {
  const bed = await openBed(place);
  try {
    const warm = Math.ceil(total / 3 / CHUNK) * CHUNK;
    await drive(bed, warm);
    const startedMs = performance.now();
    await drive(bed, total);
    return ((total - warm) / (performance.now() - startedMs)) * 1000;
  } finally {
    await bed.close();
  }
}

async function drive(bed: Bed, until: number): Promise<void> {
  for (let sent = bed.ended(); sent < until; sent += CHUNK) {
    await createAll(bed, items(CHUNK));
    await bed.untilEnded(sent - CHUNKS_AHEAD * CHUNK);
  }
  await bed.untilEnded(until);
  must(bed.ended() === until, 'each task ended once');
}

/** Creates a second of tasks that are due in an hour: in bulk, or by so many callers of one task each. */
export async function creates(how: 'bulk' | 'single', total: number): Promise<number> {
  const scheduler = await Scheduler.open({
    store: memoryStore(),
    handlers: { noop: () => undefined },
  });
  try {
    const runAt = Date.now() + 3_600_000;
    const startedMs = performance.now();
    if (how === 'bulk') {
      for (let done = 0; done < total; done += 10 * CHUNK) {
        const made = await scheduler.scheduleMany(items(10 * CHUNK, () => ({ runAt })) as never);
        must(!made.some((task) => task instanceof Error), 'no create is refused');
      }
    } else {
      const callers = Array.from({ length: 1000 }, async () => {
        for (let i = 0; i < total / 1000; i++) {
          await scheduler.schedule('noop', { seq: i } as never, { runAt } as never);
        }
      });
      await Promise.all(callers);
    }
    const tookMs = performance.now() - startedMs;
    const { pending } = await scheduler.stats();
    must(pending >= total, 'all that were created are pending');
    return (pending / tookMs) * 1000;
  } finally {
    await scheduler.shutdown();
  }
}
