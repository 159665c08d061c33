/**
 * The invariants of the core (design, "Invariants"; numbers as in decide.ts), checked on every
 * decision of a test. By plain comparisons: they are made some million times.
 */
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
const REASONS = ['overlap', 'backlogFull', 'ttl', 'catchupNone', 'catchupLatest', 'catchupWindow'];
const STARTED = ['ready', 'running', 'cancel-requested', 'retry-wait'];
const WAITING_MAX = 1_000;

function must(holds: boolean, what: string, ...shown: unknown[]): void {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(shown)}`);
}

/**
 * Throws when the decision breaks an invariant. Freezes what it gave, so that a later one cannot
 * change it unseen.
 */
export function checkDecision(step: Step): void {
  const { decision, before } = step;
  checkTask(step);
  const ids = new Set(decision.changed.map(({ id }) => id));
  must(ids.size === decision.changed.length, 'each record is changed once', [...ids]);
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
  const old = before?.task;
  const revision = (old?.revision ?? 0) + (decision.taskChanged ? 1 : 0);
  must(task.revision === revision, 'one revision a decision', task.revision, revision);
  if (!decision.taskChanged) must(task === old, 'what has not changed is the same');
  const created = decision.changed.filter(({ id }) => !records.has(id));
  const extras = created.filter(({ kind }) => kind === 'trigger' || kind === 'redrive').length;
  must(task.extras === (old?.extras ?? 0) + extras, 'extras are counted', task.extras, extras);
  const newestId = created.at(-1)?.id ?? old?.lastOccurrenceId;
  must(task.lastOccurrenceId === newestId, 'the newest is known', newestId);
  const limit = ('limit' in task.schedule ? task.schedule.limit : undefined) ?? Infinity;
  must(task.taken <= limit, 'limit bounds what is taken', task.taken, limit);
  if (old === undefined) return;
  const grown = task.generation - old.generation;
  must(grown === 0 || (grown === 1 && task.version === old.version + 1), 'generations', grown);
  if (grown === 0) {
    must(task.taken >= old.taken, 'what is taken stays so', task.taken);
    must((task.cursorAt ?? 0) >= (old.cursorAt ?? 0), 'the cursor goes on', task.cursorAt);
  }
  if (old.state === 'cancelled') must(task.state === 'cancelled', 'cancelled for good');
}

function checkRecord({ before, records, decision, nowMs }: Step, record: OccurrenceRecord): void {
  const old = records.get(record.id);
  const { task } = decision.view;
  const { state } = record;
  must(record.revision === (old?.revision ?? 0) + 1, 'one revision a decision', record);
  const id = occurrenceId(task.id, record.generation, record.kind, record.ordinal);
  must(record.id === id, '2: an id is its identity', record.id, id);
  if (old === undefined) must(record.generation === task.generation, 'made in its generation');
  if (old !== undefined && isTerminal(old.state)) checkAbsorbed(old, record);
  must(record.token >= (old?.token ?? 0), '5: tokens only grow', record);
  if (state === 'running' && old?.state === 'ready') {
    must(record.token > old.token, '5: a claim takes a new token', record);
    checkStart(before as TaskView, old);
  }
  if (state === 'ready' && old?.state !== 'ready') {
    must(record.dueAt <= nowMs, '8: nothing is ready before it is due', record, nowMs);
  }
  const runs = state === 'running' || state === 'cancel-requested';
  must((record.leaseUntil !== undefined) === runs, '10: running exactly with a lease', record);
  if (state === 'skipped' || state === 'missed') {
    const { reason = '', count = 0, untilAt = -Infinity, nominalAt } = record;
    must(REASONS.includes(reason) && count >= 1 && untilAt >= nominalAt, '12: a reason', record);
  }
  must((record.endedAt !== undefined) === isTerminal(state), 'ended exactly when terminal', record);
  // The policies may have become stricter since: only what this decision added is judged.
  if (state === 'retry-wait') {
    const { maxAttempts, maxCrashes } = task.policies;
    const failed = record.failures > (old?.failures ?? 0);
    const crashed = record.crashes > (old?.crashes ?? 0);
    must(!failed || record.failures < maxAttempts, '16: failures', record);
    must(!crashed || record.crashes < maxCrashes, '16: crashes', record);
  }
}

/** 7: all that may still happen to a terminal record is that it is redriven, once. */
function checkAbsorbed(old: OccurrenceRecord, record: OccurrenceRecord): void {
  for (const field of Object.keys(old) as (keyof OccurrenceRecord)[]) {
    if (field === 'revision' || field === 'redrivenAs') continue;
    must(record[field] === old[field], '7: terminal states absorb', old, record);
  }
  must(old.redrivenAs === undefined, 'redriven once', old, record);
}

/** 11, and: only `allowAll` lets two of a task run at once. */
function checkStart({ task, live }: TaskView, starting: OccurrenceRecord): void {
  must(task.state === 'active' || task.state === 'paused', 'only an open task starts', task);
  if (task.state === 'paused') {
    const { kind, nominalAt } = starting;
    const asked = kind === 'trigger' && nominalAt >= (task.pausedAt ?? Infinity);
    must(asked, '11: paused, only what was triggered since starts', starting, task);
  }
  if (task.policies.overlap === 'allowAll') return;
  const running = live.filter(({ state }) => state === 'running' || state === 'cancel-requested');
  must(running.length === 0, 'one at a time', starting, running);
}

/** The view holds what lives, once each, and at most one successor. */
function checkView({ before, records, decision }: Step): void {
  const { task, live } = decision.view;
  const all = new Map((before?.live ?? []).map((record) => [record.id, record]));
  for (const record of decision.changed) all.set(record.id, record);
  const expected = [...all.values()].filter(({ state }) => !isTerminal(state));
  const shown = new Set(live);
  const same = live.length === expected.length && expected.every((record) => shown.has(record));
  must(same, 'the view holds what lives', live, expected);
  const sequences = live.filter(({ kind }) => kind === 'sequence');
  must(sequences.length <= 1, 'one sequence at a time', sequences);
  const planned = live.filter(
    ({ kind, state, waiting }) => kind === 'nominal' && state === 'scheduled' && !waiting,
  );
  must(planned.length <= 1, 'one successor', planned);
  if (task.state === 'completed') must(live.length === 0, 'completed: nothing lives', live);
  if (task.state === 'cancelled') {
    must(
      live.every(({ state }) => state === 'cancel-requested'),
      'cancelled: nothing waits',
      live,
    );
  }
  for (const { occurrenceId: of } of decision.attempts) {
    must(all.has(of) || records.has(of), 'an attempt belongs to an occurrence', of);
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
  const expected = ended.map(({ id, state }) => `${id} ${END_EVENTS[state]}`);
  must(told.sort().join() === expected.sort().join(), 'each end is told once', told, expected);
}

/** Whoever waits has a reason to: another that was let through, or a pause. */
function checkWaiting({ task, live }: TaskView): void {
  const waits = live.filter(({ waiting }) => waiting);
  if (waits.length === 0) return;
  must(
    waits.every(({ state }) => state === 'scheduled'),
    'only what is scheduled waits',
    waits,
  );
  const isHeld = ({ kind, catchup }: OccurrenceRecord): boolean =>
    task.state === 'paused' && !(kind === 'trigger' && catchup);
  // What a pause holds back is no reason for what was triggered during it.
  const isReason = (other: OccurrenceRecord): boolean =>
    STARTED.includes(other.state) &&
    !(isHeld(other) && (other.state === 'ready' || other.state === 'retry-wait'));
  must(waits.every(isHeld) || live.some(isReason), 'who waits has a reason', live);
  const bounded = waits.filter(({ kind }) => kind !== 'redrive');
  must(bounded.length <= WAITING_MAX, 'what waits is bounded', bounded.length);
}

/** A task has ended exactly when nothing of it lives and nothing can come. */
function checkEndOfTask({ task, live }: TaskView, before: TaskView | undefined): void {
  const ended = task.state === 'completed' || task.state === 'cancelled';
  must((task.endedAt !== undefined) === ended, 'endedAt', task);
  if (!ended) {
    must(live.length > 0 || canBeRedriven(task), 'open: something lives or can come', task);
    return;
  }
  must(task.endReason !== undefined, 'an end has a reason', task);
  if (task.state === 'completed' && before?.task.state !== 'completed') {
    must(!canComeByItself(task), 'completed: nothing can come', task);
  }
}

/** A fixedDelay after success, stuck, that has a next run once it is redriven. */
function canBeRedriven({ schedule, taken, endReason }: TaskRecord): boolean {
  if (schedule.kind !== 'fixedDelay' || schedule.after !== 'success') return false;
  return endReason === undefined && taken < (schedule.limit ?? Infinity);
}

function canComeByItself(task: TaskRecord): boolean {
  const { schedule, taken, cursorAt, anchorAt, endReason } = task;
  if (schedule.kind === 'once' || endReason === 'exhausted') return false;
  if (taken >= (schedule.limit ?? Infinity)) return false;
  if (schedule.kind === 'fixedDelay') return schedule.endAt === undefined;
  return cursorAt === undefined || nextNominal(schedule, anchorAt, cursorAt) !== undefined;
}

/**
 * 12: each nominal time of the newest generation, up to the cursor, belongs to exactly one record,
 * and the counts agree. Walks all of them: for tests whose schedules have some hundreds.
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
    const inOrder = ordinals.every((ordinal, index) => ordinal === index + 1);
    must(inOrder && ordinals.length === taken, '12: sequences without a gap', ordinals, taken);
    return;
  }
  const spans = mine
    .filter(({ kind }) => kind === 'nominal')
    .map(({ nominalAt, untilAt, count }) => ({
      from: nominalAt,
      to: untilAt ?? nominalAt,
      count: count ?? 1,
    }))
    .sort((a, b) => a.from - b.from);
  const total = spans.reduce((sum, { count }) => sum + count, 0);
  must(total === taken, '12: counts agree', spans, taken);
  let nextAt: number | undefined = spans[0]?.from;
  for (const { from, to, count } of spans) {
    must(from === nextAt, '12: no time is left out, none is there twice', spans);
    let at = from;
    for (let i = 1; i < count; i++) at = nextNominal(schedule, anchorAt, at) as number;
    must(at === to, '12: the count is that of the times', spans);
    nextAt = nextNominal(schedule, anchorAt, at);
  }
  must(spans.at(-1)?.to === cursorAt, '12: the newest is the cursor', spans, cursorAt);
}

function freeze({ view, changed }: Decision): void {
  Object.freeze(view.task);
  Object.freeze(view.live);
  for (const record of changed) Object.freeze(record);
}
