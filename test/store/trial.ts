/** A store under test: opened, driven, and looked at. */
import assert from 'node:assert/strict';
import { nextTurn } from '../../src/clock/turn.js';
import type { VirtualClock } from '../../src/clock/virtual.js';
import type { OccurrenceRecord, TaskRecord, TaskView } from '../../src/core/model.js';
import type {
  Page,
  PageQuery,
  Refusal,
  Retention,
  Store,
  StoreCounts,
  StoreSession,
  Unit,
} from '../../src/store/store.js';
import { HOUR_MS } from './builders.js';

export interface Subject {
  readonly store: Store;
  /** The clock that `open` is given; it stands at START_MS or later. */
  readonly clock: VirtualClock;
  /** Ends the session as the death of its process would; the store can be opened again afterwards. */
  readonly crash?: () => void | Promise<void>;
  /** A crash always loses what is visible and not durable, because flushes take time. */
  readonly crashLosesVisible?: boolean;
  /** The counts from the records themselves. */
  readonly recount?: () => StoreCounts | Promise<StoreCounts>;
  readonly dispose?: () => void | Promise<void>;
}

export type MakeSubject = () => Subject | Promise<Subject>;

export interface Check {
  /** The promise of src/store/store.ts that it holds the store to, or what it asks for. */
  readonly of: string;
  readonly name: string;
  /** A check that the subject must offer something for. */
  readonly needs?: 'crash' | 'recount';
  run(trial: Trial): Promise<void>;
}

export const RETENTION: Retention = { succeededMs: HOUR_MS, failedMs: 10 * HOUR_MS };

/** Turns of the event loop after which something that never ends is given up on. */
const TURNS_MAX = 200_000;

export class Trial {
  readonly subject: Subject;
  readonly clock: VirtualClock;
  session: StoreSession;

  private constructor(subject: Subject, session: StoreSession) {
    this.subject = subject;
    this.clock = subject.clock;
    this.session = session;
  }

  static async open(make: MakeSubject): Promise<Trial> {
    const subject = await make();
    const { store, clock } = subject;
    return new Trial(subject, await store.open({ clock, retention: RETENTION }));
  }

  /** Lets time pass for a store that waits for it. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let over = false;
    const mark = (): void => {
      over = true;
    };
    promise.then(mark, mark);
    for (let turns = 0; !over; turns++) {
      assert(turns < TURNS_MAX, 'the store never answered');
      // A millisecond at first, so that moments can be told apart; then ever more, for long waits.
      if (this.session.waitsForClock) await this.clock.advance(2 ** Math.max(0, turns - 20));
      else await nextTurn();
    }
    return promise;
  }

  /** Resolves when visible, and checks that nothing was refused. */
  async commit(...units: Unit[]): Promise<void> {
    assert.deepEqual(await this.refusals(...units), []);
  }

  refusals(...units: Unit[]): Promise<readonly Refusal[]> {
    return this.settle(this.session.commit(units).visible);
  }

  async commitDurably(...units: Unit[]): Promise<void> {
    const { visible, durable } = this.session.commit(units);
    assert.deepEqual(await this.settle(visible), []);
    await this.settle(durable);
  }

  async view(id: string): Promise<TaskView | undefined> {
    return (await this.session.views([id]))[0];
  }

  /** The task and its live occurrences are exactly these. */
  async expectView(task: TaskRecord, ...live: OccurrenceRecord[]): Promise<void> {
    assertSame(await this.view(task.id), { task, live });
  }

  async pages<T>(read: (query: PageQuery) => Promise<Page<T>>, limit: number): Promise<T[]> {
    const all: T[] = [];
    let cursor: string | undefined;
    for (let pages = 0; ; pages++) {
      assert(pages < 10_000, 'the pages never end');
      const page = await read({ limit, cursor });
      assert(page.items.length <= limit, 'a page is no longer than asked for');
      all.push(...page.items);
      if (page.cursor === undefined) return all;
      cursor = page.cursor;
    }
  }

  async prune(nowMs: number): Promise<number> {
    let removed = 0;
    for (let steps = 0; ; steps++) {
      assert(steps < 1000, 'pruning never ends');
      const step = await this.session.prune(nowMs, 100);
      assert(step.removed <= 100, 'prune removes no more than asked for');
      removed += step.removed;
      if (step.nextAtMs === undefined || step.nextAtMs > nowMs) return removed;
    }
  }

  async reopen(): Promise<void> {
    await this.settle(this.session.close());
    await this.openAgain();
  }

  async openAgain(): Promise<void> {
    this.session = await this.subject.store.open({ clock: this.clock, retention: RETENTION });
  }

  async dispose(): Promise<void> {
    await this.settle(this.session.close());
    await this.subject.dispose?.();
  }
}

/** Deep equality in every field, present with undefined as much as with a value; any kind of byte array. */
export function assertSame(actual: unknown, expected: unknown): void {
  assert.deepStrictEqual(plain(actual), plain(expected));
}

export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return new Map([...value].map(([key, held]) => [key, plain(held)]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, plain(held)]));
}

export async function assertRejects(promise: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(promise, (error: { code?: unknown }) => {
    assert.equal(error.code, code);
    return true;
  });
}

/** The order in which promises resolve. */
export async function orderOf(
  t: Trial,
  named: Record<string, Promise<unknown>>,
): Promise<string[]> {
  const order: string[] = [];
  for (const [name, promise] of Object.entries(named)) promise.then(() => order.push(name));
  await t.settle(Promise.all(Object.values(named)));
  return order;
}
