/** The pool alone: what only threads can do to one another. Needs `npm run build:ts` for the threads' entry. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../src/core/errors.js';
import { PoolExecutor, type PoolOptions } from '../../src/execution/pool/pool.js';
import { testExecutor } from './conformance.js';
import { TinyHost } from './host.js';

const fixture = (name: string): URL => new URL(`./fixtures/${name}.mjs`, import.meta.url);

testExecutor(
  'pool',
  (slots) => new PoolExecutor({ module: fixture('handlers'), threads: 1, concurrency: slots }),
);

describe('the pool', () => {
  const hosts: TinyHost[] = [];

  afterEach(async () => {
    for (const host of hosts.splice(0)) await host.executor.close();
  });

  async function open(options: Partial<PoolOptions> = {}, name = 'handlers'): Promise<TinyHost> {
    const host = new TinyHost();
    hosts.push(host);
    const { threads = 1, concurrency = 4 } = options;
    const pool = new PoolExecutor({ module: fixture(name), ...options, threads, concurrency });
    await host.open(pool);
    await host.until(() => pool.capacity() === threads * concurrency);
    return host;
  }

  /** The thread that a run entered on. */
  const threadOf = async (host: TinyHost, runId: number): Promise<string> =>
    (await host.entered(runId)).workerId;

  it('takes the exported functions of a module without a default export', async () => {
    const host = await open({}, 'exported');
    expect([...host.executor.handlers.keys()]).toEqual(['one', 'two']);
    expect(await host.resultOf('one', 'x')).toBe('x');
    expect(await host.resultOf('two')).toBe(2);
  });

  it('does not open with a module that does not load, and says why', async () => {
    await expect(open({}, 'broken')).rejects.toThrow(InvalidArgumentError);
    await expect(open({}, 'broken')).rejects.toMatchObject({
      message: expect.stringContaining('this module is broken'),
      cause: { name: 'RangeError' },
    });
    await expect(open({}, 'missing')).rejects.toThrow(InvalidArgumentError);
    await expect(open({}, 'exits')).rejects.toThrow(InvalidArgumentError);
    await expect(open({}, 'odd')).rejects.toThrow("handler 'bad'");
  });

  it('lets no no-op wait for a handler that spins beside it', async () => {
    const host = await open({ threads: 2, concurrency: 16 });
    const spinner = host.start('spinUntilAborted');
    await host.entered(spinner);
    const noops = Array.from({ length: 1000 }, () => host.makeRun('noop'));
    const ends = await host.drive(noops);
    expect(ends.every((end) => end.kind === 'succeeded')).toBe(true);
    expect(host.known(spinner).end, 'the spinner went on meanwhile').toBeUndefined();
    await release(host, spinner);
  });

  it('sends nothing more to a thread that has not read its last batch', async () => {
    const host = await open();
    const spinner = host.start('spinUntilAborted');
    await host.entered(spinner);
    expect((await host.ended(host.startOnce('noop'))).kind).toBe('returned');
    // Its slots are free, but nobody there takes anything.
    expect(host.known(spinner).end).toBeUndefined();
    expect(host.executor.capacity()).toBe(0);
    await release(host, spinner);
    await host.until(() => host.executor.capacity() >= 4);
  });

  it('takes back what was sent behind a handler that spins, and it never enters', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tickwheel-'));
    const fd = openSync(join(directory, 'marks'), 'a');
    try {
      const host = await open({ concurrency: 8 });
      const runs = [host.makeRun('spinUntilAborted'), host.makeRun('mark', { fd, text: 'never' })];
      const [spinner, behind] = runs.map((run) => run.runId) as [number, number];
      host.give(runs, [behind]);
      expect((await host.ended(behind)).kind).toBe('returned');
      // Its entry is told though the thread cannot say so, so that its timeout counts.
      await host.entered(spinner);
      expect(host.known(spinner).end).toBeUndefined();
      expect(host.executor.capacity()).toBe(7);
      await release(host, spinner);
      await host.run('mark', { fd, text: 'after' });
      expect(readFileSync(join(directory, 'marks'), 'utf8')).toBe('after\n');
    } finally {
      closeSync(fd);
      rmSync(directory, { recursive: true });
    }
  });

  it('enters each run or takes it back, never both, however the two race', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tickwheel-'));
    const path = join(directory, 'marks');
    const fd = openSync(path, 'a');
    try {
      const host = await open({ threads: 2, concurrency: 4 });
      const returned = new Set<string>();
      const entered = new Set<string>();
      for (let round = 0; round < 150; round++) {
        const runs = Array.from({ length: Math.min(8, host.executor.capacity()) }, (_, i) =>
          host.makeRun('mark', { fd, text: `${round}-${i}` }),
        );
        host.giveOnce(runs);
        // At a different moment of the message's way each time.
        await new Promise<void>((resolve) => setImmediate(resolve));
        for (let spin = 0; spin < (round % 15) * 4000; spin++) Math.sqrt(spin);
        host.call(() => host.executor.recall());
        const ends = await Promise.all(runs.map((run) => host.ended(run.runId)));
        ends.forEach((end, i) => {
          (end.kind === 'returned' ? returned : entered).add(`${round}-${i}`);
        });
        await host.until(() => host.executor.capacity() >= 8);
      }
      const marks = readFileSync(path, 'utf8').trim().split('\n');
      expect(new Set(marks)).toEqual(entered);
      expect(marks).toHaveLength(entered.size);
      expect(returned.size, 'some were taken back').toBeGreaterThan(0);
      expect(entered.size, 'some were entered').toBeGreaterThan(0);
    } finally {
      closeSync(fd);
      rmSync(directory, { recursive: true });
    }
  });

  it.each([
    ['exit', 0],
    ['exitLater', 7],
  ])(
    'charges process.exit (%s) to the run that called it; the others are displaced',
    async (handler, code) => {
      const host = await open();
      const others = [host.start('stuck'), host.start('stuck')];
      const before = await threadOf(host, others[0] as number);
      await host.entered(others[1] as number);
      expect(await host.run(handler, code)).toMatchObject({
        kind: 'lost',
        entered: true,
        blame: 'culprit',
        error: { message: expect.stringContaining(`process.exit(${code})`) },
      });
      for (const other of others) {
        expect(await host.ended(other)).toMatchObject({ kind: 'lost', blame: 'displaced' });
      }
      await host.until(() => host.executor.capacity() > 0);
      const next = host.start('echo', 1);
      expect(await threadOf(host, next)).not.toBe(before);
      expect((await host.ended(next)).kind).toBe('succeeded');
    },
  );

  it('charges an exception thrown outside of any promise to its run, and replaces the thread', async () => {
    const host = await open();
    const other = host.start('stuck');
    await host.entered(other);
    expect(await host.run('throwOutside')).toMatchObject({
      kind: 'lost',
      blame: 'culprit',
      error: { message: expect.stringMatching(/^outside of the promise \(the thread's heap/) },
    });
    expect(await host.ended(other)).toMatchObject({ kind: 'lost', blame: 'displaced' });
    await host.until(() => host.executor.capacity() > 0);
    expect(await host.resultOf('echo', 1)).toBe(1);
  });

  it('charges an unhandled rejection to its run, and lets the others on the thread finish', async () => {
    const host = await open();
    const other = host.start('wait', 200);
    await host.entered(other);
    expect(await host.run('reject')).toMatchObject({
      kind: 'lost',
      blame: 'culprit',
      error: { message: expect.stringMatching(/^nobody awaits this \(the thread's heap/) },
    });
    expect(host.executor.zombies).toBe(1);
    const end = await host.ended(other);
    expect(host.codec.decode((end as { result: Uint8Array }).result)).toBe('waited');
    await host.until(() => host.executor.zombies === 0);
  });

  it('replaces a thread on which only a crashed handler is left', async () => {
    const host = await open();
    const before = await threadOf(host, host.start('noop'));
    expect(await host.run('reject')).toMatchObject({ kind: 'lost', blame: 'culprit' });
    await host.until(() => host.executor.zombies === 0 && host.executor.capacity() > 0);
    expect(await threadOf(host, host.start('noop'))).not.toBe(before);
  });

  it('charges a thread out of memory to a run that had it for itself', async () => {
    const host = await open({ resourceLimits: { maxOldGenerationSizeMb: 24 } });
    expect(await host.run('outOfMemory')).toMatchObject({
      kind: 'lost',
      blame: 'culprit',
      error: {
        code: 'ERR_WORKER_OUT_OF_MEMORY',
        message: expect.stringMatching(/heap last held \d+ of at most \d+ MiB, the process held/),
      },
    });
    await host.until(() => host.executor.capacity() > 0);
    expect(await host.resultOf('echo', 1)).toBe(1);
  });

  it('suspects all on a thread out of memory, and charges none', async () => {
    const host = await open({ resourceLimits: { maxOldGenerationSizeMb: 24 } });
    const runs = [host.start('stuck'), host.start('outOfMemory')];
    const ends = await Promise.all(runs.map((runId) => host.ended(runId)));
    for (const end of ends) expect(end).toMatchObject({ kind: 'lost', blame: 'suspect' });
    await host.until(() => host.executor.capacity() > 0);
    expect(await host.resultOf('echo', 1)).toBe(1);
  });

  it('ends a thread that is blocked for ever; those beside it are displaced or taken back', async () => {
    const host = await open();
    const beside = host.start('stuck');
    await host.entered(beside);
    const blocked = host.start('waitForever');
    // Told from shared memory: the thread says nothing any more.
    await host.entered(blocked);
    expect(host.executor.capacity()).toBe(2);
    const behind = host.startOnce('noop');
    host.call(() => host.executor.end(blocked));
    expect(await host.ended(blocked)).toMatchObject({ kind: 'lost', blame: 'ended' });
    expect(await host.ended(beside)).toMatchObject({ kind: 'lost', blame: 'displaced' });
    expect(await host.ended(behind)).toMatchObject({
      kind: expect.stringMatching(/returned|succ/),
    });
    await host.until(() => host.executor.capacity() === 4);
    expect(await host.resultOf('echo', 1)).toBe(1);
  });

  it('is loading while a thread has not read what it was sent, though that was taken back', async () => {
    const host = await open();
    const blocked = host.start('waitForever');
    await host.entered(blocked);
    expect(host.executor.loading).toBe(false);
    const behind = host.startOnce('noop');
    expect((await host.ended(behind)).kind).toBe('returned');
    expect(host.executor.loading).toBe(true);
    host.call(() => host.executor.end(blocked));
    await host.until(() => host.executor.capacity() === 4);
    expect(host.executor.loading).toBe(false);
  });

  it('does not end a thread for a run that has ended meanwhile', async () => {
    const host = await open();
    // On a busy machine its entry may be heard of before it has ended: then it is ended by right.
    for (let round = 0; round < 20; round++) {
      const warned = host.logged.length;
      const runId = host.start('noop');
      await host.entered(runId);
      host.call(() => host.executor.end(runId));
      const { kind } = await host.ended(runId);
      if (kind === 'succeeded') {
        expect(host.logged.slice(warned).filter(({ level }) => level === 'warn')).toEqual([]);
        return;
      }
      await host.until(() => host.executor.capacity() > 0);
    }
    expect.fail('each of twenty was ended with its thread');
  });

  it('aborts a loop that never yields by its signal', async () => {
    const host = await open();
    const runId = host.start('spinUntilAborted');
    await host.entered(runId);
    host.call(() => host.executor.abort(runId, 'timedOut', 'too slow'));
    expect(await host.ended(runId)).toMatchObject({
      kind: 'failed',
      error: { code: 'TICKWHEEL_ABORTED' },
    });
  });

  it('keeps a thread to itself for a run that must be alone, and starves nobody', async () => {
    const host = await open({ threads: 2, concurrency: 2 });
    const busy = [host.start('wait', 60), host.start('wait', 60)];
    for (const runId of busy) await host.entered(runId);
    const alone = host.start('hang', undefined, { alone: true });
    const shared = [host.start('wait', 60), host.start('wait', 5)];
    const aloneOn = await threadOf(host, alone);
    // While it runs nothing else is on its thread.
    for (let i = 0; i < 5; i++) {
      expect(await threadOf(host, host.start('echo', i))).not.toBe(aloneOn);
    }
    for (const runId of [...busy, ...shared]) {
      expect((await host.ended(runId)).kind).toBe('succeeded');
    }
    host.call(() => host.executor.abort(alone, 'cancelled', 'enough'));
    await host.ended(alone);
    const more = Array.from({ length: 6 }, (_, i) =>
      host.makeRun('echo', i, { alone: i % 2 === 0 }),
    );
    const ends = await host.drive(more);
    expect(ends.map((end) => end.kind)).toEqual(more.map(() => 'succeeded'));
  });

  it('runs alone ones and others in turn on its only thread', async () => {
    const host = await open({ threads: 1, concurrency: 4 });
    const runs = Array.from({ length: 40 }, (_, i) =>
      host.makeRun('later', i, { alone: i % 4 === 0 }),
    );
    const ends = await host.drive(runs);
    expect(ends.every((end) => end.kind === 'succeeded')).toBe(true);
  });

  it('loses none of 100,000 no-ops', async () => {
    const host = await open({ threads: 2, concurrency: 16 });
    const runs = Array.from({ length: 100_000 }, () => host.makeRun('noop'));
    const ends = await host.drive(runs);
    expect(ends).toHaveLength(runs.length);
    expect(ends.every((end) => end.kind === 'succeeded')).toBe(true);
    expect(host.executor.capacity()).toBeGreaterThanOrEqual(32);
  });

  it('leaves no promise unhandled when it closes with work on its threads', async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on('unhandledRejection', listen);
    try {
      const host = await open({ threads: 2 });
      const runs = [host.start('stuck'), host.start('waitForever'), host.start('sleeper', '1h')];
      for (const runId of runs) await host.entered(runId);
      await host.executor.close();
      await new Promise<void>((resolve) => setImmediate(resolve));
      for (const runId of runs) expect(host.known(runId).end).toBeDefined();
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', listen);
    }
  });
});

/** Ends a handler that spins until it is aborted. */
async function release(host: TinyHost, spinner: number): Promise<void> {
  host.call(() => host.executor.abort(spinner, 'timedOut', 'long enough'));
  await host.ended(spinner);
}
