/** Creating tasks: checks, admission, idempotency keys. Item by item; nothing is half-written. */
import { optionsOf, refuse, textOf } from './check.js';
import { AssertionError } from './core/assert.js';
import {
  IdempotencyConflictError,
  InvalidArgumentError,
  InvalidScheduleError,
  TickwheelError,
  toStoredError,
} from './core/errors.js';
import type { CallEvent, NewTask } from './core/event.js';
import type { TaskView } from './core/model.js';
import { anchorOf, firstNominal } from './core/schedule.js';
import { describe } from './core/units.js';
import { CREATES_MAX } from './engine/bounds.js';
import type { Engine } from './engine/engine.js';
import type { Outcome, TaskJob, WorkSource } from './engine/job.js';
import { hashDefinition } from './execution/payload.js';
import { presentTask, type Task } from './present.js';
import { type ScheduleRequest, scheduleRequest } from './request.js';
import type { StoreSession } from './store/store.js';
import type { Values } from './values.js';

export interface CreationOptions {
  readonly engine: Engine;
  readonly session: StoreSession;
  readonly values: Values;
  readonly nextId: () => string;
  readonly nowMs: () => number;
  /** @throws UnknownHandlerError */
  readonly checkHandler: (handler: string, version: number | undefined) => void;
}

export type Created = Task & { created: boolean };
type Result = Created | TickwheelError;

/** An item that was checked and encoded: all that is kept of it until its turn comes. */
interface Checked {
  readonly task: NewTask;
  /** What the payload's bytes stand for. */
  readonly value: unknown;
  readonly onConflict: ScheduleRequest['onConflict'];
  /** Its place among the items. */
  readonly index: number;
}

function bytesOf({ task }: Checked): number {
  return task.payload.length + TASK_BYTES;
}

/** An item whose turn has come. */
class CreateJob implements TaskJob {
  readonly kind = 'task';
  readonly taskId: string;
  readonly event: Extract<CallEvent, { kind: 'create' }>;
  readonly item: Checked;
  readonly #of: Admitted | undefined;
  readonly #number: number;

  /** @param number its number among those let in together */
  constructor(item: Checked, of?: Admitted, number = 0) {
    const { task } = item;
    this.taskId = task.id;
    this.event = { kind: 'create', task };
    this.item = item;
    this.#of = of;
    this.#number = number;
  }

  decided(view: TaskView): void {
    this.#of?.tell(this.#number, view, this.item);
  }
}

/**
 * Items that were let in together. Each is made into a job when its turn comes, and then let go, but for those with a key: until
 * all are durable no more is kept than their callers will be told.
 */
class Admitted implements WorkSource {
  readonly #options: CreationOptions;
  readonly #items: (Checked | undefined)[] = [];
  /** Those with a key, which another task may turn out to hold. */
  readonly #jobs = new Map<number, CreateJob>();
  readonly #told: Created[] = [];
  /** Their numbers in the list that they come from. */
  readonly #places: number[] = [];
  readonly #bytes: number[] = [];
  readonly #tenants: string[] = [];
  #isTaken = false;
  #onTaken = (): void => {};

  constructor(options: CreationOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#places.length;
  }

  taken(): void {
    this.#isTaken = true;
    this.#onTaken();
  }

  whenTaken(): Promise<void> {
    if (this.#isTaken || this.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onTaken = resolve;
    });
  }

  add(item: Checked): void {
    this.#items.push(item);
    this.#places.push(item.index);
    this.#bytes.push(bytesOf(item));
    this.#tenants.push(item.task.tenant);
  }

  work(number: number): CreateJob {
    const item = this.#items[number] as Checked;
    const job = new CreateJob(item, this, number);
    if (item.task.idempotencyKey === undefined) this.#items[number] = undefined;
    else this.#jobs.set(number, job);
    return job;
  }

  isDueAtOnce(number: number, nowMs: number): boolean {
    const { schedule } = (this.#items[number] as Checked).task;
    return schedule.kind === 'once' && schedule.at <= nowMs;
  }

  tell(number: number, view: TaskView, item: Checked): void {
    this.#told[number] = presentCreated(view, this.#options.values.decode, true, item);
  }

  told(number: number): Created | undefined {
    return this.#told[number];
  }

  place(number: number): number {
    return this.#places[number] as number;
  }

  bytes(number: number): number {
    return this.#bytes[number] as number;
  }

  tenant(number: number): string {
    return this.#tenants[number] as string;
  }

  /** Of one with a key. */
  job(number: number): CreateJob {
    return this.#jobs.get(number) as CreateJob;
  }
}

/** A chunk whose items were checked. */
interface Prepared {
  readonly admitted: Admitted;
  /** Refused by admission, with a key. */
  readonly refused: readonly Checked[];
  /** Of those that were refused: why. */
  readonly results: (Result | undefined)[];
  readonly nowMs: number;
}

/** What a task takes besides its payload while it waits for its flush, in memory; as admission counts it. */
const TASK_BYTES = 1024;
const ITEM = new Set(['handler', 'payload', 'options'] as const);
/** So many items are read at once; a longer list goes in chunks, of what a turn takes. */
const AT_ONCE_MAX = 1000;
const CHUNK = CREATES_MAX;
/** A long list waits for its own oldest chunk, so that it never overloads the scheduler by itself. */
const UNTOLD_MAX = 16;

export class Creation {
  readonly #options: CreationOptions;

  constructor(options: CreationOptions) {
    this.#options = options;
  }

  create(items: readonly unknown[]): Promise<Result[]> {
    return items.length <= AT_ONCE_MAX ? this.#createChunk(items) : this.#createChunks(items);
  }

  /**
   * The next chunk is prepared when the one before was taken, while the store writes that: what waits in a queue survives
   * young collections, which took 1.5 µs more a create when eight chunks waited.
   */
  async #createChunks(items: readonly unknown[]): Promise<Result[]> {
    const results: Result[] = [];
    const untold: Promise<Result[]>[] = [];
    for (let from = 0; from < items.length || untold.length > 0; from += CHUNK) {
      if (untold.length === UNTOLD_MAX || from >= items.length) {
        for (const result of (await untold.shift()) ?? []) results.push(result);
      }
      if (from >= items.length) continue;
      const chunk = this.#prepare(items.slice(from, from + CHUNK));
      const created = this.#createPrepared(chunk);
      // When one has failed nobody waits for those behind it.
      created.catch(() => {});
      untold.push(created);
      await chunk.admitted.whenTaken();
      await this.#options.engine.rest();
    }
    return results;
  }

  /** What is async waits in functions that have no hold on the items: a long queue must not keep them. */
  #createChunk(items: readonly unknown[]): Promise<Result[]> {
    return this.#createPrepared(this.#prepare(items));
  }

  #prepare(items: readonly unknown[]): Prepared {
    const nowMs = this.#options.nowMs();
    const { admission } = this.#options.engine;
    const results: (Result | undefined)[] = new Array(items.length);
    const admitted = new Admitted(this.#options);
    const refused: Checked[] = [];
    for (let index = 0; index < items.length; index++) {
      const item = this.#check(items[index], index, nowMs);
      if (item instanceof TickwheelError) {
        results[index] = item;
        continue;
      }
      const refusal = admission.admit(item.task.tenant, bytesOf(item));
      results[index] = refusal;
      if (refusal === undefined) admitted.add(item);
      else if (item.task.idempotencyKey !== undefined) refused.push(item);
    }
    return { admitted, refused, results, nowMs };
  }

  async #createPrepared({ admitted, refused, results, nowMs }: Prepared): Promise<Result[]> {
    await this.#submit(admitted, results);
    // Admission refuses creates; one whose key is held would be none.
    if (refused.length > 0) await this.#options.engine.settled();
    for (const item of refused) {
      const met = await orItsError(this.#meetAny(item, nowMs));
      results[item.index] = met ?? results[item.index];
    }
    return results as Result[];
  }

  async #meetAny(item: Checked, nowMs: number): Promise<Result | undefined> {
    const { tenant, idempotencyKey } = item.task;
    const { session } = this.#options;
    const holder = await session.taskIdOfKey(tenant, idempotencyKey as string, nowMs);
    if (holder === undefined) return undefined;
    return this.#meetHolder(new CreateJob(item), holder);
  }

  async #submit(admitted: Admitted, results: (Result | undefined)[]): Promise<void> {
    const { engine } = this.#options;
    if (admitted.size === 0) return;
    const outcomes = await engine.submitCreates(admitted);
    const again = new Admitted(this.#options);
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i] as Outcome;
      const place = admitted.place(i);
      engine.admission.settled(admitted.bytes(i));
      if (outcome.kind === 'done') {
        results[place] = admitted.told(i);
        continue;
      }
      engine.admission.closed(admitted.tenant(i));
      if (outcome.kind === 'held') {
        const job = admitted.job(i);
        const result = await orItsError(this.#meetHolder(job, outcome.holder));
        if (result !== undefined) results[place] = result;
        // The holder is gone meanwhile: the key is free.
        else again.add(job.item);
      } else {
        results[place] = asTickwheelError(outcome.kind === 'failed' ? outcome.error : undefined);
      }
    }
    for (let i = 0; i < again.size; i++) engine.admission.readmit(again.tenant(i), again.bytes(i));
    await this.#submit(again, results);
  }

  /** Everything that can be wrong with an item is found here, before anything is written. */
  #check(given: unknown, index: number, nowMs: number): Checked | TickwheelError {
    try {
      if (given === undefined) refuse('an item', given, '{ handler, payload, options? }');
      const { handler, payload, options } = optionsOf(given, 'an item', ITEM);
      const name = textOf(handler, 'handler', 256);
      const request = scheduleRequest(options, nowMs);
      const { tenant, schedule, idempotencyKey, scheduleText } = request;
      this.#options.checkHandler(name, request.handlerVersion);
      if (schedule.kind !== 'once') this.#assertFires(schedule, nowMs);
      if (idempotencyKey === undefined) {
        // When it will be refused anyway, the costly half is spared.
        const refusal = this.#options.engine.admission.refusal(tenant, TASK_BYTES);
        if (refusal !== undefined) return refusal;
      }
      const { bytes, value } = this.#options.values.encodeAndCopy(payload, 'payload');
      const task: NewTask = {
        id: this.#options.nextId(),
        tenant,
        handler: name,
        handlerVersion: request.handlerVersion,
        payload: bytes,
        schedule,
        policies: request.policies,
        priority: request.priority,
        idempotencyKey,
        definition: scheduleText && hashDefinition(name, payload, scheduleText),
        createdAt: nowMs,
      };
      return { task, value, onConflict: request.onConflict, index };
    } catch (error) {
      return refusalOf(error);
    }
  }

  #assertFires(schedule: NewTask['schedule'], nowMs: number): void {
    if (firstNominal(schedule, anchorOf(schedule, nowMs), nowMs) === undefined) {
      const { endAt } = schedule as { endAt?: number };
      throw new InvalidScheduleError(
        `the schedule has no time left before its endAt ${describe(new Date(endAt ?? nowMs))}; ` +
          'allowed: one that fires from now on',
      );
    }
  }

  /**
   * The key is held. Same definition: the existing task. Another: refused, or the living task is updated.
   * Undefined when the holder has gone.
   */
  async #meetHolder(job: CreateJob, holder: string): Promise<Result | undefined> {
    const { session, engine } = this.#options;
    const { task, onConflict } = job.item;
    const [view] = await session.views([holder]);
    if (view === undefined) return undefined;
    const held = view.task;
    if (held.definition === task.definition) {
      // Also the promise that it exists must survive power loss.
      await engine.durable();
      return this.#present(view, false);
    }
    const open = held.state === 'active' || held.state === 'paused';
    if (onConflict === 'error' || held.handler !== task.handler || !open) {
      return new IdempotencyConflictError(
        `idempotency key '${task.idempotencyKey}' of tenant '${task.tenant}' belongs to task ${holder} ` +
          'with another handler, payload or schedule',
      );
    }
    const [outcome] = await engine.submit([
      {
        kind: 'task',
        taskId: holder,
        event: { kind: 'update', patch: patchFrom(task, held), expectedVersion: undefined },
      },
    ]);
    if (outcome?.kind === 'done' && outcome.view !== undefined) {
      return this.#present(outcome.view, false);
    }
    return outcome?.kind === 'failed' ? asTickwheelError(outcome.error) : undefined;
  }

  #present(view: TaskView, created: boolean): Created {
    return presentCreated(view, this.#options.values.decode, created);
  }
}

function presentCreated(
  view: TaskView,
  decode: Values['decode'],
  created: boolean,
  payload?: { readonly value: unknown },
): Created {
  const task = presentTask(view, decode, payload) as Task & { created?: boolean };
  task.created = created;
  return task as Created;
}

function patchFrom(task: NewTask, held: TaskView['task']) {
  const sameSchedule = JSON.stringify(task.schedule) === JSON.stringify(held.schedule);
  return {
    payload: task.payload,
    priority: task.priority,
    policies: task.policies,
    definition: task.definition as string,
    ...(sameSchedule ? {} : { schedule: task.schedule }),
    ...(task.handlerVersion === undefined ? {} : { handlerVersion: task.handlerVersion }),
  };
}

/** Also of what an item's own getters and proxies throw: the others of its list are not lost for it. */
function refusalOf(error: unknown): TickwheelError {
  if (error instanceof AssertionError) throw error;
  if (error instanceof TickwheelError) return error;
  const { message } = toStoredError(error);
  return new InvalidArgumentError(
    `an item cannot be read: ${message}; allowed: { handler, payload, options? }`,
    { cause: error },
  );
}

/** A store that fails while one item is looked at fails that item. */
async function orItsError<T>(result: Promise<T>): Promise<T | TickwheelError> {
  try {
    return await result;
  } catch (error) {
    return asTickwheelError(error);
  }
}

function asTickwheelError(error: unknown): TickwheelError {
  if (error instanceof TickwheelError) return error;
  throw error;
}
