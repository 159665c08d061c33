import { describe, expect, it } from 'vitest';
import type { OccurrenceRecord } from '../../src/core/model.js';
import { fixedRate, once } from '../../src/core/schedule.js';
import { nextRunAt, occurrenceStatus, taskStatus } from '../../src/core/status.js';
import { Trial } from './decide-trial.js';

const MINUTE = 60_000;
const allowAll = () =>
  new Trial({
    schedule: fixedRate({ every: MINUTE, limit: 3 }),
    policies: { overlap: 'allowAll', initialBackoffMs: 10 * MINUTE, maxBackoffMs: 10 * MINUTE },
  }).passTo(0);

describe('the status of a task is the first that holds', () => {
  it('cancelled, though an attempt still runs', () => {
    const trial = allowAll();
    trial.start();
    trial.cancel();
    expect(trial.live).toHaveLength(1);
    expect(trial.status).toBe('cancelled');
  });

  it('paused, though an attempt still runs', () => {
    const trial = allowAll();
    trial.start();
    trial.pause();
    expect(trial.status).toBe('paused');
  });

  it('running, if any runs, be it asked to stop', () => {
    const trial = allowAll();
    trial.fail({}, trial.start());
    trial.passTo(MINUTE).start();
    expect(trial.status).toBe('running');
    trial.cancelOccurrence(trial.find(MINUTE));
    expect(trial.status).toBe('running');
  });

  it('retrying, if any waits for its retry', () => {
    const trial = allowAll();
    trial.fail({}, trial.start());
    trial.passTo(MINUTE);
    expect(trial.in('ready', 'scheduled')).toHaveLength(2);
    expect(trial.status).toBe('retrying');
  });

  it('scheduled, if any is ready or scheduled', () => {
    const trial = new Trial({ schedule: once(10) });
    expect(trial.status).toBe('scheduled');
    expect(trial.passTo(10).status).toBe('scheduled');
  });

  it('else succeeded or failed, as the last occurrence ended', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE, limit: 2 }) }).passTo(0);
    trial.die(trial.start());
    trial.passTo(MINUTE).run(0);
    expect(trial.status).toBe('succeeded');
  });

  it.each([
    ['dead', (trial: Trial) => trial.die(trial.start())],
    ['missed', (trial: Trial) => trial.pass(MINUTE).claim()],
  ])('failed when the last was %s', (state, finish) => {
    const trial = new Trial({ schedule: once(0), policies: { ttlMs: 10 } }).passTo(0);
    expect(finish(trial)).toMatchObject({ state });
    expect(trial.status).toBe('failed');
  });
});

describe('the last occurrence', () => {
  it('is the one that ended last', () => {
    const trial = allowAll().passTo(2 * MINUTE);
    const [first, second, third] = trial.in('ready').map((ready) => trial.start(ready));
    trial.die(second);
    trial.die(third);
    trial.succeed(first);
    expect(trial.status).toBe('succeeded');
  });

  it('is not one that was skipped: the one it was skipped for counts', () => {
    const trial = new Trial({ schedule: fixedRate({ every: MINUTE, limit: 2 }) }).passTo(0);
    trial.start();
    trial.passTo(MINUTE);
    expect(trial.stateOf(MINUTE)).toBe('skipped');
    expect(trial.task.lastEnd).toBeUndefined();
    trial.succeed();
    expect(trial.status).toBe('succeeded');
    const failing = new Trial({ schedule: fixedRate({ every: MINUTE, limit: 3 }) }).passTo(0);
    failing.run(0);
    failing.passTo(MINUTE).start();
    failing.passTo(2 * MINUTE).die();
    expect(failing.task.state).toBe('completed');
    expect(failing.status).toBe('failed');
  });
});

describe('the status of an occurrence', () => {
  it('shows retry-wait as retrying and cancel-requested as running', () => {
    const statusOf = (state: OccurrenceRecord['state']) =>
      occurrenceStatus({ state } as OccurrenceRecord);
    expect(statusOf('retry-wait')).toBe('retrying');
    expect(statusOf('cancel-requested')).toBe('running');
    expect(statusOf('quarantined')).toBe('quarantined');
  });
});

describe('nextRunAt', () => {
  it('is the earliest due time of what starts by itself', () => {
    const trial = allowAll();
    expect(nextRunAt(trial.view)).toBe(0);
    trial.start();
    expect(nextRunAt(trial.view)).toBe(MINUTE);
    trial.setPolicies({ initialBackoffMs: 500 });
    trial.fail();
    expect(nextRunAt(trial.view)).toBe(500);
  });

  it('is none for what waits behind another, while paused, and after the end', () => {
    const trial = new Trial({ schedule: once(0) }).passTo(0);
    trial.start();
    trial.trigger();
    expect(nextRunAt(trial.view)).toBeUndefined();
    trial.pause();
    expect(nextRunAt(trial.view)).toBeUndefined();
    trial.cancel();
    expect(nextRunAt(trial.view)).toBeUndefined();
    expect(taskStatus(trial.view)).toBe('cancelled');
  });
});
