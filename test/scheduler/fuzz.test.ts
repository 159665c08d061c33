/**
 * Random lives of a scheduler: calls in any order, time, crashes and restarts, against the invariants (their numbers are the
 * design's). A failing run prints its seed; `FUZZ_SEED=n npx vitest run test/scheduler/fuzz.test.ts` repeats it.
 */
import { describe, expect, it } from 'vitest';
import {
  type Context,
  cron,
  fixedDelay,
  fixedRate,
  memoryStore,
  type Occurrence,
  type ScheduleOptions,
  StoreFullError,
  TickwheelError,
} from '../../src/index.js';
import { type Bed, type BedOptions, close, newClock, openBed, seeded } from './helpers.js';

const { FUZZ_SEED, FUZZ_RUNS = '16' } = process.env;
const SEEDS = FUZZ_SEED
  ? [Number(FUZZ_SEED)]
  : Array.from({ length: Number(FUZZ_RUNS) }, (_, n) => n + 1);
const STEPS = 80;

interface Kinds {
  [name: string]: (payload: unknown, ctx: Context) => unknown;
}

class Life {
  readonly clock = newClock();
  readonly store;
  readonly random: () => number;
  bed!: Bed<Kinds>;
  life = 0;
  jumpedBackAt = Number.NEGATIVE_INFINITY;
  readonly tasks: string[] = [];
  readonly violations: string[] = [];
  readonly #tokens = new Map<string, number>();
  readonly #inside = new Map<string, number>();
  readonly #cancelled = new Set<string>();
  readonly #paused = new Set<string>();

  constructor(seed: number) {
    this.random = seeded(seed);
    const slow = this.random() < 0.3;
    const fullShare = this.random() < 0.3 ? 0.05 : 0;
    this.store = memoryStore({
      ...(slow ? { commitDelay: 2, flushDelay: 5 } : {}),
      fail: () => (this.random() < fullShare ? new StoreFullError('no space') : undefined),
    });
  }

  below(n: number): number {
    return Math.floor(this.random() * n);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  async open(): Promise<void> {
    this.life++;
    const options: BedOptions = {
      clock: this.clock,
      store: this.store,
      workers: { concurrency: 3 },
      limits: { maxReady: 8 },
      retention: { succeeded: '1000d', failed: '1000d' },
      tenants: { b: { maxConcurrency: 1 }, c: { maxRatePerSecond: 2 } },
      leaseDuration: '3s',
      timeoutGrace: '1s',
    };
    this.bed = await openBed(this.#handlers(this.life), options);
    await this.await(this.bed.scheduler.start());
    if (this.bed.scheduler.state !== 'running') this.violations.push('it did not start');
  }

  #handlers(life: number): Kinds {
    const enter = (ctx: Context) => this.#entered(life, ctx);
    const leave = (ctx: Context) => this.#left(life, ctx);
    const kinds: Kinds = {
      quick: () => 'done',
      nap: async (_, ctx) => {
        for (let i = this.below(4); i >= 0; i--) {
          await ctx.sleep(this.below(2000));
          ctx.heartbeat(i);
        }
      },
      flaky: async (_, ctx) => {
        await ctx.sleep(this.below(50));
        if (this.random() < 0.6) throw new Error(`failed in life ${life}`);
      },
      parent: async (_, ctx) => {
        await ctx.schedule('quick', ctx.attempt, { delay: this.below(500) });
      },
    };
    const watched = Object.entries(kinds).map(([name, handler]) => [
      name,
      async (payload: unknown, ctx: Context) => {
        enter(ctx);
        try {
          return await handler(payload, ctx);
        } finally {
          leave(ctx);
        }
      },
    ]);
    return Object.fromEntries(watched);
  }

  #entered(life: number, ctx: Context): void {
    const { occurrenceId, fencingToken, taskId } = ctx;
    const say = (what: string) => this.violations.push(`${what}: ${occurrenceId}`);
    if (life !== this.life) say('started by a dead scheduler');
    // A start that was being committed when the clock went back cannot be held.
    const isFreshJump = this.clock.monotonic() - this.jumpedBackAt < 10;
    if (this.clock.now() < ctx.dueAt.getTime() && !isFreshJump) say('8 started early');
    if (fencingToken <= (this.#tokens.get(occurrenceId) ?? 0)) say('5 its token did not grow');
    if (this.#inside.get(occurrenceId) === life) say('4 runs twice at once');
    if (this.#cancelled.has(taskId)) say('7 started after cancel');
    if (this.#paused.has(taskId) && !/\.t\d+$/.test(occurrenceId)) say('11 started while paused');
    this.#tokens.set(occurrenceId, fencingToken);
    this.#inside.set(occurrenceId, life);
  }

  #left(life: number, { occurrenceId }: Context): void {
    if (this.#inside.get(occurrenceId) === life) this.#inside.delete(occurrenceId);
  }

  /** Time moves for what waits on it; refusals are answers too. */
  async await<T>(promise: Promise<T>): Promise<T | undefined> {
    let settled = false;
    const answer = promise.then(
      (value) => {
        settled = true;
        return value;
      },
      (error) => {
        settled = true;
        if (!(error instanceof TickwheelError)) throw error;
        return undefined;
      },
    );
    answer.catch(() => {});
    for (let i = 0; !settled && i < 200; i++) await this.clock.advance(1);
    if (!settled) this.violations.push('a call was never answered');
    return settled ? answer : undefined;
  }

  #options(): ScheduleOptions {
    const times: ScheduleOptions[] = [
      {},
      { delay: this.below(5000) },
      { schedule: fixedRate({ every: 500 + this.below(3000), limit: 1 + this.below(20) }) },
      { schedule: fixedDelay({ delay: 300 + this.below(3000), limit: 1 + this.below(10) }) },
      { schedule: cron('*/7 * * * * *', { jitter: this.below(900) }) },
    ];
    const when = this.pick(times);
    const recurs = when.schedule?.kind === 'fixedRate' || when.schedule?.kind === 'cron';
    return {
      ...when,
      tenant: this.pick(['a', 'b', 'c']),
      priority: this.below(10),
      retry: { maxAttempts: 1 + this.below(3), initialBackoff: this.below(800), jitter: 0.5 },
      catchup: this.pick(['latest', 'all', 'none'] as const),
      onExhausted: this.pick(['continue', 'continue', 'stop'] as const),
      ...(this.random() < 0.2 ? { ttl: this.below(1000) } : {}),
      ...(this.random() < 0.2 ? { timeout: 1 + this.below(3000) } : {}),
      ...(this.random() < 0.2 ? { idempotencyKey: `k${this.below(4)}` } : {}),
      ...(recurs
        ? {
            overlap: this.pick([
              'skip',
              'bufferOne',
              'bufferAll',
              'allowAll',
              'cancelOther',
            ] as const),
          }
        : {}),
    } as ScheduleOptions;
  }

  async #occurrenceOf(id: string): Promise<Occurrence | undefined> {
    const page = await this.await(this.bed.scheduler.occurrences(id));
    return page === undefined || page.items.length === 0 ? undefined : this.pick(page.items);
  }

  async step(): Promise<void> {
    const { scheduler } = this.bed;
    const id = this.tasks.length > 0 ? this.pick(this.tasks) : undefined;
    const dice = this.random();
    if (id === undefined || dice < 0.3) {
      const kind = this.pick(['quick', 'nap', 'flaky', 'parent']);
      const task = await this.await(scheduler.schedule(kind, this.below(100), this.#options()));
      if (task?.created) this.tasks.push(task.id);
    } else if (dice < 0.55) {
      await this.clock.advance(this.below(4000));
    } else if (dice < 0.6) {
      if (await this.await(scheduler.cancel(id))) this.#cancelled.add(id);
    } else if (dice < 0.66) {
      await this.await(scheduler.pause(id).then(() => this.#paused.add(id)));
    } else if (dice < 0.72) {
      this.#paused.delete(id);
      await this.await(scheduler.resume(id));
    } else if (dice < 0.76) {
      await this.await(scheduler.trigger(id));
    } else if (dice < 0.81) {
      await this.#update(id);
    } else if (dice < 0.84) {
      const occurrence = await this.#occurrenceOf(id);
      if (occurrence) await this.await(scheduler.cancelOccurrence(occurrence.id));
    } else if (dice < 0.87) {
      await this.#redrive();
    } else if (dice < 0.9) {
      const scope = this.pick([{ tenant: 'a' }, { tenant: 'b' }, { handler: 'nap' }]);
      await this.await(this.random() < 0.4 ? scheduler.pause(scope) : scheduler.resume(scope));
    } else if (dice < 0.92) {
      if (await this.await(scheduler.delete(id))) this.tasks.splice(this.tasks.indexOf(id), 1);
    } else if (dice < 0.94) {
      const jumpMs = this.random() < 0.7 ? this.below(20_000) : -this.below(3000);
      if (jumpMs < 0) this.jumpedBackAt = this.clock.monotonic();
      await this.clock.jumpWall(jumpMs);
    } else if (dice < 0.97) {
      await this.#restart(this.random() < 0.5 ? 'crash' : 'shutdown');
    } else {
      await this.clock.advance(this.below(60_000));
    }
  }

  async #redrive(): Promise<void> {
    const { scheduler } = this.bed;
    const dead = await this.await(scheduler.deadLetters());
    if (dead === undefined || dead.items.length === 0) return;
    const { id, taskId } = this.pick(dead.items);
    // A paused task that came to its end is paused no more.
    const task = await this.await(scheduler.get(taskId));
    if (task?.status !== 'paused') this.#paused.delete(taskId);
    await this.await(scheduler.redrive(id));
  }

  async #update(id: string): Promise<void> {
    const { tenant: _t, idempotencyKey: _k, overlap: _o, ...patch } = this.#options();
    await this.await(
      this.bed.scheduler.update(id, { ...patch, payload: this.below(10) } as object),
    );
  }

  async #restart(how: 'crash' | 'shutdown'): Promise<void> {
    const { bed } = this;
    if (how === 'crash') {
      this.life++;
      this.store.crash();
      await close(bed).catch(() => {});
    } else {
      await close(bed);
    }
    await this.clock.advance(this.below(10_000));
    await this.open();
  }

  /** Lets everything come to its end. */
  async end(): Promise<void> {
    const { scheduler } = this.bed;
    this.#paused.clear();
    for (const scope of [{ tenant: 'a' }, { tenant: 'b' }, { handler: 'nap' }]) {
      await this.#insist(() => scheduler.resume(scope).then(() => true));
    }
    for (const id of this.tasks) {
      const task = await this.await(scheduler.get(id));
      if (task?.status === 'paused')
        await this.#insist(() => scheduler.resume(id).then(() => true));
      if (task?.schedule.kind === 'cron') {
        await this.#insist(() => scheduler.cancel(id));
        this.#cancelled.add(id);
      }
    }
    for (let i = 0; i < 10; i++) await this.clock.advance('2m');
  }

  /** A full store refuses a call now and then. */
  async #insist<T>(call: () => Promise<T>): Promise<void> {
    for (let i = 0; i < 20; i++) if ((await this.await(call())) !== undefined) return;
  }

  async check(): Promise<void> {
    const { scheduler } = this.bed;
    const { pending, ready, running } = await scheduler.stats();
    expect({ pending, ready, running }).toEqual({ pending: 0, ready: 0, running: 0 });
    const stats = await scheduler.stats();
    const counted = this.store.recount();
    expect(stats.deadLetters).toBe(counted.deadLetters);
    for (const id of this.tasks) {
      const task = await scheduler.get(id);
      expect([id, task?.status]).toEqual([
        id,
        expect.stringMatching(/^(succeeded|failed|cancelled)$/),
      ]);
      const { items } = await scheduler.occurrences(id, { limit: 1000 });
      for (const occurrence of items) await this.#checkOccurrence(occurrence, task?.options.retry);
    }
    expect(this.violations).toEqual([]);
  }

  async #checkOccurrence(occurrence: Occurrence, retry?: { maxAttempts: number }): Promise<void> {
    const { id, status, failures, crashes, endedAt, reason } = occurrence;
    expect([id, endedAt]).toEqual([id, expect.any(Date)]);
    // An update may lower maxAttempts below what has failed already; 3 is the most there is here.
    expect([id, failures <= Math.max(3, retry?.maxAttempts ?? 3)]).toEqual([id, true]);
    expect([id, crashes <= 3]).toEqual([id, true]);
    if (status === 'skipped' || status === 'missed' || status === 'cancelled') {
      expect([id, status, reason]).toEqual([id, status, expect.any(String)]);
    }
    const attempts = await this.bed.scheduler.attempts(id);
    const tokens = attempts.map((attempt) => attempt.fencingToken);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    for (const { outcome } of attempts) expect([id, outcome]).not.toEqual([id, undefined]);
  }
}

describe('any sequence of calls, crashes and jumps', () => {
  it.each(SEEDS)('keeps the invariants (seed %i)', async (seed) => {
    const life = new Life(seed);
    await life.open();
    for (let step = 0; step < STEPS; step++) await life.step();
    await life.end();
    await life.check();
  });
});
