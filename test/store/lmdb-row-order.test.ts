import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RowOrder } from '../../src/store/lmdb/row-order.js';

interface Row {
  readonly ms: number;
  readonly place: number;
}

function orderOf(rows: readonly Row[], step: number): Row[] {
  const order = new RowOrder(rows.values(), rows.length, ({ ms }) => ms);
  let looks = 0;
  while (!order.prepare(step)) expect(++looks).toBeLessThanOrEqual(rows.length + 1);
  const given: Row[] = [];
  while (!order.isOver) given.push(order.next());
  return given;
}

describe('rows in the order of their ids', () => {
  it('gives each once, by time, those of 16 ms as they came', () => {
    const times = fc.oneof(
      fc.integer({ min: 1_577_836_800_000, max: 3_700_000_000_000 }),
      fc.integer({ min: 1_790_000_000_000, max: 1_790_000_000_100 }),
    );
    fc.assert(
      fc.property(
        fc.array(times, { maxLength: 200 }),
        fc.integer({ min: 1, max: 64 }),
        (all, step) => {
          const rows = all.map((ms, place) => ({ ms, place }));
          const unit = ({ ms }: Row): number => Math.floor((ms - 1_577_836_800_000) / 16);
          const expected = [...rows].sort((a, b) => unit(a) - unit(b) || a.place - b.place);
          expect(orderOf(rows, step)).toEqual(expected);
        },
      ),
    );
  });

  it('gives each once whatever their times, and however many there are', () => {
    const millis = [0, -1, 1e15, 2 ** 48 - 1, 1_790_000_000_000];
    const rows = Array.from({ length: 70_000 }, (_, place) => ({
      ms: millis[place % millis.length] as number,
      place,
    }));
    const given = orderOf(rows, 4096);
    expect(new Set(given.map(({ place }) => place)).size).toBe(rows.length);
    expect(given[0]?.ms).toBeLessThan(1);
    expect(given.at(-1)?.ms).toBeGreaterThan(1e14);
  });

  it('looks at no more at once than asked', () => {
    let looked = 0;
    const rows = Array.from({ length: 100 }, (_, place) => ({ ms: place, place }));
    const order = new RowOrder(rows.values(), 100, ({ ms }) => {
      looked++;
      return ms;
    });
    expect(order.prepare(10)).toBe(false);
    expect(looked).toBe(10);
    expect(order.isOver).toBe(false);
    expect(order.prepare(91)).toBe(true);
    expect(looked).toBe(100);
  });
});
