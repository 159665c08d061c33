import { describe, expect, it } from 'vitest';
import { createsOf } from '../../src/engine/bounds.js';
import { Inbox } from '../../src/engine/inbox.js';
import { type Job, JobGroup, type Work, type WorkSource } from '../../src/engine/job.js';
import { JobQueue } from '../../src/engine/job-queue.js';

const NOW_MS = 1000;

function workOf(name: string): Work {
  return { kind: 'task', taskId: name, event: { kind: 'pause' } };
}

/** Works named `<name>0`, `<name>1`, …; notes which of them were made. */
function sourceOf(name: string, dueAts: readonly number[], made: string[] = []): WorkSource {
  return {
    size: dueAts.length,
    work: (index) => {
      made.push(`${name}${index}`);
      return workOf(`${name}${index}`);
    },
    isDueAtOnce: (index, nowMs) => (dueAts[index] as number) <= nowMs,
  };
}

function take(queue: JobQueue, all: number, dueAtOnce = all): string[] {
  const taken: Job[] = [];
  queue.take({ all, dueAtOnce }, NOW_MS, taken);
  return taken.map(nameOf);
}

const nameOf = ({ work }: Job): string => (work.kind === 'task' ? work.taskId : 'settings');

describe('the queue of jobs', () => {
  it('gives jobs in order, across what was submitted together, and makes none before its turn', () => {
    const queue = new JobQueue();
    const made: string[] = [];
    queue.add(sourceOf('a', [1, 1, 1], made), new JobGroup(3));
    queue.add(sourceOf('b', [], made), new JobGroup(0));
    queue.add(sourceOf('c', [1, 1], made), new JobGroup(2));
    expect([queue.size, take(queue, 2), queue.size]).toEqual([5, ['a0', 'a1'], 3]);
    expect(made).toEqual(['a0', 'a1']);
    expect([take(queue, 9), queue.size, take(queue, 9)]).toEqual([['a2', 'c0', 'c1'], 0, []]);
  });

  it('stops before the first that is due at once when no more of those may be taken', () => {
    const queue = new JobQueue();
    queue.add(sourceOf('a', [1, 5000, 1, 5000, 1]), new JobGroup(5));
    expect(take(queue, 9, 1)).toEqual(['a0', 'a1']);
    expect(take(queue, 9, 2)).toEqual(['a2', 'a3', 'a4']);
  });

  it('keeps the index in its group of a job that is put back', () => {
    const queue = new JobQueue();
    const group = new JobGroup(2);
    queue.add(sourceOf('a', [1, 1]), group);
    const taken: Job[] = [];
    queue.take({ all: 2, dueAtOnce: 2 }, NOW_MS, taken);
    queue.addAgain(taken[1] as Job);
    const again: Job[] = [];
    queue.take({ all: 2, dueAtOnce: 2 }, NOW_MS, again);
    expect(again).toEqual([{ ...taken[1], group, index: 1 }]);
  });

  it('settles all that waits when it fails, what was taken not', async () => {
    const queue = new JobQueue();
    const group = new JobGroup(3);
    queue.add(sourceOf('a', [1, 1, 1]), group);
    take(queue, 1);
    queue.fail('gone');
    group.settle(0, { kind: 'absent' });
    const failed = { kind: 'failed', error: 'gone' };
    expect(await group.done).toEqual([{ kind: 'absent' }, failed, failed]);
    expect([queue.size, take(queue, 9)]).toEqual([0, []]);
  });

  it('goes on after thousands were taken one by one', () => {
    const queue = new JobQueue();
    for (let i = 0; i < 5000; i++) queue.add(sourceOf(`${i}.`, [1]), new JobGroup(1));
    for (let i = 0; i < 5000; i++) expect(take(queue, 1)).toEqual([`${i}.0`]);
    expect(queue.size).toBe(0);
  });
});

describe('the inbox', () => {
  it('gives calls before creates that came earlier', () => {
    const inbox = new Inbox();
    inbox.addCreates(sourceOf('create', [1, 1, 1]), new JobGroup(3));
    inbox.addCalls([workOf('call')], new JobGroup(1));
    const taken: Job[] = [];
    inbox.takeJobs({ all: 2, dueAtOnce: 2 }, NOW_MS, taken);
    expect(taken.map(nameOf)).toEqual(['call', 'create0', 'create1']);
    expect(inbox.size).toBe(1);
  });
});

describe('the bounds of a turn', () => {
  it('let creates that are due at once in as far as they can start, and some when none can', () => {
    expect(createsOf(0, 200).dueAtOnce).toBe(200);
    expect(createsOf(0, 0).dueAtOnce).toBeGreaterThan(0);
    // Where others wait for a slot, what is due later waits too.
    expect(createsOf(0, 200).all).toBeGreaterThan(createsOf(1, 200).all);
    expect(createsOf(1, 0).all).toBeGreaterThan(0);
  });
});
