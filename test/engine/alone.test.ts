/** A thread emptied for what must run alone: how long others wait for it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { AloneThread } from '../../src/engine/alone.js';
import type { Executor } from '../../src/execution/executor.js';

/** As much of an executor as is asked. */
class Threads {
  readonly threads: number;
  /** Something runs on the one that is reserved. */
  busy = true;
  wanted: boolean | undefined;

  constructor(threads: number) {
    this.threads = threads;
  }

  reserve(isWanted: boolean): boolean {
    this.wanted = isWanted;
    return isWanted && !this.busy;
  }
}

let threads: Threads;
let alone: AloneThread;

function begin(count: number): void {
  threads = new Threads(count);
  alone = new AloneThread(threads as unknown as Executor);
}

describe('the only thread', () => {
  beforeEach(() => begin(1));

  it('is asked for once something must run alone, and is given when it is empty', () => {
    expect(alone.ask(false, 0)).toBe(false);
    expect(threads.wanted).toBeUndefined();
    expect(alone.isNews(true)).toBe(true);
    expect(alone.ask(true, 0)).toBe(false);
    expect(threads.wanted).toBe(true);
    expect(alone.isNews(true)).toBe(false);
    threads.busy = false;
    expect(alone.ask(true, 10)).toBe(true);
    alone.taken();
    // What was started on it ended the wish: it is not to be taken back.
    expect(alone.ask(false, 20)).toBe(false);
    expect(threads.wanted).toBe(true);
    expect(alone.nextMs).toBe(Number.POSITIVE_INFINITY);
  });

  it('is let go for ten times as long as it was kept, and then kept for twice as long', () => {
    const log: [number, boolean | undefined][] = [];
    let wanted: boolean | undefined;
    for (let nowMs = 0; nowMs < 300_000; nowMs += 1000) {
      alone.ask(true, nowMs);
      if (threads.wanted !== wanted) log.push([nowMs, threads.wanted]);
      wanted = threads.wanted;
    }
    expect(log).toEqual([
      [0, true],
      [5000, false],
      [55_000, true],
      [65_000, false],
      [165_000, true],
      [185_000, false],
    ]);
  });

  it('wakes the loop at the end of each of these', () => {
    alone.ask(true, 100);
    expect(alone.nextMs).toBe(5100);
    alone.ask(true, 5100);
    expect(alone.nextMs).toBe(55_100);
  });

  it('is taken also while others may go on, when it is empty by chance', () => {
    alone.ask(true, 0);
    alone.ask(true, 5000);
    expect(alone.ask(true, 6000)).toBe(false);
    expect(threads.wanted).toBe(false);
    threads.busy = false;
    expect(alone.ask(true, 7000)).toBe(true);
  });

  it('is let go at once when nothing must run alone any more', () => {
    alone.ask(true, 0);
    expect(alone.ask(false, 10)).toBe(false);
    expect(threads.wanted).toBe(false);
    expect(alone.nextMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('one thread of several', () => {
  it('is kept until it is empty, since others go on', () => {
    begin(2);
    for (let nowMs = 0; nowMs < 100_000; nowMs += 1000) alone.ask(true, nowMs);
    expect(threads.wanted).toBe(true);
    expect(alone.nextMs).toBe(Number.POSITIVE_INFINITY);
  });
});
