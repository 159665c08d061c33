/**
 * The judge. It knows what callers asked and were told, what handlers entered, and what lies in the store; it imports
 * nothing of the code it judges. Violations begin with the number of the invariant:
 *
 *  1 an acknowledged create survives, each due occurrence ends     9 nothing inserted while a window is read is lost
 *  2 one occurrence for each (task, generation, nominal)          10 running exactly when a lease exists
 *  3 one task for each (tenant, key) in its window                11 a paused task never starts by itself
 *  4 one unexpired lease, one accepted completion                 12 each nominal time is run, skipped or missed
 *  5 tokens only grow, a stale one changes nothing                13 one bad record never blocks others
 *  6 no write under an old epoch                                  14 each tenant gets its share
 *  7 cancelled never starts, terminal states absorb               15 counters equal a recount
 *  8 nothing starts before its due time                           16 failures ≤ maxAttempts, crashes ≤ maxCrashes
 */
import { Attempts, type Entry } from './attempts.js';
import { Fairness } from './fairness.js';
import { Promises } from './promises.js';
import {
  isOver,
  isRunning,
  type RawCounts,
  type RawOccurrence,
  type RawReader,
  type RawTask,
  type RawUnit,
} from './raw.js';
import { scheduleFaults } from './schedules.js';
import {
  apply,
  differences,
  holds,
  isSame,
  readAll,
  Shadow,
  type TaskShadow,
  textOf,
} from './shadow.js';

export interface OracleOptions {
  readonly wallMs: () => number;
  readonly slots: number;
  /** Told each change of a state, for the report. */
  readonly moved: (from: string, to: string, anew: boolean) => void;
}

export interface RunFacts {
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly fencingToken: number;
  readonly tenant: string;
  readonly handler: string;
  readonly dueAt: number;
}

const TWO_32 = 2 ** 32;

export class Oracle {
  readonly violations: string[] = [];
  readonly shadow = new Shadow();
  readonly attempts = new Attempts();
  readonly promises: Promises;
  readonly fairness: Fairness;
  readonly #options: OracleOptions;
  #life = 0;
  #epoch = 0;
  #reader: RawReader | undefined;
  readonly #touched = new Set<string>();
  /** When each commit was given, by the wall clock, and after how many jumps back of it. */
  readonly #given = new Map<number, { atMs: number; backs: number }>();
  #backs = 0;
  /** Claims and, of each, after how many jumps back it was decided: one set back meanwhile cannot be held. */
  readonly #claims = new Map<number, number>();
  readonly #maxPolicies = new Map<string, { attempts: number; crashes: number }>();

  constructor(options: OracleOptions) {
    this.#options = options;
    this.promises = new Promises((text) => this.fault(text));
    this.fairness = new Fairness(options.slots, options.wallMs, (text) => this.fault(text));
  }

  fault(text: string): void {
    if (this.violations.length < 50) this.violations.push(text);
  }

  // --- the store -------------------------------------------------------------------------------------

  async opened(life: number, epoch: number, reader: RawReader): Promise<void> {
    this.attempts.died(this.#life);
    this.#life = life;
    if (epoch <= this.#epoch) this.fault(`6 opened with epoch ${epoch} after ${this.#epoch}`);
    this.#epoch = epoch;
    this.#reader = reader;
    this.#touched.clear();
    for (const wrong of await this.shadow.reopened(reader))
      this.fault(`1 after reopening: ${wrong}`);
    this.promises.reopened(this.shadow.visible);
    this.fairness.reopened(this.shadow.visible);
    for (const id of this.promises.acknowledged) {
      if (!this.shadow.visible.has(id)) this.fault(`1 the acknowledged task ${id} is gone`);
    }
  }

  committing(commit: number, units: readonly RawUnit[]): void {
    this.shadow.committing(commit, units);
    this.#given.set(commit, { atMs: this.#options.wallMs(), backs: this.#backs });
  }

  visible(commit: number, refused: ReadonlyMap<number, string>): void {
    const units = this.shadow.unitsOf(commit);
    const accepted: RawUnit[] = [];
    const { visible } = this.shadow;
    const given = this.#given.get(commit) ?? { atMs: Number.POSITIVE_INFINITY, backs: -1 };
    this.fairness.before();
    for (const [index, unit] of units.entries()) {
      const reason = refused.get(index);
      const isGuarded = holds(visible, unit);
      if (reason === 'revision' && isGuarded)
        this.fault(`5 refused without a reason: ${unit.taskId}`);
      if (reason !== undefined) continue;
      if (!isGuarded) this.fault(`5 a stale write was accepted: ${unit.taskId}`);
      accepted.push(unit);
      this.#judge(unit, given);
      apply(visible, unit);
      this.#touched.add(unit.taskId);
    }
    this.shadow.becameVisible(commit, accepted);
    this.fairness.after(visible);
    this.#given.delete(commit);
  }

  durable(commit: number): void {
    this.shadow.becameDurable(commit);
  }

  #judge(unit: RawUnit, given: { atMs: number; backs: number }): void {
    const before = this.shadow.visible.get(unit.taskId);
    const task = unit.task?.record ?? before?.task;
    if (unit.task !== undefined) this.#judgeTask(unit.task.record, before?.task, given.atMs);
    if (task === undefined) return;
    for (const { record } of unit.occurrences ?? []) {
      const previous = before?.occurrences.get(record.id);
      this.#judgeMove(task, previous, record, given);
      this.fairness.moved(task, previous, record);
    }
    for (const { occurrenceId, outcome } of unit.attempts ?? []) {
      if (outcome === 'succeeded')
        this.fault(`4 a success of ${occurrenceId} was not its last attempt`);
    }
  }

  #judgeTask(task: RawTask, before: RawTask | undefined, nowMs: number): void {
    const { maxAttempts, maxCrashes } = task.policies;
    const most = this.#maxPolicies.get(task.id) ?? { attempts: 0, crashes: 0 };
    most.attempts = Math.max(most.attempts, maxAttempts);
    most.crashes = Math.max(most.crashes, maxCrashes);
    this.#maxPolicies.set(task.id, most);
    if (before === undefined) this.promises.made(task, this.shadow.visible, nowMs);
    else this.promises.changed(task);
  }

  #judgeMove(
    task: RawTask,
    before: RawOccurrence | undefined,
    record: RawOccurrence,
    given: { atMs: number; backs: number },
  ): void {
    const { id, state, token, dueAt } = record;
    const anew = before !== undefined && before.token !== token;
    this.#options.moved(before?.state ?? 'none', state, anew);
    if (before === undefined) this.promises.madeOccurrence(task, record);
    if (before !== undefined && isOver(before.state)) {
      const linked = before.state === state && record.redrivenAs !== undefined;
      if (!linked) this.fault(`7 ${id} was ${before.state} and became ${state}`);
    }
    if (isRunning(state) !== (record.leaseUntil !== undefined)) {
      this.fault(`10 ${id} is ${state} with the lease ${record.leaseUntil}`);
    }
    const past = this.attempts.past(id);
    if (anew) {
      if (token <= Math.max(past.newestToken, before.token))
        this.fault(`5 the token of ${id} went back`);
      if (Math.floor(token / TWO_32) !== this.#epoch) this.fault(`6 ${id} under an old epoch`);
      if (isRunning(state)) this.#claims.set(token, given.backs);
      if (given.atMs < dueAt && isRunning(state)) this.fault(`8 ${id} was claimed before ${dueAt}`);
    }
    const needsReason = state === 'skipped' || state === 'missed' || state === 'cancelled';
    if (needsReason && !record.reason) this.fault(`12 ${id} is ${state} without a reason`);
    if (isRunning(before?.state ?? '') && !isRunning(state))
      this.#judgeEnd(task, before as RawOccurrence, record);
    this.#judgeCounts(task, before, record);
  }

  #judgeCounts(task: RawTask, before: RawOccurrence | undefined, record: RawOccurrence): void {
    const most = this.#maxPolicies.get(task.id);
    if (most === undefined) return;
    const { id, failures, crashes } = record;
    if (failures > most.attempts)
      this.fault(`16 ${failures} failures of ${id}, allowed ${most.attempts}`);
    if (crashes > most.crashes)
      this.fault(`16 ${crashes} crashes of ${id}, allowed ${most.crashes}`);
    const past = this.attempts.past(id);
    // What a process that died had not stored comes again in the next.
    const lives = 1 + Math.max(0, this.#life - past.firstLife);
    if (past.failedReports > most.attempts * lives + 1) {
      this.fault(
        `16 ${past.failedReports} failures of ${id} were reported, allowed ${most.attempts}`,
      );
    }
    if (past.crashReports > most.crashes * lives) {
      this.fault(`16 ${id} killed its thread ${past.crashReports} times, allowed ${most.crashes}`);
    }
    if (before !== undefined && crashes > before.crashes) {
      const { truth, silent, life } = this.attempts.of(before.token) ?? {};
      const isDeath = life !== this.#life && before.deaths >= 2;
      if (truth !== 'culprit' && silent !== true && !isDeath) {
        this.fault(`16 ${id} was charged with a crash, but its attempt ${truth ?? 'went on'}`);
      }
    }
  }

  /** 4, 5: what became of an attempt is what its worker said, under its own token. */
  #judgeEnd(task: RawTask, before: RawOccurrence, record: RawOccurrence): void {
    const entry = this.attempts.of(before.token);
    if (record.state !== 'succeeded') return;
    if (entry?.truth !== 'succeeded') {
      this.fault(`5 ${record.id} succeeded, but its attempt ${entry?.truth ?? 'never ended'}`);
      return;
    }
    if (entry.aborted === 'timedOut') this.fault(`5 the late end of ${record.id} was accepted`);
    const result = record.result === undefined ? undefined : String(record.result);
    if (entry.result !== result) this.fault(`5 ${record.id} has the result of another attempt`);
    if (entry.life !== this.#life)
      this.fault(`5 ${record.id} of ${task.id} succeeded in another life`);
  }

  // --- the workers -----------------------------------------------------------------------------------

  entered(life: number, run: RunFacts, call: number | undefined): void {
    const { occurrenceId, fencingToken, taskId } = run;
    const known = this.shadow.visible.get(taskId);
    const record = known?.occurrences.get(occurrenceId);
    const past = this.attempts.past(occurrenceId);
    const say = (text: string) => this.fault(`${text}: ${occurrenceId}`);
    if (life !== this.#life) say('6 entered in a dead process');
    if (fencingToken <= past.newestToken) say('5 entered under a token that is not new');
    if (Math.floor(fencingToken / TWO_32) !== this.#epoch) say('6 entered under an old epoch');
    if (known === undefined || record === undefined) say('10 entered without a record');
    else this.#judgeEntry(known, record, run);
    const { inside } = past;
    if (inside !== undefined && !inside.silent) say('4 entered while another attempt is inside');
    this.#judgeTime(run);
    this.promises.entered(run, record, call);
    this.attempts.enter({
      occurrenceId,
      taskId,
      token: fencingToken,
      life,
      inside: true,
      silent: false,
      aborted: undefined,
      truth: undefined,
      result: undefined,
    });
  }

  #judgeEntry({ task }: TaskShadow, record: RawOccurrence, run: RunFacts): void {
    if (!isRunning(record.state) || record.token !== run.fencingToken) {
      this.fault(
        `10 entered ${record.id} under ${run.fencingToken}, but the store says ${textOf(record)}`,
      );
    }
    if (record.dueAt !== run.dueAt) this.fault(`8 ${record.id} was given another due time`);
    if (task.tenant !== run.tenant || task.handler !== run.handler) {
      this.fault(`4 ${record.id} ran as another's`);
    }
  }

  #judgeTime({ occurrenceId, fencingToken, dueAt }: RunFacts): void {
    const now = this.#options.wallMs();
    if (this.#claims.get(fencingToken) !== this.#backs) return;
    // A retry is due by its backoff alone: the clock may have gone back since the first attempt.
    const isFirst = this.attempts.past(occurrenceId).newestToken === 0;
    const askedFor = isFirst ? this.promises.notBefore(occurrenceId) : undefined;
    const notBefore = Math.max(dueAt, askedFor ?? dueAt);
    if (now < notBefore) this.fault(`8 ${occurrenceId} started at ${now}, not before ${notBefore}`);
  }

  /** The wall clock was set back: what was claimed before may enter by the clock that then was. */
  wentBack(): void {
    this.#backs++;
  }

  aborted(token: number, why: string): void {
    const entry = this.attempts.of(token);
    if (entry?.truth === undefined && entry !== undefined) entry.aborted ??= why;
  }

  silent(token: number): void {
    const entry = this.attempts.of(token);
    if (entry !== undefined) entry.silent = true;
  }

  ended(token: number, truth: string, result: Uint8Array | undefined): void {
    this.attempts.end(token, truth, result === undefined ? undefined : String(result));
  }

  // --- after every step ------------------------------------------------------------------------------

  /** What changed, read from the store; and all schedules of it. */
  async checkTouched(): Promise<void> {
    if (this.#reader === undefined || this.#touched.size === 0) return;
    const ids = [...this.#touched];
    this.#touched.clear();
    const views = await this.#reader.views(ids);
    for (const [index, id] of ids.entries()) {
      const known = this.shadow.visible.get(id);
      const view = views[index];
      if ((known === undefined) !== (view === undefined))
        this.fault(`1 task ${id} is not as committed`);
      if (known === undefined || view === undefined) continue;
      if (known.task.revision !== view.task.revision)
        this.fault(`1 task ${id} is not as committed`);
      const live = [...known.occurrences.values()].filter(({ state }) => !isOver(state));
      const agrees =
        live.length === view.live.length &&
        live.every((record) => view.live.some((is) => is.id === record.id && isSame(record, is)));
      if (!agrees) this.fault(`1 what lives of ${id} is not as committed`);
      for (const fault of scheduleFaults(known)) this.fault(`${fault} (task ${id})`);
    }
  }

  /** 15, and that the whole store is what was committed; to be called when nothing is on its way. */
  async checkAll(told: RawCounts | undefined, reader = this.#reader): Promise<void> {
    if (reader === undefined) return;
    const found = await readAll(reader);
    for (const wrong of differences(this.shadow.visible, found)) this.fault(`1 ${wrong}`);
    const counted = recount(found.values());
    const counts = await reader.counts();
    for (const [what, is] of [
      ['the store', counts],
      ['stats', told],
    ] as const) {
      if (is !== undefined && countsText(is) !== countsText(counted)) {
        this.fault(`15 ${what} counts ${countsText(is)}, there are ${countsText(counted)}`);
      }
    }
    const open = [...found.values()].filter(({ task }) => isOpen(task)).length;
    if (counts.openTasks !== open)
      this.fault(`15 ${counts.openTasks} open tasks counted, ${open} there`);
  }

  /** 10: at rest, what the store calls running is what workers hold. */
  checkRunning(holds: (occurrenceId: string) => boolean, held: number): void {
    let running = 0;
    for (const { occurrences } of this.shadow.visible.values()) {
      for (const { id, state } of occurrences.values()) {
        if (!isRunning(state)) continue;
        running++;
        if (!holds(id)) this.fault(`10 ${id} is ${state}, but no worker has it`);
      }
    }
    if (running !== held) this.fault(`10 ${running} are running, ${held} are with workers`);
  }

  /** 1, 9, 12, 13: in the end, everything that was due has ended. */
  checkEnd(nowMs: number): void {
    for (const { task, occurrences } of this.shadow.visible.values()) {
      for (const record of occurrences.values()) {
        if (isOver(record.state) || (record.dueAt > nowMs && record.state === 'scheduled'))
          continue;
        this.fault(
          `1 ${record.id} (${task.handler}, ${task.state}) never ended: ${textOf(record)}`,
        );
      }
    }
  }
}

function isOpen({ state }: RawTask): boolean {
  return state === 'active' || state === 'paused';
}

function recount(tasks: Iterable<TaskShadow>): RawCounts {
  const counts = { pending: 0, ready: 0, running: 0, deadLetters: 0 };
  for (const { occurrences } of tasks) {
    for (const { state, redrivenAs } of occurrences.values()) {
      if (state === 'scheduled' || state === 'retry-wait') counts.pending++;
      else if (state === 'ready') counts.ready++;
      else if (isRunning(state)) counts.running++;
      else if ((state === 'dead' || state === 'quarantined') && redrivenAs === undefined) {
        counts.deadLetters++;
      }
    }
  }
  return counts;
}

function countsText({ pending, ready, running, deadLetters }: RawCounts): string {
  return `${pending} pending, ${ready} ready, ${running} running, ${deadLetters} dead`;
}

export type { Entry };
