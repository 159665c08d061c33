/** Callers of a scheduler that may be killed at any instant. All that they ask for is over within seconds. */
import {
  type Clock,
  fixedDelay,
  fixedRate,
  type Schedule,
  type ScheduleOptions,
  type Scheduler,
} from '../../src/index.js';
import type { Dice } from '../simulation/dice.js';
import type { handlersOf, Work } from './handlers.js';
import type { Line, Told } from './journal.js';

export type FaultsHandlers = ReturnType<typeof handlersOf>;

/** Keys of all rounds: each is asked for again and again. */
const KEYS = 40;
const RETRY = { maxAttempts: 4, initialBackoff: 20, multiplier: 1.5 };
/** At most so many waits between two calls of one caller, ms. */
const PAUSE_MS = 12;
const CALLERS = 6;

export interface Surroundings {
  readonly scheduler: Scheduler<FaultsHandlers>;
  readonly clock: Clock;
  readonly note: (line: Line) => void;
}

/** Never resolves. */
export async function callForEver(around: Surroundings, dice: Dice): Promise<void> {
  await Promise.all(Array.from({ length: CALLERS }, () => new Caller(around, dice.fork()).run()));
}

class Caller {
  readonly #around: Surroundings;
  readonly #dice: Dice;
  /** Told, and perhaps not started yet. */
  readonly #mine: string[] = [];

  constructor(around: Surroundings, dice: Dice) {
    this.#around = around;
    this.#dice = dice;
  }

  async run(): Promise<void> {
    for (;;) {
      await this.#call();
      await this.#around.clock.sleep(this.#dice.below(PAUSE_MS));
    }
  }

  async #call(): Promise<void> {
    switch (this.#dice.weighted({ one: 8, many: 2, keyed: 5, recurring: 1, cancel: 2 })) {
      case 'one':
        return this.#one();
      case 'many':
        return this.#many();
      case 'keyed':
        return this.#keyed(this.#dice.below(KEYS));
      case 'recurring':
        return this.#recurring();
      case 'cancel':
        return this.#cancel();
    }
  }

  #work(notBeforeMs: number): Work {
    const ms = this.#dice.pick([0, 0, 1, 5, 20, 60]);
    return { notBeforeMs, ms, failing: this.#dice.pick([0, 0, 0, 0, 1, 2, 9]) };
  }

  /** Now, soon, or later than most kills. */
  #dueMs(): number {
    return this.#around.clock.now() + this.#dice.pick([0, 0, 5, 50, 200, 900]);
  }

  async #one(): Promise<void> {
    const dueMs = this.#dueMs();
    const options = { runAt: dueMs, retry: RETRY, priority: this.#dice.below(10) };
    await this.#schedule(this.#work(dueMs), options);
  }

  async #schedule(work: Work, options: ScheduleOptions): Promise<void> {
    const { scheduler, note } = this.#around;
    const key = options.idempotencyKey;
    note({ kind: 'asking', ...(key === undefined ? {} : { key }) });
    const { id, created } = await scheduler.schedule('work', work, options);
    note({ kind: 'told', tasks: [{ id, key, created }] });
    this.#mine.push(id);
  }

  async #many(): Promise<void> {
    const { scheduler, note } = this.#around;
    const items = Array.from({ length: 1 + this.#dice.below(40) }, () => {
      const dueMs = this.#dueMs();
      return {
        handler: 'work' as const,
        payload: this.#work(dueMs),
        options: { runAt: dueMs, retry: RETRY },
      };
    });
    note({ kind: 'asking' });
    const tasks: Told[] = [];
    for (const made of await scheduler.scheduleMany(items)) {
      if (made instanceof Error) throw made;
      tasks.push({ id: made.id, created: made.created });
      this.#mine.push(made.id);
    }
    note({ kind: 'told', tasks });
  }

  /** The definition follows from the key. */
  async #keyed(n: number): Promise<void> {
    const work = { notBeforeMs: 0, ms: n % 30, failing: n % 3 };
    await this.#schedule(work, { idempotencyKey: `key-${n}`, retry: RETRY });
  }

  async #recurring(): Promise<void> {
    const limit = 2 + this.#dice.below(6);
    const everyMs = this.#dice.pick([20, 60, 150]);
    const schedule: Schedule = this.#dice.chance(0.5)
      ? fixedRate({ every: everyMs, limit })
      : fixedDelay({ delay: everyMs, limit });
    const catchup =
      schedule.kind === 'fixedRate' ? { catchup: this.#dice.pick(['latest', 'all'] as const) } : {};
    await this.#schedule(
      { ...this.#work(0), failing: this.#dice.below(2) },
      { schedule, retry: RETRY, ...catchup },
    );
  }

  async #cancel(): Promise<void> {
    const { scheduler, note } = this.#around;
    const taskId = this.#mine.pop();
    if (taskId === undefined) return;
    if (await scheduler.cancel(taskId)) note({ kind: 'cancelled', taskId });
  }
}
