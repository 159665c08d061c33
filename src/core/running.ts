/** Attempts: claim, entry, progress, and every way to end. Guarded by the fencing token. */
import { ttlPassed } from './advance.js';
import { assert, unreachable } from './assert.js';
import type { Draft, OccurrencePatch } from './draft.js';
import { afterEnd, end, isHeld, isRunning, releaseWaiting } from './ending.js';
import { LeaseLostError } from './errors.js';
import type { AttemptEvent, ClaimEvent } from './event.js';
import type { AttemptOutcome, OccurrenceRecord, TaskView } from './model.js';
import { backoffMs } from './retry.js';

/** Displacements after which an occurrence gets a thread for itself. */
const DISPLACEMENTS_MAX = 3;
/** Process deaths in a row after which an occurrence runs alone. */
const DEATHS_MAX = 2;

/** ready → running under a new token; missed instead when its ttl has passed meanwhile. */
export function claim(draft: Draft, event: ClaimEvent): void {
  const occurrence = draft.find(event.occurrenceId);
  if (occurrence === undefined || occurrence.state !== 'ready') return;
  if (isHeld(draft.task, occurrence) || runsBesides(draft)) return;
  if (ttlPassed(draft, occurrence)) {
    end(draft, occurrence, 'missed', { reason: 'ttl', count: 1 });
    return;
  }
  assert(event.token > occurrence.token, 'fencing tokens only grow');
  const next = draft.move(occurrence, 'running');
  next.token = event.token;
  next.leaseUntil = event.leaseUntil;
  next.handlerVersion = event.handlerVersion;
  next.attempt++;
  next.workerId = undefined;
  next.startedAt = undefined;
  next.outcome = undefined;
}

/**
 * Another of the task runs, and none may run besides: one that is ready is claimed when that one has
 * ended.
 */
export function runsBesides({ task, live }: TaskView): boolean {
  if (task.policies.overlap === 'allowAll') return false;
  for (const other of live) if (isRunning(other)) return true;
  return false;
}

/** @throws LeaseLostError when the token is not that of the running attempt */
export function attemptEvent(draft: Draft, event: AttemptEvent): void {
  const occurrence = draft.find(event.occurrenceId);
  if (occurrence === undefined || !isRunning(occurrence) || occurrence.token !== event.token) {
    throw new LeaseLostError(
      `token ${event.token} of occurrence ${event.occurrenceId} is not the running attempt's`,
    );
  }
  switch (event.kind) {
    case 'entered':
      entered(draft, occurrence, event.atMs, event.workerId);
      return;
    case 'renew':
      draft.move(occurrence, occurrence.state, { leaseUntil: event.leaseUntil });
      return;
    case 'progress': {
      const { leaseUntil, progress } = event;
      const next = draft.move(occurrence, occurrence.state, { leaseUntil, progress });
      draft.tell('progress', next, { progress });
      return;
    }
    case 'succeeded':
      succeeded(draft, enteredFirst(draft, occurrence, event), event);
      return;
    case 'failed':
      failed(draft, enteredFirst(draft, occurrence, event), event);
      return;
    case 'returned':
      returned(draft, occurrence);
      return;
    case 'displaced':
    case 'released':
    case 'suspected':
      uncharged(draft, occurrence, event);
      return;
    case 'orphaned':
      orphaned(draft, occurrence, event);
      return;
    case 'crashed':
      crashed(draft, occurrence, event);
      return;
    default:
      unreachable(event);
  }
}

function entered(
  draft: Draft,
  occurrence: OccurrenceRecord,
  atMs: number,
  workerId: string | undefined,
): OccurrenceRecord {
  const next = draft.move(occurrence, occurrence.state);
  next.startedAt = atMs;
  next.workerId = workerId;
  if (draft.isTold('started')) {
    draft.tell('started', next, { latenessMs: Math.max(0, atMs - next.dueAt), workerId });
  }
  return next;
}

/** The attempt as it stood when it ended: its entry may be told only with its end. */
function enteredFirst(
  draft: Draft,
  occurrence: OccurrenceRecord,
  { enteredAtMs, workerId }: Extract<AttemptEvent, { kind: 'succeeded' | 'failed' }>,
): OccurrenceRecord {
  return enteredAtMs === undefined ? occurrence : entered(draft, occurrence, enteredAtMs, workerId);
}

function succeeded(
  draft: Draft,
  occurrence: OccurrenceRecord,
  { atMs, result }: Extract<AttemptEvent, { kind: 'succeeded' }>,
): void {
  const ended = draft.move(occurrence, 'succeeded');
  ended.result = result;
  ended.outcome = 'succeeded';
  ended.error = undefined;
  ended.endedAt = atMs;
  ended.deaths = 0;
  afterEnd(draft, ended, 'succeeded');
}

/** running → cancel-requested: the handler's signal is aborted; finish first wins. */
export function requestCancel(
  draft: Draft,
  occurrence: OccurrenceRecord,
  reason: string | undefined,
): void {
  const next = draft.move(occurrence, 'cancel-requested', {
    cancelRequestedAt: draft.facts.nowMs,
    reason: reason ?? 'cancelled',
  });
  draft.effect({
    kind: 'abort',
    occurrenceId: next.id,
    token: next.token,
    why: 'cancelled',
    message: `cancelled: ${next.reason}`,
  });
}

/** True when a request for cancellation decides how this attempt ends. */
function endedByCancel(
  draft: Draft,
  occurrence: OccurrenceRecord,
  error: Uint8Array | undefined,
  endedAt: number,
): boolean {
  if (occurrence.state !== 'cancel-requested') return false;
  end(draft, occurrence, 'cancelled', { outcome: 'cancelled', error, endedAt });
  return true;
}

function failed(
  draft: Draft,
  occurrence: OccurrenceRecord,
  event: Extract<AttemptEvent, { kind: 'failed' }>,
): void {
  const { error, atMs } = event;
  if (endedByCancel(draft, occurrence, error, atMs)) return;
  const { policies } = draft.task;
  const failures = occurrence.failures + 1;
  const outcome: AttemptOutcome = event.timedOut ? 'timedOut' : 'failed';
  if (event.unrecoverable || failures >= policies.maxAttempts) {
    end(draft, occurrence, 'dead', { failures, error, outcome, endedAt: atMs, deaths: 0 });
    return;
  }
  const waitMs = event.retryAfterMs ?? backoffMs(policies, failures, event.random01);
  retryAt(draft, occurrence, { failures, error, outcome, deaths: 0 }, atMs, atMs + waitMs);
}

function retryAt(
  draft: Draft,
  occurrence: OccurrenceRecord,
  patch: OccurrencePatch & { outcome: AttemptOutcome; error: Uint8Array },
  endedAt: number,
  dueAt: number,
): void {
  draft.keepAttempt(occurrence, patch.outcome, patch.error, endedAt);
  const next = draft.move(occurrence, 'retry-wait', { ...patch, dueAt, leaseUntil: undefined });
  draft.tell('retrying', next, { error: patch.error, retryAt: dueAt });
  // A pause holds the retry, but not what was triggered during it and waited behind this attempt.
  releaseWaiting(draft);
}

/** running → ready: it will be claimed again. */
function giveBack(draft: Draft, occurrence: OccurrenceRecord, patch: OccurrencePatch): void {
  draft.move(occurrence, 'ready', patch).leaseUntil = undefined;
  releaseWaiting(draft);
}

/** Back to ready, as if the claim had not been; only the token stays spent. */
function returned(draft: Draft, occurrence: OccurrenceRecord): void {
  const attempt = occurrence.attempt - 1;
  if (occurrence.state === 'cancel-requested') end(draft, occurrence, 'cancelled', { attempt });
  else giveBack(draft, occurrence, { attempt });
}

function uncharged(
  draft: Draft,
  occurrence: OccurrenceRecord,
  event: Extract<AttemptEvent, { kind: 'displaced' | 'released' | 'suspected' }>,
): void {
  const { nowMs } = draft.facts;
  const error = event.kind === 'suspected' ? event.error : occurrence.error;
  if (endedByCancel(draft, occurrence, error, nowMs)) return;
  const outcome: AttemptOutcome = event.kind === 'suspected' ? 'crashed' : 'released';
  draft.keepAttempt(occurrence, outcome, error, nowMs);
  const displacements = occurrence.displacements + (event.kind === 'displaced' ? 1 : 0);
  giveBack(draft, occurrence, {
    outcome,
    error,
    displacements,
    catchup: countedApart(occurrence),
    alone: occurrence.alone || event.kind === 'suspected' || displacements >= DISPLACEMENTS_MAX,
  });
}

/**
 * It started in time once, so that the start to come says nothing about lateness. Triggered ones
 * never do.
 */
function countedApart({ kind, catchup }: OccurrenceRecord): boolean {
  return catchup || kind !== 'trigger';
}

/** The first deaths of a process charge nobody: a deployment must never quarantine the innocent. */
function orphaned(
  draft: Draft,
  occurrence: OccurrenceRecord,
  event: Extract<AttemptEvent, { kind: 'orphaned' }>,
): void {
  const { nowMs } = draft.facts;
  if (endedByCancel(draft, occurrence, event.error, nowMs)) return;
  const deaths = occurrence.deaths + 1;
  if (deaths > DEATHS_MAX && occurrence.alone) {
    crashed(draft, occurrence, { ...event, kind: 'crashed', leaseExpired: false });
    return;
  }
  draft.keepAttempt(occurrence, 'crashed', event.error, nowMs);
  giveBack(draft, occurrence, {
    outcome: 'crashed',
    error: event.error,
    deaths,
    catchup: countedApart(occurrence),
    alone: occurrence.alone || deaths >= DEATHS_MAX,
  });
}

function crashed(
  draft: Draft,
  occurrence: OccurrenceRecord,
  event: Extract<AttemptEvent, { kind: 'crashed' }>,
): void {
  const { nowMs } = draft.facts;
  const { error, leaseExpired, random01 } = event;
  if (leaseExpired) draft.tell('leaseExpired', occurrence, { workerId: occurrence.workerId });
  if (endedByCancel(draft, occurrence, error, nowMs)) return;
  const { policies } = draft.task;
  const crashes = occurrence.crashes + 1;
  const outcome: AttemptOutcome = leaseExpired ? 'leaseExpired' : 'crashed';
  if (crashes >= policies.maxCrashes) {
    end(draft, occurrence, 'quarantined', { crashes, error, outcome, endedAt: nowMs });
    return;
  }
  const dueAt = nowMs + backoffMs(policies, crashes, random01);
  retryAt(draft, occurrence, { crashes, error, outcome }, nowMs, dueAt);
}
