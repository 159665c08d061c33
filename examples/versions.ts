/**
 * Deploying a new version of a handler over queued work: a task keeps the version that it was created for, one whose
 * version is gone waits and is seen, and is saved by giving it another.
 */
import { fileURLToPath } from 'node:url';
import { type HandlerMap, memoryStore, Scheduler, VirtualClock } from 'tickwheel';

/** Version 1 was given an amount in euros, version 2 one in cents. */
const v1 = (euros: number) => `v1 billed ${euros * 100} cents`;
const v2 = (cents: number) => `v2 billed ${cents} cents`;

export async function deployments() {
  const store = memoryStore();
  const clock = new VirtualClock('2026-03-02T09:00Z');
  /** A process with this build of the handlers: opened, used, and shut down for the next one. */
  const deployed = async <T>(handlers: HandlerMap, use: (scheduler: Scheduler) => Promise<T>) => {
    const scheduler = await Scheduler.open({ store, clock, handlers });
    await scheduler.start();
    const result = await use(scheduler);
    await scheduler.shutdown();
    return result;
  };

  const queued = await deployed({ bill: { 1: v1 } }, async (scheduler) => {
    const soon = await scheduler.schedule('bill', 5, { delay: '1h' });
    const later = await scheduler.schedule('bill', 7, { delay: '1d' });
    return { soon: soon.id, later: later.id };
  });

  // Both versions: what was queued runs as it was meant, new work takes the newest.
  const both = await deployed({ bill: { 1: v1, 2: v2 } }, async (scheduler) => {
    const fresh = await scheduler.schedule('bill', 900, { delay: '1h' });
    await clock.advance('1h');
    const results = [queued.soon, fresh.id].map(async (id) => (await scheduler.wait(id)).result);
    return Promise.all(results);
  });

  // Version 1 is gone, and one task still wants it: it waits, uncharged and counted, until somebody decides.
  const only2 = await deployed({ bill: { 2: v2 } }, async (scheduler) => {
    await clock.advance('2d');
    const { waitingVersions } = await scheduler.stats();
    await scheduler.update(queued.later, { handlerVersion: 2, payload: 700 });
    await clock.advance(0);
    const { result, failures } = await scheduler.wait(queued.later);
    return { waitingVersions, result, failures };
  });
  return { both, only2 };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await deployments());
