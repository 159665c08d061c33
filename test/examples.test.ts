/** The facts of examples/tour.ts and versions.ts. The examples import the built package: run `npm run build` first. */
import { describe, expect, it } from 'vitest';
import * as tour from '../examples/tour.js';
import { deployments } from '../examples/versions.js';

describe('the tour', () => {
  it('fires a cron of every quarter from 09:07 at 09:15, 09:30 and 09:45', async () => {
    expect(await tour.cronFromNineOhSeven()).toEqual(['09:15', '09:30', '09:45']);
  });

  it('starts a rate of 60 s next at 180 s when its run takes 150 s, under skip', async () => {
    expect(await tour.slowRuns('skip')).toEqual([
      { nominal: 0, at: 0 },
      { nominal: 180, at: 180 },
    ]);
  });

  it('runs the 60 s slot at once after a run of 150 s, under bufferAll', async () => {
    expect(await tour.slowRuns('bufferAll')).toEqual([
      { nominal: 0, at: 0 },
      { nominal: 60, at: 150 },
    ]);
  });

  it('beats three times in the first minute at a rate of 30 s, counting time 0', async () => {
    expect(await tour.heartbeatForAMinute()).toEqual([0, 30, 60]);
  });

  it('succeeds on attempt 3, after retries at +1 s and +2 s', async () => {
    expect(await tour.importWithRetries()).toEqual({
      startedAt: [0, 1, 3],
      status: 'succeeded',
      attempt: 3,
      failures: 2,
      result: { rows: 120 },
    });
  });

  it('keeps the last error of a cleanup that failed twice, in the dead letters', async () => {
    expect(await tour.cleanupThatDies()).toEqual({
      status: 'dead',
      attempt: 2,
      error: 'disk is read-only (attempt 2)',
      inDeadLetters: [true],
      deadLetters: 1,
      taskStatus: 'failed',
    });
  });

  it('runs a task due now without a nudge, beside a timer twelve hours out', async () => {
    expect(await tour.dueNowBesideFarTimer()).toEqual({
      nearResult: 'near',
      nearStartedAt: 0,
      farStatusMeanwhile: 'scheduled',
      farStartedAt: 12 * 3600,
    });
  });

  it('runs a digest paused through its slot not at all, then once on resume', async () => {
    expect(await tour.pausedDigest()).toEqual({
      whilePaused: 0,
      afterResume: 1,
      nextRunAt: '11:00',
    });
  });

  it('leaves nothing of a thousand cancelled tasks', async () => {
    expect(await tour.cancelLeavesNothing()).toEqual({
      pendingBefore: 1000,
      nextDueBefore: '09:01',
      pendingAfter: 0,
      nextDueAfter: undefined,
    });
  });

  it('leaves nothing of a thousand cancelled timers in the wheel', async () => {
    expect(await tour.cancelOnTheWheel()).toEqual({
      sizeBefore: 1000,
      cancelled: 1000,
      size: 0,
      nextExpiry: undefined,
    });
  });
});

describe('deploying a new version of a handler', () => {
  it('runs queued work as it was meant, and what nobody can run once it is given another version', async () => {
    expect(await deployments()).toEqual({
      both: ['v1 billed 500 cents', 'v2 billed 900 cents'],
      only2: {
        waitingVersions: { 'bill@1': 1 },
        result: 'v2 billed 700 cents',
        failures: 0,
      },
    });
  });
});
