/** Which occurrences a schedule gives, and when a task has ended. */
import { describe, expect, it } from 'vitest';
import { cron, fixedDelay, fixedRate, once } from '../../src/core/schedule.js';
import { checkAccounts } from './decide-checks.js';
import { Trial } from './decide-trial.js';

const MINUTE = 60_000;

describe('a one-off', () => {
  it('is due at its time, in the past at once', () => {
    expect(new Trial({ schedule: once(500) }).find(500).dueAt).toBe(500);
    const past = new Trial({ schedule: once(500), nowMs: 900 });
    expect(past.find(500)).toMatchObject({ nominalAt: 500, dueAt: 900 });
    expect(past.pass(0).find(500)).toMatchObject({ state: 'ready', catchup: false });
  });

  it('does not become ready before its time', () => {
    const trial = new Trial({ schedule: once(500) });
    trial.nowMs = 499;
    expect(trial.decide({ kind: 'due', occurrenceId: trial.find(500).id })).toBeUndefined();
    trial.nowMs = 500;
    trial.decide({ kind: 'due', occurrenceId: trial.find(500).id });
    expect(trial.stateOf(500)).toBe('ready');
  });

  it('ends its task as it ends', () => {
    const done = new Trial({ schedule: once(0) }).passTo(0);
    done.run(10);
    expect(done.task).toMatchObject({ state: 'completed', endedAt: 10, endReason: 'succeeded' });
    const dead = new Trial({ schedule: once(0) }).passTo(0);
    dead.start();
    dead.die();
    expect(dead.task).toMatchObject({ state: 'completed', endReason: 'dead' });
    expect(dead.status).toBe('failed');
  });

  it('tells scheduled, started and succeeded, in this order', () => {
    const trial = new Trial({ schedule: once(100) }).passTo(130);
    trial.start();
    trial.pass(20).succeed();
    expect(trial.types).toEqual(['scheduled', 'started', 'succeeded']);
    expect(trial.told.map(({ details }) => details)).toEqual([
      { dueAt: 100 },
      { latenessMs: 30, workerId: 'w1' },
      { result: undefined, durationMs: 20 },
    ]);
  });
});

describe('cron and fixedRate', () => {
  it('create the next occurrence in the commit that makes this one ready', () => {
    const trial = new Trial({ schedule: cron('* * * * *') });
    trial.nowMs = MINUTE;
    const decision = trial.decide({ kind: 'due', occurrenceId: trial.find(MINUTE).id });
    expect(decision?.changed.map(({ ordinal, state }) => [ordinal, state])).toEqual([
      [MINUTE, 'ready'],
      [2 * MINUTE, 'scheduled'],
    ]);
    expect(decision?.view.task).toMatchObject({ cursorAt: 2 * MINUTE, taken: 2 });
  });

  it('do not drift, whenever runs start and end', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000 }) });
    const nominal: number[] = [];
    for (let i = 0; i < 20; i++) {
      trial.lateTo(i * 1_000 + 137 * (i % 5));
      nominal.push(trial.run(100).nominalAt);
    }
    expect(nominal).toEqual(Array.from({ length: 20 }, (_, i) => i * 1_000));
  });

  it('give each nominal time once, however often its due event comes', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000 }) }).passTo(0);
    const due = { kind: 'due', occurrenceId: trial.find(0).id } as const;
    expect(trial.decide(due)).toBeUndefined();
    trial.run(0);
    expect(trial.decide(due)).toBeUndefined();
    expect(trial.history).toEqual(['0 succeeded', '1000 scheduled']);
  });

  it('do not consult the schedule for retries', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE }) }).passTo(0);
    trial.start();
    trial.fail();
    trial.pass(1_000).run(0);
    expect(trial.history).toEqual(['0 succeeded', '60000 scheduled']);
    expect(trial.task.taken).toBe(2);
  });

  it('end with limit, when the last run has ended', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000, limit: 2 }) }).passTo(0);
    trial.run(0);
    trial.passTo(1_000).start();
    expect(trial.live).toHaveLength(1);
    expect(trial.task.state).toBe('active');
    trial.succeed();
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'scheduleEnded', taken: 2 });
    expect(trial.status).toBe('succeeded');
  });

  it('end with endAt, which is inclusive', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000, endAt: 2_000 }) });
    for (let i = 0; i < 3; i++) trial.passTo(i * 1_000).run(0);
    expect(trial.history).toEqual(['0 succeeded', '1000 succeeded', '2000 succeeded']);
    expect(trial.task.state).toBe('completed');
  });

  it('run what waited before the task ends', () => {
    const schedule = fixedRate({ every: 1_000, limit: 3 });
    const trial = new Trial({ schedule, policies: { overlap: 'bufferAll' } }).passTo(0);
    trial.start();
    trial.passTo(2_500).succeed();
    expect(trial.task.state).toBe('active');
    trial.run(0);
    trial.run(0);
    expect(trial.task.state).toBe('completed');
    expect(trial.history).toEqual(['0 succeeded', '1000 succeeded', '2000 succeeded']);
  });

  it('end while paused too, when what ran was the last', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000, limit: 1 }) }).passTo(0);
    trial.start();
    trial.pause();
    trial.succeed();
    expect(trial.task).toMatchObject({ state: 'completed', pausedAt: undefined });
  });

  it('are missed past due + ttl, and go on', () => {
    const schedule = fixedRate({ every: MINUTE });
    const trial = new Trial({ schedule, policies: { ttlMs: 5_000 } });
    trial.lateTo(5_001);
    expect(trial.find(0)).toMatchObject({ state: 'missed', reason: 'ttl', count: 1 });
    expect(trial.lateTo(MINUTE + 5_000).stateOf(MINUTE)).toBe('ready');
  });

  it('go on with the next when an occurrence is dead', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE }) }).passTo(0);
    trial.start();
    trial.die();
    expect(trial.task.state).toBe('active');
    expect(trial.passTo(MINUTE).stateOf(MINUTE)).toBe('ready');
  });
});

describe("onExhausted: 'stop'", () => {
  const stopping = (overlap: 'skip' | 'allowAll' | 'bufferAll' = 'skip') =>
    new Trial({
      schedule: fixedRate({ every: MINUTE }),
      policies: { onExhausted: 'stop', overlap },
    }).passTo(0);

  it.each(['dead', 'quarantined'] as const)('ends the task as failed when one is %s', (end) => {
    const trial = stopping();
    trial.setPolicies({ maxCrashes: 1 });
    trial.start();
    if (end === 'dead') trial.die();
    else trial.crash();
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'exhausted' });
    expect(trial.status).toBe('failed');
    expect(trial.history).toEqual([`0 ${end}`, '60000 cancelled']);
    expect(trial.events('cancelled').map(({ details }) => details)).toEqual([
      { reason: 'exhausted' },
    ]);
  });

  it('lets what has started go on to its end, retries included, and is failed all the same', () => {
    const trial = stopping('allowAll').passTo(MINUTE);
    const first = trial.start();
    const second = trial.start();
    trial.die(second);
    expect(trial.task.state).toBe('active');
    trial.fail({}, first);
    trial.pass(1_000).run(0);
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'exhausted' });
    expect(trial.history).toEqual(['0 succeeded', '60000 dead', '120000 cancelled']);
    expect(trial.status).toBe('failed');
  });

  it('drops what waited', () => {
    const trial = stopping('bufferAll');
    trial.start();
    trial.passTo(MINUTE).die();
    expect(trial.history).toEqual(['0 dead', '60000 cancelled', '120000 cancelled']);
  });

  it('does not drop what was triggered', () => {
    const trial = stopping();
    trial.start();
    trial.trigger();
    trial.die();
    expect(trial.run(0)).toMatchObject({ kind: 'trigger', state: 'succeeded' });
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'exhausted' });
  });

  it('stays so when a redrive makes good what died', () => {
    const trial = stopping();
    trial.redrive(trial.die(trial.start()));
    expect(trial.task.state).toBe('active');
    trial.run(0);
    expect(trial.task).toMatchObject({ state: 'completed', endReason: 'exhausted' });
    expect(trial.history).toEqual(['0 dead', '60000 cancelled', 'r1 succeeded']);
    expect(trial.status).toBe('succeeded');
  });

  it('is undone by an update of the schedule while something lives', () => {
    const trial = stopping('allowAll').passTo(MINUTE);
    const first = trial.start();
    trial.die(trial.start());
    trial.update({ schedule: fixedRate({ every: 1_000 }) });
    trial.succeed(first);
    expect(trial.task).toMatchObject({ state: 'active', endReason: undefined });
    expect(trial.pass(0).in('ready')).toHaveLength(1);
  });

  it('does not concern a failure that is retried', () => {
    const trial = stopping();
    trial.start();
    trial.fail();
    expect(trial.task.state).toBe('active');
  });
});

describe('a fixedDelay', () => {
  const every = (options: object = {}) =>
    new Trial({ schedule: fixedDelay({ delay: 1_000, ...options }) }).passTo(0);

  it('creates sequence n + 1 in the commit that ends n, at finish + delay', () => {
    const trial = every();
    trial.start();
    trial.pass(5_000);
    expect(trial.history).toEqual(['#1 running']);
    trial.succeed();
    expect(trial.find(2, 'sequence')).toMatchObject({ state: 'scheduled', dueAt: 6_000 });
  });

  it.each([
    ['dead', (trial: Trial) => trial.die(trial.start())],
    ['cancelled', (trial: Trial) => trial.cancelOccurrence(trial.find(1, 'sequence'))],
    ['missed', (trial: Trial) => trial.lateTo(2_001)],
  ])('goes on after any end: %s', (state, finish) => {
    const schedule = fixedDelay({ delay: 1_000, startDelay: 1_000 });
    const trial = new Trial({ schedule, policies: { ttlMs: 1_000 } });
    if (state !== 'missed') trial.passTo(1_000);
    finish(trial);
    expect(trial.history).toEqual([
      `#1 ${state}${state === 'missed' ? '(ttl)' : ''}`,
      '#2 scheduled',
    ]);
    expect(trial.find(2, 'sequence').dueAt).toBe(trial.nowMs + 1_000);
  });

  it('creates one for a completion that comes twice', () => {
    const trial = every();
    const first = trial.start();
    trial.succeed();
    expect(() => trial.succeed(first)).toThrow(/token/);
    expect(trial.history).toEqual(['#1 succeeded', '#2 scheduled']);
  });

  it('creates none for triggered and redriven ones', () => {
    const trial = every();
    const dead = trial.die(trial.start());
    trial.trigger();
    trial.run(0);
    trial.redrive(dead);
    trial.run(0);
    expect(trial.history).toEqual(['#1 dead', '#2 scheduled', 't1 succeeded', 'r2 succeeded']);
  });

  it('ends with limit and with endAt', () => {
    const limited = every({ limit: 2 });
    limited.run(0);
    limited.pass(1_000).run(0);
    expect(limited.task).toMatchObject({ state: 'completed', endReason: 'scheduleEnded' });
    const ending = every({ endAt: 1_000 });
    ending.run(0);
    expect(ending.find(2, 'sequence').dueAt).toBe(1_000);
    ending.pass(1_000).run(0);
    expect(ending.task.state).toBe('completed');
    const late = every({ endAt: 1_000 });
    late.run(1);
    expect(late.history).toEqual(['#1 succeeded']);
    expect(late.task.state).toBe('completed');
  });

  it('has an update create nothing while one is live: its end starts the new generation', () => {
    const trial = every();
    trial.start();
    trial.update({ schedule: fixedDelay({ delay: 7_000 }) });
    expect(trial.live).toHaveLength(1);
    trial.pass(500).succeed();
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, ordinal: 1, dueAt: 7_500 }]);
    checkAccounts(trial.view, trial.records);
  });

  it('has the new generation not begin before its startAt', () => {
    const trial = every();
    trial.start();
    trial.update({ schedule: fixedDelay({ delay: 1_000, startAt: 90_000 }) });
    trial.succeed();
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, dueAt: 90_000 }]);
  });

  it('has an update drop the one that has not started, and begin anew', () => {
    const trial = every();
    trial.run(0);
    trial.update({ schedule: fixedDelay({ delay: 7_000, startDelay: 50 }) });
    expect(trial.history).toEqual(['#1 succeeded', '#2 cancelled', '#1 scheduled']);
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, dueAt: 50 }]);
  });

  it('starts a generation once, when the last sequence before it has ended', () => {
    const trial = every();
    const sequence = trial.start();
    trial.update({ schedule: fixedRate({ every: MINUTE }) });
    trial.setPolicies({ overlap: 'allowAll' });
    const nominal = trial.pass(0).start();
    trial.update({ schedule: fixedDelay({ delay: 1_000 }) });
    trial.succeed(nominal);
    expect(trial.live.map(({ id }) => id)).toEqual([sequence.id]);
    trial.succeed(sequence);
    expect(trial.live).toMatchObject([{ generation: 3, kind: 'sequence', ordinal: 1 }]);
  });

  it('takes over from a cron whose run is live when that run ends', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE }) }).passTo(0);
    trial.start();
    trial.update({ schedule: fixedDelay({ delay: 1_000 }) });
    expect(trial.history).toEqual(['0 running', '60000 cancelled']);
    trial.succeed();
    expect(trial.in('scheduled')).toMatchObject([{ kind: 'sequence', dueAt: 1_000 }]);
  });
});

describe("a fixedDelay after: 'success'", () => {
  const failed = (options: object = {}) => {
    const schedule = fixedDelay({ delay: 1_000, after: 'success', ...options });
    const trial = new Trial({ schedule }).passTo(0);
    trial.run(0);
    trial.pass(1_000).start();
    trial.die();
    return trial;
  };

  it('is failed and has no next run after another end, without having ended', () => {
    const trial = failed();
    expect(trial.history).toEqual(['#1 succeeded', '#2 dead']);
    expect(trial.task.state).toBe('active');
    expect(trial.status).toBe('failed');
  });

  it('goes on when a redrive of that occurrence succeeds: it carries the sequence', () => {
    const trial = failed();
    trial.redrive(trial.find(2, 'sequence'));
    trial.run(250);
    expect(trial.history).toEqual(['#1 succeeded', '#2 dead', 'r1 succeeded', '#3 scheduled']);
    expect(trial.find(3, 'sequence').dueAt).toBe(2_250);
  });

  it('goes on through a redrive of the redrive', () => {
    const trial = failed();
    trial.redrive(trial.find(2, 'sequence'));
    const again = trial.die(trial.start());
    expect(trial.live).toEqual([]);
    trial.redrive(again);
    trial.run(0);
    expect(trial.stateOf(3, 'sequence')).toBe('scheduled');
  });

  it('does not go on for a run that was triggered, nor end with it', () => {
    const trial = failed();
    trial.pass(10).trigger();
    trial.run(0);
    expect(trial.live).toEqual([]);
    expect(trial.task.state).toBe('active');
  });

  it('does not go on for the redrive of a run that was triggered', () => {
    const trial = failed();
    trial.pass(10).trigger();
    const dead = trial.die(trial.start());
    trial.redrive(dead);
    trial.run(0);
    expect(trial.live).toEqual([]);
  });

  it('goes on when its schedule is updated', () => {
    const trial = failed();
    trial.update({ schedule: fixedDelay({ delay: 2_000, after: 'success' }) });
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, ordinal: 1, dueAt: 1_000 }]);
  });

  it('starts the generation of an update whichever way the live one ends', () => {
    const trial = new Trial({ schedule: fixedDelay({ delay: 1_000, after: 'success' }) }).passTo(0);
    trial.start();
    trial.update({ schedule: fixedDelay({ delay: 5_000, after: 'success' }) });
    trial.die();
    expect(trial.in('scheduled')).toMatchObject([{ generation: 2, dueAt: 5_000 }]);
  });

  it('has ended where no redrive could give a next run', () => {
    expect(failed({ limit: 2 }).task.state).toBe('completed');
    expect(failed({ endAt: 1_500 }).task.state).toBe('completed');
    expect(failed({ limit: 3, endAt: 60_000 }).task.state).toBe('active');
  });
});
