/** What callers ask of a task: cancel, pause, resume, trigger, redrive, update, delete. */
import { describe, expect, it } from 'vitest';
import {
  InvalidArgumentError,
  InvalidScheduleError,
  OccurrenceNotFoundError,
  TaskEndedError,
  VersionConflictError,
} from '../../src/core/errors.js';
import { cron, fixedDelay, fixedRate, once } from '../../src/core/schedule.js';
import { nextRunAt } from '../../src/core/status.js';
import { checkAccounts } from './decide-checks.js';
import { Trial } from './decide-trial.js';

const MINUTE = 60_000;

const oneOff = (at = 0) => new Trial({ schedule: once(at) }).passTo(at);
const everyMinute = (overlap: 'skip' | 'bufferAll' | 'allowAll' = 'skip') =>
  new Trial({ schedule: fixedRate({ every: MINUTE }), policies: { overlap } }).passTo(0);

describe('create', () => {
  it('makes the task and its first occurrence at version, generation and revision 1', () => {
    const { task, live } = new Trial({ schedule: cron('* * * * *') });
    expect(task).toMatchObject({
      version: 1,
      generation: 1,
      revision: 1,
      taken: 1,
      state: 'active',
    });
    expect(live).toMatchObject([{ state: 'scheduled', revision: 1, nominalAt: MINUTE }]);
    expect(task.lastOccurrenceId).toBe(live[0]?.id);
  });

  it('refuses a schedule whose endAt has passed', () => {
    const schedule = fixedRate({ every: MINUTE, startAt: 0, endAt: 5 });
    expect(() => new Trial({ schedule, nowMs: 6 })).toThrow(InvalidScheduleError);
  });
});

describe('handler versions', () => {
  it('a one-off takes the highest at its creation', () => {
    const trial = new Trial({ schedule: once(100) });
    trial.latestVersion = 2;
    trial.passTo(100);
    expect(trial.task.handlerVersion).toBe(1);
    expect(trial.start().handlerVersion).toBe(1);
  });

  it('a recurring task takes it at the creation of each occurrence', () => {
    const trial = everyMinute();
    trial.latestVersion = 2;
    trial.run(0);
    trial.passTo(2 * MINUTE);
    expect(trial.task.handlerVersion).toBeUndefined();
    expect([0, MINUTE, 2 * MINUTE].map((at) => trial.find(at).handlerVersion)).toEqual([1, 1, 2]);
  });

  it('one that is pinned holds for all', () => {
    const schedule = fixedRate({ every: MINUTE });
    const trial = new Trial({ schedule, handlerVersion: 7 }).passTo(0);
    expect(trial.live.map(({ handlerVersion }) => handlerVersion)).toEqual([7, 7]);
  });

  it('one that an update pins holds for all that does not run', () => {
    const trial = everyMinute('bufferAll');
    trial.start();
    trial.passTo(MINUTE);
    trial.update({ handlerVersion: 9 });
    expect(trial.live.map(({ state, handlerVersion }) => [state, handlerVersion])).toEqual([
      ['running', 1],
      ['scheduled', 9],
      ['scheduled', 9],
    ]);
  });

  it.each(['ready', 'retry-wait'] as const)('an update saves one that is %s', (state) => {
    const trial = oneOff();
    if (state === 'retry-wait') {
      trial.start();
      trial.fail();
    }
    trial.update({ handlerVersion: 9 });
    expect(trial.find(0)).toMatchObject({ state, handlerVersion: 9 });
  });

  it('a producer leaves it open until the claim', () => {
    const trial = everyMinute();
    trial.latestVersion = undefined;
    trial.run(0);
    trial.passTo(2 * MINUTE);
    expect(trial.find(2 * MINUTE).handlerVersion).toBeUndefined();
  });
});

describe('cancel', () => {
  it('cancels all that has not started, and asks what runs to stop', () => {
    const trial = everyMinute('bufferAll');
    trial.start();
    trial.passTo(MINUTE).cancel('enough');
    expect(trial.task).toMatchObject({ state: 'cancelled', endReason: 'enough', endedAt: MINUTE });
    expect(trial.history).toEqual(['0 cancel-requested', '60000 cancelled', '120000 cancelled']);
    expect(trial.status).toBe('cancelled');
    trial.succeed();
    expect(trial.status).toBe('cancelled');
    expect(trial.passTo(10 * MINUTE).live).toEqual([]);
  });

  it.each(['ready', 'retry-wait', 'scheduled'] as const)('of one that is %s', (state) => {
    const trial = new Trial({ schedule: once(5) });
    if (state !== 'scheduled') trial.passTo(5);
    if (state === 'retry-wait') trial.fail({}, trial.start());
    expect(trial.stateOf(5)).toBe(state);
    trial.cancel();
    expect(trial.find(5)).toMatchObject({ state: 'cancelled', reason: 'cancelled' });
    expect(trial.passTo(MINUTE).in('ready')).toEqual([]);
  });

  it('lets nothing through that waited behind what it cancels', () => {
    const trial = new Trial({
      schedule: fixedRate({ every: MINUTE }),
      policies: { overlap: 'bufferAll', ttlMs: 1 },
    }).passTo(0);
    trial.start();
    trial.passTo(MINUTE + 2);
    trial.report({ kind: 'released' });
    trial.cancel();
    expect(trial.types.filter((type) => type === 'cancelled')).toHaveLength(3);
    expect(trial.types).not.toContain('missed');
  });

  it('says that there is nothing to do when the task has ended', () => {
    const trial = oneOff();
    trial.run(0);
    expect(trial.cancel()).toBeUndefined();
    const cancelled = oneOff();
    expect(cancelled.cancel()).toBeDefined();
    expect(cancelled.cancel()).toBeUndefined();
  });

  it('ends a paused task and one that only waits for a redrive', () => {
    const paused = everyMinute();
    paused.pause();
    paused.cancel();
    expect(paused.status).toBe('cancelled');
    const stuck = new Trial({ schedule: fixedDelay({ delay: 1, after: 'success' }) }).passTo(0);
    stuck.die(stuck.start());
    expect(stuck.cancel()).toBeDefined();
    expect(stuck.task.state).toBe('cancelled');
  });
});

describe('cancelOccurrence', () => {
  it('of a recurring task leaves the schedule going', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE, startDelay: MINUTE }) });
    trial.cancelOccurrence(trial.find(MINUTE), 'holiday');
    expect(trial.history).toEqual(['60000 cancelled', '120000 scheduled']);
    expect(trial.find(MINUTE).reason).toBe('holiday');
    expect(trial.passTo(2 * MINUTE).run(0).nominalAt).toBe(2 * MINUTE);
    checkAccounts(trial.view, trial.records);
  });

  it('of a running one asks it to stop, and the schedule goes on', () => {
    const trial = everyMinute();
    trial.start();
    trial.cancelOccurrence(trial.find(0));
    trial.fail();
    expect(trial.history).toEqual(['0 cancelled', '60000 scheduled']);
  });

  it('of the one that blocks lets the next in line through', () => {
    const trial = everyMinute('bufferAll').passTo(MINUTE);
    trial.cancelOccurrence(trial.find(0));
    expect(trial.stateOf(MINUTE)).toBe('ready');
  });

  it('of a one-off cancels the task', () => {
    const trial = new Trial({ schedule: once(MINUTE) });
    trial.cancelOccurrence(trial.find(MINUTE), 'changed my mind');
    expect(trial.task).toMatchObject({ state: 'cancelled', endReason: 'changed my mind' });
    expect(trial.status).toBe('cancelled');
  });

  it('of a run that was triggered does not make a one-off cancelled', () => {
    const trial = new Trial({ schedule: once(MINUTE) });
    const triggered = trial.trigger();
    trial.cancelOccurrence(triggered);
    trial.passTo(MINUTE).run(0);
    expect(trial.status).toBe('succeeded');
    const after = oneOff();
    after.start();
    after.trigger();
    after.succeed();
    after.cancelOccurrence(after.find(1, 'trigger'));
    expect(after.task.state).toBe('completed');
  });

  it('of the last one ends the schedule as not succeeded', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE, limit: 1 }) });
    trial.cancelOccurrence(trial.find(0));
    expect(trial.task.state).toBe('completed');
    expect(trial.status).toBe('failed');
  });

  it('refuses one that is not live', () => {
    const trial = oneOff();
    trial.run(0);
    expect(() => trial.cancelOccurrence(trial.find(0))).toThrow(OccurrenceNotFoundError);
  });
});

describe('pause', () => {
  it('lets nothing start: no due time, no claim, no retry, nobody who waited', () => {
    const trial = everyMinute('bufferAll');
    trial.start();
    trial.passTo(MINUTE).pause();
    expect(trial.status).toBe('paused');
    expect(nextRunAt(trial.view)).toBeUndefined();
    trial.fail();
    trial.passTo(10 * MINUTE);
    const due = { kind: 'due', occurrenceId: trial.find(0).id } as const;
    expect(trial.decide(due)).toBeUndefined();
    expect(trial.history).toEqual(['0 retry-wait', '60000 scheduled', '120000 scheduled']);
  });

  it('refuses the claim of what was ready', () => {
    const trial = oneOff();
    trial.pause();
    expect(trial.claim().state).toBe('ready');
    trial.resume();
    expect(trial.claim().state).toBe('running');
  });

  it('holds one that was triggered before it', () => {
    const trial = new Trial({ schedule: once(MINUTE) });
    trial.trigger();
    trial.pause();
    expect(trial.claim().state).toBe('ready');
    expect(trial.resume().claim().state).toBe('running');
  });

  it('leaves what runs running, and what it leads to for later', () => {
    const trial = new Trial({ schedule: fixedDelay({ delay: 1_000 }) }).passTo(0);
    trial.start();
    trial.pause();
    trial.succeed();
    expect(trial.passTo(5_000).stateOf(2, 'sequence')).toBe('scheduled');
    trial.resume();
    expect(trial.find(2, 'sequence')).toMatchObject({ state: 'ready', catchup: true });
  });

  it('and resume are told once, and need a task that has not ended', () => {
    const trial = everyMinute();
    trial.decide({ kind: 'resume' });
    trial.pause();
    trial.pause();
    trial.resume();
    trial.resume();
    expect(trial.types.filter((type) => type === 'paused' || type === 'resumed')).toEqual([
      'paused',
      'resumed',
    ]);
    trial.cancel();
    expect(() => trial.pause()).toThrow(TaskEndedError);
    expect(() => trial.resume()).toThrow(TaskEndedError);
  });
});

describe('resume', () => {
  it('runs the digest once, not once a missed slot', () => {
    const trial = everyMinute();
    trial.run(0);
    trial.pause();
    trial.passTo(10 * MINUTE + 1).resume();
    expect(trial.run(0).nominalAt).toBe(10 * MINUTE);
    expect(trial.pass(0).in('ready')).toEqual([]);
  });

  it('lets those who waited go before those who passed meanwhile', () => {
    const trial = everyMinute('bufferAll');
    trial.start();
    trial.passTo(MINUTE).pause();
    trial.succeed();
    trial.passTo(2 * MINUTE + 1).resume();
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([MINUTE]);
    trial.run(0);
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([2 * MINUTE]);
  });

  it('leaves what is not due yet for its time', () => {
    const trial = new Trial({ schedule: once(MINUTE) });
    trial.pause();
    trial.pass(1_000).resume();
    expect(trial.stateOf(MINUTE)).toBe('scheduled');
    expect(trial.passTo(MINUTE).find(MINUTE)).toMatchObject({ state: 'ready', catchup: false });
  });
});

describe('trigger', () => {
  it('makes one run now, outside the schedule and its limit', () => {
    const trial = new Trial({
      schedule: fixedRate({ every: MINUTE, startDelay: MINUTE, limit: 1 }),
    });
    const made = trial.pass(10).trigger();
    expect(made).toMatchObject({ kind: 'trigger', state: 'ready', nominalAt: 10, dueAt: 10 });
    trial.run(0);
    expect(trial.task).toMatchObject({ taken: 1, extras: 1, state: 'active' });
    trial.passTo(MINUTE).run(0);
    expect(trial.history).toEqual(['60000 succeeded', 't1 succeeded']);
  });

  it('comes behind a live run unless under allowAll', () => {
    const trial = everyMinute();
    trial.start();
    expect(trial.trigger()).toMatchObject({ state: 'scheduled', waiting: true });
    trial.succeed();
    expect(trial.stateOf(1, 'trigger')).toBe('ready');
    const all = everyMinute('allowAll');
    all.start();
    expect(all.trigger().state).toBe('ready');
  });

  it('runs while paused, its retries too', () => {
    const trial = everyMinute();
    trial.run(0);
    trial.pause();
    trial.trigger();
    trial.start();
    trial.fail();
    trial.pass(1_000);
    expect(trial.run(0)).toMatchObject({ kind: 'trigger', state: 'succeeded', attempt: 2 });
    expect(trial.passTo(5 * MINUTE).history).toEqual([
      '0 succeeded',
      '60000 scheduled',
      't1 succeeded',
    ]);
  });

  it('while paused is not held up by what the pause holds', () => {
    const trial = oneOff();
    trial.pause();
    trial.trigger();
    expect(trial.start(trial.find(1, 'trigger'))).toMatchObject({ kind: 'trigger' });
    trial.resume();
    expect(trial.claim(trial.find(0)).state).toBe('ready');
    trial.succeed();
    expect(trial.start(trial.find(0)).kind).toBe('nominal');
  });

  it('while paused comes behind what still runs', () => {
    const trial = everyMinute();
    trial.start();
    trial.pause();
    expect(trial.trigger().waiting).toBe(true);
    trial.fail();
    expect(trial.stateOf(0)).toBe('retry-wait');
    expect(trial.stateOf(1, 'trigger')).toBe('ready');
  });

  it('is bounded: a thousand wait, more are skipped', () => {
    const trial = oneOff();
    trial.start();
    for (let i = 0; i < 1_000; i++) trial.decide({ kind: 'trigger' });
    expect(trial.trigger()).toMatchObject({ state: 'skipped', reason: 'backlogFull' });
  });

  it('needs a task that has not ended', () => {
    const trial = oneOff();
    trial.run(0);
    expect(() => trial.trigger()).toThrow(TaskEndedError);
  });
});

describe('redrive', () => {
  const dead = () => {
    const trial = oneOff();
    trial.die(trial.start());
    return trial;
  };

  it('makes a new occurrence, linked both ways, and its task lives until that has ended', () => {
    const trial = dead();
    const made = trial.pass(500).redrive(trial.find(0));
    expect(made).toMatchObject({ kind: 'redrive', state: 'ready', nominalAt: 0, dueAt: 500 });
    expect(made?.redriveOf).toBe(trial.find(0).id);
    expect(trial.find(0)).toMatchObject({ state: 'dead', redrivenAs: made?.id });
    expect(trial.task).toMatchObject({ state: 'active', endedAt: undefined, endReason: undefined });
    trial.run(0);
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'succeeded', endedAt: 500 });
    expect(trial.status).toBe('succeeded');
  });

  it('happens once: again finds nothing to do, or the one made meanwhile', () => {
    const trial = dead();
    const before = trial.find(0);
    const made = trial.redrive(before);
    expect(trial.redrive(before)).toBe(made);
    expect(trial.decide({ kind: 'redrive', occurrence: trial.find(0) })).toBeUndefined();
    expect(trial.task.extras).toBe(1);
  });

  it('works on quarantined ones, and on a redrive that died', () => {
    const trial = oneOff();
    trial.setPolicies({ maxCrashes: 1 });
    trial.start();
    const quarantined = trial.crash();
    trial.redrive(quarantined);
    const again = trial.die(trial.start());
    expect(trial.redrive(again)).toMatchObject({ redriveOf: again.id, state: 'ready' });
  });

  it('starts with attempts and failures of its own', () => {
    const trial = dead();
    expect(trial.redrive(trial.find(0))).toMatchObject({ attempt: 0, failures: 0, token: 0 });
  });

  it('comes behind a live run, and while paused waits for the resume', () => {
    const trial = everyMinute();
    const died = trial.die(trial.start());
    trial.passTo(MINUTE).start();
    expect(trial.redrive(died)).toMatchObject({ state: 'scheduled', waiting: true });
    trial.succeed();
    const again = trial.die(trial.start());
    trial.pause();
    expect(trial.redrive(again)).toMatchObject({ state: 'scheduled', waiting: false });
    trial.pass(10).resume();
    expect(trial.stateOf(2, 'redrive')).toBe('ready');
  });

  it('refuses what did not die, and tasks that were cancelled', () => {
    const trial = oneOff();
    const done = trial.run(0);
    expect(() => trial.redrive(done)).toThrow(InvalidArgumentError);
    const cancelled = everyMinute();
    const died = cancelled.die(cancelled.start());
    cancelled.cancel();
    expect(() => cancelled.redrive(died)).toThrow(TaskEndedError);
  });
});

describe('update', () => {
  it('counts versions, and refuses one that is not the expected', () => {
    const trial = oneOff(5);
    trial.update({ priority: 2 }, 1);
    expect(trial.task).toMatchObject({ version: 2, generation: 1, priority: 2 });
    expect(() => trial.update({ priority: 3 }, 1)).toThrow(VersionConflictError);
    trial.update({ priority: 3 });
    expect(trial.task).toMatchObject({ version: 3, priority: 3 });
  });

  it('does not count what time and attempts change', () => {
    const trial = everyMinute();
    trial.run(0);
    trial.passTo(5 * MINUTE);
    expect(trial.task.version).toBe(1);
  });

  it('of the schedule begins a generation and drops the one that has not started, untold', () => {
    const trial = everyMinute();
    trial.run(0);
    trial.pass(10).update({ schedule: fixedRate({ every: 1_000, startDelay: 1_000 }) });
    expect(trial.task).toMatchObject({ version: 2, generation: 2, taken: 1, cursorAt: 1_010 });
    expect(trial.find(MINUTE)).toMatchObject({ state: 'cancelled', reason: 'superseded' });
    expect(trial.types).not.toContain('cancelled');
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, dueAt: 1_010 }]);
  });

  it('of the schedule drops one that is ready or waits, and leaves what has started alone', () => {
    const trial = everyMinute('bufferAll');
    trial.start();
    trial.passTo(MINUTE).update({ schedule: cron('0 0 1 1 *') });
    expect(trial.history.slice(0, 3)).toEqual(['0 running', '60000 cancelled', '120000 cancelled']);
    trial.succeed();
    expect(trial.in('ready')).toEqual([]);
    const ready = oneOff();
    ready.update({ schedule: once(MINUTE) });
    expect(ready.history).toEqual(['0 cancelled', '60000 scheduled']);
    const released = oneOff();
    released.start();
    released.report({ kind: 'released' });
    released.update({ schedule: once(MINUTE) });
    expect(released.history).toEqual(['0 ready', '60000 scheduled']);
    const retrying = oneOff();
    retrying.fail({}, retrying.start());
    retrying.update({ schedule: once(MINUTE) });
    expect(retrying.history).toEqual(['0 retry-wait', '60000 scheduled']);
  });

  it('many in a row leave exactly one pending occurrence', () => {
    const trial = everyMinute();
    trial.run(0);
    for (let i = 1; i <= 50; i++) {
      trial.update({ schedule: fixedRate({ every: i * 1_000, startDelay: 500 }) });
    }
    expect(trial.live).toMatchObject([{ generation: 51, state: 'scheduled' }]);
  });

  it('that drops what blocked lets a triggered one through', () => {
    const trial = oneOff();
    trial.trigger();
    trial.update({ schedule: once(MINUTE) });
    expect(trial.stateOf(1, 'trigger')).toBe('ready');
  });

  it('of a running one-off plans another run, behind it', () => {
    const trial = oneOff();
    trial.start();
    trial.update({ schedule: once(10) });
    trial.passTo(20);
    expect(trial.find(10).waiting).toBe(true);
    trial.succeed();
    expect(trial.run(0)).toMatchObject({ generation: 2, state: 'succeeded' });
    expect(trial.task.state).toBe('completed');
  });

  it('while paused keeps the pause', () => {
    const trial = everyMinute();
    trial.pause();
    trial.update({ schedule: fixedRate({ every: 1_000 }) });
    expect(trial.passTo(5 * MINUTE).in('ready')).toEqual([]);
    expect(trial.status).toBe('paused');
  });

  it('refuses a schedule that is over, also while its start waits for a live run', () => {
    const trial = new Trial({ schedule: fixedDelay({ delay: 1_000 }) }).passTo(10);
    const over = fixedDelay({ delay: 1, startAt: 0, endAt: 5 });
    expect(() => trial.update({ schedule: over })).toThrow(InvalidScheduleError);
    trial.start();
    expect(() => trial.update({ schedule: over })).toThrow(InvalidScheduleError);
    expect(trial.task.generation).toBe(1);
  });

  it('needs a task that has not ended', () => {
    const trial = oneOff();
    trial.run(0);
    expect(() => trial.update({ priority: 1 })).toThrow(TaskEndedError);
  });
});

describe('delete', () => {
  it('removes an ended task', () => {
    const trial = oneOff();
    trial.run(0);
    trial.delete();
    expect(trial.deleted).toBe(true);
  });

  it('refuses one that lives, or whose last run has not ended', () => {
    expect(() => oneOff().delete()).toThrow(InvalidArgumentError);
    const cancelled = oneOff();
    cancelled.start();
    cancelled.cancel();
    expect(() => cancelled.delete()).toThrow(InvalidArgumentError);
    cancelled.fail();
    cancelled.delete();
    expect(cancelled.deleted).toBe(true);
  });
});
