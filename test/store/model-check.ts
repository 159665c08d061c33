/** Runs one random history on a store and on the model, and compares all that can be asked of them. */
import assert from 'node:assert/strict';
import type { TaskView } from '../../src/core/model.js';
import { HOUR_MS, idOf } from './builders.js';
import { Model } from './model.js';
import { Random, RandomUnits } from './random-units.js';
import { assertSame, type MakeSubject, Trial } from './trial.js';

const BATCH_MAX = 12;

/** @throws with the seed that replays it */
export async function compareWithModel(
  make: MakeSubject,
  seed: number,
  steps: number,
): Promise<void> {
  const trial = await Trial.open(make);
  try {
    await new Comparison(trial, seed).run(steps);
  } catch (error) {
    throw new Error(`the store differs from the model; replay with STORE_SEED=${seed}`, {
      cause: error,
    });
  } finally {
    await trial.dispose();
  }
}

class Comparison {
  readonly #trial: Trial;
  readonly #random: Random;
  #model = new Model();
  readonly #units: RandomUnits;

  constructor(trial: Trial, seed: number) {
    this.#trial = trial;
    this.#random = new Random(seed);
    this.#units = new RandomUnits(this.#random, this.#model);
  }

  async run(steps: number): Promise<void> {
    const { clock } = this.#trial;
    for (let step = 0; step < steps; step++) {
      const roll = this.#random.below(100);
      if (roll < 70) await this.#commit();
      else if (roll < 80) await clock.advance(this.#random.below(HOUR_MS));
      else if (roll < 88) await this.#prune();
      else if (roll < 90) await this.#trial.reopen();
      else if (roll < 93 && this.#trial.subject.crashLosesVisible) await this.#crash();
      else await this.#compareSome();
    }
    await this.#compareAll();
  }

  /** What is durable stays; all that is only visible, and what was pruned after it, is taken back. */
  async #crash(): Promise<void> {
    const trial = this.#trial;
    await trial.settle(trial.session.commit([]).durable);
    const durable = this.#model.copy();
    for (let commits = this.#random.below(4); commits >= 0; commits--) await this.#commit();
    if (this.#random.chance(50)) await this.#prune();
    await trial.subject.crash?.();
    await trial.openAgain();
    this.#model = durable;
    this.#units.follow(durable);
    await this.#compareAll();
  }

  async #commit(): Promise<void> {
    const trial = this.#trial;
    const nowMs = trial.clock.now();
    const units = Array.from({ length: 1 + this.#random.below(BATCH_MAX) }, () =>
      this.#units.next(nowMs),
    );
    const refusals = await trial.refusals(...units);
    // A store with a delay applies the batch later than it was given.
    assertSame(refusals, this.#model.commit(units, trial.clock.now()));
  }

  async #prune(): Promise<void> {
    const nowMs = this.#trial.clock.now();
    await this.#trial.prune(nowMs);
    this.#model.prune(nowMs);
  }

  async #compareSome(): Promise<void> {
    const { session } = this.#trial;
    const ids = Array.from({ length: 10 }, () => idOf(this.#random.below(300)));
    const model = this.#model;
    assertSame(
      await session.views(ids),
      ids.map((id) => model.view(id)),
    );
    await this.#compareTask(this.#random.pick(ids));
    await this.#compareCounts();
  }

  async #compareTask(id: string): Promise<void> {
    const trial = this.#trial;
    const { session } = trial;
    const task = this.#model.tasks.get(id);
    const expected = [...(task?.occurrences.values() ?? [])].reverse();
    const limit = 1 + this.#random.below(5);
    const listed = await trial.pages((page) => session.listOccurrences(id, page), limit);
    assertSame(listed, expected);
    for (const record of expected) {
      assertSame(await session.occurrence(record.id), record);
      const attempts = task?.attempts.get(record.id) ?? [];
      assertSame(await session.attempts(record.id), attempts);
    }
  }

  async #compareCounts(): Promise<void> {
    const { session, subject } = this.#trial;
    const expected = { ...this.#model.counts(), bytes: 0 };
    assertSame({ ...(await session.counts()), bytes: 0 }, expected);
    const recounted = await subject.recount?.();
    if (recounted !== undefined) assertSame({ ...recounted, bytes: 0 }, expected);
  }

  async #compareAll(): Promise<void> {
    const trial = this.#trial;
    const { session } = trial;
    const model = this.#model;
    await this.#compareCounts();
    const tasks = await trial.pages((page) => session.listTasks(page), 7);
    // An id that was removed and made again: its place is the new one, or that of its id.
    const byTaskId = (a: TaskView, b: TaskView): number => (a.task.id < b.task.id ? -1 : 1);
    const views = [...model.tasks.keys()].map((id) => model.view(id) as TaskView);
    assertSame(tasks.toSorted(byTaskId), views.sort(byTaskId));
    const dead = await trial.pages((page) => session.listDeadLetters(page), 7);
    assertSame(dead, model.deadLetters());
    assertSame(await session.settings(), model.settings);
    for (const id of model.tasks.keys()) await this.#compareTask(id);
    const live = await trial.pages((page) => session.scanLive(page), 7);
    const byId = (entry: { occurrenceId: string }): string => entry.occurrenceId;
    const sorted = [...new Map(live.map((entry) => [byId(entry), entry])).values()];
    const order = (a: { occurrenceId: string }, b: { occurrenceId: string }): number =>
      byId(a) < byId(b) ? -1 : 1;
    assertSame(sorted.sort(order), model.live().sort(order));
    for (let n = 0; n < 12; n++) {
      for (const tenant of ['tenant-0', 'tenant-3']) {
        const nowMs = trial.clock.now();
        const holder = await session.taskIdOfKey(tenant, `key-${n}`, nowMs);
        assert.equal(holder, model.taskIdOfKey(tenant, `key-${n}`, nowMs));
      }
    }
  }
}
