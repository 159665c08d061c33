/**
 * Cancel, pause, update, trigger, finish and expiry of one running attempt, in every order: the transition table
 * decides, exactly one of them ends the attempt, and what comes after it changes nothing of it.
 */
import { describe, expect, it } from 'vitest';
import { LeaseLostError, TaskEndedError } from '../../src/core/errors.js';
import { fixedRate, once, type Schedule } from '../../src/core/schedule.js';
import { ERROR, Trial } from './decide-trial.js';

const WHAT = ['cancel', 'pause', 'update', 'trigger', 'finish', 'expire'] as const;
type What = (typeof WHAT)[number];

function ordersOf<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item) =>
    ordersOf(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  );
}

const ORDERS = ordersOf(WHAT);
const SCHEDULES: readonly [string, () => Schedule][] = [
  ['a one-off', () => once(0)],
  ['a recurring task', () => fixedRate({ every: 10_000 })],
];

/** Does it; true when it was refused because it came too late. */
function isRefused(trial: Trial, what: What, attempt: { id: string; token: number }): boolean {
  const { nowMs } = trial;
  const { id: occurrenceId, token } = attempt;
  const end = { occurrenceId, token };
  try {
    switch (what) {
      case 'cancel':
        trial.cancel('asked for');
        return false;
      case 'pause':
        trial.pause();
        return false;
      case 'update':
        trial.update({ payload: new Uint8Array([9]) });
        return false;
      case 'trigger':
        trial.trigger();
        return false;
      case 'finish':
        trial.decide({ kind: 'succeeded', ...end, atMs: nowMs, result: undefined });
        return false;
      case 'expire':
        trial.decide({ kind: 'crashed', ...end, leaseExpired: true, error: ERROR, random01: 0 });
        return false;
      default:
        return what satisfies never;
    }
  } catch (error) {
    if (!(error instanceof LeaseLostError || error instanceof TaskEndedError)) throw error;
    return true;
  }
}

/** How the attempt must end: by whichever of its two ends came first, and whether it was cancelled before. */
function expectedOutcome(order: readonly What[]): string {
  const at = (what: What) => order.indexOf(what);
  if (at('finish') < at('expire')) return 'succeeded';
  return at('cancel') < at('expire') ? 'cancelled' : 'leaseExpired';
}

describe('cancel, pause, update, trigger, finish and expiry', () => {
  it.each(SCHEDULES)('come to one end in all 720 orders, of %s', (_, makeSchedule) => {
    for (const order of ORDERS) walk(order, makeSchedule());
  });
});

function walk(order: readonly What[], schedule: Schedule): void {
  const says = order.join(', ');
  const trial = new Trial({ schedule });
  trial.pass(0);
  const running = trial.start();
  const accepted = order.filter((what) => {
    const { view } = trial;
    const refused = isRefused(trial, what, running);
    if (refused) expect(trial.view, says).toBe(view);
    return !refused;
  });
  // Exactly one of the two ends was accepted.
  const ends = accepted.filter((what) => what === 'finish' || what === 'expire');
  expect(ends, says).toEqual([order.find((what) => what === 'finish' || what === 'expire')]);

  const record = trial.records.get(running.id);
  const kept = trial.attempts.find(({ fencingToken }) => fencingToken === running.token);
  expect(kept?.outcome ?? record?.outcome, says).toBe(expectedOutcome(order));
  // The signal was aborted once, if it was cancelled while it ran; and nothing of a cancelled task starts again.
  const wasRunning = order.indexOf('cancel') < order.indexOf(ends[0] as What);
  const wasCancelled = accepted.includes('cancel');
  expect(trial.aborted, says).toEqual(wasRunning && wasCancelled ? [running.token] : []);
  if (trial.task.state === 'cancelled') {
    trial.pass(60_000);
    expect(trial.live, says).toEqual([]);
  }
}
