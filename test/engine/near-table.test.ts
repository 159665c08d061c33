import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type OccurrenceKind, occurrenceId, parseOccurrenceId } from '../../src/core/model.js';
import { NearTable } from '../../src/engine/near-table.js';
import { OccurrenceKey } from '../../src/engine/occurrence-key.js';

const fields = { dueAt: 1000, handle: 7, lane: 3, priority: 5, flags: 1 };

/** A task id out of one number, so that many ids share most of their digits. */
function taskId(number: number): string {
  return `0195dd5e-8a7b-7c3d-9e0f-${number.toString(16).padStart(12, '0')}`;
}

const anyTaskId = fc.uuid({ version: 7 });
const anyKind = fc.constantFrom<OccurrenceKind>('nominal', 'sequence', 'trigger', 'redrive');
const anyOrdinal = fc.oneof(
  fc.maxSafeInteger(),
  fc.nat(100),
  fc.constantFrom(0, -1, 1e8 - 1, 1e8, 1e8 + 1, 2 ** 53 - 1, 1 - 2 ** 53),
);
const anyGeneration = fc.oneof(fc.nat(9), fc.constantFrom(1, 2 ** 32 - 1), fc.nat());

describe('the near table', () => {
  it('gives back every identity as it was put', () => {
    fc.assert(
      fc.property(
        anyTaskId,
        anyGeneration,
        anyKind,
        anyOrdinal,
        (task, generation, kind, ordinal) => {
          const near = new NearTable();
          const id = occurrenceId(task, generation, kind, ordinal);
          const slot = near.put(id, fields);
          expect(near.find(id)).toBe(slot);
          expect(near.occurrenceIdOf(slot)).toBe(id);
          expect(near.taskIdOf(slot)).toBe(task);
          expect(near.generation(slot)).toBe(generation);
          expect(near.kind(slot)).toBe(kind);
          expect(near.ordinal(slot)).toBe(ordinal);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('reads ids exactly as the model does, and nothing else', () => {
    const id = fc
      .tuple(anyTaskId, anyGeneration, anyKind, anyOrdinal)
      .map((a) => occurrenceId(...a));
    const mangled = fc
      .tuple(id, fc.nat(70), fc.string({ maxLength: 2, unit: 'binary' }))
      .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + 1));
    fc.assert(
      fc.property(fc.oneof(id, mangled), (text) => {
        const key = new OccurrenceKey();
        const parts = parseOccurrenceId(text);
        // Only the canonical text of an identity is its id: no leading zeros, no -0.
        const canonical =
          parts !== undefined &&
          parts.generation < 2 ** 32 &&
          Number.isSafeInteger(parts.ordinal) &&
          occurrenceId(parts.taskId, parts.generation, parts.kind, parts.ordinal) === text;
        expect(key.parse(text)).toBe(canonical);
      }),
      { numRuns: 3000 },
    );
  });

  it('keeps occurrences apart that differ in one part only', () => {
    const near = new NearTable();
    const ids = [
      occurrenceId(taskId(1), 1, 'nominal', 5),
      occurrenceId(taskId(1), 1, 'sequence', 5),
      occurrenceId(taskId(1), 1, 'trigger', 5),
      occurrenceId(taskId(1), 1, 'redrive', 5),
      occurrenceId(taskId(1), 1, 'nominal', -5),
      occurrenceId(taskId(1), 2, 'nominal', 5),
      occurrenceId(taskId(1), 1, 'nominal', 5 + 2 ** 32),
      occurrenceId(taskId(2), 1, 'nominal', 5),
    ];
    const slots = ids.map((id) => near.put(id, fields));
    expect(new Set(slots).size).toBe(ids.length);
    expect(ids.map((id) => near.find(id))).toEqual(slots);
  });

  it('updates what is there instead of entering it twice', () => {
    const near = new NearTable();
    const id = occurrenceId(taskId(1), 1, 'nominal', 5);
    const slot = near.put(id, fields);
    const stamp = near.stamp(slot);
    expect(near.put(id, { dueAt: 2, handle: 2 ** 51 - 1, lane: 9, priority: 0, flags: 255 })).toBe(
      slot,
    );
    expect(near.size).toBe(1);
    expect(near.stamp(slot)).toBe(stamp);
    expect(near.dueAt(slot)).toBe(2);
    expect(near.handle(slot)).toBe(2 ** 51 - 1);
    expect([near.lane(slot), near.priority(slot), near.flags(slot)]).toEqual([9, 0, 255]);
    near.setFlags(slot, 2);
    near.setHandle(slot, 4);
    expect([near.lane(slot), near.flags(slot), near.handle(slot)]).toEqual([9, 2, 4]);
  });

  it('gives a freed slot another stamp at once, so that a stale holder can tell', () => {
    const near = new NearTable();
    const slot = near.put(occurrenceId(taskId(1), 1, 'nominal', 5), fields);
    const stamp = near.stamp(slot);
    near.remove(slot);
    expect(near.stamp(slot)).not.toBe(stamp);
    expect(near.put(occurrenceId(taskId(2), 1, 'nominal', 5), fields)).toBe(slot);
    expect(near.stamp(slot)).not.toBe(stamp);
    expect(near.find(occurrenceId(taskId(1), 1, 'nominal', 5))).toBe(-1);
  });

  it('treats the use of a freed slot, and an id that is none, as bugs', () => {
    const near = new NearTable();
    const slot = near.put(occurrenceId(taskId(1), 1, 'nominal', 5), fields);
    near.remove(slot);
    expect(() => near.remove(slot)).toThrow('not in use');
    expect(() => near.dueAt(slot)).toThrow('not in use');
    expect(() => near.put('nonsense', fields)).toThrow('no occurrence');
    expect(near.find('nonsense')).toBe(-1);
  });

  it('agrees with a Map through any puts, finds and removals', () => {
    const command = fc.record({
      kind: fc.constantFrom('put', 'put', 'put', 'remove', 'find'),
      task: fc.nat(400),
      value: fc.nat(1e6),
    });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 2000, size: 'max' }), (commands) => {
        const near = new NearTable();
        const model = new Map<string, number>();
        for (const { kind, task, value } of commands) {
          const id = occurrenceId(taskId(task), 1, 'nominal', task);
          if (kind === 'put') {
            const slot = near.put(id, { ...fields, dueAt: value });
            expect(near.occurrenceIdOf(slot)).toBe(id);
            model.set(id, value);
          } else if (kind === 'remove' && near.find(id) >= 0) {
            near.remove(near.find(id));
            expect(model.delete(id)).toBe(true);
          }
          const slot = near.find(id);
          expect(slot < 0 ? undefined : near.dueAt(slot)).toBe(model.get(id));
        }
        expect(near.size).toBe(model.size);
        expect(contents(near)).toEqual(new Map([...model].sort()));
      }),
      { numRuns: 30 },
    );
  });

  it('holds 64 bytes a row at most, finds all while the index grows, and lists each once', () => {
    const near = new NearTable();
    const count = 200_000;
    const idOf = (i: number): string => occurrenceId(taskId(i), 1, 'nominal', 1.7e12 + i);
    for (let i = 0; i < count; i++) near.put(idOf(i), { ...fields, dueAt: i });
    expect(near.size).toBe(count);
    expect(near.bytes / count).toBeLessThanOrEqual(64);
    for (let i = 0; i < count; i++) if (near.dueAt(near.find(idOf(i))) !== i) expect.fail(idOf(i));
    for (let i = 0; i < count; i += 2) near.remove(near.find(idOf(i)));
    let listed = 0;
    for (let slot = near.nextSlot(-1); slot >= 0; slot = near.nextSlot(slot)) {
      if (near.dueAt(slot) % 2 === 0) expect.fail(`slot ${slot} is a removed one`);
      listed++;
    }
    expect(listed).toBe(count / 2);
    const { bytes } = near;
    for (let i = 0; i < count; i += 2) near.put(idOf(i), fields);
    expect(near.bytes).toBe(bytes);
  });
});

function contents(near: NearTable): Map<string, number> {
  const found: [string, number][] = [];
  for (let slot = near.nextSlot(-1); slot >= 0; slot = near.nextSlot(slot)) {
    found.push([near.occurrenceIdOf(slot), near.dueAt(slot)]);
  }
  return new Map(found.sort());
}
