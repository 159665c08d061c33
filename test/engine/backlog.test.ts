import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backlog, LaneTable } from '../../src/engine/backlog.js';

/** The near table, as far as the backlog looks at it. */
class FakeStamps {
  readonly now: number[] = [];
  stamp(slot: number): number {
    return this.now[slot] ?? 0;
  }
  free(slot: number): void {
    this.now[slot] = this.stamp(slot) + 1;
  }
}

function drain(backlog: Backlog, lane: number): number[] {
  const slots: number[] = [];
  for (let entry = backlog.take(lane); entry !== undefined; entry = backlog.take(lane)) {
    slots.push(entry.slot);
  }
  return slots;
}

function lanesOf(backlog: Backlog): number[] {
  const lanes: number[] = [];
  backlog.forEachLane((lane) => {
    lanes.push(lane);
    return true;
  });
  return lanes;
}

describe('the backlog', () => {
  it('gives a lane back by priority, then due time, then arrival', () => {
    const backlog = new Backlog(new FakeStamps());
    backlog.push(0, 1, 0, 5, 100);
    backlog.push(0, 2, 0, 5, 50);
    backlog.push(0, 3, 0, 0, 900);
    backlog.push(0, 4, 0, 5, 50);
    backlog.push(1, 5, 0, 5, 1);
    expect(backlog.size).toBe(5);
    expect(drain(backlog, 0)).toEqual([3, 2, 4, 1]);
    expect(backlog.sizeOf(0)).toBe(0);
    expect(drain(backlog, 1)).toEqual([5]);
    expect(backlog.size).toBe(0);
  });

  it('visits the lanes in turn, and goes on where it was stopped', () => {
    const backlog = new Backlog(new FakeStamps());
    for (const lane of [3, 1, 200]) {
      for (let i = 0; i < 2; i++) backlog.push(lane, lane * 10 + i, 0, 5, i);
    }
    const visited: number[] = [];
    const visitOne = (): void =>
      backlog.forEachLane((lane) => {
        visited.push(lane);
        backlog.take(lane);
        return false;
      });
    for (let i = 0; i < 6; i++) visitOne();
    expect(visited).toEqual([3, 1, 200, 3, 1, 200]);
    expect(lanesOf(backlog)).toEqual([]);
  });

  it('visits each lane once in a round although lanes empty on the way', () => {
    const backlog = new Backlog(new FakeStamps());
    for (let lane = 0; lane < 10; lane++) backlog.push(lane, lane, 0, 5, 0);
    const visited: number[] = [];
    backlog.forEachLane((lane) => {
      visited.push(lane);
      if (lane % 3 === 0) backlog.take(lane);
      return true;
    });
    expect(visited).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(lanesOf(backlog).sort()).toEqual([1, 2, 4, 5, 7, 8]);
  });

  it('passes over entries whose slot was freed, also when nobody reported them', () => {
    const stamps = new FakeStamps();
    const backlog = new Backlog(stamps);
    for (let slot = 0; slot < 6; slot++) backlog.push(0, slot, 0, 5, slot);
    stamps.free(0);
    stamps.free(3);
    backlog.dropped(0);
    expect(drain(backlog, 0)).toEqual([1, 2, 4, 5]);
    expect(backlog.size).toBe(0);
    expect(lanesOf(backlog)).toEqual([]);
  });

  it('gives up the memory of cancelled entries without being drained', () => {
    const stamps = new FakeStamps();
    const backlog = new Backlog(stamps);
    const count = 20_000;
    for (let round = 0; round < 6; round++) {
      for (let slot = 0; slot < count; slot++) {
        backlog.push(0, slot, stamps.stamp(slot), slot % 10, slot);
      }
      expect(backlog.size).toBe(count);
      for (let slot = 0; slot < count; slot++) {
        stamps.free(slot);
        backlog.dropped(0);
      }
      expect(backlog.size).toBe(0);
      expect(lanesOf(backlog)).toEqual([]);
    }
    // One round fits in 3 chunks of 8192 nodes; the next ones found room there.
    expect(backlog.bytes).toBeLessThan(4 * 8192 * 32);
  });

  it('agrees with sorted lists through any pushes, takes and cancellations', () => {
    const command = fc.record({
      kind: fc.constantFrom('push', 'push', 'take', 'drop', 'drop'),
      lane: fc.nat(2),
      pick: fc.nat(),
      priority: fc.nat(2),
      dueAt: fc.oneof(fc.nat(20), fc.constant(1.7e12)),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 300 }),
        fc.array(command, { maxLength: 800, size: 'max' }),
        (startWith, commands) => {
          const model = new BacklogModel();
          for (let i = 0; i < startWith; i++) model.push(0, i % 3, (i * 7919) % 101);
          for (const { kind, lane, pick, priority, dueAt } of commands) {
            if (kind === 'push') model.push(lane, priority, dueAt);
            else if (kind === 'take') model.take(lane);
            else model.drop(lane, pick);
            model.check();
          }
          for (const lane of [0, 1, 2]) model.drain(lane);
          expect(model.backlog.size).toBe(0);
          expect(lanesOf(model.backlog)).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

class BacklogModel {
  readonly stamps = new FakeStamps();
  readonly backlog = new Backlog(this.stamps);
  readonly lanes: { slot: number; order: number[] }[][] = [[], [], []];
  #slots = 0;

  push(lane: number, priority: number, dueAt: number): void {
    const slot = this.#slots++;
    this.backlog.push(lane, slot, this.stamps.stamp(slot), priority, dueAt);
    const list = this.lanes[lane];
    list.push({ slot, order: [priority, dueAt, slot] });
    list.sort(({ order: a }, { order: b }) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  }

  take(lane: number): void {
    expect(this.backlog.take(lane)?.slot).toBe(this.lanes[lane].shift()?.slot);
  }

  drop(lane: number, pick: number): void {
    const list = this.lanes[lane];
    if (list.length === 0) return;
    const [gone] = list.splice(pick % list.length, 1);
    this.stamps.free(gone.slot);
    this.backlog.dropped(lane);
  }

  drain(lane: number): void {
    expect(drain(this.backlog, lane)).toEqual(this.lanes[lane].map(({ slot }) => slot));
  }

  check(): void {
    const sizes = this.lanes.map((list) => list.length);
    expect([0, 1, 2].map((lane) => this.backlog.sizeOf(lane))).toEqual(sizes);
    expect(this.backlog.size).toBe(sizes[0] + sizes[1] + sizes[2]);
  }
}

describe('the lane table', () => {
  it('gives the same number for the same lane, and the lane for the number', () => {
    const lanes = new LaneTable();
    const a = lanes.intern('acme', 'mail', 1);
    const b = lanes.intern('acme', 'mail', 2);
    const c = lanes.intern('acme', 'mail', undefined);
    const d = lanes.intern('mail', 'acme', 1);
    expect(new Set([a, b, c, d]).size).toBe(4);
    expect(lanes.intern('acme', 'mail', undefined)).toBe(c);
    expect(lanes.name(c)).toEqual({ tenant: 'acme', handler: 'mail', version: undefined });
    expect(lanes.name(d)).toEqual({ tenant: 'mail', handler: 'acme', version: 1 });
  });

  it('keeps a number as long as one reference is left, then gives it out again', () => {
    const lanes = new LaneTable();
    const a = lanes.intern('a', 'h', 1);
    lanes.intern('a', 'h', 1);
    lanes.release(a);
    expect(lanes.intern('a', 'h', 1)).toBe(a);
    lanes.release(a);
    lanes.release(a);
    expect(lanes.size).toBe(0);
    expect(lanes.intern('b', 'h', 1)).toBe(a);
    lanes.release(a);
    expect(() => lanes.release(a)).toThrow('more often');
  });

  it('agrees with a Map of counts through any interns and releases', () => {
    const command = fc.record({ release: fc.boolean(), name: fc.nat(300) });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 1500, size: 'max' }), (commands) => {
        const lanes = new LaneTable();
        const model = new Map<number, { lane: number; count: number }>();
        for (const { release, name } of commands) {
          const known = model.get(name);
          const parts = [`t${name % 7}`, `h${name % 5}`, name] as const;
          if (!release) {
            const lane = lanes.intern(...parts);
            if (known !== undefined) expect(lane).toBe(known.lane);
            model.set(name, { lane, count: (known?.count ?? 0) + 1 });
            expect(lanes.name(lane).version).toBe(name);
          } else if (known !== undefined) {
            lanes.release(known.lane);
            if (--known.count === 0) model.delete(name);
          }
          expect(lanes.size).toBe(model.size);
        }
        const numbers = [...model.values()].map(({ lane }) => lane);
        expect(new Set(numbers).size).toBe(numbers.length);
      }),
      { numRuns: 40 },
    );
  });
});
