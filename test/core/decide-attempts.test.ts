/** Attempts: claim, entry, and every way to end. */
import { describe, expect, it } from 'vitest';
import { LeaseLostError } from '../../src/core/errors.js';
import type { Policies } from '../../src/core/model.js';
import { fixedRate, once } from '../../src/core/schedule.js';
import { ERROR, Trial } from './decide-trial.js';

/** A one-off that runs. */
function running(policies: Partial<Policies> = {}): Trial {
  const trial = new Trial({ schedule: once(0), policies }).passTo(0);
  trial.start();
  return trial;
}

/** Runs it again as soon as it may. */
function again(trial: Trial): Trial {
  while (trial.in('ready').length === 0) trial.pass(500);
  trial.start();
  return trial;
}

describe('a claim', () => {
  it('takes a token greater than all before, a lease, and counts the attempt', () => {
    const trial = running();
    expect(trial.find(0)).toMatchObject({ token: 1, attempt: 1, leaseUntil: 10_000 });
    trial.fail();
    again(trial);
    expect(trial.find(0)).toMatchObject({ token: 2, attempt: 2 });
  });

  it('finds nothing to do when another was first, or it was cancelled', () => {
    const trial = new Trial({ schedule: once(0) }).passTo(0);
    const ready = trial.find(0);
    trial.start();
    expect(trial.claim(ready)).toMatchObject({ state: 'running', token: 1 });
    trial.cancel();
    trial.fail();
    expect(trial.claim(ready).state).toBe('cancelled');
  });

  it('that comes past due + ttl makes it missed', () => {
    const trial = new Trial({ schedule: once(0), policies: { ttlMs: 1_000 } }).passTo(1_000);
    expect(trial.stateOf(0)).toBe('ready');
    trial.pass(1);
    expect(trial.claim()).toMatchObject({ state: 'missed', reason: 'ttl' });
    expect(trial.events('missed')).toHaveLength(1);
  });

  it('that comes past due + ttl runs what has started before', () => {
    const trial = running({ ttlMs: 1_000 });
    trial.fail();
    trial.pass(60_000);
    expect(trial.claim().state).toBe('running');
  });

  it('refuses a token that does not grow, as a bug', () => {
    const trial = running();
    trial.report({ kind: 'released' });
    const { id } = trial.find(0);
    const stale = { occurrenceId: id, token: 1, leaseUntil: 9, handlerVersion: 1 };
    expect(() => trial.decide({ kind: 'claim', ...stale })).toThrow(/tickwheel bug.*tokens/);
  });
});

describe('a token', () => {
  it.each([
    { kind: 'entered', atMs: 0, workerId: 'w9' },
    { kind: 'renew', leaseUntil: 99 },
    { kind: 'succeeded', atMs: 0, result: undefined },
    { kind: 'crashed', leaseExpired: true, error: ERROR, random01: 0 },
  ] as const)('that is stale changes nothing: $kind', (report) => {
    const trial = running();
    trial.report({ kind: 'released' });
    trial.start();
    const { view } = trial;
    expect(() => trial.report(report, trial.find(0), 1)).toThrow(LeaseLostError);
    expect(() => trial.report(report, trial.find(0), 3)).toThrow(LeaseLostError);
    expect(trial.view).toBe(view);
  });

  it('of an attempt that has ended is lost, its late completion refused', () => {
    const trial = running();
    const first = trial.find(0);
    trial.fail({ timedOut: true });
    expect(() => trial.succeed(first)).toThrow(LeaseLostError);
    again(trial).succeed();
    expect(() => trial.succeed(first)).toThrow(LeaseLostError);
  });
});

describe('a running attempt', () => {
  it('reports its entry, its progress, and renews its lease', () => {
    const trial = running();
    expect(trial.find(0)).toMatchObject({ startedAt: 0, workerId: 'w1' });
    trial.report({ kind: 'renew', leaseUntil: 20_000 });
    expect(trial.find(0).leaseUntil).toBe(20_000);
    trial.report({ kind: 'progress', leaseUntil: 30_000, progress: ERROR });
    expect(trial.find(0)).toMatchObject({ leaseUntil: 30_000, progress: ERROR });
    expect(trial.events('progress')[0]?.details).toEqual({ progress: ERROR });
  });

  it('hands its progress to the next attempt', () => {
    const trial = running();
    trial.report({ kind: 'progress', leaseUntil: 30_000, progress: ERROR });
    trial.fail();
    expect(again(trial).find(0).progress).toBe(ERROR);
  });

  it('keeps its result', () => {
    const trial = running();
    const done = trial.report({ kind: 'succeeded', atMs: 40, result: ERROR });
    expect(done).toMatchObject({ result: ERROR, outcome: 'succeeded', endedAt: 40 });
  });
});

describe('failures', () => {
  it('are retried after a backoff that grows to its maximum', () => {
    const trial = running({ maxAttempts: 6, backoffMultiplier: 3, maxBackoffMs: 10_000 });
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) {
      waits.push(trial.fail().dueAt - trial.nowMs);
      again(trial);
    }
    expect(waits).toEqual([1_000, 3_000, 9_000, 10_000, 10_000]);
  });

  it('take jitter off the backoff', () => {
    const trial = running({ backoffJitter: 0.5 });
    expect(trial.fail({ random01: 0.5 }).dueAt).toBe(750);
  });

  it('end in the dead letters after maxAttempts', () => {
    const trial = running({ maxAttempts: 3 });
    for (let i = 1; i < 3; i++) {
      expect(trial.fail()).toMatchObject({ state: 'retry-wait', failures: i });
      expect(trial.status).toBe('retrying');
      again(trial);
    }
    expect(trial.fail()).toMatchObject({ state: 'dead', failures: 3, attempt: 3 });
    expect(trial.types).toEqual([
      'scheduled',
      'started',
      'retrying',
      'started',
      'retrying',
      'started',
      'deadLettered',
    ]);
    expect(trial.events('retrying')[0]?.details).toEqual({ error: ERROR, retryAt: 1_000 });
  });

  it('that are unrecoverable are dead at once', () => {
    expect(running().fail({ unrecoverable: true })).toMatchObject({ state: 'dead', failures: 1 });
  });

  it('name their own backoff with RetryAfter, and still count', () => {
    const trial = running({ maxAttempts: 2 });
    expect(trial.fail({ retryAfterMs: 0 })).toMatchObject({ dueAt: 0, failures: 1 });
    expect(again(trial).fail({ retryAfterMs: 5 }).state).toBe('dead');
  });

  it('keep each attempt but the newest apart, which its occurrence holds', () => {
    const trial = running();
    trial.pass(10).fail({ timedOut: true });
    again(trial).fail();
    again(trial).succeed();
    expect(
      trial.attempts.map(({ attempt, outcome, fencingToken }) => [attempt, outcome, fencingToken]),
    ).toEqual([
      [1, 'timedOut', 1],
      [2, 'failed', 2],
    ]);
    expect(trial.attempts[0]).toMatchObject({ startedAt: 0, endedAt: 10, error: ERROR });
    expect(trial.find(0)).toMatchObject({ attempt: 3, outcome: 'succeeded', error: undefined });
  });

  it('read the policies at each attempt', () => {
    const trial = running({ maxAttempts: 9 });
    trial.fail();
    again(trial);
    trial.setPolicies({ maxAttempts: 2 });
    expect(trial.fail().state).toBe('dead');
  });
});

describe('crashes', () => {
  it('are counted apart from failures, and end in quarantine after maxCrashes', () => {
    const trial = running({ maxAttempts: 2, maxCrashes: 2 });
    expect(trial.crash()).toMatchObject({ state: 'retry-wait', failures: 0, crashes: 1 });
    again(trial);
    expect(trial.fail()).toMatchObject({ state: 'retry-wait', failures: 1, crashes: 1 });
    again(trial);
    expect(trial.crash()).toMatchObject({ state: 'quarantined', failures: 1, crashes: 2 });
    expect(trial.events('quarantined')[0]?.details).toEqual({ error: ERROR, crashes: 2 });
    expect(trial.status).toBe('failed');
  });

  it('back off like failures', () => {
    const trial = running();
    expect(trial.crash().dueAt).toBe(1_000);
    expect(again(trial).crash().dueAt).toBe(trial.nowMs + 2_000);
  });

  it('include an expired lease, which is told', () => {
    const trial = running();
    expect(trial.crash(true)).toMatchObject({ crashes: 1, outcome: 'leaseExpired' });
    expect(trial.types.slice(-2)).toEqual(['leaseExpired', 'retrying']);
    expect(trial.events('leaseExpired')[0]?.details).toEqual({ workerId: 'w1' });
  });
});

describe('ends that charge nobody', () => {
  it('returned: claimed and never entered, as if it had not been', () => {
    const trial = new Trial({ schedule: once(0) }).passTo(0);
    trial.claim();
    trial.report({ kind: 'returned' });
    expect(trial.find(0)).toMatchObject({
      state: 'ready',
      attempt: 0,
      token: 1,
      outcome: undefined,
    });
    expect(trial.attempts).toEqual([]);
    expect(trial.start()).toMatchObject({ attempt: 1, token: 2 });
  });

  it('released: the attempt is kept as such', () => {
    const trial = running();
    trial.report({ kind: 'released' });
    expect(trial.find(0)).toMatchObject({ state: 'ready', failures: 0, crashes: 0, catchup: true });
    expect(trial.attempts).toMatchObject([{ attempt: 1, outcome: 'released' }]);
    expect(trial.start().attempt).toBe(2);
  });

  it('displaced: after three of them it runs alone', () => {
    const trial = running();
    for (let i = 1; i <= 3; i++) {
      trial.report({ kind: 'displaced' });
      const expected = {
        state: 'ready',
        displacements: i,
        alone: i === 3,
        crashes: 0,
        failures: 0,
      };
      expect(trial.find(0)).toMatchObject(expected);
      trial.start();
    }
    expect(trial.attempts.map(({ outcome }) => outcome)).toEqual(Array(3).fill('released'));
  });

  it('suspected: it runs alone next, and a crash while alone is charged', () => {
    const trial = running();
    trial.report({ kind: 'suspected', error: ERROR });
    expect(trial.find(0)).toMatchObject({ state: 'ready', alone: true, crashes: 0 });
    trial.start();
    expect(trial.crash()).toMatchObject({ state: 'retry-wait', crashes: 1, alone: true });
  });
});

describe('deaths of the process', () => {
  it('charge nobody twice, then it runs alone, and a further one is charged', () => {
    const trial = running({ maxCrashes: 2 });
    const seen: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      const { state, alone, crashes } = trial.orphan();
      seen.push([state, alone, crashes]);
      if (state !== 'quarantined') again(trial);
    }
    expect(seen).toEqual([
      ['ready', false, 0],
      ['ready', true, 0],
      ['retry-wait', true, 1],
      ['quarantined', true, 2],
    ]);
  });

  it('count when they are in a row only', () => {
    const trial = running({ maxAttempts: 9 });
    trial.orphan();
    again(trial).fail();
    again(trial).orphan();
    expect(trial.find(0)).toMatchObject({ deaths: 1, alone: false });
  });

  it('do not charge a suspect that ran alone for the first time', () => {
    const trial = running();
    trial.report({ kind: 'suspected', error: ERROR });
    trial.start();
    expect(trial.orphan()).toMatchObject({ state: 'ready', crashes: 0 });
  });
});

describe('a request for cancellation', () => {
  const requested = () => {
    const trial = running();
    trial.cancel('no more');
    return trial;
  };

  it('aborts the signal and leaves the attempt running', () => {
    const trial = requested();
    expect(trial.find(0)).toMatchObject({
      state: 'cancel-requested',
      cancelRequestedAt: 0,
      reason: 'no more',
    });
    expect(trial.aborted).toEqual([1]);
    trial.report({ kind: 'renew', leaseUntil: 50_000 });
    expect(trial.find(0)).toMatchObject({ state: 'cancel-requested', leaseUntil: 50_000 });
  });

  it('is asked once', () => {
    const trial = requested();
    trial.cancelOccurrence(trial.find(0), 'again');
    expect(trial.aborted).toEqual([1]);
    expect(trial.find(0).reason).toBe('no more');
  });

  it('loses against a finish that comes first', () => {
    const trial = requested();
    expect(trial.succeed()).toMatchObject({ state: 'succeeded', outcome: 'succeeded' });
    expect(trial.types.at(-1)).toBe('succeeded');
  });

  it('wins when the handler throws after it, whatever it throws', () => {
    for (const given of [{}, { unrecoverable: true }, { timedOut: true }, { retryAfterMs: 5 }]) {
      const ended = requested().fail(given);
      expect(ended).toMatchObject({ state: 'cancelled', failures: 0, reason: 'no more' });
    }
  });

  it.each([
    { kind: 'crashed', leaseExpired: false, error: ERROR, random01: 0 },
    { kind: 'crashed', leaseExpired: true, error: ERROR, random01: 0 },
    { kind: 'suspected', error: ERROR },
    { kind: 'displaced' },
    { kind: 'released' },
    { kind: 'orphaned', error: ERROR, random01: 0 },
  ] as const)('wins when the attempt is lost: %o', (report) => {
    const trial = requested();
    const ended = trial.report(report);
    expect(ended).toMatchObject({ state: 'cancelled', crashes: 0, outcome: 'cancelled' });
    expect(trial.events('cancelled')[0]?.details).toEqual({ reason: 'no more' });
  });

  it('wins over a claim that was never entered, which leaves no attempt', () => {
    const trial = new Trial({ schedule: once(0) }).passTo(0);
    trial.claim();
    trial.cancel();
    expect(trial.report({ kind: 'returned' })).toMatchObject({ state: 'cancelled', attempt: 0 });
  });
});

describe('a decision', () => {
  it('leaves the records it was given untouched, and raises revisions by one', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 1_000 }) });
    const before = trial.view;
    const copy = structuredClone(before);
    trial.passTo(0).start();
    expect(before).toEqual(copy);
    expect(trial.task.revision).toBe(before.task.revision + 1);
    expect(trial.find(0).revision).toBe(4);
  });
});
