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
import type { Engine } from './engine/engine.js';
import type { Outcome, TaskJob } from './engine/job.js';
import { hashDefinition } from './execution/payload.js';
import { presentTask, type Task } from './present.js';
import { type ScheduleRequest, scheduleRequest } from './request.js';
import type { StoreSession } from './store/store.js';
import type { Encoded, Values } from './values.js';

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

/** One item on its way: checked, encoded, and what its caller will be told. */
class CreateJob implements TaskJob {
  readonly kind = 'task';
  readonly taskId: string;
  readonly event: Extract<CallEvent, { kind: 'create' }>;
  readonly onConflict: ScheduleRequest['onConflict'];
  readonly bytes: number;
  /** Its place among the items. */
  index = 0;
  told: Created | undefined;
  readonly #values: Values;
  #payload: unknown;
  #isTold = false;

  constructor(task: NewTask, request: ScheduleRequest, payload: Encoded, values: Values) {
    this.taskId = task.id;
    this.event = { kind: 'create', task };
    this.onConflict = request.onConflict;
    this.bytes = payload.bytes.length + TASK_BYTES;
    this.#values = values;
    this.#payload = payload.value;
  }

  get task(): NewTask {
    return this.event.task;
  }

  decided(view: TaskView): void {
    // Told once; decided again (after a refusal), it is decoded anew.
    const payload = this.#isTold ? undefined : { value: this.#payload };
    this.told = presentCreated(view, this.#values.decode, true, payload);
    this.#isTold = true;
    this.#payload = undefined;
  }
}

/** What a task takes besides its payload while it waits for its flush, in memory; as admission counts it. */
const TASK_BYTES = 1024;
/** Items prepared and submitted at once; a longer list goes in chunks, so that the loop has its turns. */
const ITEM = new Set(['handler', 'payload', 'options'] as const);
const CHUNK = 1000;
/** A long list waits for its own oldest chunk, so that it never overloads the scheduler by itself. */
const CHUNKS_UNDER_WAY = 8;

export class Creation {
  readonly #options: CreationOptions;

  constructor(options: CreationOptions) {
    this.#options = options;
  }

  async create(items: readonly unknown[]): Promise<Result[]> {
    if (items.length <= CHUNK) return this.#createChunk(items);
    const results: Result[] = [];
    const underWay: Promise<Result[]>[] = [];
    for (let from = 0; from < items.length || underWay.length > 0; from += CHUNK) {
      if (from < items.length) {
        const chunk = this.#createChunk(items.slice(from, from + CHUNK));
        // When one has failed nobody waits for those behind it.
        chunk.catch(() => {});
        underWay.push(chunk);
      }
      const isFull = underWay.length >= CHUNKS_UNDER_WAY || from >= items.length;
      if (isFull) for (const result of (await underWay.shift()) ?? []) results.push(result);
      else await this.#options.engine.rest();
    }
    return results;
  }

  async #createChunk(items: readonly unknown[]): Promise<Result[]> {
    const nowMs = this.#options.nowMs();
    const { admission } = this.#options.engine;
    const results: (Result | undefined)[] = new Array(items.length);
    const admitted: CreateJob[] = [];
    const refused: CreateJob[] = [];
    for (let index = 0; index < items.length; index++) {
      const job = this.#prepare(items[index], nowMs);
      if (job instanceof TickwheelError) {
        results[index] = job;
        continue;
      }
      job.index = index;
      const refusal = admission.admit(job.task.tenant, job.bytes);
      results[index] = refusal;
      if (refusal === undefined) admitted.push(job);
      else if (job.task.idempotencyKey !== undefined) refused.push(job);
    }
    await this.#submit(admitted, results);
    // Admission refuses creates; one whose key is held would be none.
    if (refused.length > 0) await this.#options.engine.settled();
    for (const job of refused) {
      results[job.index] = (await this.#meetAny(job, nowMs)) ?? results[job.index];
    }
    return results as Result[];
  }

  async #meetAny(job: CreateJob, nowMs: number): Promise<Result | undefined> {
    const { tenant, idempotencyKey } = job.task;
    const { session } = this.#options;
    const holder = await session.taskIdOfKey(tenant, idempotencyKey as string, nowMs);
    return holder === undefined ? undefined : this.#meetHolder(job, holder);
  }

  async #submit(jobs: readonly CreateJob[], results: (Result | undefined)[]): Promise<void> {
    const { engine } = this.#options;
    if (jobs.length === 0) return;
    const outcomes = await engine.submit(jobs);
    const again: CreateJob[] = [];
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i] as CreateJob;
      const outcome = outcomes[i] as Outcome;
      engine.admission.settled(job.bytes);
      if (outcome.kind === 'done') {
        results[job.index] = job.told;
        continue;
      }
      engine.admission.closed(job.task.tenant);
      if (outcome.kind === 'held') {
        const result = await this.#meetHolder(job, outcome.holder);
        if (result !== undefined) results[job.index] = result;
        // The holder is gone meanwhile: the key is free.
        else again.push(job);
      } else {
        results[job.index] = asTickwheelError(
          outcome.kind === 'failed' ? outcome.error : undefined,
        );
      }
    }
    for (const job of again) engine.admission.readmit(job.task.tenant, job.bytes);
    await this.#submit(again, results);
  }

  /** Everything that can be wrong with an item is found here, before anything is written. */
  #prepare(given: unknown, nowMs: number): CreateJob | TickwheelError {
    try {
      if (given === undefined) refuse('an item', given, '{ handler, payload, options? }');
      const { handler, payload, options } = optionsOf(given, 'an item', ITEM);
      const name = textOf(handler, 'handler', 256);
      const request = scheduleRequest(options, nowMs);
      const { schedule, idempotencyKey } = request;
      this.#options.checkHandler(name, request.handlerVersion);
      if (schedule.kind !== 'once') this.#assertFires(schedule, nowMs);
      if (idempotencyKey === undefined) {
        // When it will be refused anyway, the costly half is spared.
        const refusal = this.#options.engine.admission.refusal(request.tenant, TASK_BYTES);
        if (refusal !== undefined) return refusal;
      }
      const { values } = this.#options;
      const encoded = values.encodeAndCopy(payload, 'payload');
      const task: NewTask = {
        id: this.#options.nextId(),
        tenant: request.tenant,
        handler: name,
        handlerVersion: request.handlerVersion,
        payload: encoded.bytes,
        schedule,
        policies: request.policies,
        priority: request.priority,
        idempotencyKey,
        definition:
          request.scheduleText === undefined
            ? undefined
            : hashDefinition(name, payload, request.scheduleText),
        createdAt: nowMs,
      };
      return new CreateJob(task, request, encoded, values);
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
  async #meetHolder(item: CreateJob, holder: string): Promise<Result | undefined> {
    const { session, engine } = this.#options;
    const { task, onConflict } = item;
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

function asTickwheelError(error: unknown): TickwheelError {
  if (error instanceof TickwheelError) return error;
  throw error;
}
