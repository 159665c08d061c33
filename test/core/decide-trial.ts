/**
 * One task under `decide`, with a store and an engine of the simplest kind: records in a map, time
 * that a test moves. After every decision the invariants of the core are checked
 * (decide-checks.ts), whatever the test is about.
 */
import { decide } from '../../src/core/decide.js';
import type { Decision } from '../../src/core/draft.js';
import type { TaskEvent, TaskEventType } from '../../src/core/effect.js';
import type { AttemptEvent, CoreEvent, Facts, TaskPatch } from '../../src/core/event.js';
import type {
  AttemptRecord,
  OccurrenceRecord,
  OccurrenceState,
  Policies,
  TaskRecord,
  TaskView,
} from '../../src/core/model.js';
import type { Schedule } from '../../src/core/schedule.js';
import { type TaskStatus, taskStatus } from '../../src/core/status.js';
import { DEFAULT_POLICIES } from '../../src/request.js';
import { checkDecision } from './decide-checks.js';

export const TASK_ID = '0190b5c2-7a3e-7000-8000-000000000001';
export const ERROR = new Uint8Array([1]);
const PAYLOAD = new Uint8Array([7]);

export const POLICIES: Policies = DEFAULT_POLICIES;

export interface TrialOptions {
  readonly schedule: Schedule;
  readonly policies?: Partial<Policies>;
  readonly handlerVersion?: number;
  readonly nowMs?: number;
}

type Unsent<E> = E extends AttemptEvent ? Omit<E, 'occurrenceId' | 'token'> : never;
export type Report = Unsent<AttemptEvent>;

/** Due events that one passage of time may fire before it counts as endless. */
const DUE_MAX = 20_000;

export class Trial {
  nowMs: number;
  awayUntilMs = Number.NEGATIVE_INFINITY;
  latestVersion: number | undefined = 1;
  view!: TaskView;
  /** Every occurrence there ever was, as it stands, in the order of creation. */
  readonly records = new Map<string, OccurrenceRecord>();
  readonly attempts: AttemptRecord[] = [];
  readonly told: TaskEvent[] = [];
  /** Tokens of attempts whose signal was aborted. */
  readonly aborted: number[] = [];
  deleted = false;
  /**
   * Every event in the order heard, those that were refused too; of one instant under the same
   * facts.
   */
  readonly heard: { readonly event: CoreEvent; readonly facts: Facts }[] = [];
  #tokens = 0;

  constructor({ schedule, policies, handlerVersion, nowMs = 0 }: TrialOptions) {
    this.nowMs = nowMs;
    const task = {
      id: TASK_ID,
      tenant: 'acme',
      handler: 'mail',
      handlerVersion,
      payload: PAYLOAD,
      schedule,
      policies: { ...POLICIES, ...policies },
      priority: 5,
      idempotencyKey: undefined,
      definition: undefined,
      createdAt: nowMs,
    };
    this.decide({ kind: 'create', task });
  }

  get task(): TaskRecord {
    return this.view.task;
  }

  get live(): readonly OccurrenceRecord[] {
    return this.view.live;
  }

  get status(): TaskStatus {
    return taskStatus(this.view);
  }

  decide(event: CoreEvent): Decision | undefined {
    const { nowMs } = this;
    const before = event.kind === 'create' ? undefined : this.view;
    const facts = this.#facts();
    this.heard.push({ event, facts });
    const decision = decide(before, event, facts);
    if (decision === undefined) return undefined;
    checkDecision({ before, records: this.records, decision, nowMs });
    this.view = decision.view;
    for (const record of decision.changed) this.records.set(record.id, record);
    this.attempts.push(...decision.attempts);
    for (const effect of decision.effects) {
      if (effect.kind === 'tell') this.told.push(effect.event);
      else this.aborted.push(effect.token);
    }
    this.deleted ||= decision.remove;
    return decision;
  }

  #facts(): Facts {
    const { nowMs, awayUntilMs, latestVersion } = this;
    const last = this.heard.at(-1)?.facts;
    const isSame =
      last?.nowMs === nowMs &&
      last.awayUntilMs === awayUntilMs &&
      last.latestVersion('mail') === latestVersion;
    return isSame ? last : { nowMs, awayUntilMs, latestVersion: () => latestVersion };
  }

  // --- time ------------------------------------------------------------------------------------------

  /** Moves on to `atMs`; what comes due on the way does so at its time. */
  passTo(atMs: number): this {
    for (let fired = 0; fired < DUE_MAX; fired++) {
      const next = this.#nextDue();
      if (next === undefined || next.dueAt > atMs) {
        this.nowMs = Math.max(this.nowMs, atMs);
        return this;
      }
      this.nowMs = Math.max(this.nowMs, next.dueAt);
      this.decide({ kind: 'due', occurrenceId: next.id });
    }
    throw new Error('what comes due never ends');
  }

  pass(ms: number): this {
    return this.passTo(this.nowMs + ms);
  }

  /** Nobody was there until `atMs`: the process was down. What ran when it died is orphaned. */
  awayTo(atMs: number): this {
    this.nowMs = atMs;
    this.awayUntilMs = atMs;
    for (const { id, state, token } of this.live) {
      if (state !== 'running' && state !== 'cancel-requested') continue;
      this.decide({ kind: 'orphaned', occurrenceId: id, token, error: ERROR, random01: 0 });
    }
    return this.passTo(atMs);
  }

  /** Time passes and the engine is too busy to notice: what came due meanwhile is merely late. */
  lateTo(atMs: number): this {
    this.nowMs = atMs;
    return this.passTo(atMs);
  }

  #nextDue(): OccurrenceRecord | undefined {
    const { task, live } = this;
    let next: OccurrenceRecord | undefined;
    for (const occurrence of live) {
      const { state, waiting, kind, dueAt } = occurrence;
      const timed = (state === 'scheduled' || state === 'retry-wait') && !waiting;
      const held = task.state === 'paused' && !(kind === 'trigger' && occurrence.catchup);
      if (timed && !held && (next === undefined || dueAt < next.dueAt)) next = occurrence;
    }
    return next;
  }

  // --- attempts --------------------------------------------------------------------------------------

  in(...states: OccurrenceState[]): OccurrenceRecord[] {
    return this.live.filter(({ state }) => states.includes(state));
  }

  /** The occurrence of this nominal time, count or kind; the newest with it. */
  find(ordinal: number, kind: OccurrenceRecord['kind'] = 'nominal'): OccurrenceRecord {
    const found = [...this.records.values()].filter(
      (record) => record.ordinal === ordinal && record.kind === kind,
    );
    const newest = found.at(-1);
    if (newest === undefined) throw new Error(`there is no ${kind} ${ordinal}`);
    return newest;
  }

  stateOf(ordinal: number, kind: OccurrenceRecord['kind'] = 'nominal'): OccurrenceState {
    return this.find(ordinal, kind).state;
  }

  claim(occurrence = this.in('ready')[0]): OccurrenceRecord {
    if (occurrence === undefined) throw new Error('nothing is ready');
    this.decide({
      kind: 'claim',
      occurrenceId: occurrence.id,
      token: ++this.#tokens,
      leaseUntil: this.nowMs + 10_000,
      handlerVersion: occurrence.handlerVersion ?? 1,
    });
    return this.records.get(occurrence.id) as OccurrenceRecord;
  }

  /** Claims what is ready first, and enters its handler. */
  start(occurrence?: OccurrenceRecord): OccurrenceRecord {
    const claimed = this.claim(occurrence);
    if (claimed.state !== 'running') throw new Error(`the claim left it ${claimed.state}`);
    return this.report({ kind: 'entered', atMs: this.nowMs, workerId: 'w1' }, claimed);
  }

  /** From the attempt that runs. */
  report(
    report: Report,
    occurrence = this.in('running', 'cancel-requested')[0],
    token = occurrence?.token,
  ): OccurrenceRecord {
    if (occurrence === undefined || token === undefined) throw new Error('nothing runs');
    const event = { ...report, occurrenceId: occurrence.id, token } as AttemptEvent;
    this.decide(event);
    return this.records.get(occurrence.id) as OccurrenceRecord;
  }

  succeed(occurrence?: OccurrenceRecord): OccurrenceRecord {
    return this.report({ kind: 'succeeded', atMs: this.nowMs, result: undefined }, occurrence);
  }

  fail(
    given: Partial<Extract<Report, { kind: 'failed' }>> = {},
    occurrence?: OccurrenceRecord,
  ): OccurrenceRecord {
    const plain = { timedOut: false, unrecoverable: false, retryAfterMs: undefined, random01: 0 };
    const report = { kind: 'failed', atMs: this.nowMs, error: ERROR, ...plain, ...given } as const;
    return this.report(report, occurrence);
  }

  /** Fails it for good. */
  die(occurrence?: OccurrenceRecord): OccurrenceRecord {
    return this.fail({ unrecoverable: true }, occurrence);
  }

  crash(leaseExpired = false, occurrence?: OccurrenceRecord): OccurrenceRecord {
    return this.report({ kind: 'crashed', leaseExpired, error: ERROR, random01: 0 }, occurrence);
  }

  orphan(occurrence?: OccurrenceRecord): OccurrenceRecord {
    return this.report({ kind: 'orphaned', error: ERROR, random01: 0 }, occurrence);
  }

  /** Runs what is ready for so long, while time passes. */
  run(ms: number): OccurrenceRecord {
    const started = this.start();
    this.pass(ms);
    return this.succeed(this.records.get(started.id));
  }

  // --- callers ---------------------------------------------------------------------------------------

  update(patch: TaskPatch, expectedVersion?: number): Decision | undefined {
    return this.decide({ kind: 'update', patch, expectedVersion });
  }

  setPolicies(policies: Partial<Policies>): void {
    this.update({ policies: { ...this.task.policies, ...policies } });
  }

  cancel(reason?: string): Decision | undefined {
    return this.decide({ kind: 'cancel', reason });
  }

  cancelOccurrence({ id }: OccurrenceRecord, reason?: string): void {
    this.decide({ kind: 'cancelOccurrence', occurrenceId: id, reason });
  }

  pause(): void {
    this.decide({ kind: 'pause' });
  }

  /** Resumes; what its pause held back comes due at once. */
  resume(): this {
    this.decide({ kind: 'resume' });
    return this.pass(0);
  }

  trigger(): OccurrenceRecord {
    return this.decide({ kind: 'trigger' })?.subject as OccurrenceRecord;
  }

  redrive(occurrence: OccurrenceRecord): OccurrenceRecord | undefined {
    return this.decide({ kind: 'redrive', occurrence })?.subject;
  }

  delete(): void {
    this.decide({ kind: 'delete' });
  }

  // --- looking ---------------------------------------------------------------------------------------

  /**
   * `state@ordinal` of every occurrence in the order of creation; with `×count` where it stands for
   * several.
   */
  get history(): string[] {
    return [...this.records.values()].map(({ kind, ordinal, state, count, reason }) => {
      const mark = { nominal: '', sequence: '#', trigger: 't', redrive: 'r' }[kind];
      const several = count === undefined || count === 1 ? '' : `×${count}`;
      const passed = state === 'skipped' || state === 'missed' ? `(${reason})` : '';
      return `${mark}${ordinal} ${state}${several}${passed}`;
    });
  }

  get types(): TaskEventType[] {
    return this.told.map(({ type }) => type);
  }

  events(type: TaskEventType): TaskEvent[] {
    return this.told.filter((event) => event.type === type);
  }
}
