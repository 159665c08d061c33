/** A scheduler in ten lines, on the real clock: done in under a second. Its tasks are kept in ./tickwheel-data. */
import { fixedRate, Scheduler } from 'tickwheel';

const scheduler = await Scheduler.open({
  handlers: {
    greet: (name: string) => `hello, ${name}`,
    tick: (_payload: undefined, ctx) => console.log('tick due at', ctx.dueAt.toISOString()),
  },
});
await scheduler.start();

const soon = await scheduler.schedule('greet', 'Ada', { delay: '200ms' });
await scheduler.schedule('tick', undefined, { schedule: fixedRate({ every: 50, limit: 3 }) });

const { status, result } = await scheduler.wait(soon.id);
console.log(status, result); // succeeded hello, Ada
await scheduler.shutdown();
