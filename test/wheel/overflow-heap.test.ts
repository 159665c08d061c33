import { describe, expect, it } from 'vitest';
import { OverflowHeap } from '../../src/wheel/overflow-heap.js';
import { randomOf } from './helpers.js';

describe('the overflow heap', () => {
  it('pops in order of due tick, whatever was removed from its middle', () => {
    const random = randomOf(3);
    const places = new Map<number, number>();
    const heap = new OverflowHeap((record, place) => places.set(record, place));
    const live = new Map<number, number>();
    for (let record = 0; record < 5_000; record++) {
      const due = Math.floor(random() * 1_000) * 2 ** 42;
      heap.insert(record, due);
      live.set(record, due);
      if (random() < 0.4) {
        const gone = [...live.keys()][Math.floor(random() * live.size)]!;
        heap.removeAt(places.get(gone)!);
        live.delete(gone);
      }
    }
    expect(heap.size).toBe(live.size);
    let last = 0;
    while (heap.size > 0) {
      const earliest = heap.earliestTick;
      const record = heap.pop();
      expect(live.get(record)).toBe(earliest);
      expect(earliest).toBeGreaterThanOrEqual(last);
      live.delete(record);
      last = earliest;
    }
    expect(live.size).toBe(0);
    expect(heap.earliestTick).toBe(Number.POSITIVE_INFINITY);
  });

  it('gives memory back when it has shrunk', () => {
    const heap = new OverflowHeap(() => {});
    for (let record = 0; record < 10_000; record++) heap.insert(record, record);
    const full = heap.memoryBytes;
    while (heap.size > 0) heap.pop();
    expect(full).toBeLessThanOrEqual(10_000 * 12 * 1.3 + 1_000);
    expect(heap.memoryBytes).toBeLessThan(full / 10);
  });
});
