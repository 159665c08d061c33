/** Handlers on worker threads, typed by their module. A `timeout` is enforced: the thread is ended if it must be. */
import { Scheduler } from 'tickwheel';

const scheduler = await Scheduler.open<typeof import('./handlers.js')>({
  // Threads load what Node.js can run: the compiled module.
  handlers: new URL('./handlers.js', import.meta.url),
  workers: { threads: 2, concurrency: 1 },
});
await scheduler.start();

const limits = [10_000, 20_000, 40_000];
const tasks = await scheduler.scheduleMany(
  limits.map((limit) => ({
    handler: 'countPrimes' as const,
    payload: limit,
    options: { timeout: '30s' },
  })),
);
for (const [index, task] of tasks.entries()) {
  if (task instanceof Error) throw task;
  const { status, result } = await scheduler.wait(task.id, { timeout: '60s' });
  console.log(`primes below ${limits[index]}: ${result.primes} (${status})`);
}
await scheduler.shutdown();
