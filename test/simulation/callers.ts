/** Callers of the public API: what they ask for, and what the oracle is told of the answers. */
import {
  cron,
  fixedDelay,
  fixedRate,
  type Occurrence,
  type ScheduleOptions,
  type Scheduler,
  type Task,
  TickwheelError,
} from '../../src/index.js';
import type { Dice } from './dice.js';
import type { Oracle } from './oracle/oracle.js';
import type { RawOccurrence } from './oracle/raw.js';
import { MOODS, type SimPayload } from './plans.js';
import type { Trace } from './trace.js';

export const TENANTS = ['a', 'b', 'c', 'd', 'e'] as const;
export const HANDLERS = ['mail', 'report', 'image'] as const;

export interface CallersOptions {
  readonly dice: Dice;
  readonly oracle: Oracle;
  readonly trace: Trace;
  readonly now: () => number;
  readonly monotonic: () => number;
  readonly fault: (name: string) => void;
}

interface Call {
  readonly name: string;
  readonly life: number;
  readonly sinceMs: number;
}

type AnyScheduler = Scheduler;

/** A call that has no answer after so much time of the world was forgotten. */
const ANSWER_MAX_MS = 120_000;

export class Callers {
  readonly tasks: string[] = [];
  readonly #options: CallersOptions;
  readonly #open = new Set<Call>();
  #scheduler!: AnyScheduler;
  #life = 0;
  #calls = 0;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Whoever called the process before has died with it. */
  connect(scheduler: AnyScheduler, life: number): void {
    this.#scheduler = scheduler;
    this.#life = life;
    this.#open.clear();
  }

  get underWay(): number {
    return this.#open.size;
  }

  checkAnswers(): void {
    for (const call of this.#open) {
      if (this.#options.monotonic() - call.sinceMs < ANSWER_MAX_MS) continue;
      this.#open.delete(call);
      this.#options.oracle.fault(`13 ${call.name} was never answered`);
    }
  }

  /** Resolves with the answer, or undefined: refused, or the process died. */
  async #call<T>(
    name: string,
    run: () => Promise<T>,
    heard: (answer: T) => void,
  ): Promise<T | undefined> {
    const { trace, monotonic, oracle } = this.#options;
    const call = { name, life: this.#life, sinceMs: monotonic() };
    this.#open.add(call);
    trace.add(`call ${name}`);
    try {
      const answer = await run();
      if (!this.#open.delete(call)) return undefined;
      trace.add(`answer ${name}`);
      heard(answer);
      return answer;
    } catch (error) {
      if (!this.#open.delete(call)) return undefined;
      if (!(error instanceof TickwheelError)) {
        oracle.fault(`13 ${name} threw ${(error as Error)?.stack ?? error}`);
      }
      trace.add(`refused ${name} ${(error as { code?: string }).code}`);
      return undefined;
    }
  }

  // --- creating --------------------------------------------------------------------------------------

  #payload(): SimPayload {
    return { mood: this.#options.dice.pick(MOODS), call: ++this.#calls };
  }

  #when(): ScheduleOptions {
    const { dice, now } = this.#options;
    const limit = 1 + dice.below(12);
    switch (dice.below(9)) {
      case 0:
      case 1:
        return {};
      case 2:
        return { runAt: now() + dice.below(20_000) - 2000 };
      case 3:
      case 4:
        return { delay: dice.below(6000) };
      case 5:
        return {
          schedule: fixedRate({
            every: 500 + dice.below(4000),
            limit,
            jitter: dice.pick([0, 0, 900]),
          }),
        };
      case 6:
        return {
          schedule: fixedDelay({
            delay: 200 + dice.below(3000),
            limit,
            after: dice.pick(['terminal', 'success']),
          }),
        };
      case 7:
        return { schedule: cron(`*/${dice.pick([2, 5, 10])} * * * * *`, { limit }) };
      default:
        return {
          schedule: fixedRate({
            every: 700 + dice.below(5000),
            startDelay: dice.below(5000),
            limit,
          }),
        };
    }
  }

  #policies(recurs: boolean): ScheduleOptions {
    const { dice } = this.#options;
    return {
      retry: {
        maxAttempts: 1 + dice.below(3),
        initialBackoff: dice.pick([0, dice.below(900), 4000, 20_000]),
        jitter: dice.pick([0, 0.5]),
      },
      maxCrashes: 1 + dice.below(3),
      catchup: dice.pick(['latest', 'all', 'none'] as const),
      catchupWindow: dice.pick([0, 5000, 86_400_000]),
      onExhausted: dice.pick(['continue', 'continue', 'stop'] as const),
      ...(dice.chance(0.15) ? { ttl: dice.below(1500) } : {}),
      ...(dice.chance(0.3) ? { timeout: 1 + dice.below(4000) } : {}),
      ...(dice.chance(0.15) ? { heartbeatTimeout: 300 + dice.below(2000) } : {}),
      ...(recurs ? { overlap: dice.pick(OVERLAPS) } : {}),
    };
  }

  #options_(): ScheduleOptions {
    const { dice } = this.#options;
    const when = this.#when();
    const kind = when.schedule?.kind;
    return {
      ...when,
      ...this.#policies(kind === 'fixedRate' || kind === 'cron'),
      tenant: dice.pick(TENANTS),
      priority: dice.below(10),
      ...(dice.chance(0.2)
        ? { idempotencyKey: `k${dice.below(5)}`, idempotencyTtl: dice.pick([0, 4000, 86_400_000]) }
        : {}),
    } as ScheduleOptions;
  }

  #item() {
    const { dice } = this.#options;
    const options = this.#options_();
    // A keyed call that is made again is the same call.
    const payload: SimPayload =
      options.idempotencyKey !== undefined && dice.chance(0.7)
        ? { mood: 'quick', call: 0 }
        : this.#payload();
    const version = dice.chance(0.1) ? { handlerVersion: 1 + dice.below(2) } : {};
    const handler = dice.pick(HANDLERS);
    return { handler, payload, options: { ...options, ...(handler === 'image' ? version : {}) } };
  }

  #heardCreated(
    task: Task & { created: boolean },
    payload: SimPayload,
    options: ScheduleOptions,
  ): void {
    const { oracle, trace } = this.#options;
    trace.add(`task ${task.id} ${task.created}`);
    oracle.promises.created(task.id);
    oracle.promises.gives(task.id, payload.call);
    if (!task.created) return;
    this.tasks.push(task.id);
    const { runAt, delay, idempotencyKey } = options;
    const createdMs = task.createdAt.getTime();
    if (idempotencyKey !== undefined) {
      const { visible } = oracle.shadow;
      // The clock may have been set between the call and its commit, which judged the key.
      const atMs = Math.max(createdMs, this.#options.now());
      oracle.promises.createdWithKey(task.id, task.tenant, idempotencyKey, visible, atMs);
    }
    if (typeof runAt === 'number') oracle.promises.askedFor(task.id, runAt);
    if (typeof delay === 'number') oracle.promises.askedFor(task.id, createdMs + delay);
  }

  schedule(): Promise<unknown> {
    const { handler, payload, options } = this.#item();
    return this.#call(
      `schedule ${handler} ${payload.mood}`,
      () => this.#scheduler.schedule(handler, payload, options),
      (task) => this.#heardCreated(task, payload, options),
    );
  }

  scheduleMany(): Promise<unknown> {
    const items = Array.from({ length: 2 + this.#options.dice.below(12) }, () => this.#item());
    return this.#many(items);
  }

  /** Some work of a tenant, due now. */
  burst(tenant: string, count: number): Promise<unknown> {
    const items = Array.from({ length: count }, () => ({
      handler: 'mail',
      payload: { mood: 'quick', call: ++this.#calls } as SimPayload,
      options: { tenant } as ScheduleOptions,
    }));
    return this.#many(items);
  }

  /** One tenant's flood, due now, in a world where others wait too. */
  flood(): Promise<unknown> {
    const { dice } = this.#options;
    const tenants = dice.chance(0.5) ? ['a', 'b'] : ['a', 'b', 'c', 'd'];
    const items = tenants.flatMap((tenant, index) =>
      Array.from({ length: index === 0 ? 40 : 6 }, () => ({
        handler: 'mail',
        payload: { mood: 'quick', call: ++this.#calls } as SimPayload,
        options: { tenant, priority: index === 0 ? 0 : 9 } as ScheduleOptions,
      })),
    );
    this.#options.fault('flood of one tenant');
    return this.#many(items);
  }

  /** Many at once, most of them for later: they go beside the turns. */
  imports(): Promise<unknown> {
    const { dice } = this.#options;
    const items = Array.from({ length: 66 + dice.below(30) }, () => ({
      handler: 'mail',
      payload: { mood: 'quick', call: ++this.#calls } as SimPayload,
      options: {
        tenant: dice.pick(TENANTS),
        delay: dice.chance(0.05) ? 0 : 1 + dice.below(8000),
        ...(dice.chance(0.05) ? { idempotencyKey: `k${dice.below(5)}` } : {}),
      } as ScheduleOptions,
    }));
    this.#options.fault('creates in bulk');
    return this.#many(items);
  }

  #many(
    items: { handler: string; payload: SimPayload; options: ScheduleOptions }[],
  ): Promise<unknown> {
    return this.#call(
      `scheduleMany ${items.length}`,
      () => this.#scheduler.scheduleMany(items),
      (results) => {
        if (results.length !== items.length)
          this.#options.oracle.fault('1 scheduleMany lost results');
        for (const [index, result] of results.entries()) {
          const item = items[index] as (typeof items)[number];
          if (!(result instanceof Error)) this.#heardCreated(result, item.payload, item.options);
          else if (!(result instanceof TickwheelError)) throw result;
        }
      },
    );
  }

  // --- changing --------------------------------------------------------------------------------------

  /** Mostly one that has not ended. */
  pickTask(): string | undefined {
    const { dice, oracle } = this.#options;
    if (this.tasks.length === 0) return undefined;
    const id = dice.pick(this.tasks);
    if (dice.chance(0.2)) return id;
    const open = this.tasks.slice(-60).filter((each) => {
      const state = oracle.shadow.visible.get(each)?.task.state;
      return state === 'active' || state === 'paused';
    });
    return open.length === 0 ? id : dice.pick(open);
  }

  cancel(id: string): Promise<unknown> {
    return this.#call(
      `cancel ${id}`,
      () => this.#scheduler.cancel(id, { reason: 'simulated' }),
      (done) => {
        if (done) this.#options.oracle.promises.cancelled(id);
      },
    );
  }

  pause(id: string): Promise<unknown> {
    const paused = this.#options.oracle.promises.pausing(id);
    return this.#call(`pause ${id}`, () => this.#scheduler.pause(id), paused);
  }

  async resume(id: string): Promise<unknown> {
    const over = this.#options.oracle.promises.resuming(id);
    const answer = await this.#call(
      `resume ${id}`,
      () => this.#scheduler.resume(id).then(() => true),
      () => {},
    );
    over();
    return answer;
  }

  pauseScope(scope = this.#scope()): Promise<unknown> {
    const name = nameOf(scope);
    const paused = this.#options.oracle.promises.pausing(name);
    return this.#call(`pause ${name}`, () => this.#scheduler.pause(scope), paused);
  }

  async resumeScope(scope = this.#scope()): Promise<unknown> {
    const name = nameOf(scope);
    const over = this.#options.oracle.promises.resuming(name);
    const answer = await this.#call(
      `resume ${name}`,
      () => this.#scheduler.resume(scope).then(() => true),
      () => {},
    );
    over();
    return answer;
  }

  #scope(): { tenant: string } | { handler: string } {
    const { dice } = this.#options;
    return dice.chance(0.6) ? { tenant: dice.pick(TENANTS) } : { handler: dice.pick(HANDLERS) };
  }

  trigger(id: string): Promise<unknown> {
    return this.#call(
      `trigger ${id}`,
      () => this.#scheduler.trigger(id),
      () => {},
    );
  }

  update(id: string): Promise<unknown> {
    const { dice, oracle } = this.#options;
    const {
      tenant: _t,
      idempotencyKey: _k,
      idempotencyTtl: _i,
      overlap: _o,
      ...patch
    } = this.#options_();
    const payload = dice.chance(0.5) ? this.#payload() : undefined;
    // What is on its way may be what it runs with, whatever the answer will be.
    if (payload !== undefined) oracle.promises.gives(id, payload.call);
    const version = dice.chance(0.2) ? { handlerVersion: 1 + dice.below(2) } : {};
    const change = { ...patch, ...version, ...(payload === undefined ? {} : { payload }) };
    return this.#call(
      `update ${id}`,
      () => this.#scheduler.update(id, change as object),
      () => {},
    );
  }

  /** The other version for one that waits to run: how an occurrence whose version is gone is saved. */
  pin(): Promise<unknown> {
    const { dice } = this.#options;
    const images = this.#inState('ready', 'retry-wait').filter(
      ({ handler }) => handler === 'image',
    );
    if (images.length === 0) return this.schedule();
    // Retries are rarer, and of the ready some are about to run.
    const retries = images.filter(({ state }) => state === 'retry-wait');
    const id = dice.pick(retries.length > 0 ? retries : images).taskId;
    const handlerVersion = 1 + dice.below(2);
    return this.#call(
      `pin ${id} ${handlerVersion}`,
      () => this.#scheduler.update(id, { handlerVersion }),
      () => {},
    );
  }

  /** Occurrences that stand so in the store. */
  #inState(...states: string[]): RawOccurrence[] {
    const found: RawOccurrence[] = [];
    for (const id of this.tasks) {
      const known = this.#options.oracle.shadow.visible.get(id);
      for (const record of known?.occurrences.values() ?? []) {
        if (states.includes(record.state)) found.push(record);
      }
    }
    return found;
  }

  async cancelOccurrence(id: string): Promise<unknown> {
    const { dice } = this.#options;
    const retries = dice.chance(0.5) ? this.#inState('retry-wait') : [];
    if (retries.length > 0) return this.#cancelOccurrence(dice.pick(retries).id);
    const page = await this.#call(
      'occurrences',
      () => this.#scheduler.occurrences(id),
      () => {},
    );
    if (page === undefined || page.items.length === 0) return undefined;
    return this.#cancelOccurrence((dice.pick(page.items) as Occurrence).id);
  }

  #cancelOccurrence(id: string): Promise<unknown> {
    return this.#call(
      `cancelOccurrence ${id}`,
      () => this.#scheduler.cancelOccurrence(id),
      (done) => {
        if (done) this.#options.oracle.promises.cancelled(id);
      },
    );
  }

  async redrive(): Promise<unknown> {
    const page = await this.#call(
      'deadLetters',
      () => this.#scheduler.deadLetters(),
      () => {},
    );
    if (page === undefined || page.items.length === 0) return undefined;
    const { id } = this.#options.dice.pick(page.items) as Occurrence;
    return this.#call(
      `redrive ${id}`,
      () => this.#scheduler.redrive(id),
      () => {},
    );
  }

  delete(id: string): Promise<unknown> {
    this.#options.oracle.promises.deleted(id);
    return this.#call(
      `delete ${id}`,
      () => this.#scheduler.delete(id),
      (done) => {
        if (done) this.tasks.splice(this.tasks.indexOf(id), 1);
      },
    ).then((done) => {
      // It lives still, or nobody knows.
      if (done === false) this.#options.oracle.promises.created(id);
      return done;
    });
  }

  limits(): Promise<unknown> {
    const { dice } = this.#options;
    const limits = dice.pick([
      { maxConcurrency: 1 },
      { maxConcurrency: 2, maxRatePerSecond: 5 },
      {},
    ]);
    return this.#call(
      'setTenantLimits',
      () => this.#scheduler.setTenantLimits(dice.pick(['c', 'd']), limits),
      () => {},
    );
  }

  look(id: string): Promise<unknown> {
    const scheduler = this.#scheduler;
    return this.#call(
      'look',
      async () => {
        const [task, list] = await Promise.all([scheduler.get(id), scheduler.list({ limit: 20 })]);
        const stats = await scheduler.stats();
        if (task?.lastOccurrenceId !== undefined)
          await scheduler.attempts(task.lastOccurrenceId).catch(() => {});
        return [task, list, stats];
      },
      () => {},
    );
  }
}

const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'allowAll', 'cancelOther'] as const;

function nameOf(scope: { tenant: string } | { handler: string }): string {
  return 'tenant' in scope ? `tenant ${scope.tenant}` : `handler ${scope.handler}`;
}
