import { describe, expect, it } from 'vitest';
import { Audit } from '../../../src/cli/load/audit.js';
import { Board, fineNowMs, fingerprint } from '../../../src/cli/load/board.js';

const START = 1_700_000_000_000;
/** The end of the run: what is due by then must be finished. */
const END = START + 1000;

/** Three tasks accepted as 'id-0' to 'id-2', due 500 ms after the start. */
function arrange(dueAt = START + 500) {
  const board = Board.create({ tasks: 8, workMs: 0 });
  board.recordFrom(START);
  const audit = new Audit(board, START);
  for (const seq of [0, 1, 2]) audit.accept(seq, { id: `id-${seq}`, dueAt });
  const enter = (seq: number, entry: { id?: string; atMs?: number } = {}) => {
    const wallMs = entry.atMs ?? dueAt + 2;
    board.entered(seq, { taskId: entry.id ?? `id-${seq}`, dueAt, wallMs, fineMs: wallMs + 0.25 });
  };
  const run = (seq: number, entry: { id?: string; atMs?: number } = {}) => {
    enter(seq, entry);
    board.left(seq);
  };
  return { board, audit, enter, run };
}

const SOUND = {
  accepted: 3,
  rejected: 0,
  started: 3,
  finished: 3,
  lost: 0,
  duplicated: 0,
  early: 0,
};

describe('the audit', () => {
  it('finds nothing wrong when each task ran once, in time', () => {
    const { audit, run } = arrange();
    for (const seq of [0, 1, 2]) run(seq);
    expect(audit.tally(END)).toEqual({ ...SOUND, stray: 0 });
  });

  it('finds a task that never started lost', () => {
    const { audit, run } = arrange();
    run(0);
    run(2);
    expect(audit.tally(END)).toMatchObject({ started: 2, finished: 2, lost: 1 });
    expect(audit.nextOutstanding(END, 0)).toBe(1);
    expect(audit.nextOutstanding(END, 2)).toBeUndefined();
  });

  it('finds a task that started and never finished lost', () => {
    const { audit, run, enter } = arrange();
    run(0);
    run(1);
    enter(2);
    expect(audit.tally(END)).toMatchObject({ started: 3, finished: 2, lost: 1 });
  });

  it('finds a finished task lost as long as the store holds it open', () => {
    const { audit, run } = arrange();
    for (const seq of [0, 1, 2]) run(seq);
    audit.seenInStore(1, { id: 'id-1', open: true });
    expect(audit.isHeldThoughFinished(1)).toBe(true);
    expect(audit.tally(END)).toMatchObject({ started: 3, finished: 2, lost: 1 });
    audit.seenInStore(1, { id: 'id-1', open: false });
    expect(audit.tally(END)).toMatchObject(SOUND);
  });

  it('finds a task entered twice duplicated', () => {
    const { audit, run } = arrange();
    for (const seq of [0, 1, 2, 1]) run(seq);
    expect(audit.tally(END)).toMatchObject({ ...SOUND, duplicated: 1 });
  });

  it('finds a task entered before its due time early, one entered on it not', () => {
    const { audit, board, run } = arrange();
    run(0, { atMs: START + 499 });
    run(1, { atMs: START + 500 });
    run(2);
    expect(audit.tally(END)).toMatchObject({ ...SOUND, early: 1 });
    expect(board.lateness.min).toBe(1);
  });

  it('does not take a run under another id for the run of the task', () => {
    const { audit, run } = arrange();
    run(0);
    run(1);
    run(2, { id: 'id-1' });
    expect(audit.tally(END)).toMatchObject({ started: 2, finished: 2, lost: 1, stray: 1 });
  });

  it('counts refused tasks apart, and one that ran all the same as stray', () => {
    const { audit, run } = arrange();
    for (const seq of [0, 1, 2]) run(seq);
    audit.reject(3);
    audit.reject(4);
    run(4);
    expect(audit.tally(END)).toEqual({ ...SOUND, rejected: 2, stray: 1 });
  });

  it('asks of tasks due after the end only that the store has them', () => {
    const { audit } = arrange(END + 1);
    audit.seenInStore(0, { id: 'id-0', open: true });
    audit.seenInStore(1, { id: 'another', open: true });
    expect(audit.tally(END)).toMatchObject({ started: 0, finished: 0, lost: 2 });
    expect(audit.nextOutstanding(END, 0)).toBeUndefined();
    expect(audit.nextOutstanding(END + 1, 0)).toBe(0);
  });

  it('keeps due times apart that lie beyond 32 bits of milliseconds', () => {
    const { audit } = arrange(START + 60 * 86_400_000);
    for (const seq of [0, 1, 2]) audit.seenInStore(seq, { id: `id-${seq}`, open: true });
    expect(audit.tally(END)).toMatchObject({ lost: 0 });
  });

  it('treats a second answer for a task as a bug', () => {
    const { audit } = arrange();
    expect(() => audit.accept(0, { id: 'id-0', dueAt: START })).toThrow(/answered twice/);
    expect(() => audit.reject(0)).toThrow(/answered twice/);
  });
});

describe('the board', () => {
  it('records lateness in microseconds, only of tasks due once the load has begun', () => {
    const { board, run } = arrange();
    board.recordFrom(START + 501);
    run(0);
    expect(board.lateness.count).toBe(0);
    board.recordFrom(START + 500);
    run(1);
    expect(board.lateness.count).toBe(1);
    expect(board.lateness.max).toBeGreaterThanOrEqual(2250);
    expect(board.lateness.max).toBeLessThan(2255);
    expect(board.total('started')).toBe(2);
  });

  it('stops counting entries of one task at 255', () => {
    const { board, enter } = arrange();
    for (let entry = 0; entry < 300; entry += 1) enter(0);
    expect(board.starts[0]).toBe(255);
  });

  it('is seen by those who attach to it, as long as it is published', () => {
    const board = Board.create({ tasks: 1, workMs: 7 });
    board.publish();
    const attached = Board.attach();
    attached?.left(0);
    board.withdraw();
    expect(attached?.memory.workMs).toBe(7);
    expect(board.ends[0]).toBe(1);
    expect(Board.attach()).toBeUndefined();
  });

  it('tells ids apart by their fingerprints, none of which is 0', () => {
    const ids = Array.from({ length: 1000 }, (_, index) => `018f-${index}`);
    const prints = new Set(ids.map(fingerprint));
    expect(prints.size).toBe(1000);
    expect(prints.has(0)).toBe(false);
  });

  it('keeps the fine clock within the millisecond that the wall clock names', () => {
    for (const wallMs of [0, START, 9e15]) {
      expect(fineNowMs(wallMs)).toBeGreaterThanOrEqual(wallMs);
      expect(fineNowMs(wallMs)).toBeLessThanOrEqual(wallMs + 1);
    }
  });
});
