/** What happens to an occurrence that comes due while another of its task is live. */
import { describe, expect, it } from 'vitest';
import type { Overlap } from '../../src/core/model.js';
import { fixedDelay, fixedRate, once } from '../../src/core/schedule.js';
import { Trial } from './decide-trial.js';

const MINUTE = 60_000;

/** Every 60 s from 0, the first run on its way. */
function everyMinute(overlap: Overlap, options: { limit?: number } = {}): Trial {
  const trial = new Trial({
    schedule: fixedRate({ every: MINUTE, ...options }),
    policies: { overlap },
  });
  trial.passTo(0).start();
  return trial;
}

/** Runs of 150 s, each started as soon as it may, until `atMs`; when they started. */
function startsOfLongRuns(trial: Trial, atMs: number): number[] {
  const starts = [0];
  for (let endsAt = 150_000; endsAt <= atMs; endsAt = trial.nowMs + 150_000) {
    trial.passTo(endsAt).succeed();
    while (trial.in('ready').length === 0) trial.pass(1_000);
    starts.push(trial.nowMs);
    trial.start();
  }
  return starts;
}

describe('every 60 s, a run of 150 s', () => {
  it('under skip starts next at 180 s', () => {
    const trial = everyMinute('skip');
    expect(startsOfLongRuns(trial, 400_000)).toEqual([0, 180_000, 360_000]);
    expect(trial.stateOf(MINUTE)).toBe('skipped');
    expect(trial.stateOf(2 * MINUTE)).toBe('skipped');
  });

  it('under bufferAll runs the 60 s and 120 s ones at once, one after the other', () => {
    const trial = everyMinute('bufferAll').passTo(150_000);
    expect(trial.stateOf(2 * MINUTE)).toBe('scheduled');
    trial.succeed();
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([MINUTE]);
    trial.start();
    trial.succeed();
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([2 * MINUTE]);
    expect(trial.nowMs).toBe(150_000);
    trial.start();
    trial.succeed();
    expect(trial.in('ready')).toEqual([]);
  });

  it('under bufferOne runs the 60 s one at 150 s and skips the 120 s one', () => {
    const trial = everyMinute('bufferOne').passTo(150_000);
    expect(trial.stateOf(2 * MINUTE)).toBe('skipped');
    trial.succeed();
    expect(trial.start().nominalAt).toBe(MINUTE);
  });

  it('under allowAll has three runs at once', () => {
    const trial = everyMinute('allowAll').passTo(MINUTE);
    trial.start();
    trial.passTo(2 * MINUTE).start();
    expect(trial.in('running').map(({ nominalAt }) => nominalAt)).toEqual([0, MINUTE, 2 * MINUTE]);
  });

  it('under cancelOther asks the run to stop at 60 s and starts the next when it has', () => {
    const trial = everyMinute('cancelOther').passTo(MINUTE);
    expect(trial.stateOf(0)).toBe('cancel-requested');
    expect(trial.find(0).reason).toBe('overlap');
    expect(trial.aborted).toEqual([trial.find(0).token]);
    expect(trial.in('ready')).toEqual([]);
    trial.pass(500).fail();
    expect(trial.stateOf(0)).toBe('cancelled');
    expect(trial.start().nominalAt).toBe(MINUTE);
  });
});

describe('skip', () => {
  it('tells each skipped time with its reason', () => {
    const trial = everyMinute('skip').passTo(MINUTE);
    const { occurrenceId, details } = trial.events('skipped')[0] ?? {};
    expect(occurrenceId).toBe(trial.find(MINUTE).id);
    expect(details).toEqual({ reason: 'overlap', count: 1, from: MINUTE, to: MINUTE });
    expect(trial.find(MINUTE)).toMatchObject({ reason: 'overlap', count: 1, untilAt: MINUTE });
  });

  it.each(['ready', 'retry-wait', 'cancel-requested'] as const)(
    'holds while one is %s',
    (state) => {
      const trial = new Trial({
        schedule: fixedRate({ every: MINUTE }),
        policies: { initialBackoffMs: 10 * MINUTE, maxBackoffMs: 10 * MINUTE },
      }).passTo(0);
      if (state !== 'ready') trial.start();
      if (state === 'retry-wait') trial.fail();
      if (state === 'cancel-requested') trial.cancelOccurrence(trial.find(0));
      expect(trial.stateOf(0)).toBe(state);
      expect(trial.passTo(MINUTE).stateOf(MINUTE)).toBe('skipped');
    },
  );

  it('counts towards the limit', () => {
    const trial = everyMinute('skip', { limit: 3 }).passTo(10 * MINUTE);
    trial.succeed();
    expect(trial.history).toEqual([
      '0 succeeded',
      '60000 skipped(overlap)',
      '120000 skipped(overlap)',
    ]);
    expect(trial.task).toMatchObject({ state: 'completed', taken: 3 });
  });

  it('holds for a run that was triggered', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE, startDelay: MINUTE }) });
    trial.trigger();
    trial.start();
    expect(trial.passTo(MINUTE).stateOf(MINUTE)).toBe('skipped');
  });
});

describe('waiting', () => {
  it('is past due, has no end to come by itself, and creates its successor', () => {
    const trial = everyMinute('bufferAll').passTo(3 * MINUTE);
    expect(trial.find(MINUTE)).toMatchObject({ state: 'scheduled', waiting: true, dueAt: MINUTE });
    expect(trial.decide({ kind: 'due', occurrenceId: trial.find(MINUTE).id })).toBeUndefined();
    expect(trial.stateOf(4 * MINUTE)).toBe('scheduled');
  });

  it('ends in the commit that ends the live one', () => {
    const trial = everyMinute('bufferAll').passTo(MINUTE);
    const { id, token } = trial.find(0);
    const decision = trial.decide({
      kind: 'succeeded',
      occurrenceId: id,
      token,
      atMs: trial.nowMs,
      result: undefined,
    });
    expect(decision?.changed.map(({ state }) => state)).toEqual(['succeeded', 'ready']);
  });

  it('counts the lateness of such a run apart: it was not allowed to start', () => {
    const trial = everyMinute('bufferAll').passTo(MINUTE);
    trial.succeed();
    expect(trial.find(MINUTE)).toMatchObject({ state: 'ready', waiting: false, catchup: true });
  });

  it('is bounded by 1,000 under bufferAll; more are skipped with backlogFull', () => {
    const trial = everyMinute('bufferAll').passTo(1_002 * MINUTE);
    expect(trial.live.filter(({ waiting }) => waiting)).toHaveLength(1_000);
    expect(trial.find(1_000 * MINUTE)).toMatchObject({ state: 'scheduled', waiting: true });
    expect(trial.find(1_001 * MINUTE)).toMatchObject({ state: 'skipped', reason: 'backlogFull' });
    trial.succeed();
    trial.passTo(1_003 * MINUTE);
    expect(trial.find(1_003 * MINUTE)).toMatchObject({ state: 'scheduled', waiting: true });
  });

  it('of a thousand that are all past their ttl ends in one decision', () => {
    const trial = new Trial({
      schedule: fixedRate({ every: MINUTE }),
      policies: { overlap: 'bufferAll', ttlMs: 1_000 },
    }).passTo(0);
    trial.start();
    trial.passTo(1_000 * MINUTE + 30_000).succeed();
    expect(trial.events('missed')).toHaveLength(1_000);
    expect(trial.live.map(({ state }) => state)).toEqual(['scheduled']);
  });

  it('is skipped when cancelOther lets a newer one overtake it', () => {
    const trial = everyMinute('cancelOther').passTo(2 * MINUTE);
    expect(trial.history.slice(0, 3)).toEqual([
      '0 cancel-requested',
      '60000 skipped(overlap)',
      '120000 scheduled',
    ]);
    trial.fail();
    expect(trial.start().nominalAt).toBe(2 * MINUTE);
  });

  it('ends for all when the policy becomes allowAll', () => {
    const trial = everyMinute('bufferAll').passTo(2 * MINUTE);
    trial.setPolicies({ overlap: 'allowAll' });
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([MINUTE, 2 * MINUTE]);
  });
});

describe('cancelOther', () => {
  it('skips one that was ready and never started', () => {
    const trial = new Trial({
      schedule: fixedRate({ every: MINUTE }),
      policies: { overlap: 'cancelOther' },
    }).passTo(MINUTE);
    expect(trial.find(0)).toMatchObject({ state: 'skipped', reason: 'overlap' });
    expect(trial.stateOf(MINUTE)).toBe('ready');
  });

  it('cancels one that waits for its retry, and starts at once', () => {
    const trial = everyMinute('cancelOther');
    trial.setPolicies({ initialBackoffMs: 2 * MINUTE, maxBackoffMs: 2 * MINUTE });
    trial.fail();
    trial.passTo(MINUTE);
    expect(trial.find(0)).toMatchObject({ state: 'cancelled', reason: 'overlap' });
    expect(trial.stateOf(MINUTE)).toBe('ready');
  });

  it('keeps what was triggered in its place', () => {
    const trial = everyMinute('cancelOther').passTo(30_000);
    const triggered = trial.trigger();
    trial.passTo(MINUTE).fail();
    expect(trial.start().id).toBe(triggered.id);
    trial.succeed();
    expect(trial.start().nominalAt).toBe(MINUTE);
  });

  it('cancels all that run, if there are several', () => {
    const trial = everyMinute('allowAll').passTo(MINUTE);
    trial.start();
    trial.setPolicies({ overlap: 'cancelOther' });
    trial.passTo(2 * MINUTE);
    const [first, second] = trial.in('cancel-requested');
    trial.fail({}, first);
    expect(trial.in('ready')).toEqual([]);
    trial.fail({}, second);
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([2 * MINUTE]);
  });
});

describe('a claim', () => {
  it('is refused while another of the task runs, unless under allowAll', () => {
    const trial = everyMinute('allowAll').passTo(MINUTE);
    trial.setPolicies({ overlap: 'skip' });
    expect(trial.claim().state).toBe('ready');
    trial.succeed();
    expect(trial.claim().state).toBe('running');
  });
});

describe('schedules without an overlap policy', () => {
  it('a one-off comes behind a run of it that was triggered', () => {
    const trial = new Trial({ schedule: once(1_000) });
    trial.trigger();
    trial.start();
    trial.passTo(2_000);
    expect(trial.find(1_000)).toMatchObject({ state: 'scheduled', waiting: true });
    trial.succeed();
    expect(trial.run(0)).toMatchObject({ kind: 'nominal', state: 'succeeded' });
    expect(trial.status).toBe('succeeded');
  });

  it('a fixedDelay comes behind a run of it that was triggered', () => {
    const trial = new Trial({ schedule: fixedDelay({ delay: 1_000 }) }).passTo(0);
    trial.run(0);
    trial.trigger();
    trial.start();
    trial.passTo(1_500);
    expect(trial.find(2, 'sequence')).toMatchObject({ state: 'scheduled', waiting: true });
    trial.succeed();
    expect(trial.start().ordinal).toBe(2);
  });
});
