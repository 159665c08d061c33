/** Cases 29 and 30 with handlers on worker threads, and what else threads must not change. Needs `npm run build:ts`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  InvalidArgumentError,
  type Occurrence,
  type OpenOptions,
  Scheduler,
  VirtualClock,
} from '../../src/index.js';
import { rejection, START_MS, since } from '../scheduler/helpers.js';
import { KINDS, newStore, useStore } from '../scheduler/stores.js';

const handlers = new URL('./fixtures/threads.mjs', import.meta.url);
const opened: [Scheduler, VirtualClock][] = [];

async function start(options: OpenOptions = {}) {
  const clock = new VirtualClock(START_MS, { settleTimeout: 200 });
  const store = newStore();
  const scheduler = await Scheduler.open({
    workers: { threads: 1, concurrency: 8 },
    clock,
    store,
    ...options,
    handlers,
  });
  opened.push([scheduler, clock]);
  await scheduler.start();
  return { scheduler, clock, store };
}

afterEach(async () => {
  for (const [scheduler, clock] of opened.splice(0)) {
    const done = scheduler.shutdown({ drain: false });
    done.catch(() => {});
    while (scheduler.state !== 'closed') await clock.advance('1s');
  }
});

/** Moves the clock until the task has ended, for what takes real time and then waits for its backoff. */
async function endOf(scheduler: Scheduler, clock: VirtualClock, id: string): Promise<Occurrence> {
  let ended: Occurrence | undefined;
  let failure: unknown;
  scheduler.wait(id).then(
    (occurrence) => {
      ended = occurrence;
    },
    (error) => {
      failure = error;
    },
  );
  // A thread takes real time to start: bounded by the test's own limit.
  while (ended === undefined && failure === undefined) await clock.advance('50ms');
  if (ended === undefined) throw failure;
  return ended;
}

describe.each(KINDS)('handlers on threads, with the store %s,', (kind) => {
  useStore(kind);

  it('run, fail, sleep on the scheduler’s clock and schedule, as in this process', async () => {
    const { scheduler, clock } = await start();
    const payload = { map: new Map([[1n, new Date(7)]]), bytes: new Uint8Array([1, 2]) };
    const echo = await scheduler.schedule('echo', payload);
    expect((await scheduler.wait(echo.id)).result).toEqual(payload);

    const nap = await scheduler.schedule('nap', 43_200_000, { delay: '1s' });
    await clock.advance('13h');
    const napped = await scheduler.wait(nap.id);
    expect(since(napped.result)).toBe(43_201_000);
    expect(napped.progress).toEqual({ napping: 43_200_000 });
    expect(since(napped.startedAt)).toBe(1000);

    const fail = await scheduler.schedule('fail', 'on a thread', { retry: { maxAttempts: 1 } });
    expect(await scheduler.wait(fail.id)).toMatchObject({
      status: 'dead',
      error: { name: 'TypeError', message: 'on a thread' },
    });

    const parent = await scheduler.schedule('parent', 1, { tenant: 'acme' });
    const { result } = await scheduler.wait(parent.id);
    expect(result).toEqual([expect.any(String), true]);
    const child = await scheduler.get(result[0]);
    expect(child).toMatchObject({ tenant: 'acme', payload: { of: 1 } });

    const newest = await scheduler.schedule('versioned');
    const pinned = await scheduler.schedule('versioned', null, { handlerVersion: 1 });
    expect((await scheduler.wait(newest.id)).result).toBe('two');
    expect((await scheduler.wait(pinned.id)).result).toBe('one');
    expect((await rejection(scheduler.schedule('nobody'))).code).toBe('TICKWHEEL_UNKNOWN_HANDLER');
  });

  it('run many, each once, over several threads', async () => {
    const { scheduler, clock } = await start({ workers: { threads: 2, concurrency: 4 } });
    const items = Array.from({ length: 200 }, (_, payload) => ({
      handler: 'echo',
      payload,
      options: { delay: '1s' },
    }));
    const tasks = (await scheduler.scheduleMany(items)) as { id: string; payload: number }[];
    await clock.advance('1s');
    for (const task of tasks) {
      expect(await scheduler.wait(task.id)).toMatchObject({ result: task.payload, attempt: 1 });
    }
  });

  it('may not be a module that does not load', async () => {
    const missing = new URL('./fixtures/missing.mjs', import.meta.url);
    const store = newStore();
    const refused = await rejection(Scheduler.open({ handlers: missing, store }));
    expect(refused).toBeInstanceOf(InvalidArgumentError);
    await (await Scheduler.open({ store })).shutdown();
  });

  it('29. that time out and never yield: thread ended, retry runs, the others finish uncharged', async () => {
    const { scheduler, clock } = await start({ timeoutGrace: '1s' });
    const nap = await scheduler.schedule('nap', 60_000);
    await clock.advance(0);
    const spin = await scheduler.schedule('spin', null, { timeout: '2s' });
    await clock.advance('4s');
    const spun = await endOf(scheduler, clock, spin.id);
    expect(spun).toMatchObject({ result: 'second', attempt: 2, failures: 1, crashes: 0 });
    const [first] = await scheduler.attempts(spun.id);
    expect(first?.outcome).toBe('timedOut');
    const napped = await endOf(scheduler, clock, nap.id);
    expect(napped).toMatchObject({ status: 'succeeded', failures: 0, crashes: 0, attempt: 2 });
    const [displaced] = await scheduler.attempts(napped.id);
    expect(displaced?.outcome).toBe('released');
  });

  it('29c. that block their thread past their timeout, and end before they are ended: refused', async () => {
    const { scheduler, clock } = await start({ timeoutGrace: '1h' });
    const directory = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
    const path = join(directory, 'go-on');
    const task = await scheduler.schedule('block', path, { timeout: '2s' });
    // Its thread hears of nothing: the clock is far past the timeout when it goes on and succeeds.
    await clock.advance('3s');
    writeFileSync(path, '');
    const ended = await endOf(scheduler, clock, task.id);
    expect(ended).toMatchObject({ result: 'second', attempt: 2, failures: 1, crashes: 0 });
    const attempts = await scheduler.attempts(ended.id);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['timedOut', 'succeeded']);
    rmSync(directory, { recursive: true });
  });

  it('29b. that ignore their signal: the same', async () => {
    const { scheduler, clock } = await start({ timeoutGrace: '1s' });
    const task = await scheduler.schedule('stubborn', null, { timeout: '2s' });
    const ended = await endOf(scheduler, clock, task.id);
    expect(ended).toMatchObject({ result: 'second', attempt: 2, failures: 1, crashes: 0 });
    expect((await scheduler.stats()).zombies).toBe(0);
  });

  it.each(['exit', 'throw', 'reject'])(
    '30. that kill their thread (%s): only that task is charged, all others finish',
    async (how) => {
      const { scheduler, clock } = await start();
      const others = [];
      for (let i = 0; i < 4; i++) others.push(await scheduler.schedule('work', 200));
      const killer = await scheduler.schedule('kill', { how, times: 1 });
      const killed = await endOf(scheduler, clock, killer.id);
      expect(killed).toMatchObject({ result: 'alive at 2', failures: 0, crashes: 1 });
      const [attempt] = await scheduler.attempts(killed.id);
      expect(attempt?.outcome).toBe('crashed');
      for (const { id } of others) {
        const ended = await endOf(scheduler, clock, id);
        expect(ended).toMatchObject({ status: 'succeeded', failures: 0, crashes: 0 });
      }
      const after = await scheduler.schedule('echo', 'still here');
      expect((await endOf(scheduler, clock, after.id)).result).toBe('still here');
    },
  );

  it('30b. that always kill their thread are quarantined, and told so', async () => {
    const { scheduler, clock } = await start();
    const told: unknown[] = [];
    scheduler.on('quarantined', (event) => told.push([event.taskId, event.crashes]));
    const task = await scheduler.schedule('kill', { how: 'exit', times: 99 }, { maxCrashes: 2 });
    const ended = await endOf(scheduler, clock, task.id);
    expect(ended).toMatchObject({ status: 'quarantined', crashes: 2, failures: 0, attempt: 2 });
    // The evidence: what was last, by what code, and the memory.
    expect(ended.error?.message).toMatch(/^process\.exit\(\d+\) .* heap last held \d+ of at most/);
    expect(told).toEqual([[task.id, 2]]);
    expect((await scheduler.deadLetters()).items.map((o) => o.id)).toEqual([ended.id]);
    expect(await scheduler.get(task.id)).toMatchObject({ status: 'failed' });
  });

  it('are drained, and released when they do not end', async () => {
    const { scheduler, clock, store } = await start();
    const quick = await scheduler.schedule('nap', 2000);
    const slow = await scheduler.schedule('nap', 3_600_000);
    await clock.advance('1s');
    const done = scheduler.shutdown({ timeout: '5s' });
    await clock.advance('5s');
    expect(await done).toEqual({ finished: 1, released: 1, aborted: 1 });
    const next = await Scheduler.open({ store, clock });
    expect((await next.get(quick.id))?.status).toBe('succeeded');
    const [attempt] = await next.attempts(slow.lastOccurrenceId as string);
    expect(attempt?.outcome).toBe('released');
    await next.shutdown();
  });

  it('do not start once pause has resolved', async () => {
    for (let turns = 0; turns < 6; turns++) {
      const { scheduler, clock } = await start({ workers: { threads: 1, concurrency: 2 } });
      const tasks = await scheduler.scheduleMany(
        Array.from({ length: 30 }, (_, n) => ({ handler: 'echo', payload: n })),
      );
      for (let turn = 0; turn < turns; turn++) await new Promise((go) => setImmediate(go));
      await scheduler.pause({ handler: 'echo' });
      const pausedAt = (await scheduler.stats()).latenessMs.count;
      await clock.advance('1m');
      expect((await scheduler.stats()).latenessMs.count).toBe(pausedAt);
      await scheduler.resume({ handler: 'echo' });
      for (const task of tasks) {
        const { status } = await endOf(scheduler, clock, (task as { id: string }).id);
        expect(status).toBe('succeeded');
      }
    }
  });
});
