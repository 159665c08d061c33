/**
 * The calls of the public API that look and change nothing. The scheduler says whether they may be made now. Who makes one
 * after the other leaves due work its turns.
 */
import {
  CURSOR,
  DEAD_LETTERS,
  filterOf,
  ID_MAX,
  LIST,
  PAGING,
  type Page,
  type PageOptions,
  pageOf,
  pageWith,
  REF,
  WAIT,
} from './call-arguments.js';
import { oneOf, optionsOf, signalOf, textOf } from './check.js';
import { Pauses } from './clock/turn.js';
import { OccurrenceNotFoundError, TaskNotFoundError } from './core/errors.js';
import { isId } from './core/id.js';
import { type OccurrenceRecord, parseOccurrenceId, type TaskView } from './core/model.js';
import { TASK_STATUSES, type TaskStatus, taskStatus } from './core/status.js';
import { type Duration, parseDurationMs } from './core/units.js';
import type { ResolvedOptions } from './options.js';
import {
  type Attempt,
  attemptsOf,
  type Occurrence,
  presentAttempt,
  presentOccurrence,
  presentTask,
  type Task,
} from './present.js';
import type { StoreCounts, StoreSession } from './store/store.js';
import type { TaskRef } from './types.js';
import type { Values } from './values.js';
import type { Waiters } from './waiters.js';

export interface ListOptions extends PageOptions {
  tenant?: string;
  status?: TaskStatus;
  handler?: string;
}

export interface LookingParts {
  readonly options: ResolvedOptions;
  readonly session: StoreSession;
  readonly values: Values;
  readonly waiters: Waiters;
}

export class Looking {
  readonly #parts: LookingParts;
  readonly #pauses = new Pauses();

  constructor(parts: LookingParts) {
    this.#parts = parts;
  }

  async get(ref: TaskRef): Promise<Task | undefined> {
    const id = await this.find(ref);
    const view = id === undefined ? undefined : await this.view(id);
    await this.#pauses.after(1);
    return view === undefined ? undefined : this.present(view);
  }

  async wait(
    ref: TaskRef,
    options?: { timeout?: Duration; signal?: AbortSignal },
  ): Promise<Occurrence> {
    const { timeout, signal } = optionsOf(options, 'wait options', WAIT);
    const timeoutMs = timeout === undefined ? undefined : parseDurationMs(timeout, 'wait timeout');
    const checkedSignal = signalOf(signal);
    const id = await this.require(ref, 'wait');
    const { waiters, values } = this.#parts;
    const record = await waiters.wait(id, timeoutMs, checkedSignal);
    return presentOccurrence(record, values.decode);
  }

  async list(options?: ListOptions): Promise<Page<Task>> {
    const given = optionsOf(options, 'list options', LIST);
    const status =
      given.status === undefined ? undefined : oneOf(given.status, 'status', TASK_STATUSES);
    const query = { ...pageOf(given, CURSOR.tasks), ...filterOf(given) };
    const page = await this.#parts.session.listTasks(query);
    await this.#pauses.after(1 + page.items.length);
    const matching = page.items.filter(
      (view) => status === undefined || taskStatus(view) === status,
    );
    return pageWith(
      matching.map((view) => this.present(view)),
      CURSOR.tasks,
      page.cursor,
    );
  }

  async occurrences(ref: TaskRef, options?: PageOptions): Promise<Page<Occurrence>> {
    const given = optionsOf(options, 'occurrences options', PAGING);
    const query = pageOf(given, CURSOR.occurrences);
    const id = await this.require(ref, 'occurrences');
    const page = await this.#parts.session.listOccurrences(id, query);
    await this.#pauses.after(1 + page.items.length);
    if (page.items.length === 0 && query.cursor === undefined) {
      // A task has an occurrence from its creation on: there is none, or it is about to go.
      throw new TaskNotFoundError(`occurrences: no task ${id}`);
    }
    const { decode } = this.#parts.values;
    return pageWith(
      page.items.map((record) => presentOccurrence(record, decode)),
      CURSOR.occurrences,
      page.cursor,
    );
  }

  async occurrence(id: string): Promise<Occurrence | undefined> {
    textOf(id, 'occurrence id', ID_MAX);
    const { session, values } = this.#parts;
    const record = parseOccurrenceId(id) && (await session.occurrence(id));
    await this.#pauses.after(1);
    return record === undefined ? undefined : presentOccurrence(record, values.decode);
  }

  async attempts(occurrenceId: string): Promise<Attempt[]> {
    const { session, values } = this.#parts;
    const occurrence = await this.requireOccurrence(occurrenceId, 'attempts');
    const kept = await session.attempts(occurrenceId);
    await this.#pauses.after(1 + kept.length);
    return attemptsOf(occurrence, kept).map((record) => presentAttempt(record, values.decode));
  }

  async deadLetters(
    options?: PageOptions & { tenant?: string; handler?: string },
  ): Promise<Page<Occurrence>> {
    const given = optionsOf(options, 'deadLetters options', DEAD_LETTERS);
    const { session, values } = this.#parts;
    const query = { ...pageOf(given, CURSOR.deadLetters), ...filterOf(given) };
    const page = await session.listDeadLetters(query);
    await this.#pauses.after(1 + page.items.length);
    return pageWith(
      page.items.map((record) => presentOccurrence(record, values.decode)),
      CURSOR.deadLetters,
      page.cursor,
    );
  }

  /** Of tenants there may be many. */
  async counts(): Promise<StoreCounts> {
    const counts = await this.#parts.session.counts();
    await this.#pauses.after(1 + counts.tenants.size);
    return counts;
  }

  // --- also for the calls that change -----------------------------------------------------------------

  /** Undefined when no task has the key, or the text can be no id. */
  async find(ref: TaskRef): Promise<string | undefined> {
    if (typeof ref === 'string') {
      textOf(ref, 'ref', ID_MAX);
      return isId(ref) ? ref : undefined;
    }
    const { idempotencyKey, tenant } = optionsOf(ref, 'ref', REF);
    const key = textOf(idempotencyKey, 'ref.idempotencyKey', 1024);
    const whose = tenant === undefined ? 'default' : textOf(tenant, 'ref.tenant', 256);
    const { session, options } = this.#parts;
    return session.taskIdOfKey(whose, key, options.clock.now());
  }

  /** @throws TaskNotFoundError */
  async require(ref: TaskRef, call: string): Promise<string> {
    const id = await this.find(ref);
    if (id !== undefined) return id;
    const shown = typeof ref === 'string' ? ref : `with key '${ref.idempotencyKey}'`;
    throw new TaskNotFoundError(`${call}: no task ${shown}`);
  }

  /** @throws OccurrenceNotFoundError */
  async requireOccurrence(id: string, call: string): Promise<OccurrenceRecord> {
    textOf(id, 'occurrence id', ID_MAX);
    const record = parseOccurrenceId(id) && (await this.#parts.session.occurrence(id));
    if (record === undefined) throw new OccurrenceNotFoundError(`${call}: no occurrence ${id}`);
    return record;
  }

  async view(id: string): Promise<TaskView | undefined> {
    const [view] = await this.#parts.session.views([id]);
    return view;
  }

  present(view: TaskView): Task {
    return presentTask(view, this.#parts.values.decode);
  }
}
