import { describe, expect, it } from 'vitest';
import { occurrenceId } from '../../src/core/model.js';
import { Backlog, LaneTable } from '../../src/engine/backlog.js';
import { NearTable } from '../../src/engine/near-table.js';
import { Timing } from '../../src/engine/timing.js';
import { TimerWheel } from '../../src/wheel/timer-wheel.js';

const START_MS = 1_767_225_600_000;

function idOf(n: number): string {
  const task = `01890000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
  return occurrenceId(task, 1, 'nominal', 1);
}

function numberOf(occurrenceId: string): number {
  return Number.parseInt(occurrenceId.slice(24, 36), 16);
}

async function timingOf(room: () => number, shrinkFromBytes?: number): Promise<Timing> {
  const near = new NearTable();
  return Timing.create(
    {
      makeWheel: (startTick) => TimerWheel.create({ startTick }),
      near,
      backlog: new Backlog(near),
      lanes: new LaneTable(),
      roomOf: room,
      isOpen: () => true,
      ...(shrinkFromBytes === undefined ? {} : { shrinkFromBytes }),
    },
    START_MS,
  );
}

function place(timing: Timing, n: number, dueAt: number): void {
  timing.place({
    occurrenceId: idOf(n),
    tenant: 'a',
    handler: 'work',
    handlerVersion: 1,
    priority: 3,
    dueAt,
  });
}

const noPause = (): Promise<void> => Promise.resolve();

describe('timing', () => {
  it('gives the memory of a crowd back, and what is left comes due as before', async () => {
    const many = 50_000;
    const timing = await timingOf(() => many, 1);
    for (let n = 0; n < many; n++) place(timing, n, START_MS + 10);
    place(timing, many, START_MS + 20);
    const grown = timing.memoryBytes;
    await timing.shrink(START_MS, noPause);
    expect(timing.memoryBytes).toBe(grown);
    let taken = 0;
    do taken += timing.take(START_MS + 10, many).length;
    while (timing.moreDue || timing.overdue > 0);
    expect(taken).toBe(many);
    await timing.shrink(START_MS + 10, noPause);
    expect(timing.memoryBytes).toBeLessThan(grown / 2);
    expect(timing.nextDueMs).toBe(START_MS + 20);
    expect(timing.take(START_MS + 19, 1)).toEqual([]);
    expect(timing.take(START_MS + 20, 1).map((one) => one.occurrenceId)).toEqual([idOf(many)]);
    timing.close();
  });

  it('lets a crowd without room go to the backlog so fast that those behind it are seen', async () => {
    const timing = await timingOf(() => 0);
    const many = 40_000;
    for (let n = 0; n < many; n++) place(timing, n, START_MS + 10);
    place(timing, many, START_MS + 11);
    expect(timing.take(START_MS + 11, 10)).toEqual([]);
    expect(timing.moreDue).toBe(false);
    expect(timing.overdue).toBe(many + 1);
    timing.close();
  });

  it('is neither early nor in a hurry on a clock that counts fractions of a millisecond (case 12)', async () => {
    const timing = await timingOf(() => 10);
    const dues = [9, 9.2, 9.8, 10.5];
    for (const [n, due] of dues.entries()) place(timing, n, START_MS + due);
    const taken = (now: number): number[] =>
      timing.take(START_MS + now, 10).map(({ occurrenceId }) => dues[numberOf(occurrenceId)]!);
    expect(taken(8.9)).toEqual([]);
    expect(taken(9.4)).toEqual([9, 9.2]);
    // It left the wheel and is not due: the loop is to come back for it, and not before.
    expect(timing.nextWakeMs).toBe(START_MS + 9.8);
    expect(timing.isDue(START_MS + 9.5)).toBe(false);
    expect(taken(9.5)).toEqual([]);
    expect(taken(9.8)).toEqual([9.8]);
    expect(timing.nextWakeMs).toBeGreaterThan(START_MS + 9.8);
    expect(taken(10.6)).toEqual([10.5]);
    expect([timing.size, timing.nextWakeMs]).toEqual([0, Number.POSITIVE_INFINITY]);
  });
});
