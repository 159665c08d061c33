import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createIdSource, isId } from '../../src/core/id.js';

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const timeOf = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

describe('ids', () => {
  it('are UUIDv7 that carry their millisecond', () => {
    const ids = createIdSource({ random: seeded(1), nowMs: () => 1_772_000_000_123 });
    const id = ids.next();
    expect(isId(id)).toBe(true);
    expect(timeOf(id)).toBe(1_772_000_000_123);
  });

  it('grow strictly as text whatever the wall clock does', () => {
    const steps = fc.array(fc.integer({ min: -100_000, max: 100_000 }), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer(), steps, (seed, jumps) => {
        let now = 1_772_000_000_000;
        const ids = createIdSource({ random: seeded(seed), nowMs: () => now });
        let last = ids.next();
        for (const jump of jumps) {
          now += jump;
          for (let i = 0; i < 3; i++) {
            const id = ids.next();
            expect(id > last).toBe(true);
            expect(isId(id)).toBe(true);
            last = id;
          }
        }
      }),
    );
  });

  it('follow the clock again once it has caught up', () => {
    let now = 5000;
    const ids = createIdSource({ random: seeded(2), nowMs: () => now });
    ids.next();
    now = 4000;
    expect(timeOf(ids.next())).toBe(5000);
    now = 6000;
    expect(timeOf(ids.next())).toBe(6000);
  });

  it('do not repeat within a millisecond, and grow when the counter starts at its highest', () => {
    const ids = createIdSource({ random: () => 1 - 2 ** -32, nowMs: () => 7 });
    const made = Array.from({ length: 1000 }, () => ids.next());
    expect(new Set(made).size).toBe(1000);
    expect([...made].sort()).toEqual(made);
  });

  it('are the same again with the same seed', () => {
    const make = (): string[] => {
      const ids = createIdSource({ random: seeded(42), nowMs: () => 9 });
      return [ids.next(), ids.next(), ids.next()];
    };
    expect(make()).toEqual(make());
  });

  it('differ between processes in the same millisecond', () => {
    const of = (seed: number): string =>
      createIdSource({ random: seeded(seed), nowMs: () => 9 }).next();
    expect(of(1)).not.toBe(of(2));
  });

  it.each([
    ['', false],
    ['0195dd5e-8a7b-7c3d-9e0f-0123456789ab', true],
    ['0195DD5E-8a7b-7c3d-9e0f-0123456789ab', false],
    ['0195dd5e-8a7b-4c3d-9e0f-0123456789ab', false],
    ['0195dd5e-8a7b-7c3d-ce0f-0123456789ab', false],
    ['0195dd5e-8a7b-7c3d-9e0f-0123456789ab.1.2', false],
    ['0195dd5e-8a7b-7c3d-9e0f-0123456789ab\n', false],
  ])('%j is an id: %s', (text, expected) => {
    expect(isId(text)).toBe(expected);
  });
});
