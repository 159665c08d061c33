/**
 * The judge of the kill test. It believes the journals of all processes, oldest first, and holds the store to them:
 *
 * 1. every acknowledged task is there and has ended, each key is one task's for ever
 * 2. no handler was entered before its time, and none of a task whose cancellation was acknowledged
 * 3. each attempt that entered is in the store under its token, and is entered once
 * 4. attempts end as their handlers did; those that a kill cut off as crashed, and no others
 * 5. an occurrence is entered again only after a failure, or an attempt that a kill cut off
 * 6. deaths charge nobody, until an occurrence runs alone after two in a row; nobody is quarantined
 * 7. of a schedule with a limit each nominal time ran, was skipped or missed
 */
import type { Attempt, Occurrence, Scheduler, Task } from '../../src/index.js';
import type { FaultsHandlers } from './callers.js';
import type { Entered, Line } from './journal.js';

/** One process that had the store open. */
export interface Process {
  readonly lines: readonly Line[];
  /** Epochs of its sessions; none when the first is greater: it was killed before it opened the store. */
  readonly epochs: readonly [first: number, last: number];
  readonly killed: boolean;
}

interface Verdict {
  readonly faults: string[];
  readonly tally: Record<string, number>;
}

const TWO_32 = 2 ** 32;
/** An occurrence that was running at so many deaths in a row is charged for the next ones. */
const FREE_DEATHS = 2;

export async function audit(
  scheduler: Scheduler<FaultsHandlers>,
  processes: readonly Process[],
): Promise<Verdict> {
  const judge = new Judge(processes);
  const seen = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await scheduler.list({ limit: 500, ...(cursor === undefined ? {} : { cursor }) });
    for (const task of page.items) {
      seen.add(task.id);
      await judge.task(scheduler, task);
    }
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  judge.promises(seen);
  return { faults: judge.faults, tally: judge.tally };
}

class Judge {
  readonly faults: string[] = [];
  readonly tally: Record<string, number> = {
    tasks: 0,
    told: 0,
    attempts: 0,
    crashed: 0,
    crashedAfterEntry: 0,
    repeatedAfterSuccess: 0,
    cancelled: 0,
    keys: 0,
  };
  readonly #processes: readonly Process[];
  readonly #entered = new Map<number, Entered & { readonly process: number }>();
  readonly #left = new Map<number, boolean>();
  readonly #tasksOfKeys = new Map<string, Set<string>>();

  constructor(processes: readonly Process[]) {
    this.#processes = processes;
    const cancelled = new Set<string>();
    for (const [process, { lines }] of processes.entries()) {
      for (const line of lines) {
        if (line.kind === 'cancelled') cancelled.add(line.taskId);
        else if (line.kind === 'left') this.#left.set(line.token, line.ok);
        else if (line.kind === 'entered') {
          if (cancelled.has(line.taskId))
            this.#fault(line.taskId, 'entered after its cancellation');
          this.#enter(line, process);
        }
      }
    }
    this.tally.cancelled = cancelled.size;
  }

  #fault(what: string, is: string): void {
    this.faults.push(`${what}: ${is}`);
  }

  #count(what: string): void {
    this.tally[what] = (this.tally[what] ?? 0) + 1;
  }

  #enter(line: Entered, process: number): void {
    const { token, occurrenceId, at, dueAt, notBeforeMs } = line;
    if (this.#entered.has(token)) this.#fault(occurrenceId, `token ${token} was entered twice`);
    this.#entered.set(token, { ...line, process });
    const early = Math.max(dueAt, notBeforeMs) - at;
    if (early > 0) this.#fault(occurrenceId, `was entered ${early} ms early`);
    const { epochs } = this.#processes[process] as Process;
    const epoch = Math.floor(token / TWO_32);
    if (epoch < epochs[0] || epoch > epochs[1]) {
      this.#fault(occurrenceId, `token ${token} is not of its process's epoch`);
    }
  }

  async task(scheduler: Scheduler<FaultsHandlers>, task: Task): Promise<void> {
    this.#count('tasks');
    if (task.endedAt === undefined) this.#fault(task.id, `has not ended: ${task.status}`);
    if (task.idempotencyKey !== undefined) this.#noteKey(task.idempotencyKey, task.id);
    let nominal = 0;
    for (let cursor: string | undefined; ; ) {
      const page = await scheduler.occurrences(task.id, cursor === undefined ? {} : { cursor });
      for (const occurrence of page.items) {
        nominal += occurrence.count ?? 1;
        this.#occurrence(occurrence, await scheduler.attempts(occurrence.id));
      }
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    const { schedule } = task;
    const limit = 'limit' in schedule ? schedule.limit : undefined;
    if (limit !== undefined && task.status !== 'cancelled' && nominal !== limit) {
      this.#fault(task.id, `${nominal} nominal times of ${limit}`);
    }
  }

  #noteKey(key: string, taskId: string): void {
    const tasks = this.#tasksOfKeys.get(key) ?? new Set();
    this.#tasksOfKeys.set(key, tasks.add(taskId));
  }

  #occurrence(occurrence: Occurrence, attempts: readonly Attempt[]): void {
    const { id, status } = occurrence;
    if (occurrence.endedAt === undefined) this.#fault(id, `has not ended: ${status}`);
    if (status === 'quarantined') this.#fault(id, 'was quarantined by deaths');
    let failures = 0;
    let deaths = 0;
    let charged = 0;
    for (const [i, attempt] of attempts.entries()) {
      this.#count('attempts');
      this.#attempt(id, attempt, i === attempts.length - 1);
      if (attempt.outcome === 'failed') failures++;
      deaths = attempt.outcome === 'crashed' ? deaths + 1 : 0;
      if (deaths > FREE_DEATHS) charged++;
      if (attempt.attempt !== i + 1)
        this.#fault(id, `attempt ${attempt.attempt} stands at ${i + 1}`);
    }
    if (occurrence.failures !== failures) {
      this.#fault(id, `${occurrence.failures} failures are charged, ${failures} attempts failed`);
    }
    if (occurrence.crashes !== charged) {
      this.#fault(id, `${occurrence.crashes} crashes are charged, ${charged} deaths were its own`);
    }
    if (status === 'succeeded' && attempts.at(-1)?.outcome !== 'succeeded') {
      this.#fault(id, `succeeded, and its last attempt ${attempts.at(-1)?.outcome}`);
    }
  }

  #attempt(id: string, { fencingToken: token, outcome, attempt }: Attempt, isLast: boolean): void {
    const entered = this.#entered.get(token);
    this.#entered.delete(token);
    const ok = this.#left.get(token);
    const epoch = Math.floor(token / TWO_32);
    const process = this.#processes.find(({ epochs }) => epoch >= epochs[0] && epoch <= epochs[1]);
    const name = `${id} attempt ${attempt}`;
    if (outcome === 'crashed') {
      this.#count('crashed');
      if (entered !== undefined) this.#count('crashedAfterEntry');
      if (ok === true) this.#count('repeatedAfterSuccess');
      if (process?.killed !== true) this.#fault(name, 'crashed in a process that was not killed');
      return;
    }
    // What was cancelled may end in any way, or never have been entered.
    if (outcome === 'cancelled') return;
    if (outcome !== 'succeeded' && outcome !== 'failed') {
      this.#fault(name, `ended as ${outcome}`);
    } else if (entered === undefined) this.#fault(name, `${outcome}, and was never entered`);
    else if (ok !== (outcome === 'succeeded')) this.#fault(name, `${outcome}, its handler: ${ok}`);
    if (outcome === 'succeeded' && !isLast) this.#fault(name, 'succeeded, and another followed');
  }

  /** When all tasks were seen. */
  promises(seen: ReadonlySet<string>): void {
    for (const { occurrenceId, token } of this.#entered.values()) {
      this.#fault(
        occurrenceId,
        `was entered under token ${token}, of which the store knows nothing`,
      );
    }
    for (const { lines } of this.#processes) {
      for (const line of lines) {
        if (line.kind !== 'told') continue;
        for (const { id, key } of line.tasks) {
          this.#count('told');
          if (!seen.has(id)) this.#fault(id, 'was acknowledged and is gone');
          if (key !== undefined) this.#noteKey(key, id);
        }
      }
    }
    for (const [key, tasks] of this.#tasksOfKeys) {
      this.#count('keys');
      if (tasks.size > 1) this.#fault(`key ${key}`, `was given to ${[...tasks].join(', ')}`);
    }
  }
}
