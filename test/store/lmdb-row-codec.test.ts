/** Tasks and occurrences come back from their bytes as they were, whatever they hold, and take no more room than was said. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type OccurrenceRecord, occurrenceId, type TaskRecord } from '../../src/core/model.js';
import { Reader, Writer } from '../../src/store/lmdb/bytes.js';
import { Pool } from '../../src/store/lmdb/pool.js';
import type { Row, StoredOccurrence } from '../../src/store/lmdb/row.js';
import { RowCodec } from '../../src/store/lmdb/row-codec.js';
import { idOf, occurrenceOf, policies, START_MS, taskOf } from './builders.js';

const SEED = Number(process.env.CODEC_SEED ?? 20_261_130);
const RUNS = 2000;

const time = fc.oneof(
  fc.constantFrom(START_MS, START_MS + 1, START_MS - 1, 0, -1, 1, 2 ** 51, -(2 ** 51), 2 ** 52),
  fc.integer({ min: -70_000, max: 70_000 }).map((ms) => START_MS + ms),
  fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }),
  fc.double({ min: -1e15, max: 1e15, noNaN: true }).filter((ms) => !Object.is(ms, -0)),
);
const count = fc.oneof(fc.nat(300), fc.constantFrom(2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 52 + 1));
const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 60 }));
const value = fc.uint8Array({ maxLength: 200 });
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined, freq: 2 });

const task: fc.Arbitrary<TaskRecord> = fc
  .record({
    n: fc.nat(1_000_000),
    tenant: text,
    handler: text,
    handlerVersion: maybe(count),
    payload: value,
    isOnce: fc.boolean(),
    at: time,
    priority: fc.nat(9),
    state: fc.constantFrom<TaskRecord['state']>('active', 'paused', 'completed', 'cancelled'),
    pausedAt: maybe(time),
    version: count,
    generation: count,
    revision: count,
    idempotencyKey: maybe(text),
    definition: maybe(text),
    createdAt: time,
    endedAt: maybe(time),
    endReason: maybe(text),
    anchorAt: time,
    cursorAt: maybe(time),
    taken: count,
    extras: count,
    lastOccurrenceId: maybe(text),
    lastEnd: maybe(fc.constantFrom<TaskRecord['lastEnd'] & string>('succeeded', 'dead', 'missed')),
    maxAttempts: fc.nat(5),
  })
  .map(({ n, isOnce, at, maxAttempts, ...fields }) =>
    taskOf(n, {
      ...fields,
      anchorAt: isOnce && fields.taken % 2 === 0 ? at : fields.anchorAt,
      schedule: isOnce
        ? { kind: 'once', at }
        : { kind: 'fixedDelay', delayMs: 1 + maxAttempts, after: 'terminal' },
      policies: policies({ maxAttempts }),
    }),
  );

const occurrence = fc.record({
  isLike: fc.boolean(),
  tenant: text,
  handler: text,
  generation: count,
  kind: fc.constantFrom<OccurrenceRecord['kind']>('nominal', 'sequence', 'trigger', 'redrive'),
  ordinal: time,
  nominalAt: time,
  dueAt: time,
  isPlain: fc.boolean(),
  state: fc.constantFrom<OccurrenceRecord['state']>(
    'scheduled',
    'running',
    'cancel-requested',
    'retry-wait',
    'succeeded',
    'quarantined',
    'missed',
  ),
  revision: count,
  handlerVersion: maybe(count),
  attempt: count,
  failures: count,
  crashes: count,
  displacements: count,
  deaths: count,
  alone: fc.boolean(),
  waiting: fc.boolean(),
  catchup: fc.boolean(),
  token: fc.oneof(count, fc.double({ min: 0, max: 2 ** 53, noNaN: true })),
  leaseUntil: maybe(time),
  workerId: maybe(text),
  progress: maybe(value),
  result: maybe(value),
  error: maybe(value),
  outcome: maybe(
    fc.constantFrom<OccurrenceRecord['outcome'] & string>('failed', 'timedOut', 'released'),
  ),
  reason: maybe(text),
  count: maybe(count),
  untilAt: maybe(time),
  cancelRequestedAt: maybe(time),
  startedAt: maybe(time),
  endedAt: maybe(time),
  redriveOf: maybe(text),
  redrivenAs: maybe(text),
});
const place = fc.record({ serial: count, attempts: count, dead: count, place: count });

const row: fc.Arbitrary<Row> = fc
  .record({
    task,
    some: fc.array(fc.tuple(occurrence, place), { maxLength: 3 }),
    nextSerial: count,
    history: count,
    lastIsNewest: fc.boolean(),
  })
  .map(({ task, some, nextSerial, history, lastIsNewest }) => {
    const occurrences = some.map(([{ isLike, isPlain, ...fields }, where]): StoredOccurrence => {
      const { generation, kind } = fields;
      const { tenant, handler } = isLike ? task : fields;
      const times = isPlain
        ? { ordinal: task.anchorAt, nominalAt: task.anchorAt, dueAt: task.anchorAt }
        : {};
      const all = { ...fields, tenant, handler, ...times };
      const id = occurrenceId(task.id, generation, kind, all.ordinal);
      return { record: { ...occurrenceOf(task), ...all, id, taskId: task.id }, ...where };
    });
    const last = occurrences.at(-1)?.record.id;
    return {
      id: task.id,
      task: lastIsNewest ? { ...task, lastOccurrenceId: last } : task,
      isBorrowed: false,
      occurrences,
      nextSerial,
      history,
      commit: 0,
      isStored: true,
      slot: 0,
      isRemoved: false,
    };
  });

/** A pool that is not stored. */
function newPool(): Pool {
  return new Pool({} as never);
}

it(`a task with its occurrences (CODEC_SEED=${SEED})`, () => {
  const codec = new RowCodec(newPool());
  const writer = new Writer(false);
  fc.assert(
    fc.property(row, (given) => {
      const max = codec.rowMax(given);
      writer.begin(max);
      codec.writeRow(writer, given);
      expect(writer.size).toBeLessThanOrEqual(max);
      const arena = writer.end();
      expect(codec.readRow(new Reader(arena, arena.start, arena.end), given.id)).toEqual(given);
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

it(`an occurrence by itself (CODEC_SEED=${SEED})`, () => {
  const codec = new RowCodec(newPool());
  const writer = new Writer(false);
  fc.assert(
    fc.property(row, ({ id, occurrences }) => {
      for (const stored of occurrences) {
        codec.writeAlone(writer, stored);
        const arena = writer.end();
        const read = codec.readAlone(new Reader(arena, arena.start, arena.end), id);
        expect(read).toEqual(stored);
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

it('a pending one-off takes 25 bytes besides its payload', () => {
  const codec = new RowCodec(newPool());
  const writer = new Writer(false);
  const made = taskOf(7, {
    id: idOf(7),
    createdAt: START_MS + 7,
    anchorAt: START_MS + 30 * 86_400_000,
    schedule: { kind: 'once', at: START_MS + 30 * 86_400_000 },
  });
  const record = occurrenceOf(made);
  const stored = { record, serial: 1, attempts: 0, dead: 0, place: 1 };
  writer.begin(1000);
  codec.writeRow(writer, {
    id: made.id,
    task: { ...made, lastOccurrenceId: record.id },
    isBorrowed: false,
    occurrences: [stored],
    nextSerial: 2,
    history: 0,
    commit: 0,
    isStored: true,
    slot: 0,
    isRemoved: false,
  });
  expect(writer.size - made.payload.length).toBe(25);
});
