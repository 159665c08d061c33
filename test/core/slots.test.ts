import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Slots } from '../../src/core/slots.js';

const SEED = Number(process.env.SLOTS_SEED ?? 7);

/** Which chunks have memory, as told. */
class Owner {
  readonly present = new Set<number>();
  most = 0;
  add(chunk: number): void {
    expect(this.present.has(chunk)).toBe(false);
    this.present.add(chunk);
    this.most = Math.max(this.most, this.present.size);
  }
  drop(chunk: number): void {
    expect(this.present.delete(chunk)).toBe(true);
  }
}

describe('slots', () => {
  it(`are given out once each, in chunks that are there (SLOTS_SEED=${SEED})`, () => {
    const ops = fc.array(fc.oneof(fc.constant(-1), fc.nat(1000)), { maxLength: 400 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3 }), fc.nat(1), ops, (bits, reserved, steps) => {
        const owner = new Owner();
        const slots = new Slots(owner, bits, 2 ** 20, reserved);
        const used: number[] = [];
        for (const step of steps) {
          if (step < 0 || used.length === 0) {
            const slot = slots.alloc();
            expect(used).not.toContain(slot);
            expect(slot).toBeGreaterThanOrEqual(reserved);
            expect(slot).toBeLessThan(slots.end);
            expect(owner.present.has(slot >>> bits)).toBe(true);
            used.push(slot);
          } else {
            slots.free(used.splice(step % used.length, 1)[0] as number);
          }
          expect(slots.used).toBe(used.length);
          expect(slots.chunks).toBe(owner.present.size);
          for (const slot of used) expect(owner.present.has(slot >>> bits)).toBe(true);
        }
        for (const slot of used.splice(0)) slots.free(slot);
        // One in reserve, and the one of what is never given out.
        expect(owner.present.size).toBeLessThanOrEqual(2);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  it('are used in full before a chunk is added, wherever they were freed', () => {
    const owner = new Owner();
    const slots = new Slots(owner, 4, 2 ** 20);
    const all = Array.from({ length: 160 }, () => slots.alloc());
    expect(owner.most).toBe(10);
    for (const slot of all.filter((_, index) => index % 3 === 0)) slots.free(slot);
    for (let i = 0; i < 54; i++) slots.alloc();
    expect(slots.used).toBe(160);
    expect(owner.most).toBe(10);
  });

  it('end at their number', () => {
    const slots = new Slots({ add: () => {}, drop: () => {} }, 2, 8);
    for (let i = 0; i < 8; i++) slots.alloc();
    expect(() => slots.alloc()).toThrow('8 slots are all there are');
  });
});
