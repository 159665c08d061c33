/** The invariants of the core (design, "Invariants"; numbers as in decide.ts), checked on every decision of a test. */
import { expect } from 'vitest';
import type { Decision } from '../../src/core/draft.js';
import {
  isTerminal,
  type OccurrenceRecord,
  occurrenceId,
  type TaskRecord,
  type TaskView,
} from '../../src/core/model.js';
import { nextNominal } from '../../src/core/schedule.js';

interface Step {
  readonly before: TaskView | undefined;
  /** All records before the decision. */
  readonly records: ReadonlyMap<string, OccurrenceRecord>;
  readonly decision: Decision;
  readonly nowMs: number;
}

const END_EVENTS: Readonly<Record<string, string>> = {
  succeeded: 'succeeded',
  dead: 'deadLettered',
  quarantined: 'quarantined',
  cancelled: 'cancelled',
  skipped: 'skipped',
  missed: 'missed',
};

const STARTED = ['ready', 'running', 'cancel-requested', 'retry-wait'];

/** Throws when the decision breaks an invariant. Freezes what it gave, so that a later one cannot change it unseen. */
export function checkDecision(step: Step): void {
  const { decision, before } = step;
  checkTask(step);
  for (const record of decision.changed) checkRecord(step, record);
  checkView(step);
  checkEvents(step);
  checkWaiting(decision.view);
  checkEndOfTask(decision.view, before);
  freeze(decision);
}

/** One revision a decision; what counts, counts. */
function checkTask({ before, decision, records }: Step): void {
  const { task } = decision.view;
  const grown = decision.taskChanged ? 1 : 0;
  expect(task.revision).toBe((before?.task.revision ?? 0) + grown);
  if (!decision.taskChanged) expect(task).toBe(before?.task);
  const created = decision.changed.filter(({ id }) => !records.has(id));
  const extras = created.filter(({ kind }) => kind === 'trigger' || kind === 'redrive').length;
  expect(task.extras - (before?.task.extras ?? 0)).toBe(extras);
  if (created.length > 0) expect(task.lastOccurrenceId).toBe(created.at(-1)?.id);
  const generations = task.generation - (before?.task.generation ?? 0);
  if (before !== undefined) expect([0, 1]).toContain(generations);
  if (generations === 0 && before !== undefined) {
    expect(task.taken).toBeGreaterThanOrEqual(before.task.taken);
    expect(task.cursorAt ?? 0).toBeGreaterThanOrEqual(before.task.cursorAt ?? 0);
  }
  const limit = 'limit' in task.schedule ? task.schedule.limit : undefined;
  expect(task.taken).toBeLessThanOrEqual(limit ?? Number.POSITIVE_INFINITY);
  if (before !== undefined && (before.task.state === 'cancelled' || task.state === 'cancelled')) {
    // Cancelled for good.
    if (before.task.state === 'cancelled') expect(task.state).toBe('cancelled');
  }
}

function checkRecord({ before, records, decision, nowMs }: Step, record: OccurrenceRecord): void {
  const old = records.get(record.id);
  const { task } = decision.view;
  expect(decision.changed.filter(({ id }) => id === record.id)).toEqual([record]);
  expect(record.revision).toBe((old?.revision ?? 0) + 1);
  // 2
  const { generation, kind, ordinal } = record;
  expect(record.id).toBe(occurrenceId(task.id, generation, kind, ordinal));
  if (old === undefined) expect(generation).toBe(task.generation);
  // 7
  if (old !== undefined && isTerminal(old.state)) {
    const { redrivenAs, revision } = record;
    expect(record).toEqual({ ...old, redrivenAs, revision });
    expect(old.redrivenAs).toBeUndefined();
  }
  // 5
  expect(record.token).toBeGreaterThanOrEqual(old?.token ?? 0);
  if (record.state === 'running' && old?.state === 'ready') {
    expect(record.token).toBeGreaterThan(old.token);
    checkStart(before as TaskView, old);
  }
  // 8
  if (record.state === 'ready' && old?.state !== 'ready') {
    expect(record.dueAt).toBeLessThanOrEqual(nowMs);
  }
  // 10
  const runs = record.state === 'running' || record.state === 'cancel-requested';
  expect(record.leaseUntil !== undefined).toBe(runs);
  // 12
  if (record.state === 'skipped' || record.state === 'missed') {
    expect(record.reason).toMatch(/^(overlap|backlogFull|ttl|catchup(None|Latest|Window))$/);
    expect(record.count).toBeGreaterThanOrEqual(1);
    expect(record.untilAt).toBeGreaterThanOrEqual(record.nominalAt);
  }
  expect(record.endedAt !== undefined).toBe(isTerminal(record.state));
  // 16; the policies may have become stricter since, so only what this decision added
  if (record.failures > (old?.failures ?? 0) && record.state === 'retry-wait') {
    expect(record.failures).toBeLessThan(task.policies.maxAttempts);
  }
  if (record.crashes > (old?.crashes ?? 0) && record.state === 'retry-wait') {
    expect(record.crashes).toBeLessThan(task.policies.maxCrashes);
  }
}

/** 11, and: only `allowAll` lets two of a task run at once. */
function checkStart({ task, live }: TaskView, starting: OccurrenceRecord): void {
  expect(['active', 'paused']).toContain(task.state);
  if (task.state === 'paused') expect(starting.kind).toBe('trigger');
  if (task.policies.overlap === 'allowAll') return;
  expect(live.filter(({ state }) => state === 'running' || state === 'cancel-requested')).toEqual(
    [],
  );
}

/** The view holds what lives, once each, and at most one successor. */
function checkView({ before, records, decision }: Step): void {
  const { task, live } = decision.view;
  const all = new Map((before?.live ?? []).map((record) => [record.id, record]));
  for (const record of decision.changed) all.set(record.id, record);
  const expected = [...all.values()].filter(({ state }) => !isTerminal(state));
  expect(live.length).toBe(expected.length);
  const shown = new Set(live);
  expect(expected.every((record) => shown.has(record))).toBe(true);
  expect(live.filter(({ kind }) => kind === 'sequence').length).toBeLessThanOrEqual(1);
  const planned = live.filter(
    ({ kind, state, waiting }) => kind === 'nominal' && state === 'scheduled' && !waiting,
  );
  expect(planned.length).toBeLessThanOrEqual(1);
  if (task.state === 'completed') expect(live).toEqual([]);
  if (task.state === 'cancelled') {
    expect(live.every(({ state }) => state === 'cancel-requested')).toBe(true);
  }
  for (const attempt of decision.attempts) {
    expect(all.get(attempt.occurrenceId) ?? records.get(attempt.occurrenceId)).toBeDefined();
  }
}

/** Each end is told once, as what it is; only what an update dropped goes untold. */
function checkEvents({ records, decision }: Step): void {
  const ends = Object.values(END_EVENTS);
  const told = decision.effects.flatMap((effect) =>
    effect.kind === 'tell' && ends.includes(effect.event.type)
      ? [`${effect.event.occurrenceId} ${effect.event.type}`]
      : [],
  );
  const ended = decision.changed.filter(
    ({ id, state, reason }) =>
      isTerminal(state) &&
      !isTerminal(records.get(id)?.state ?? 'ready') &&
      reason !== 'superseded',
  );
  expect(told.sort()).toEqual(ended.map(({ id, state }) => `${id} ${END_EVENTS[state]}`).sort());
}

/** Whoever waits has a reason to: another that was let through, or a pause. */
function checkWaiting({ task, live }: TaskView): void {
  const waits = live.filter(({ waiting }) => waiting);
  expect(waits.filter(({ state }) => state !== 'scheduled')).toEqual([]);
  const isHeld = ({ kind, catchup }: OccurrenceRecord) =>
    task.state === 'paused' && !(kind === 'trigger' && catchup);
  if (!waits.every(isHeld)) {
    // What a pause holds back is no reason for what was triggered during it.
    const reasons = live.filter((other) => STARTED.includes(other.state) && !isHeldBack(other));
    expect(reasons).not.toEqual([]);
  }
  function isHeldBack(other: OccurrenceRecord): boolean {
    return isHeld(other) && (other.state === 'ready' || other.state === 'retry-wait');
  }
  const bounded = waits.filter(({ kind }) => kind !== 'redrive');
  expect(bounded.length).toBeLessThanOrEqual(1_000);
}

/** A task has ended exactly when nothing of it lives and nothing can come. */
function checkEndOfTask({ task, live }: TaskView, before: TaskView | undefined): void {
  const ended = task.state === 'completed' || task.state === 'cancelled';
  expect(task.endedAt !== undefined).toBe(ended);
  if (!ended) {
    if (live.length === 0) expect(canBeRedriven(task)).toBe(true);
    return;
  }
  expect(task.endReason).toBeDefined();
  if (task.state === 'completed' && before?.task.state !== 'completed') {
    expect(canComeByItself(task)).toBe(false);
  }
}

/** A fixedDelay after success, stuck, that has a next run once it is redriven. */
function canBeRedriven({ schedule, taken }: TaskRecord): boolean {
  if (schedule.kind !== 'fixedDelay' || schedule.after !== 'success') return false;
  return taken < (schedule.limit ?? Number.POSITIVE_INFINITY);
}

function canComeByItself(task: TaskRecord): boolean {
  const { schedule, taken, cursorAt, anchorAt, endReason } = task;
  if (schedule.kind === 'once' || endReason === 'exhausted') return false;
  if (taken >= (schedule.limit ?? Number.POSITIVE_INFINITY)) return false;
  if (schedule.kind === 'fixedDelay') return schedule.endAt === undefined;
  return cursorAt === undefined || nextNominal(schedule, anchorAt, cursorAt) !== undefined;
}

/**
 * 12: each nominal time of the newest generation, up to the cursor, belongs to exactly one record, and the counts
 * agree. Walks all of them: for tests whose schedules have some hundreds.
 */
export function checkAccounts(
  { task }: TaskView,
  records: ReadonlyMap<string, OccurrenceRecord>,
): void {
  const { schedule, anchorAt, cursorAt, taken, generation } = task;
  if (schedule.kind === 'once' || cursorAt === undefined) return;
  const mine = [...records.values()].filter((record) => record.generation === generation);
  if (schedule.kind === 'fixedDelay') {
    const ordinals = mine.filter(({ kind }) => kind === 'sequence').map(({ ordinal }) => ordinal);
    expect(ordinals).toEqual(Array.from({ length: taken }, (_, i) => i + 1));
    return;
  }
  const spans = mine
    .filter(({ kind }) => kind === 'nominal')
    .map(({ nominalAt, untilAt, count }) => ({ from: nominalAt, to: untilAt ?? nominalAt, count }))
    .sort((a, b) => a.from - b.from);
  expect(spans.reduce((sum, { count }) => sum + (count ?? 1), 0)).toBe(taken);
  let nextAt: number | undefined = spans[0]?.from;
  for (const { from, to, count = 1 } of spans) {
    expect(from).toBe(nextAt);
    let at = from;
    for (let i = 1; i < count; i++) at = nextNominal(schedule, anchorAt, at) as number;
    expect(at).toBe(to);
    nextAt = nextNominal(schedule, anchorAt, at);
  }
  expect(spans.at(-1)?.to).toBe(cursorAt);
}

function freeze({ view, changed }: Decision): void {
  Object.freeze(view.task);
  Object.freeze(view.live);
  for (const record of view.live) Object.freeze(record);
  for (const record of changed) Object.freeze(record);
}
