/**
 * A process in which one task kills the process, and others run beside it.
 *
 *   poison-child.ts PATH
 *
 * Says `over` when all have ended, unless it has been killed before.
 */
import { type Context, lmdbStore, Scheduler, systemClock } from '../../src/index.js';

const INNOCENTS = 4;
const POISON_MS = 40;
const INNOCENT_MS = 120;
const LOOK_MS = 10;

const clock = systemClock();
const [path] = process.argv.slice(2) as [string];
const handlers = {
  poison: async (_: undefined, ctx: Context) => {
    await ctx.sleep(POISON_MS);
    process.kill(process.pid, 'SIGKILL');
  },
  innocent: (_: undefined, ctx: Context) => ctx.sleep(INNOCENT_MS),
};
const scheduler = await Scheduler.open({ handlers, store: lmdbStore({ path }) });
const retry = { initialBackoff: 10 };
await scheduler.schedule('poison', undefined, { idempotencyKey: 'poison', retry });
for (let n = 0; n < INNOCENTS; n++) {
  await scheduler.schedule('innocent', undefined, { idempotencyKey: `innocent-${n}`, retry });
}
await scheduler.start();
for (;;) {
  const { pending, ready, running } = await scheduler.stats();
  if (pending + ready + running === 0) break;
  await clock.sleep(LOOK_MS);
}
await scheduler.shutdown();
process.stdout.write('over\n');
