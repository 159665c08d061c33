/** What callers were promised: creates, keys, cancels, pauses. Judged when a handler is entered, and at each create. */
import type { RawOccurrence, RawTask } from './raw.js';
import type { Records } from './shadow.js';

interface Facts {
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
}

/** A pause of a task, tenant or handler. */
interface Gate {
  paused: boolean;
  /** Calls of `resume` that were begun: a pause that is answered after one of them promises nothing. */
  resumes: number;
  resumesUnderWay: number;
}

export class Promises {
  /** Tasks whose create was acknowledged, and that nobody deleted. */
  readonly acknowledged = new Set<string>();
  readonly #fault: (text: string) => void;
  readonly #cancelled = new Set<string>();
  readonly #gates = new Map<string, Gate>();
  readonly #holders = new Map<string, string>();
  /** Ended, and another has taken their key since: a redrive makes them live again, without it. */
  readonly #keyless = new Set<string>();
  readonly #creators = new Map<string, string>();
  /** Runs that were triggered while their task was paused: the pause does not hold them. */
  readonly #free = new Set<string>();
  readonly #notBefore = new Map<string, number>();
  /** Calls that gave each task its payloads. */
  readonly #payloads = new Map<string, Set<number>>();

  constructor(fault: (text: string) => void) {
    this.#fault = fault;
  }

  created(taskId: string): void {
    this.acknowledged.add(taskId);
  }

  /** 3, by the answers alone: a caller was told that it created the task with this key. */
  createdWithKey(
    taskId: string,
    tenant: string,
    key: string,
    visible: Records,
    atMs: number,
  ): void {
    const name = `${tenant}\n${key}`;
    const before = visible.get(this.#creators.get(name) ?? '');
    this.#creators.set(name, taskId);
    if (before === undefined || !stillHolds(before.task, atMs)) return;
    // A redrive gives an old task a new life, but not its key.
    if ([...before.occurrences.values()].some(({ kind }) => kind === 'redrive')) return;
    this.#fault(`3 ${taskId} and ${before.task.id} were both created with the key ${key}`);
  }

  /** An earlier start would be early: by what the caller asked for. */
  askedFor(taskId: string, runAtMs: number): void {
    this.#notBefore.set(taskId, runAtMs);
  }

  notBefore(occurrenceId: string): number | undefined {
    const [taskId, generation, ordinal] = occurrenceId.split('.');
    const isFirst = generation === '1' && /^\d/.test(ordinal ?? '');
    return isFirst ? this.#notBefore.get(taskId as string) : undefined;
  }

  /** The payload that this call gives may be what the task runs with. */
  gives(taskId: string, call: number): void {
    const calls = this.#payloads.get(taskId) ?? new Set();
    calls.add(call);
    this.#payloads.set(taskId, calls);
  }

  deleted(taskId: string): void {
    this.acknowledged.delete(taskId);
  }

  /** Of a task or an occurrence: from here on it may not enter. */
  cancelled(id: string): void {
    this.#cancelled.add(id);
  }

  #gate(name: string): Gate {
    let gate = this.#gates.get(name);
    if (gate === undefined) {
      gate = { paused: false, resumes: 0, resumesUnderWay: 0 };
      this.#gates.set(name, gate);
    }
    return gate;
  }

  /** @returns what to call when the pause was acknowledged */
  pausing(name: string): () => void {
    const gate = this.#gate(name);
    const { resumes, resumesUnderWay } = gate;
    return () => {
      if (resumesUnderWay === 0 && gate.resumes === resumes) gate.paused = true;
    };
  }

  /** @returns what to call when the call is over, however it ended */
  resuming(name: string): () => void {
    const gate = this.#gate(name);
    gate.paused = false;
    gate.resumes++;
    gate.resumesUnderWay++;
    return () => {
      gate.resumesUnderWay--;
    };
  }

  /** 3: at the create of a task, nobody else may hold its key. */
  made(task: RawTask, visible: Records, nowMs: number): void {
    const { tenant, idempotencyKey, id } = task;
    if (idempotencyKey === undefined) return;
    const key = `${tenant}\n${idempotencyKey}`;
    const holder = visible.get(this.#holders.get(key) ?? '')?.task;
    if (holder !== undefined && stillHolds(holder, nowMs)) {
      this.#fault(`3 ${id} was created with the key of ${holder.id}`);
    }
    if (holder !== undefined) this.#keyless.add(holder.id);
    this.#holders.set(key, id);
  }

  changed(task: RawTask): void {
    if (task.state === 'paused' || task.state === 'active') return;
    // One that has come to its end is paused no more, also where that came before the answer to a pause.
    const gate = this.#gate(task.id);
    gate.paused = false;
    gate.resumes++;
  }

  madeOccurrence(task: RawTask, { id, kind }: RawOccurrence): void {
    if (kind === 'trigger' && task.state === 'paused') this.#free.add(id);
  }

  /** The store was opened anew: who holds which key is what its records say. */
  reopened(visible: Records): void {
    this.#holders.clear();
    for (const id of [...visible.keys()].sort()) {
      const task = visible.get(id)?.task;
      if (task?.idempotencyKey === undefined || this.#keyless.has(id)) continue;
      this.#holders.set(`${task.tenant}\n${task.idempotencyKey}`, id);
    }
  }

  entered(run: Facts, record: RawOccurrence | undefined, call: number | undefined): void {
    const { occurrenceId, taskId, tenant, handler } = run;
    if (this.#cancelled.has(taskId))
      this.#fault(`7 entered after its task was cancelled: ${occurrenceId}`);
    if (this.#cancelled.has(occurrenceId))
      this.#fault(`7 entered after it was cancelled: ${occurrenceId}`);
    if (this.#gate(`tenant ${tenant}`).paused)
      this.#fault(`11 its tenant is paused: ${occurrenceId}`);
    if (this.#gate(`handler ${handler}`).paused)
      this.#fault(`11 its handler is paused: ${occurrenceId}`);
    if (this.#gate(taskId).paused && !this.#free.has(occurrenceId)) {
      this.#fault(`11 its task is paused: ${occurrenceId} ${record?.kind}`);
    }
    const calls = this.#payloads.get(taskId);
    if (call !== undefined && calls !== undefined && !calls.has(call)) {
      this.#fault(`1 ${occurrenceId} runs with the payload of another task`);
    }
  }
}

function stillHolds({ state, endedAt, policies }: RawTask, nowMs: number): boolean {
  if (state === 'active' || state === 'paused') return true;
  return endedAt !== undefined && nowMs < endedAt + policies.idempotencyTtlMs;
}
