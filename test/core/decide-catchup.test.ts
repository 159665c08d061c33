/** Times that passed while the scheduler was down, or the task paused. */
import { describe, expect, it } from 'vitest';
import type { Policies } from '../../src/core/model.js';
import { cron, fixedDelay, fixedRate, jitterOf, once } from '../../src/core/schedule.js';
import { checkAccounts } from './decide-checks.js';
import { TASK_ID, Trial } from './decide-trial.js';

const MINUTE = 60_000;
const DAY = 86_400_000;

function everyMinute(
  policies: Partial<Policies>,
  options: { limit?: number; endAt?: number } = {},
): Trial {
  const trial = new Trial({ schedule: fixedRate({ every: MINUTE, ...options }), policies });
  trial.passTo(0).run(0);
  return trial;
}

/** Runs all that becomes ready, each in no time, until nothing does. */
function drain(trial: Trial): Trial {
  while (trial.pass(0).in('ready').length > 0) trial.run(0);
  checkAccounts(trial.view, trial.records);
  return trial;
}

describe.each([
  ['the scheduler was down', (trial: Trial) => trial.awayTo(5 * MINUTE + 1)],
  [
    'the task was paused',
    (trial: Trial) => {
      trial.pass(1_000).pause();
      return trial.passTo(5 * MINUTE + 1).resume();
    },
  ],
])('when %s from 0 to after the fifth minute', (_, away) => {
  it('latest runs the newest, and the others are missed as one record and one event', () => {
    const trial = drain(away(everyMinute({ catchup: 'latest' })));
    expect(trial.history).toEqual([
      '0 succeeded',
      '60000 missed×4(catchupLatest)',
      '300000 succeeded',
      '360000 scheduled',
    ]);
    expect(trial.find(MINUTE).untilAt).toBe(4 * MINUTE);
    expect(trial.events('missed').map(({ details }) => details)).toEqual([
      { reason: 'catchupLatest', count: 4, from: MINUTE, to: 4 * MINUTE },
    ]);
  });

  it('latest runs the only one that passed', () => {
    const trial = new Trial({ schedule: fixedRate({ every: 5 * MINUTE, startDelay: 4 * MINUTE }) });
    expect(drain(away(trial)).history).toEqual(['240000 succeeded', '540000 scheduled']);
  });

  it('all runs each of them, one after another, even under skip', () => {
    const trial = away(everyMinute({ catchup: 'all', overlap: 'skip' }));
    for (let minute = 1; minute <= 5; minute++) {
      expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([minute * MINUTE]);
      trial.run(5_000);
    }
    expect(trial.history.slice(1)).toEqual([
      '60000 succeeded',
      '120000 succeeded',
      '180000 succeeded',
      '240000 succeeded',
      '300000 succeeded',
      '360000 scheduled',
    ]);
  });

  it('all runs one after another under allowAll too', () => {
    const trial = away(everyMinute({ catchup: 'all', overlap: 'allowAll' }));
    trial.start();
    trial.pass(0);
    expect(trial.in('ready')).toEqual([]);
    trial.succeed();
    expect(trial.in('ready').map(({ nominalAt }) => nominalAt)).toEqual([2 * MINUTE]);
  });

  it('all misses what lies before its window', () => {
    const trial = drain(
      away(everyMinute({ catchup: 'all', catchupWindowMs: 2 * MINUTE + 30_000 })),
    );
    expect(trial.history.slice(1)).toEqual([
      '60000 missed×2(catchupWindow)',
      '180000 succeeded',
      '240000 succeeded',
      '300000 succeeded',
      '360000 scheduled',
    ]);
  });

  it('all keeps its window while its runs take long', () => {
    const trial = away(everyMinute({ catchup: 'all', catchupWindowMs: 4 * MINUTE + 30_000 }));
    for (let minute = 1; minute <= 5; minute++) {
      expect(trial.run(10 * MINUTE).nominalAt).toBe(minute * MINUTE);
    }
  });

  it('none misses all of them', () => {
    const trial = drain(away(everyMinute({ catchup: 'none' })));
    expect(trial.history).toEqual([
      '0 succeeded',
      '60000 missed×5(catchupNone)',
      '360000 scheduled',
    ]);
  });

  it('those missed count towards the limit', () => {
    const missed = drain(away(everyMinute({ catchup: 'none' }, { limit: 4 })));
    expect(missed.history).toEqual(['0 succeeded', '60000 missed×3(catchupNone)']);
    expect(missed.task).toMatchObject({ state: 'completed', taken: 4 });
    expect(missed.status).toBe('failed');
    const latest = drain(away(everyMinute({ catchup: 'latest' }, { limit: 4 })));
    expect(latest.history).toEqual([
      '0 succeeded',
      '60000 missed×2(catchupLatest)',
      '180000 succeeded',
    ]);
    expect(latest.task).toMatchObject({ state: 'completed', taken: 4 });
    expect(latest.status).toBe('succeeded');
  });

  it('endAt ends what is caught up', () => {
    const trial = drain(away(everyMinute({ catchup: 'latest' }, { endAt: 3 * MINUTE })));
    expect(trial.history).toEqual([
      '0 succeeded',
      '60000 missed×2(catchupLatest)',
      '180000 succeeded',
    ]);
    expect(trial.task.state).toBe('completed');
  });

  it('a one-off runs late under any policy', () => {
    const trial = new Trial({ schedule: once(MINUTE), policies: { catchup: 'none' } });
    expect(drain(away(trial)).history).toEqual(['60000 succeeded']);
    expect(trial.find(MINUTE).catchup).toBe(true);
  });

  it('a one-off is missed when its ttl has passed', () => {
    const trial = away(new Trial({ schedule: once(MINUTE), policies: { ttlMs: MINUTE } }));
    expect(trial.history).toEqual(['60000 missed(ttl)']);
    expect(trial.status).toBe('failed');
  });

  it('a fixedDelay runs its one late, or under none misses it and goes on', () => {
    const schedule = fixedDelay({ delay: MINUTE, startDelay: 10_000 });
    expect(away(new Trial({ schedule })).stateOf(1, 'sequence')).toBe('ready');
    const none = away(new Trial({ schedule, policies: { catchup: 'none' } }));
    expect(none.history).toEqual(['#1 missed(catchupNone)', '#2 scheduled']);
    expect(none.find(2, 'sequence').dueAt).toBe(6 * MINUTE + 1);
  });
});

describe('what is no matter of catch-up', () => {
  it('is a time that is late through load', () => {
    const trial = everyMinute({ catchup: 'none' }).lateTo(2 * MINUTE + 10_000);
    expect(trial.find(MINUTE)).toMatchObject({ state: 'ready', catchup: false });
    expect(trial.stateOf(2 * MINUTE)).toBe('skipped');
  });

  it('is a time after the scheduler came back', () => {
    const trial = everyMinute({ catchup: 'none' })
      .awayTo(MINUTE + 1)
      .passTo(2 * MINUTE);
    expect(trial.stateOf(2 * MINUTE)).toBe('ready');
  });

  it('is a time after it, also when the engine is busy then and sees both late', () => {
    const trial = everyMinute({ catchup: 'none' });
    trial.awayUntilMs = 2 * MINUTE + 1;
    trial.lateTo(4 * MINUTE + 1);
    expect(trial.history.slice(1, 4)).toEqual([
      '60000 missed×2(catchupNone)',
      '180000 ready',
      '240000 skipped(overlap)',
    ]);
  });

  it('is a time that passed after a resume, while caught-up runs ran', () => {
    const trial = everyMinute({ catchup: 'all' });
    trial.pause();
    trial.passTo(MINUTE + 1).resume();
    trial.start();
    trial.passTo(2 * MINUTE);
    expect(trial.find(2 * MINUTE)).toMatchObject({ state: 'skipped', reason: 'overlap' });
  });
});

describe('latest while a run is live', () => {
  it('leaves the newest to the overlap policy', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE }) }).passTo(0);
    trial.start();
    trial.pause();
    trial.passTo(3 * MINUTE + 1).resume();
    expect(trial.history).toEqual([
      '0 running',
      '60000 missed×2(catchupLatest)',
      '180000 skipped(overlap)',
      '240000 scheduled',
    ]);
  });
});

describe('jitter', () => {
  it('makes a time whose run is still due one that has not passed', () => {
    const jitterMs = 30 * MINUTE;
    const schedule = fixedRate({ every: MINUTE, startAt: 0, jitter: jitterMs });
    const trial = new Trial({ schedule, policies: { catchup: 'none' } });
    const dueOf = (at: number) => at + jitterOf(schedule, TASK_ID, 1, at);
    const awayUntil = 100 * MINUTE;
    trial.awayTo(awayUntil);
    const next = trial.in('scheduled')[0];
    expect(next?.dueAt).toBeGreaterThanOrEqual(awayUntil);
    let firstNotPassed = 0;
    while (dueOf(firstNotPassed) < awayUntil) firstNotPassed += MINUTE;
    expect(next?.nominalAt).toBe(firstNotPassed);
    expect(trial.history).toEqual([
      `0 missed×${firstNotPassed / MINUTE}(catchupNone)`,
      `${firstNotPassed} scheduled`,
    ]);
    checkAccounts(trial.view, trial.records);
  });

  it('leaves a time alone that passed while away but is due after it', () => {
    const schedule = fixedRate({ every: DAY, startAt: 0, jitter: DAY / 2 });
    const dueAt = jitterOf(schedule, TASK_ID, 1, 0);
    const trial = new Trial({ schedule, policies: { catchup: 'none' } });
    expect(dueAt).toBeGreaterThan(1_000);
    trial.awayTo(dueAt - 1_000).passTo(dueAt);
    expect(trial.find(0)).toMatchObject({ state: 'ready', catchup: false, dueAt });
  });
});

describe('a long absence', () => {
  it('costs a fixedRate arithmetic, whatever its limit', () => {
    const year = 365 * DAY;
    const schedule = fixedRate({ every: 1, limit: 40_000_000_000 });
    const trial = new Trial({ schedule }).awayTo(year);
    expect(trial.history).toEqual([
      `0 missed×${year}(catchupLatest)`,
      `${year} ready`,
      `${year + 1} scheduled`,
    ]);
    expect(trial.task.taken).toBe(year + 2);
    const limited = new Trial({ schedule: fixedRate({ every: 1, limit: 5_000_000 }) });
    limited.awayTo(year);
    expect(limited.history).toEqual(['0 missed×4999999(catchupLatest)', '4999999 ready']);
  });

  it('of a year leaves a minutely cron with one run, and a count that stops at 1,000', () => {
    const trial = new Trial({ schedule: cron('* * * * *') }).awayTo(365 * DAY + 1);
    expect(trial.history).toEqual([
      '60000 missed×1000(catchupLatest)',
      `${365 * DAY} ready`,
      `${365 * DAY + MINUTE} scheduled`,
    ]);
    expect(trial.find(MINUTE).untilAt).toBe(365 * DAY - MINUTE);
  });

  it('that ends just when a time is due gives one run, not two', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE }) }).awayTo(5 * MINUTE);
    expect(trial.history).toEqual([
      '0 missed×5(catchupLatest)',
      '300000 ready',
      '360000 scheduled',
    ]);
    expect(trial.find(5 * MINUTE).catchup).toBe(false);
  });

  it('of 101 minutes counts a minutely cron exactly', () => {
    const trial = new Trial({ schedule: cron('* * * * *') }).awayTo(101 * MINUTE + 1);
    expect(trial.history).toEqual([
      '60000 missed×100(catchupLatest)',
      `${101 * MINUTE} ready`,
      `${102 * MINUTE} scheduled`,
    ]);
    checkAccounts(trial.view, trial.records);
  });

  it('meets the limit of a cron exactly, up to 1,000 times', () => {
    const limited = (limit: number) =>
      new Trial({ schedule: cron('* * * * *', { limit }) }).awayTo(30 * DAY);
    expect(limited(7).history).toEqual(['60000 missed×6(catchupLatest)', '420000 ready']);
    expect(limited(1_000).task.taken).toBe(1_000);
    expect(limited(1_000).in('ready')[0]?.nominalAt).toBe(1_000 * MINUTE);
    expect(limited(1_001).in('ready')[0]?.nominalAt).toBe(1_001 * MINUTE);
  });
});

describe('retries', () => {
  it('held by a pause are due at the resume, or later if they were', () => {
    const trial = new Trial({ schedule: once(0) }).passTo(0);
    trial.start();
    trial.fail();
    trial.pause();
    trial.passTo(5_000);
    expect(trial.stateOf(0)).toBe('retry-wait');
    trial.resume();
    expect(trial.find(0)).toMatchObject({ state: 'ready', dueAt: 5_000 });
    trial.start();
    trial.fail();
    trial.pause();
    trial.pass(500).resume();
    expect(trial.find(0)).toMatchObject({ state: 'retry-wait', dueAt: 7_000 });
    expect(trial.passTo(7_000).find(0)).toMatchObject({ state: 'ready', dueAt: 7_000 });
  });
});
