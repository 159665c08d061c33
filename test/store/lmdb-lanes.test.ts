/** Crowded seconds of the LMDB store: what there is no room for stays on disk by lane, and holds up nobody else. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OccurrenceRecord } from '../../src/core/model.js';
import { verifyStore } from '../../src/store/lmdb/verify/verify.js';
import type { Lane, NearRoom } from '../../src/store/store.js';
import {
  completed,
  creating,
  ended,
  next,
  occurrenceOf,
  START_MS,
  taskOf,
  writing,
} from './builders.js';
import { lmdbBed } from './lmdb-bed.js';

const SEED = Number(process.env.LANES_SEED ?? 20_261_201);
const MINUTE = 60_000;
const WINDOW = 400;
const bed = lmdbBed();

type Of = Partial<Lane> & { readonly priority?: number };

/** The engine's part: what it was told, bounded as its loader bounds it. */
class Engine {
  readonly known = new Map<string, OccurrenceRecord>();
  readonly pending = new Map<string, OccurrenceRecord>();
  /** In the order in which it came. */
  readonly given: OccurrenceRecord[] = [];
  readonly parked = new Set<string>();
  #made = 0;
  #crowded: Lane[] = [];
  knownMax = 0;

  room(): NearRoom {
    const crowded = this.#crowded;
    this.#crowded = [];
    return { total: WINDOW - this.known.size, of: (lane) => this.roomOf(lane), crowded };
  }

  roomOf(lane: Lane): number {
    const max = this.parked.has(lane.tenant) ? 64 : WINDOW - this.known.size;
    return max - this.countOf(lane.tenant);
  }

  countOf(tenant: string): number {
    let count = 0;
    for (const record of this.known.values()) if (record.tenant === tenant) count++;
    return count;
  }

  #know(record: OccurrenceRecord): void {
    this.known.set(record.id, record);
    this.knownMax = Math.max(this.knownMax, this.known.size);
  }

  async create(count: number, dueAt: number, of: Of | ((n: number) => Of)): Promise<void> {
    const made = Array.from({ length: count }, (_, i) => {
      const { tenant = 'acme', priority = 5, ...rest } = typeof of === 'function' ? of(i) : of;
      const schedule = { kind: 'once', at: dueAt } as const;
      const task = taskOf(this.#made++, { tenant, priority, schedule, ...rest });
      return { task, record: occurrenceOf(task) };
    });
    for (let from = 0; from < made.length; from += 250) {
      const some = made.slice(from, from + 250);
      await bed.commit(some.map(({ task, record }) => creating(task, record)));
      for (const { record } of some) this.#committed(record);
      await this.step();
    }
  }

  #committed(record: OccurrenceRecord): void {
    this.pending.set(record.id, record);
    if (bed.session.due?.isNear(record, record.dueAt)) {
      if (this.roomOf(record) <= 0) this.#crowded.push(record);
      this.#know(record);
    } else if (this.known.get(record.id)?.dueAt !== record.dueAt) this.known.delete(record.id);
  }

  async step(): Promise<boolean> {
    const step = await bed.session.due?.load(bed.clock.now(), this.room());
    for (const { occurrenceId, dueAt } of step?.entries ?? []) {
      const record = this.pending.get(occurrenceId);
      if (record === undefined || record.dueAt !== dueAt) continue;
      if (!this.known.has(occurrenceId)) this.given.push(record);
      this.#know(record);
    }
    return step?.more === true;
  }

  async load(): Promise<void> {
    for (let steps = 0; await this.step(); steps++) expect(steps).toBeLessThan(2000);
  }

  /** Ends what is due and known, `max` at most. */
  async run(max: number, tenant?: string): Promise<number> {
    const due = [...this.known.values()].filter(
      (record) =>
        record.dueAt <= bed.clock.now() && (tenant === undefined || record.tenant === tenant),
    );
    await this.end(due.slice(0, max));
    return Math.min(due.length, max);
  }

  async end(records: readonly OccurrenceRecord[]): Promise<void> {
    const units = records.map((record) => {
      const { tenant, id } = record;
      const schedule = { kind: 'once', at: record.nominalAt } as const;
      const task = { ...taskOf(0, { tenant, schedule }), id: record.taskId, lastOccurrenceId: id };
      return writing(
        completed(task, 'succeeded', bed.clock.now()),
        ended(record, 'succeeded', bed.clock.now()),
      );
    });
    await bed.commit(units);
    for (const { id } of records) {
      this.known.delete(id);
      this.pending.delete(id);
    }
  }

  async move(record: OccurrenceRecord, dueAt: number): Promise<void> {
    const moved = next(record, { dueAt });
    await bed.commit([writing(undefined, moved)]);
    this.#committed(moved);
  }

  /** Until nothing is left of what is due. */
  async drain(): Promise<void> {
    for (let rounds = 0; ; rounds++) {
      expect(rounds).toBeLessThan(1000);
      await this.load();
      if ((await this.run(200)) === 0) return;
    }
  }
}

async function expectVerified(): Promise<void> {
  await bed.session.commit([]).durable;
  const { disagreements, notCompared } = await verifyStore({
    path: bed.path,
    nowMs: () => bed.clock.now(),
  });
  expect({ disagreements, notCompared }).toEqual({ disagreements: [], notCompared: [] });
}

async function expectNothingLeft(): Promise<void> {
  await bed.reopen();
  await bed.clock.advance(MINUTE);
  expect(bed.session.due?.earliestMs()).toBeUndefined();
}

describe('a crowded second', () => {
  const AT = START_MS + 10 * MINUTE;

  it.each([
    ['one behind the other', false],
    ['mixed', true],
  ])('leaves room for another tenant, whose entries lie with them %s', async (_, isMixed) => {
    const engine = new Engine();
    if (isMixed) {
      await engine.create(3000, AT, (n) => ({ tenant: n % 60 === 0 ? 'small' : `big${n % 3}` }));
    } else {
      await engine.create(2950, AT, { tenant: 'big' });
      await engine.create(50, AT, { tenant: 'small' });
    }
    await bed.clock.advanceTo(AT);
    await engine.load();
    expect(engine.countOf('small')).toBe(50);
    expect(engine.knownMax).toBeLessThanOrEqual(WINDOW + 64);
    await expectVerified();
    await engine.drain();
    expect(engine.pending.size).toBe(0);
    expect(engine.knownMax).toBeLessThanOrEqual(WINDOW + 64);
    await expectVerified();
    await expectNothingLeft();
  });

  it('gives of a lane what is urgent first, and then what was due first', async () => {
    const engine = new Engine();
    await engine.create(600, AT, { priority: 5 });
    await engine.create(600, AT + 1000, { priority: 5 });
    await engine.create(600, AT + 1000, { priority: 2 });
    await bed.clock.advanceTo(AT + 5000);
    await engine.load();
    const before = engine.given.length;
    await engine.drain();
    const rest = engine.given.slice(before).map(({ dueAt, taskId }) => ({ dueAt, taskId }));
    const urgent = rest.findIndex(({ dueAt }) => dueAt === AT);
    expect(rest.slice(0, urgent).every(({ dueAt }) => dueAt === AT + 1000)).toBe(true);
    const late = rest.slice(urgent).map(({ dueAt }) => dueAt);
    expect(late).toEqual([...late].sort((a, b) => a - b));
    expect(engine.pending.size).toBe(0);
  });

  it('is read again after a restart, also one that came while it was read', async () => {
    const engine = new Engine();
    await engine.create(2000, AT, (n) => ({ tenant: n % 2 === 0 ? 'big' : 'bigger' }));
    await bed.clock.advanceTo(AT);
    await engine.step();
    await engine.step();
    await engine.run(100);
    await expectVerified();
    await bed.reopen();
    engine.known.clear();
    await engine.drain();
    expect(engine.pending.size).toBe(0);
    await expectNothingLeft();
  });

  it('keeps a lane that cannot start out of memory but for a few, and others go on', async () => {
    const engine = new Engine();
    engine.parked.add('paused');
    await engine.create(1000, AT, { tenant: 'paused' });
    await engine.create(200, AT, { tenant: 'other' });
    await bed.clock.advanceTo(AT);
    await engine.load();
    expect(engine.countOf('paused')).toBe(64);
    expect(engine.countOf('other')).toBeGreaterThan(100);
    while ((await engine.run(200, 'other')) > 0) await engine.load();
    expect(engine.pending.size).toBe(1000);
    engine.parked.clear();
    await engine.drain();
    expect(engine.pending.size).toBe(0);
  });
});

describe('what is created within the near window', () => {
  it('stays on disk when its lane has no room, and comes when it has', async () => {
    const engine = new Engine();
    await engine.load();
    await engine.create(5000, START_MS + 30_000, { tenant: 'big' });
    // A step may bring too many; the next does not.
    expect(engine.knownMax).toBeLessThanOrEqual(WINDOW + 250);
    await engine.create(10, START_MS + 20_000, { tenant: 'small' });
    expect(engine.countOf('small')).toBe(10);
    await expectVerified();
    await bed.clock.advance(30_000);
    await engine.drain();
    expect(engine.pending.size).toBe(0);
    await expectVerified();
    // The lane is open again.
    await engine.create(1, bed.clock.now(), { tenant: 'big' });
    expect(engine.known.size).toBe(1);
    await engine.drain();
    await expectNothingLeft();
  });

  it('is found by what changes it, wherever it is kept', async () => {
    const engine = new Engine();
    await engine.load();
    await engine.create(2000, START_MS + 30_000, { tenant: 'big' });
    const kept = [...engine.pending.values()].filter(({ id }) => !engine.known.has(id));
    expect(kept.length).toBeGreaterThan(1000);
    await engine.end(kept.slice(0, 300));
    for (const record of kept.slice(300, 320)) await engine.move(record, START_MS + 20 * MINUTE);
    await expectVerified();
    await bed.clock.advance(30_000);
    await engine.drain();
    expect(engine.pending.size).toBe(20);
    await bed.clock.advance(20 * MINUTE);
    await engine.drain();
    expect(engine.pending.size).toBe(0);
    await expectNothingLeft();
  });
});

describe('whatever happens', () => {
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('create' as const),
      count: fc.constantFrom(1, 7, 120, 700),
      inMs: fc.oneof(
        fc.integer({ min: -5000, max: 2 * MINUTE }),
        fc.integer({ min: 0, max: 200 * MINUTE }),
      ),
      lanes: fc.constantFrom(1, 2, 30),
      shift: fc.nat(3),
    }),
    fc.record({ kind: fc.constant('move' as const), pick: fc.nat(), inMs: fc.nat(5 * MINUTE) }),
    fc.record({ kind: fc.constant('end' as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant('run' as const), max: fc.constantFrom(1, 50, 300) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(500, 20_000, MINUTE) }),
    fc.record({ kind: fc.constant('load' as const), steps: fc.constantFrom(1, 3, 30) }),
    fc.constant({ kind: 'reopen' as const }),
  );

  it(`all comes in the end, memory is bounded, verify is content (LANES_SEED=${SEED})`, async () => {
    const property = fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 40 }),
      async (actions) => {
        await bed.anew();
        const engine = new Engine();
        const pick = (n: number): OccurrenceRecord | undefined =>
          [...engine.pending.values()][n % Math.max(1, engine.pending.size)];
        for (const each of actions) {
          if (each.kind === 'create') {
            const of = (n: number): Of => ({
              tenant: `t${(n % each.lanes) + each.shift}`,
              priority: n % 2 === 0 ? 5 : 2,
              handlerVersion: n % 3 === 0 ? undefined : 1,
            });
            await engine.create(each.count, bed.clock.now() + each.inMs, of);
          } else if (each.kind === 'advance') await bed.clock.advance(each.ms);
          else if (each.kind === 'run') await engine.run(each.max);
          else if (each.kind === 'load') {
            for (let i = 0; i < each.steps; i++) await engine.step();
          } else if (each.kind === 'reopen') {
            await bed.reopen();
            engine.known.clear();
          } else {
            const record = pick(each.pick);
            if (record === undefined) continue;
            if (each.kind === 'end') await engine.end([record]);
            else await engine.move(record, bed.clock.now() + each.inMs);
          }
        }
        await expectVerified();
        await bed.clock.advance(300 * MINUTE);
        await engine.drain();
        expect(engine.pending.size).toBe(0);
        // Two turns' creates, and a chunk for each lane.
        expect(engine.knownMax).toBeLessThanOrEqual(WINDOW + 500 + 64);
        await expectVerified();
      },
    );
    await fc.assert(property, { seed: SEED, numRuns: 25 });
  });
});
