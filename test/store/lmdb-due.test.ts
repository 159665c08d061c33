/** The due index of the LMDB store, against a sorted list: what comes near comes in time, and nothing is lost or left. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OccurrenceRecord } from '../../src/core/model.js';
import type { DueWindow, NearRoom, Unit } from '../../src/store/store.js';
import {
  completed,
  creating,
  ended,
  idOf,
  next,
  occurrenceOf,
  START_MS,
  taskOf,
  writing,
} from './builders.js';
import { lmdbBed } from './lmdb-bed.js';

const SEED = Number(process.env.DUE_SEED ?? 20_261_130);
const MINUTE = 60_000;
const DAY = 86_400_000;
const bed = lmdbBed();

function dueOf(n: number, dueAt: number): { unit: Unit; record: OccurrenceRecord } {
  const task = taskOf(n, { schedule: { kind: 'once', at: dueAt } });
  const record = occurrenceOf(task);
  return { unit: creating(task, record), record };
}

function roomFor(total: number): NearRoom {
  return { total, of: () => total, crowded: [] };
}

/** All that `load` gives now, by occurrence. */
async function near(into: Map<string, number>, room = 1_000_000): Promise<number> {
  for (let steps = 0; ; steps++) {
    expect(steps).toBeLessThan(10_000);
    const step = await (bed.session.due as DueWindow).load(
      bed.clock.now(),
      roomFor(room - into.size),
    );
    for (const entry of step.entries) into.set(entry.occurrenceId, entry.dueAt);
    if (!step.more) return step.nextAtMs;
  }
}

describe('the near window', () => {
  it('leaves what is far on disk until it comes near, and says when to ask', async () => {
    const tenYears = dueOf(1, START_MS + 3650 * DAY);
    const hourly = Array.from({ length: 24 * 365 }, (_, n) =>
      dueOf(10 + n, START_MS + (n + 1) * 60 * MINUTE),
    );
    await bed.commit([tenYears.unit, ...hourly.map(({ unit }) => unit)]);
    const known = new Map<string, number>();
    const nextAtMs = await near(known);
    expect(known.size).toBeLessThan(100);
    expect(nextAtMs).toBeGreaterThan(START_MS);
    expect(bed.session.due?.earliestMs()).toBeLessThanOrEqual(START_MS + 100 * 60 * MINUTE);
    await bed.clock.advanceTo(START_MS + 200 * 60 * MINUTE);
    await near(known);
    for (const { record } of hourly.slice(0, 200)) expect(known.get(record.id)).toBe(record.dueAt);
    expect(known.has(tenYears.record.id)).toBe(false);
    await bed.clock.advanceTo(START_MS + 3650 * DAY);
    await near(known);
    expect(known.get(tenYears.record.id)).toBe(tenYears.record.dueAt);
  });

  it('says that something was told only when its bucket has been looked through', async () => {
    const made = Array.from({ length: 3000 }, (_, n) => dueOf(n, START_MS + 5000 + (n % 1000)));
    await bed.commit(made.map(({ unit }) => unit));
    const window = bed.session.due as DueWindow;
    const given = new Set<string>();
    const isTold = ({ record }: { record: OccurrenceRecord }) =>
      window.isTold(record, record.dueAt);
    let steps = 0;
    for (let more = true; more; steps++) {
      const step = await window.load(START_MS + 20_000, roomFor(10_000));
      for (const { occurrenceId } of step.entries) given.add(occurrenceId);
      for (const each of made) {
        if (isTold(each)) expect(given.has(each.record.id)).toBe(true);
      }
      more = step.more;
    }
    expect(steps).toBeGreaterThan(3);
    expect(given.size).toBe(made.length);
    expect(made.every(isTold)).toBe(true);
  });

  it('moves, pauses and cancels what is far without leaving anything behind', async () => {
    const made = Array.from({ length: 300 }, (_, n) => dueOf(n, START_MS + 40 * DAY + n));
    await bed.commit([...made.map(({ unit }) => unit)]);
    const moved = made.map(({ record }) => next(record, { dueAt: record.dueAt + DAY }));
    await bed.commit([...moved.map((record) => writing(undefined, record))]);
    const paused = made.map((_, n) => {
      const dueAt = START_MS + 40 * DAY + n;
      return next(taskOf(n, { schedule: { kind: 'once', at: dueAt } }), {
        state: 'paused' as const,
        pausedAt: START_MS,
      });
    });
    await bed.commit([...paused.map((task) => writing(task))]);
    await bed.commit([
      ...moved.map((record) => writing(undefined, ended(record, 'cancelled', START_MS))),
    ]);
    await bed.session.commit([]).durable;
    // Nothing is left that would come near, and no bucket that it would come in.
    const known = new Map<string, number>();
    await bed.reopen();
    await bed.clock.advance(50 * DAY);
    expect(await near(known)).toBe(Number.POSITIVE_INFINITY);
    expect([...known]).toEqual([]);
    expect(bed.session.due?.earliestMs()).toBeUndefined();
  });

  it('tells after a restart what ran', async () => {
    const [first, second, third] = [0, 1, 2].map((n) => dueOf(n, START_MS));
    if (first === undefined || second === undefined || third === undefined) throw new Error();
    await bed.commit([first.unit, second.unit, third.unit]);
    const runs = [first, second].map(({ record }) =>
      next(record, { state: 'running', attempt: 1, token: 2 ** 32 + 1 }),
    );
    await bed.commit([...runs.map((record) => writing(undefined, record))]);
    const [over] = runs;
    const task = taskOf(0, { schedule: { kind: 'once', at: START_MS } });
    await bed.commit([
      writing(
        completed(task, 'succeeded', START_MS),
        ended(over as OccurrenceRecord, 'succeeded', START_MS),
      ),
    ]);
    await bed.reopen();
    expect(bed.session.due?.runningTasks()).toEqual([idOf(1)]);
  });
});

describe('loading and splitting', () => {
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('create' as const),
      count: fc.constantFrom(1, 3, 80, 400),
      inMs: fc.oneof(
        fc.integer({ min: -1000, max: 5 * MINUTE }),
        fc.integer({ min: 0, max: 3 * DAY }),
        fc.integer({ min: 0, max: 300 * DAY }),
      ),
      apartMs: fc.constantFrom(0, 1, 777, 61_000, 3_700_000),
    }),
    fc.record({
      kind: fc.constant('move' as const),
      pick: fc.nat(),
      inMs: fc.integer({ min: 0, max: 2 * DAY }),
    }),
    fc.record({ kind: fc.constant('end' as const), pick: fc.nat() }),
    fc.record({
      kind: fc.constant('advance' as const),
      ms: fc.constantFrom(500, MINUTE, 90 * MINUTE, DAY),
    }),
    fc.constant({ kind: 'load' as const }),
    fc.constant({ kind: 'reopen' as const }),
  );

  it(`gives all in time, whatever happens, with little room (DUE_SEED=${SEED})`, async () => {
    const property = fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 40 }),
      async (actions) => {
        await bed.anew();
        const model = new Engine();
        for (const each of actions) await model.play(each);
        await bed.clock.advance(400 * DAY);
        await model.load();
        model.expectDueKnown();
        for (const record of model.pending.values()) {
          expect(model.known.get(record.id)).toBe(record.dueAt);
        }
      },
    );
    await fc.assert(property, { seed: SEED, numRuns: 20 });
  });
});

type Action = {
  readonly kind: 'create' | 'move' | 'end' | 'advance' | 'load' | 'reopen';
  readonly count?: number;
  readonly inMs?: number;
  readonly apartMs?: number;
  readonly pick?: number;
  readonly ms?: number;
};

/** What an engine does with a due window, as a sorted list would have it: all pending, and what it was told of them. */
class Engine {
  readonly pending = new Map<string, OccurrenceRecord>();
  readonly known = new Map<string, number>();
  #made = 0;

  async play(each: Action): Promise<void> {
    const nowMs = bed.clock.now();
    const { kind, count = 0, inMs = 0, apartMs = 0, pick = 0, ms = 0 } = each;
    if (kind === 'create') await this.#create(count, nowMs + inMs, apartMs);
    else if (kind === 'advance') await bed.clock.advance(ms);
    else if (kind === 'load') {
      await this.load();
      this.expectDueKnown();
    } else if (kind === 'reopen') {
      await bed.reopen();
      this.known.clear();
    } else {
      const record = [...this.pending.values()][pick % Math.max(1, this.pending.size)];
      if (record === undefined) return;
      const changed =
        kind === 'end' ? ended(record, 'cancelled', nowMs) : next(record, { dueAt: nowMs + inMs });
      await bed.commit([writing(undefined, changed)]);
      this.pending.delete(record.id);
      if (kind === 'end') this.known.delete(record.id);
      else this.#see(changed);
    }
  }

  async #create(count: number, dueAt: number, apartMs: number): Promise<void> {
    const some = Array.from({ length: count }, (_, i) => dueOf(this.#made++, dueAt + i * apartMs));
    await bed.commit([...some.map(({ unit }) => unit)]);
    for (const { record } of some) this.#see(record);
  }

  #see(record: OccurrenceRecord): void {
    const { id, dueAt } = record;
    this.pending.set(id, record);
    if (bed.session.due?.isNear(record, dueAt)) this.known.set(id, dueAt);
    else if (this.known.get(id) !== dueAt) this.known.delete(id);
  }

  /** Room for so few that buckets must be split; more room comes whenever the store wants it. */
  async load(): Promise<void> {
    for (let steps = 0; ; steps++) {
      expect(steps).toBeLessThan(20_000);
      const step = await (bed.session.due as DueWindow).load(bed.clock.now(), roomFor(1100));
      for (const { occurrenceId, dueAt } of step.entries) this.known.set(occurrenceId, dueAt);
      if (!step.more && step.nextAtMs > bed.clock.now() + 20) return;
    }
  }

  expectDueKnown(): void {
    for (const { id, dueAt } of this.pending.values()) {
      if (dueAt <= bed.clock.now()) expect(this.known.get(id)).toBe(dueAt);
    }
  }
}
