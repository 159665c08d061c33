import { describe, expect, it } from 'vitest';
import { Audit } from '../../../src/cli/load/audit.js';
import { Board } from '../../../src/cli/load/board.js';
import { Creator, type CreatorOptions, type LoadItem } from '../../../src/cli/load/creator.js';
import { drain, type SeenTask, takeCensus } from '../../../src/cli/load/drain.js';
import { type GeneratorClock, generate, preload } from '../../../src/cli/load/generator.js';
import { preloadWorkload, syntheticWorkload } from '../../../src/cli/load/synthetic.js';
import { OverloadedError } from '../../../src/index.js';

const START = 1_700_000_000_000;
const LOAD = { ratePerSecond: 1000, lengthMs: 1000, dueInMs: 100, tenants: 1, seed: 1 };

type Answer = { readonly id: string } | Error;

/** A clock on which a sleep passes at once; `onSleep` sees each. */
function instantClock(onSleep: () => void = () => {}): GeneratorClock {
  let elapsedMs = 0;
  return {
    now: () => START + Math.floor(elapsedMs),
    monotonic: () => elapsedMs,
    sleep: async (duration) => {
      elapsedMs += Math.max(duration, 1);
      onSleep();
    },
  };
}

/** `answer` plays the scheduler; without it every task is accepted under an id of its number. */
function arrange(
  tasks: number,
  answer: (items: LoadItem[]) => Promise<readonly Answer[]> = acceptAll,
  options: Partial<CreatorOptions> = {},
) {
  const calls: LoadItem[][] = [];
  const board = Board.create({ tasks, workMs: 0 });
  const audit = new Audit(board, START);
  const creator = new Creator({
    target: {
      scheduleMany: (items) => {
        calls.push(items);
        return answer(items);
      },
    },
    audit,
    monotonic: () => 0,
    payloadBytes: 64,
    keys: 'none',
    runName: 'run',
    seed: 1,
    ...options,
  });
  return { board, audit, creator, calls };
}

async function acceptAll(items: readonly LoadItem[]): Promise<Answer[]> {
  return items.map((item) => ({ id: `id-${item.payload.seq}` }));
}

describe('the generator', () => {
  it('creates the whole plan in its time though no call is ever answered', async () => {
    const { creator, calls } = arrange(1000, () => new Promise(() => {}));
    const clock = instantClock();
    await generate(syntheticWorkload(LOAD), creator, clock);
    expect(creator.issued).toBe(1000);
    expect(creator.callsInFlight).toBe(calls.length);
    expect(clock.monotonic()).toBeLessThan(1010);
    expect(calls.length).toBeGreaterThan(100);
  });

  it('catches up after a stall, in calls of 1000 tasks at most', async () => {
    const stalled = { ...LOAD, ratePerSecond: 100_000 };
    const { creator, calls } = arrange(100_000);
    const slow = instantClock();
    const clock = { ...slow, sleep: (ms: number) => slow.sleep(ms === 0 ? 0 : 400) };
    await generate(syntheticWorkload(stalled), creator, clock);
    expect(creator.issued).toBe(100_000);
    expect(Math.max(...calls.map((items) => items.length))).toBe(1000);
  });

  it('gives each task the same due time to run at and to be measured against', async () => {
    const { creator, calls } = arrange(1000);
    await generate(syntheticWorkload(LOAD), creator, instantClock());
    const items = calls.flat();
    expect(items.map((item) => item.payload.seq)).toEqual(items.map((_, index) => index));
    for (const { payload, options } of items) {
      expect(options.runAt).toBe(payload.dueAt);
      expect(Number.isInteger(payload.dueAt)).toBe(true);
      expect(payload.dueAt).toBeGreaterThanOrEqual(START);
      expect(payload.dueAt).toBeLessThanOrEqual(START + 1100);
    }
  });

  it('never has more than four calls of the preload unanswered', async () => {
    let most = 0;
    const { creator, audit } = arrange(20_000, async (items) => {
      most = Math.max(most, creator.callsInFlight);
      await new Promise((resolve) => setImmediate(resolve));
      return acceptAll(items);
    });
    const stored = preloadWorkload({ tasks: 20_000, spreadMs: 1000, tenants: 1, seed: 1 });
    await preload(stored, creator, instantClock());
    expect(audit.accepted).toBe(20_000);
    expect(most).toBe(4);
  });
});

describe('the creator', () => {
  it('counts what is refused item by item, and keeps the first reason', async () => {
    const refusal = new OverloadedError('too much', { retryAfterMs: 5 });
    const { creator, audit } = arrange(100, async (items) =>
      items.map((item) => (item.payload.seq % 4 === 0 ? refusal : { id: 'id' })),
    );
    await generate(syntheticWorkload({ ...LOAD, lengthMs: 100 }), creator, instantClock());
    await creator.inFlightAtMost(0);
    expect([audit.accepted, audit.rejected]).toEqual([75, 25]);
    expect(creator.firstRefusal).toBe(refusal);
  });

  it('counts every task of a call that fails as refused', async () => {
    const { creator, audit } = arrange(100, async () => {
      throw new Error('store gone');
    });
    await generate(syntheticWorkload({ ...LOAD, lengthMs: 100 }), creator, instantClock());
    await creator.inFlightAtMost(0);
    expect([audit.accepted, audit.rejected]).toEqual([0, 100]);
  });

  it('records the time to the answer once for each task', async () => {
    let nowMs = 0;
    const { creator } = arrange(
      100,
      async (items) => {
        nowMs += 2;
        return acceptAll(items);
      },
      { monotonic: () => nowMs },
    );
    await generate(syntheticWorkload({ ...LOAD, lengthMs: 100 }), creator, instantClock());
    await creator.inFlightAtMost(0);
    expect(creator.acks.count).toBe(100);
    expect(creator.acks.min).toBeGreaterThanOrEqual(2000);
  });

  it('fills payloads up, and gives keys in order, in random order, or none', async () => {
    const keysOf = async (keys: CreatorOptions['keys']) => {
      const { creator, calls } = arrange(10, acceptAll, { keys, payloadBytes: 100 });
      await generate(syntheticWorkload({ ...LOAD, lengthMs: 10 }), creator, instantClock());
      expect(calls.flat().every((item) => item.payload.pad.length === 68)).toBe(true);
      return calls.flat().map((item) => item.options.idempotencyKey);
    };
    const ordered = await keysOf('ordered');
    const random = await keysOf('random');
    expect(ordered).toEqual([...ordered].sort());
    expect(random).not.toEqual([...random].sort());
    expect(new Set([...ordered, ...random]).size).toBe(20);
    expect(await keysOf('none')).toEqual(new Array(10).fill(undefined));
  });
});

describe('the drain', () => {
  /** Ten tasks due by START + 1000, accepted. */
  async function arrangeDrain() {
    const parts = arrange(10);
    const stored = preloadWorkload({ tasks: 10, spreadMs: 1000, tenants: 1, seed: 1 });
    await preload(stored, parts.creator, instantClock());
    const run = (seq: number) => {
      const facts = { taskId: `id-${seq}`, dueAt: START, wallMs: START + 1, fineMs: START + 1 };
      parts.board.entered(seq, facts);
      parts.board.left(seq);
    };
    const finishes = () => parts.board.total('finished');
    return { ...parts, run, finishes };
  }

  it('waits for the end and then until the last task due by it has ended', async () => {
    const { audit, creator, run, finishes } = await arrangeDrain();
    let next = 0;
    const clock = instantClock(() => {
      if (next < 10) run(next++);
    });
    await drain(creator, audit, { untilMs: START + 1000, clock, finishes });
    expect(finishes()).toBe(10);
    expect(clock.now()).toBeGreaterThanOrEqual(START + 1000);
    expect(audit.tally(START + 1000)).toMatchObject({ finished: 10, lost: 0 });
  });

  it('gives up when nothing has moved for ten seconds', async () => {
    const { audit, creator, run, finishes } = await arrangeDrain();
    run(3);
    const clock = instantClock();
    await drain(creator, audit, { untilMs: START + 1000, clock, finishes });
    expect(audit.tally(START + 1000)).toMatchObject({ finished: 1, lost: 9 });
    expect(clock.now()).toBeLessThan(START + 12_000);
  });
});

describe('the census', () => {
  function storeOf(
    pages: SeenTask[][],
    later: (id: string) => SeenTask | undefined = () => undefined,
  ) {
    return {
      list: async ({ cursor }: { cursor?: string }) => {
        const page = Number(cursor ?? 0);
        const next = page + 1 < pages.length ? { cursor: String(page + 1) } : {};
        return { items: pages[page] ?? [], ...next };
      },
      get: async (id: string) => later(id),
    };
  }
  const seen = (seq: number, status = 'scheduled') => ({
    id: `id-${seq}`,
    status,
    payload: { seq },
  });

  it('reads all pages, empty ones too, and passes over what is not of the load', async () => {
    const { audit, creator } = arrange(3);
    const stored = preloadWorkload({ tasks: 3, spreadMs: 1000, tenants: 1, seed: 1 });
    await preload(stored, creator, instantClock());
    const foreign = { id: 'x', status: 'scheduled', payload: 'hello' };
    const reads: number[] = [];
    await takeCensus(storeOf([[seen(0), foreign], [], [seen(1)]]), audit, instantClock(), (n) =>
      reads.push(n),
    );
    expect(reads).toEqual([2, 2, 3]);
    expect(audit.tally(START - 1)).toMatchObject({ accepted: 3, lost: 1 });
  });

  it('looks again at a task whose handler has ended and whose record has not', async () => {
    const { audit, creator, board } = arrange(3);
    const stored = preloadWorkload({ tasks: 3, spreadMs: 1000, tenants: 1, seed: 1 });
    await preload(stored, creator, instantClock());
    for (const seq of [0, 1, 2]) {
      const facts = { taskId: `id-${seq}`, dueAt: START, wallMs: START, fineMs: START };
      board.entered(seq, facts);
      board.left(seq);
    }
    // Task 0 ends meanwhile, task 1 ends and is removed, task 2 stays as it is.
    const running = [0, 1, 2].map((seq) => seen(seq, 'running'));
    const later = new Map([
      ['id-0', seen(0, 'succeeded')],
      ['id-2', seen(2, 'running')],
    ]);
    await takeCensus(
      storeOf([running], (id) => later.get(id)),
      audit,
      instantClock(),
    );
    expect(audit.tally(START + 1000)).toMatchObject({ started: 3, finished: 2, lost: 1 });
  });
});
