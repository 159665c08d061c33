/**
 * Random walks through the life of a task: what may happen to it, as commands that make sense of
 * what they meet.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { LeaseLostError, TaskEndedError } from '../../src/core/errors.js';
import { isTerminal, type OccurrenceRecord, type Policies } from '../../src/core/model.js';
import { cron, fixedDelay, fixedRate, once, type Schedule } from '../../src/core/schedule.js';
import { checkAccounts } from './decide-checks.js';
import { ERROR, type Report, type Trial, type TrialOptions } from './decide-trial.js';

const ATTEMPT_KINDS = [
  'enter',
  'renew',
  'progress',
  'succeed',
  'fail',
  'unrecoverable',
  'retryAfter',
  'timeOut',
  'return',
  'displace',
  'release',
  'suspect',
  'orphan',
  'crash',
  'expire',
  'stale',
] as const;
const CALL_KINDS = [
  'pause',
  'resume',
  'cancel',
  'trigger',
  'cancelOccurrence',
  'redrive',
  'policies',
  'schedule',
  'version',
  'delete',
] as const;

type AttemptKind = (typeof ATTEMPT_KINDS)[number];
type Kind = 'pass' | 'late' | 'away' | 'claim' | AttemptKind | (typeof CALL_KINDS)[number];

export interface Command {
  readonly kind: Kind;
  /** Chooses among what there is: modulo the number of candidates. */
  readonly pick: number;
  readonly ms: number;
}

const MS = [0, 1, 500, 1_000, 2_500, 5_000, 20_000, 61_000, 180_000];
/** How often each kind is drawn; 1 unless given. */
const WEIGHTS: Partial<Record<Kind, number>> = {
  pass: 14,
  late: 2,
  away: 2,
  claim: 16,
  enter: 3,
  succeed: 5,
  fail: 5,
  trigger: 2,
  resume: 3,
  redrive: 3,
};
const KINDS: readonly Kind[] = ['pass', 'late', 'away', 'claim', ...ATTEMPT_KINDS, ...CALL_KINDS];
/** Each kind as often as it weighs. */
export const DRAWN: readonly Kind[] = KINDS.flatMap((kind) => Array(WEIGHTS[kind] ?? 1).fill(kind));

export const commands = (maxLength: number): fc.Arbitrary<Command[]> =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...DRAWN),
      pick: fc.nat(1_000),
      ms: fc.constantFrom(...MS),
    }),
    { maxLength, size: 'max' },
  );

type MakeSchedule = (nowMs: number) => Schedule;
export const SCHEDULES: readonly MakeSchedule[] = [
  (nowMs) => once(nowMs),
  (nowMs) => once(nowMs + 5_000),
  () => fixedRate({ every: 10_000 }),
  () => fixedRate({ every: 10_000, limit: 7 }),
  () => fixedRate({ every: 7_000, startDelay: 3_000, jitter: 4_000 }),
  () => fixedRate({ every: 10_000, jitter: 35_000, limit: 20 }),
  (nowMs) => fixedRate({ every: 9_000, endAt: nowMs + 90_000 }),
  () => cron('* * * * *'),
  () => cron('*/20 * * * * *', { limit: 9, jitter: 25_000 }),
  () => fixedDelay({ delay: 5_000 }),
  () => fixedDelay({ delay: 5_000, limit: 3 }),
  () => fixedDelay({ delay: 3_000, after: 'success' }),
  (nowMs) => fixedDelay({ delay: 3_000, after: 'success', endAt: nowMs + 60_000, limit: 6 }),
];

const policiesPart = {
  overlap: fc.constantFrom<Policies['overlap']>(
    'skip',
    'bufferOne',
    'bufferAll',
    'allowAll',
    'cancelOther',
  ),
  catchup: fc.constantFrom<Policies['catchup']>('latest', 'all', 'none'),
  onExhausted: fc.constantFrom<Policies['onExhausted']>('continue', 'continue', 'stop'),
  ttlMs: fc.constantFrom(undefined, undefined, 3_000),
  maxAttempts: fc.constantFrom(1, 2, 3),
  maxCrashes: fc.constantFrom(1, 2, 3),
  catchupWindowMs: fc.constantFrom(0, 30_000, 86_400_000),
};

export const trialOptions: fc.Arbitrary<TrialOptions> = fc
  .record({ schedule: fc.constantFrom(...SCHEDULES), policies: fc.record(policiesPart) })
  .map(({ schedule, policies }) => ({ schedule: schedule(0), policies }));

/** Policies that the command `policies` chooses from. */
const POLICIES: readonly Partial<Policies>[] = [
  { overlap: 'skip' },
  { overlap: 'bufferOne' },
  { overlap: 'bufferAll' },
  { overlap: 'allowAll' },
  { overlap: 'cancelOther' },
  { catchup: 'all' },
  { catchup: 'none' },
  { catchup: 'latest' },
  { onExhausted: 'stop' },
  { onExhausted: 'continue' },
  { ttlMs: 1_000 },
  { ttlMs: undefined },
  { maxAttempts: 3, maxCrashes: 3 },
];

const pickOf = <T>(from: readonly T[], pick: number): T | undefined => from[pick % from.length];

/**
 * Does what the command says, to the task as it is; where that finds nothing to do it, or must
 * refuse, so be it.
 */
export function obey(trial: Trial, command: Command): void {
  const { kind, pick, ms } = command;
  switch (kind) {
    case 'pass':
      trial.pass(ms);
      break;
    case 'late':
      trial.lateTo(trial.nowMs + ms);
      break;
    case 'away':
      trial.awayTo(trial.nowMs + ms);
      break;
    case 'claim': {
      const ready = pickOf(trial.in('ready'), pick);
      if (ready !== undefined) trial.claim(ready);
      break;
    }
    default:
      if ((ATTEMPT_KINDS as readonly string[]).includes(kind)) {
        obeyAttempt(trial, kind as AttemptKind, pick);
      } else obeyCall(trial, command);
  }
  checkAccounts(trial.view, trial.records);
}

function obeyAttempt(trial: Trial, kind: AttemptKind, pick: number): void {
  const running = pickOf(trial.in('running', 'cancel-requested'), pick);
  if (running === undefined) return;
  if (kind === 'stale') {
    expectStale(trial, running);
    return;
  }
  trial.report(reportOf(trial, kind), running);
}

/** 5: under a token that is not its own nobody changes anything. */
function expectStale(trial: Trial, running: OccurrenceRecord): void {
  const before = trial.view;
  const report = reportOf(trial, 'succeed');
  expect(() => trial.report(report, running, running.token - 1)).toThrow(LeaseLostError);
  expect(trial.view).toBe(before);
}

function reportOf({ nowMs }: Trial, kind: Exclude<AttemptKind, 'stale'>): Report {
  const failed = { kind: 'failed', atMs: nowMs, error: ERROR, random01: 0 } as const;
  const plain = { timedOut: false, unrecoverable: false, retryAfterMs: undefined };
  const lost = { error: ERROR, random01: 0 };
  switch (kind) {
    case 'enter':
      return { kind: 'entered', atMs: nowMs, workerId: 'w1' };
    case 'renew':
      return { kind: 'renew', leaseUntil: nowMs + 10_000 };
    case 'progress':
      return { kind: 'progress', leaseUntil: nowMs + 10_000, progress: ERROR };
    case 'succeed':
      return { kind: 'succeeded', atMs: nowMs, result: undefined };
    case 'fail':
      return { ...failed, ...plain };
    case 'unrecoverable':
      return { ...failed, ...plain, unrecoverable: true };
    case 'retryAfter':
      return { ...failed, ...plain, retryAfterMs: 0 };
    case 'timeOut':
      return { ...failed, ...plain, timedOut: true };
    case 'return':
      return { kind: 'returned' };
    case 'displace':
      return { kind: 'displaced' };
    case 'release':
      return { kind: 'released' };
    case 'suspect':
      return { kind: 'suspected', error: ERROR };
    case 'orphan':
      return { kind: 'orphaned', ...lost };
    case 'crash':
      return { kind: 'crashed', leaseExpired: false, ...lost };
    case 'expire':
      return { kind: 'crashed', leaseExpired: true, ...lost };
    default:
      return kind satisfies never;
  }
}

function obeyCall(trial: Trial, { kind, pick }: Command): void {
  const before = trial.view;
  const ended = trial.task.state === 'completed' || trial.task.state === 'cancelled';
  try {
    call(trial, kind, pick);
  } catch (error) {
    // A task that has ended takes no more calls; and nothing of what was refused stays.
    if (!ended || !(error instanceof TaskEndedError)) throw error;
    expect(trial.view).toBe(before);
  }
}

function call(trial: Trial, kind: Kind, pick: number): void {
  switch (kind) {
    case 'pause':
      trial.pause();
      return;
    case 'resume':
      trial.resume();
      return;
    case 'cancel':
      // Rarely: it ends the walk.
      if (pick % 10 === 0) trial.cancel();
      return;
    case 'trigger':
      trial.trigger();
      return;
    case 'cancelOccurrence': {
      const occurrence = pickOf(trial.live, pick);
      if (occurrence !== undefined) trial.cancelOccurrence(occurrence);
      return;
    }
    case 'redrive':
      redrive(trial, pick);
      return;
    case 'policies':
      trial.setPolicies(pickOf(POLICIES, pick) as Partial<Policies>);
      return;
    case 'schedule':
      trial.update({ schedule: (pickOf(SCHEDULES, pick) as MakeSchedule)(trial.nowMs) });
      return;
    case 'version':
      trial.update({ handlerVersion: pick });
      return;
    case 'delete':
      if (trial.live.length === 0 && trial.task.endedAt !== undefined) trial.delete();
      return;
    default:
      throw new Error(`nobody calls ${kind}`);
  }
}

function redrive(trial: Trial, pick: number): void {
  const died = [...trial.records.values()].filter(
    ({ state }) => state === 'dead' || state === 'quarantined',
  );
  const dead = pickOf(died, pick);
  if (dead === undefined) return;
  const count = trial.records.size;
  trial.redrive(dead);
  expect(trial.records.size).toBe(dead.redrivenAs === undefined ? count + 1 : count);
}

/** Rounds in which all that is held is let go and all that runs succeeds. */
const ROUNDS = 12;

/**
 * Whatever happened before, nothing is lost: resumed, and with handlers that succeed, everything
 * that was due ends, and what is left is due later.
 */
export function settle(trial: Trial): void {
  if (trial.task.state === 'paused') trial.resume();
  for (let round = 0; round < ROUNDS; round++) {
    trial.pass(61_000);
    for (;;) {
      const [busy] = trial.in('running', 'cancel-requested');
      const [ready] = trial.in('ready');
      if (busy !== undefined) trial.succeed(busy);
      else if (ready !== undefined) trial.claim(ready);
      else break;
      trial.pass(0);
    }
    const overdue = trial.live.filter(({ dueAt }) => dueAt <= trial.nowMs);
    if (overdue.length > 0) expect(overdue).toEqual([]);
  }
  const ended = [...trial.records.values()].filter(({ state }) => isTerminal(state));
  expect(ended.length + trial.live.length).toBe(trial.records.size);
}
