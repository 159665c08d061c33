/** Cases 24 and 25: contended keys, and values that must survive. */
import { describe, expect, it } from 'vitest';
import { PayloadNotSerializableError, type Task } from '../../src/index.js';
import { openBed, rejection, startBed } from '../scheduler/helpers.js';

describe('keys and payloads', () => {
  it('24. a contended key: each caller gets the task', async () => {
    const { scheduler, clock } = await startBed({ work: (n: number) => n });
    const ids = new Set<string>();
    let made = 0;
    for (let round = 0; round < 20; round++) {
      const calls: Promise<Task & { created: boolean }>[] = [];
      for (let caller = 0; caller < 10; caller++) {
        calls.push(
          scheduler.schedule('work', round, { idempotencyKey: `k${round}`, tenant: 'contended' }),
        );
        if (caller % 3 === 0) await Promise.resolve();
        if (caller % 4 === 0) await clock.advance(0);
      }
      const tasks = await Promise.all(calls);
      expect(new Set(tasks.map((task) => task.id)).size).toBe(1);
      made += tasks.filter((task) => task.created).length;
      ids.add((tasks[0] as Task).id);
    }
    expect(made).toBe(20);
    expect(ids.size).toBe(20);
  });

  it('24b. also where the tenant has no place left for another', async () => {
    const { scheduler } = await openBed(
      { work: (n: number) => n },
      { tenants: { '*': { maxPending: 1 } } },
    );
    const options = { idempotencyKey: 'k', delay: '1h' };
    const items = Array.from({ length: 5 }, () => ({
      handler: 'work' as const,
      payload: 1,
      options,
    }));
    const tasks = await scheduler.scheduleMany(items);
    expect(tasks.map((task) => 'created' in task && task.created)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  it('25. Date, Map, Set, BigInt, typed arrays, undefined, NaN and errors survive, both ways', async () => {
    const payload = {
      date: new Date('2026-02-03T04:05:06.789Z'),
      map: new Map<unknown, unknown>([
        [{ key: 1 }, new Set([1, 'two'])],
        ['nested', new Map([[1n, -0]])],
      ]),
      big: 2n ** 70n,
      bytes: new Uint8Array([1, 2, 255]),
      floats: new Float64Array([0.1, Number.NaN]),
      nothing: undefined,
      nan: Number.NaN,
      infinite: -Infinity,
      negative: -0,
      text: 'ünïcödé \u{1f600}',
      holes: [undefined, null, 0],
      error: new RangeError('outer', { cause: new TypeError('inner') }),
    };
    const received: unknown[] = [];
    const { scheduler, clock } = await startBed({
      echo: (value: typeof payload) => {
        received.push(value);
        return value;
      },
    });
    const task = await scheduler.schedule('echo', payload);
    await clock.advance(0);
    const { result } = await scheduler.wait(task.id);
    for (const value of [received[0], result, (await scheduler.get(task.id))?.payload]) {
      expect(value).toEqual(payload);
      expect(Object.hasOwn(value as object, 'nothing')).toBe(true);
      expect(Object.is((value as typeof payload).negative, -0)).toBe(true);
      expect((value as typeof payload).error).toBeInstanceOf(RangeError);
      expect((value as typeof payload).error.cause).toBeInstanceOf(TypeError);
    }
    expect(received[0]).not.toBe(payload);
  });

  it('25b. a cycle, a function, a symbol, an instance of a class are refused at once, by their path', async () => {
    const { scheduler } = await openBed({ work: (_: unknown) => {} });
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    class Custom {
      readonly x = 1;
    }
    const bad: [unknown, RegExp][] = [
      [cycle, /payload\.self/],
      [{ a: [{ f: () => 1 }] }, /payload\.a\[0\]\.f/],
      [Symbol('s'), /payload/],
      [{ deep: new Custom() }, /payload\.deep/],
      [new WeakMap(), /payload/],
      [Promise.resolve(1), /payload/],
    ];
    for (const [value, path] of bad) {
      const refused = await rejection(scheduler.schedule('work', value));
      expect(refused).toBeInstanceOf(PayloadNotSerializableError);
      expect(refused.message).toMatch(path);
    }
    expect((await scheduler.list()).items).toEqual([]);
  });
});
