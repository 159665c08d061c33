/** What every executor promises, driven through the protocol. `open` gives one with the fixture's handlers. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock/clock.js';
import { VirtualClock } from '../../src/clock/virtual.js';
import { OverloadedError } from '../../src/core/errors.js';
import type { Executor } from '../../src/execution/executor.js';
import { TinyHost } from './host.js';

export function testExecutor(name: string, make: (slots: number) => Executor): void {
  describe(`an executor: ${name}`, () => {
    const hosts: TinyHost[] = [];

    afterEach(async () => {
      for (const host of hosts.splice(0)) await host.executor.close();
    });

    async function open(slots = 4, clock?: Clock): Promise<TinyHost> {
      const host = new TinyHost(clock);
      hosts.push(host);
      return await host.open(make(slots));
    }

    it('tells its handlers, their versions in order, and its slots', async () => {
      const { executor } = await open(4);
      expect(executor.handlers.get('noop')).toEqual([1]);
      expect(executor.handlers.get('versioned')).toEqual([1, 3]);
      expect(executor.slots).toBe(4);
      expect(executor.capacity()).toBe(4);
      expect(executor.zombies).toBe(0);
    });

    it('runs a handler that returns and one that resolves, and gives back what they give', async () => {
      const host = await open();
      const value = {
        when: new Date(5),
        big: 2n ** 80n,
        list: [1, undefined, -0],
        m: new Map([[1, 2]]),
      };
      expect(await host.resultOf('echo', value)).toEqual(value);
      expect(await host.resultOf('later', value)).toEqual(value);
      expect(await host.resultOf('noop')).toBeUndefined();
      expect(await host.resultOf('echo', null)).toBeNull();
    });

    it('enters before it ends, with times and a worker', async () => {
      const host = await open();
      const runId = host.start('later', 1);
      const end = await host.ended(runId);
      const entered = await host.entered(runId);
      expect(entered.workerId.length).toBeGreaterThan(0);
      expect(entered.atMs).toBeLessThanOrEqual((end as { atMs: number }).atMs);
    });

    it('runs the version that the run names', async () => {
      const host = await open();
      expect(await host.resultOf('versioned', 0, { handlerVersion: 1 })).toBe('one');
      expect(await host.resultOf('versioned', 0, { handlerVersion: 3 })).toBe('three');
      expect(await host.run('versioned', 0, { handlerVersion: 2 })).toMatchObject({
        kind: 'failed',
        error: { code: 'TICKWHEEL_UNKNOWN_HANDLER' },
      });
    });

    it('gives the handler its context', async () => {
      const host = await open(4, new VirtualClock(7_000));
      const progress = host.codec.encode({ step: 4 }, 'progress');
      const given = {
        taskId: 't',
        occurrenceId: 'o',
        attempt: 3,
        retriesLeft: 1,
        fencingToken: 2 ** 40,
      };
      expect(await host.resultOf('context', 0, { ...given, progress })).toEqual({
        ...given,
        tenant: 'acme',
        handler: 'context',
        handlerVersion: 1,
        nominalAt: new Date(1_000),
        dueAt: new Date(1_001),
        progress: { step: 4 },
        aborted: false,
        now: 7_000,
      });
      expect(await host.resultOf('context')).toMatchObject({ progress: undefined });
    });

    it('reports what is thrown, with its cause and what it says of retries', async () => {
      const host = await open();
      expect(await host.run('fail', { message: 'no' })).toMatchObject({
        kind: 'failed',
        error: { name: 'TypeError', message: 'no', cause: { message: 'the cause' } },
        unrecoverable: false,
        retryAfterMs: undefined,
      });
      expect(await host.run('failLater', { message: 'late' })).toMatchObject({
        kind: 'failed',
        error: { message: 'late' },
      });
      expect(await host.run('throwString')).toMatchObject({ error: { message: 'only text' } });
      const fatal = { message: 'x', code: 'TICKWHEEL_UNRECOVERABLE' };
      expect(await host.run('fail', fatal)).toMatchObject({ unrecoverable: true });
      const again = { message: 'x', code: 'TICKWHEEL_RETRY_AFTER', delayMs: 1234 };
      expect(await host.run('fail', again)).toMatchObject({ retryAfterMs: 1234 });
      expect(await host.run('unserializable')).toMatchObject({
        kind: 'failed',
        error: { code: 'TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE' },
      });
    });

    it('takes as many runs as it has slots, and more when they end', async () => {
      const host = await open(2);
      const first = host.start('hang');
      const second = host.start('hang');
      expect(host.executor.capacity()).toBe(0);
      await host.entered(first);
      await host.entered(second);
      expect(host.executor.capacity()).toBe(0);
      host.call(() => host.executor.abort(first, 'cancelled', 'enough'));
      await host.ended(first);
      expect(host.executor.capacity()).toBe(1);
    });

    it('aborts the signal with an AbortedError that says why', async () => {
      const host = await open();
      const runId = host.start('hang');
      await host.entered(runId);
      host.call(() => host.executor.abort(runId, 'timedOut', 'too slow'));
      expect(await host.ended(runId)).toMatchObject({
        kind: 'failed',
        error: { name: 'AbortedError', code: 'TICKWHEEL_ABORTED', message: 'too slow' },
      });
    });

    it('sleeps on the given clock, and not while it stands still', async () => {
      const clock = new VirtualClock(0);
      const host = await open(4, clock);
      const runId = host.start('sleeper', '1h');
      await host.entered(runId);
      await host.until(() => true);
      await settled(host);
      expect(host.known(runId).end).toBeUndefined();
      await clock.advance('1h');
      const end = await host.ended(runId);
      expect(host.codec.decode((end as { result: Uint8Array }).result)).toBe(3_600_000);
      expect(end).toMatchObject({ atMs: 3_600_000 });
    });

    it('wakes a sleep with the reason when the signal is aborted', async () => {
      const clock = new VirtualClock(0);
      const host = await open(4, clock);
      const runId = host.start('sleeper', '1h');
      await host.entered(runId);
      await settled(host);
      host.call(() => host.executor.abort(runId, 'cancelled', 'not wanted'));
      expect(await host.ended(runId)).toMatchObject({
        kind: 'failed',
        error: { name: 'AbortedError', message: 'not wanted' },
      });
    });

    it('counts a handler as settled while it sleeps, and when it was given up on', async () => {
      const clock = new VirtualClock(0);
      const host = await open(4, clock);
      const sleeper = host.start('sleeper', '1h');
      const other = host.start('clockSleeper', '1h');
      expect(host.executor.unsettledHandlers()).toBe(2);
      await host.entered(sleeper);
      await host.entered(other);
      await settled(host);
      const stuck = host.start('hang');
      await host.entered(stuck);
      expect(host.executor.unsettledHandlers()).toBe(1);
      host.executor.giveUpOnHandlers();
      expect(host.executor.unsettledHandlers()).toBe(0);
      await clock.advance('1h');
      await Promise.all([host.ended(sleeper), host.ended(other)]);
      expect(host.executor.unsettledHandlers()).toBe(0);
    });

    it('reports heartbeats in order, and refuses progress that would not come back', async () => {
      const host = await open();
      const runId = host.start('beat', 3);
      await host.ended(runId);
      expect(host.known(runId).progress).toEqual([
        { step: 1 },
        { step: 2 },
        { step: 3 },
        undefined,
      ]);
      expect(await host.run('beatBadly')).toMatchObject({
        kind: 'failed',
        error: { code: 'TICKWHEEL_PAYLOAD_NOT_SERIALIZABLE' },
      });
    });

    it('schedules further tasks for a handler, and gives it the errors with their class', async () => {
      const host = await open();
      const asked = { handler: 'next', payload: { at: new Date(1) }, options: { delay: '5s' } };
      const runId = host.start('schedules', asked);
      const end = await host.ended(runId);
      expect(host.codec.decode((end as { result: Uint8Array }).result)).toEqual({
        id: 'child',
        created: true,
      });
      expect(host.scheduled).toEqual([{ taskId: `task-${runId}`, tenant: 'acme', ...asked }]);
      host.onSchedule = () => {
        throw new OverloadedError('too much', { retryAfterMs: 77 });
      };
      expect(await host.resultOf('schedules', asked)).toEqual({
        name: 'OverloadedError',
        code: 'TICKWHEEL_OVERLOADED',
        why: 77,
        isError: true,
      });
    });

    it('lets a handler log whatever it likes', async () => {
      const host = await open();
      await host.run('logs');
      const own = host.logged.filter(({ level }) => level !== 'debug');
      expect(own.map(({ level }) => level)).toEqual(['info', 'warn']);
      expect(own[0]?.message).toBe('odd fields');
    });

    it('takes back what has not entered, and never enters it', async () => {
      const host = await open(4);
      const runs = [1, 2, 3].map((n) => host.makeRun('echo', n));
      host.giveOnce(runs);
      host.call(() => host.executor.recall());
      const ends = await Promise.all(runs.map((run) => host.ended(run.runId)));
      expect(new Set(ends.map((end) => end.kind))).toEqual(new Set(['returned']));
      expect(host.executor.capacity()).toBe(4);
    });

    it('takes back a run that is aborted or ended before it has entered', async () => {
      const host = await open(4);
      const aborted = host.startOnce('hang');
      host.call(() => host.executor.abort(aborted, 'cancelled', 'early'));
      const ended = host.startOnce('hang');
      host.call(() => host.executor.end(ended));
      expect((await host.ended(aborted)).kind).toBe('returned');
      expect((await host.ended(ended)).kind).toBe('returned');
    });

    it('reports a run that is ended as lost, with blame on itself, and frees its slot', async () => {
      const host = await open(2);
      const runId = host.start('stuck');
      await host.entered(runId);
      host.call(() => host.executor.end(runId));
      expect(await host.ended(runId)).toMatchObject({
        kind: 'lost',
        entered: true,
        blame: 'ended',
      });
      await host.until(() => host.executor.capacity() === 2);
      expect(await host.resultOf('echo', 'again')).toBe('again');
    });

    it('ignores what it is told of runs that it does not have', async () => {
      const host = await open();
      const runId = host.start('noop');
      await host.ended(runId);
      host.call(() => {
        host.executor.abort(runId, 'cancelled', 'late');
        host.executor.end(runId);
        host.executor.end(999_999);
        host.executor.recall();
      });
      expect(await host.resultOf('echo', 1)).toBe(1);
    });

    it('runs a run that must be alone', async () => {
      const host = await open(4);
      const others = [host.start('later', 1), host.start('later', 2)];
      expect(await host.resultOf('echo', 'alone', { alone: true })).toBe('alone');
      for (const other of others) await host.ended(other);
    });

    it('empties a thread for one that must be alone: nothing new meanwhile, and what was let go goes on', async () => {
      const host = await open(4);
      const { executor } = host;
      expect(executor.threads).toBe(1);
      const other = host.start('hang');
      await host.entered(other);
      expect(executor.reserve(true)).toBe(false);
      expect(executor.capacity()).toBe(0);
      expect(executor.reserve(false)).toBe(false);
      expect(executor.capacity()).toBe(3);
      expect(executor.reserve(true)).toBe(false);
      host.call(() => executor.abort(other, 'cancelled', 'enough'));
      await host.ended(other);
      expect(executor.reserve(true)).toBe(true);
      expect(executor.capacity()).toBe(0);
      const alone = host.start('hang', undefined, { alone: true });
      await host.entered(alone);
      expect(executor.capacity()).toBe(0);
      host.call(() => executor.abort(alone, 'cancelled', 'enough'));
      await host.ended(alone);
      // Starting it has ended the wish.
      expect(executor.capacity()).toBe(4);
      expect(executor.reserve(true)).toBe(true);
      expect(executor.reserve(false)).toBe(false);
      expect(executor.capacity()).toBe(4);
    });

    it('runs a thousand, every one exactly once', async () => {
      const host = await open(8);
      const runs = Array.from({ length: 1000 }, (_, i) =>
        host.makeRun(i % 3 ? 'echo' : 'later', i),
      );
      const ends = await host.drive(runs);
      const results = ends.map((end) => host.codec.decode((end as { result: Uint8Array }).result));
      expect(results).toEqual(runs.map((_, i) => i));
    });

    it('reports all that is left when it closes, and takes no more', async () => {
      const host = await open(4);
      const running = [host.start('stuck'), host.start('hang')];
      for (const runId of running) await host.entered(runId);
      const queued = host.startOnce('noop');
      await host.executor.close();
      await host.executor.close();
      for (const runId of running) {
        expect(host.known(runId).end).toMatchObject({ kind: 'lost', blame: 'displaced' });
      }
      expect(host.known(queued).end).toBeDefined();
      expect(host.executor.capacity()).toBe(0);
    });
  });
}

/** Every handler has ended or waits on the clock. */
async function settled(host: TinyHost): Promise<void> {
  while (host.executor.unsettledHandlers() > 0) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
