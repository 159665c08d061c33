import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/clock/virtual.js';
import { InvalidArgumentError, LeaseLostError } from '../../src/core/errors.js';
import type { HandlerMap } from '../../src/execution/handler.js';
import { InProcessExecutor } from '../../src/execution/in-process.js';
import { testExecutor } from './conformance.js';
import { TinyHost } from './host.js';

const fixture = new URL('./fixtures/handlers.mjs', import.meta.url).href;
const { default: handlers } = (await import(fixture)) as { default: HandlerMap };

testExecutor('in-process', (slots) => new InProcessExecutor({ handlers, slots }));

function open(handlers: HandlerMap, slots: number): Promise<TinyHost> {
  return new TinyHost(new VirtualClock(0)).open(new InProcessExecutor({ handlers, slots }));
}

describe('handlers in-process', () => {
  it('go on as zombies after their end, and what they do then is not told', async () => {
    const release: (() => void)[] = [];
    let refused = 0;
    const host = await open(
      {
        held: async (_, { heartbeat }) => {
          await new Promise<void>((resolve) => release.push(resolve));
          expect(() => heartbeat('late')).toThrow(LeaseLostError);
          refused++;
          return 'late';
        },
      },
      2,
    );
    const runId = host.start('held');
    await host.entered(runId);
    host.call(() => host.executor.end(runId));
    await host.ended(runId);
    expect(host.executor.zombies).toBe(1);
    expect(host.executor.capacity()).toBe(2);
    expect(host.executor.unsettledHandlers()).toBe(0);
    release[0]?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(host.executor.zombies).toBe(0);
    expect(refused).toBe(1);
    expect(host.known(runId).progress).toEqual([]);
  });

  it('do not start while there are as many zombies as slots, which is logged once', async () => {
    const release: (() => void)[] = [];
    const host = await open(
      { held: () => new Promise<void>((resolve) => release.push(resolve)) },
      2,
    );
    const runs = [host.start('held'), host.start('held')];
    for (const runId of runs) await host.entered(runId);
    for (const runId of runs) host.call(() => host.executor.end(runId));
    expect(host.executor.capacity()).toBe(0);
    expect((await host.ended(host.startOnce('held'))).kind).toBe('returned');
    expect(host.logged.filter(({ level }) => level === 'error')).toHaveLength(1);
    const { batches } = host;
    release[0]?.();
    // That capacity is back is told by an empty batch.
    await host.until(() => host.batches > batches);
    expect(host.executor.capacity()).toBe(2);
    expect(host.executor.zombies).toBe(1);
  });

  it('see an abort that came before they asked for their signal', async () => {
    const seen: unknown[] = [];
    const host = await open(
      {
        late: async (_, ctx) => {
          await new Promise<void>((resolve) => setImmediate(resolve));
          seen.push(ctx.signal.aborted, (ctx.signal.reason as { why: string }).why);
          await ctx.sleep(1000).catch((error) => seen.push(error === ctx.signal.reason));
        },
      },
      1,
    );
    const runId = host.start('late');
    await host.entered(runId);
    host.call(() => host.executor.abort(runId, 'shutdown', 'stop'));
    await host.ended(runId);
    expect(seen).toEqual([true, 'shutdown', true]);
  });

  it('have the thread for themselves when they must be alone', async () => {
    const log: string[] = [];
    const clock = new VirtualClock(0);
    const handlers: HandlerMap = {
      nap: async (name, ctx) => {
        log.push(`+${name}`);
        await ctx.sleep(10);
        log.push(`-${name}`);
      },
    };
    const executor = new InProcessExecutor({ handlers, slots: 4 });
    const host = await new TinyHost(clock).open(executor);
    const first = host.start('nap', 'first');
    await host.entered(first);
    const runs = ['alone', 'next'].map((name) =>
      host.makeRun('nap', name, { alone: name === 'alone' }),
    );
    host.give(runs);
    expect(log).toEqual(['+first']);
    await new Promise<void>((resolve) => setImmediate(resolve));
    // One that waits for the others to end keeps new ones out, or its turn would never come.
    expect(executor.capacity()).toBe(0);
    await clock.advance(10);
    await host.until(() => log.includes('+alone'));
    expect(executor.capacity()).toBe(0);
    await clock.advance(10);
    await host.until(() => log.includes('+next'));
    await clock.advance(10);
    await host.ended(runs[1]?.runId as number);
    expect(log).toEqual(['+first', '-first', '+alone', '-alone', '+next', '-next']);

    const last = host.start('nap', 'last');
    await host.entered(last);
    const recalled = host.startOnce('nap', 'recalled', { alone: true });
    await new Promise<void>((resolve) => setImmediate(resolve));
    host.call(() => executor.recall());
    expect((await host.ended(recalled)).kind).toBe('returned');
    expect(executor.capacity()).toBe(3);
  });

  it('can recall the others of their own batch', async () => {
    const host = await open({ first: () => host.executor.recall(), second: () => undefined }, 4);
    const runs = [host.makeRun('first'), host.makeRun('second')];
    host.giveOnce(runs);
    const ends = await Promise.all(runs.map((run) => host.ended(run.runId)));
    expect(ends.map((end) => end.kind)).toEqual(['succeeded', 'returned']);
  });

  it('are checked: names, versions and functions', () => {
    const make = (handlers: unknown) => () =>
      new InProcessExecutor({ handlers: handlers as HandlerMap, slots: 1 });
    expect(make({ a: 1 })).toThrow(InvalidArgumentError);
    expect(make({ a: {} })).toThrow("handler 'a'");
    expect(make({ a: { 0: () => 1 } })).toThrow("version '0'");
    expect(make({ a: { 1.5: () => 1 } })).toThrow(InvalidArgumentError);
    expect(make({ a: { 1: 'x' } })).toThrow(InvalidArgumentError);
    expect(make({ '': () => 1 })).toThrow('empty');
    expect(make(null)).toThrow(InvalidArgumentError);
    expect(make([() => 1])).toThrow(InvalidArgumentError);
  });
});
