import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/cli/load/random.js';
import { type ReplayOptions, replayWorkload } from '../../../src/cli/load/replay.js';
import { preloadWorkload, syntheticWorkload } from '../../../src/cli/load/synthetic.js';
import { parseTrace } from '../../../src/cli/load/trace.js';
import { createPlanBatch, type Workload } from '../../../src/cli/load/workload.js';
import { InvalidArgumentError } from '../../../src/index.js';

interface Planned {
  readonly createdByMs: number;
  readonly dueMs: number;
  readonly tenant: string;
}

/** Plays the plan in slices of `sliceMs`; each task with the end of the slice that gave it. */
function play(workload: Workload, sliceMs: number, batchMax = 10): Planned[] {
  const batch = createPlanBatch(batchMax);
  const planned: Planned[] = [];
  for (let untilMs = 0; untilMs <= workload.lengthMs + sliceMs; untilMs += sliceMs) {
    for (let more = true; more; ) {
      more = workload.fill(batch, untilMs);
      for (let at = 0; at < batch.size; at += 1) {
        const tenant = workload.tenantName(batch.tenant[at] as number);
        planned.push({ createdByMs: untilMs, dueMs: batch.dueMs[at] as number, tenant });
      }
    }
  }
  return planned;
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1;
  return counts;
}

const SYNTHETIC = { ratePerSecond: 2000, lengthMs: 1000, dueInMs: 500, tenants: 3, seed: 5 };

describe('the synthetic load', () => {
  it('keeps its rate: each slice creates what its time asks for', () => {
    const planned = play(syntheticWorkload(SYNTHETIC), 5);
    expect(planned).toHaveLength(2000);
    const bySlice = countBy(planned, (task) => String(task.createdByMs));
    expect(new Set(Object.values(bySlice))).toEqual(new Set([10]));
  });

  it('gives due times in the time after creation, over all of it, and every tenant a share', () => {
    const planned = play(syntheticWorkload(SYNTHETIC), 5);
    const leads = planned.map((task, index) => task.dueMs - index / 2);
    expect(Math.min(...leads)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...leads)).toBeLessThan(500);
    expect(countBy(leads, (lead) => String(Math.floor(lead / 100)))).toMatchObject({
      0: expect.any(Number),
      4: expect.any(Number),
    });
    const shares = Object.values(countBy(planned, (task) => task.tenant));
    expect(shares).toHaveLength(3);
    expect(Math.min(...shares)).toBeGreaterThan(500);
  });

  it('is the same for the same seed however it is sliced, and another for another seed', () => {
    const dues = (seed: number, sliceMs: number) =>
      play(syntheticWorkload({ ...SYNTHETIC, seed }), sliceMs).map((task) => task.dueMs);
    expect(dues(5, 20)).toEqual(dues(5, 5));
    expect(dues(6, 5)).not.toEqual(dues(5, 5));
  });

  it('creates nothing at a rate of 0', () => {
    expect(play(syntheticWorkload({ ...SYNTHETIC, ratePerSecond: 0 }), 5)).toEqual([]);
  });
});

describe('the preload', () => {
  it('gives all its tasks at once, due within the spread', () => {
    const planned = play(preloadWorkload({ tasks: 95, spreadMs: 1000, tenants: 2, seed: 1 }), 1);
    expect(planned).toHaveLength(95);
    expect(planned.every((task) => task.dueMs >= 0 && task.dueMs < 1000)).toBe(true);
  });
});

describe('the replay of a trace', () => {
  const lines = ['function,owner,m1,m2,m3', 'f1,o1,40,,10', 'f2,o1,7,200,0'];
  const replay = async (options: Partial<ReplayOptions> = {}) =>
    replayWorkload({
      trace: await parseTrace(lines, 'test'),
      source: 'test',
      speed: 60,
      fromMinute: 0,
      lengthMs: undefined,
      dueInMs: 300,
      seed: 1,
      ...options,
    });

  it('gives each function its invocations of each minute, due within that minute', async () => {
    const workload = await replay();
    const planned = play(workload, 5);
    expect(workload.tasksTotal).toBe(257);
    // A minute takes a second at 60 times the speed; all is 300 ms later, to be created ahead.
    const minuteOf = (task: Planned) => Math.floor((task.dueMs - 300) / 1000);
    expect(countBy(planned, (task) => `${task.tenant} m${minuteOf(task) + 1}`)).toEqual({
      'f1 m1': 40,
      'f1 m3': 10,
      'f2 m1': 7,
      'f2 m2': 200,
    });
  });

  it('creates each task before it is due, at most the due-in time before', async () => {
    const planned = play(await replay(), 5);
    for (const task of planned) {
      const leadMs = task.dueMs - task.createdByMs;
      expect(leadMs).toBeGreaterThan(-5.1);
      expect(leadMs).toBeLessThanOrEqual(300);
    }
    expect(new Set(planned.map((task) => task.createdByMs)).size).toBeGreaterThan(100);
  });

  it('is the same for the same seed however it is sliced, for another seed another', async () => {
    const byDue = async (seed: number, sliceMs: number) =>
      play(await replay({ seed }), sliceMs)
        .map((task) => `${task.dueMs} ${task.tenant}`)
        .sort();
    expect(await byDue(1, 50)).toEqual(await byDue(1, 5));
    expect(await byDue(2, 5)).not.toEqual(await byDue(1, 5));
  });

  it('begins where it is told and stops after the duration, amid a minute too', async () => {
    const workload = await replay({ fromMinute: 1, lengthMs: 1500 });
    const planned = play(workload, 5);
    expect(countBy(planned, (task) => task.tenant)).toEqual({ f2: 200, f1: 5 });
    expect(workload.tasksTotal).toBe(205);
    expect(Math.max(...planned.map((task) => task.dueMs))).toBeLessThan(1800);
  });

  it('refuses a minute beyond the trace', async () => {
    await expect(replay({ fromMinute: 3 })).rejects.toThrow(InvalidArgumentError);
    await expect(replay({ fromMinute: 3 })).rejects.toThrow(/--from is 3; allowed: 0 to 2/);
  });
});

describe('the random generator', () => {
  it('gives fractions in [0, 1) that fill the range, and whole numbers below a bound', () => {
    const random = createRandom(1);
    const tenths = new Array<number>(10).fill(0);
    for (let draw = 0; draw < 10_000; draw += 1) tenths[Math.floor(random.fraction() * 10)]! += 1;
    expect(Math.min(...tenths)).toBeGreaterThan(850);
    expect(Math.max(...tenths)).toBeLessThan(1150);
    const small = Array.from({ length: 100 }, () => random.below(3));
    expect(new Set(small)).toEqual(new Set([0, 1, 2]));
  });

  it('has streams that differ under one seed', () => {
    const first = (stream: number) => createRandom(1, stream).uint32();
    expect(new Set([0, 1, 2, 3].map(first)).size).toBe(4);
  });
});
