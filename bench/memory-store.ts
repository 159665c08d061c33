/**
 * What a pending one-off costs in the memory store: bytes, and nanoseconds a create, a read and a whole life.
 *
 *   npx tsx --expose-gc bench/memory-store.ts [N = 1000000] [payload bytes = 64]
 */
import { systemClock } from '../src/clock/system.js';
import { type OccurrenceRecord, occurrenceId, type TaskRecord } from '../src/core/model.js';
import { DEFAULT_POLICIES } from '../src/request.js';
import { memoryStore } from '../src/store/memory/memory-store.js';
import type { StoreSession, Unit } from '../src/store/store.js';

const count = Number(process.argv[2] ?? 1_000_000);
const payloadBytes = Number(process.argv[3] ?? 64);
const BATCH = 500;
const SAMPLE = Math.min(count, 200_000);
const START_AT = 1_767_225_600_000;

const payload = new Uint8Array(payloadBytes).fill(7);

/** Looks like a UUIDv7: time first, then bits without order. */
function idOf(n: number): string {
  const id = assembleId(n);
  // A string that was put together is made flat when it is first read: not the store's work.
  id.charCodeAt(0);
  return id;
}

function assembleId(n: number): string {
  const ms = (START_AT + Math.floor(n / 100)).toString(16).padStart(12, '0');
  const low = (Math.imul(n, 0x9e37_79b1) >>> 0).toString(16).padStart(8, '0');
  const high = (Math.imul(n ^ 0x5bd1_e995, 0x85eb_ca6b) >>> 0).toString(16).padStart(8, '0');
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${low.slice(0, 3)}-8${low.slice(3, 6)}-${low.slice(6)}${n
    .toString(16)
    .padStart(8, '0')
    .slice(-4)}${high.slice(0, 6)}`;
}

function createUnit(n: number): Unit {
  const id = idOf(n);
  const at = START_AT + 86_400_000 + n;
  const occurrence: OccurrenceRecord = {
    id: occurrenceId(id, 1, 'nominal', at),
    taskId: id,
    tenant: 'default',
    handler: 'work',
    generation: 1,
    kind: 'nominal',
    ordinal: at,
    nominalAt: at,
    dueAt: at,
    state: 'scheduled',
    revision: 1,
    handlerVersion: 1,
    attempt: 0,
    failures: 0,
    crashes: 0,
    displacements: 0,
    deaths: 0,
    alone: false,
    waiting: false,
    catchup: false,
    token: 0,
    leaseUntil: undefined,
    workerId: undefined,
    progress: undefined,
    result: undefined,
    error: undefined,
    outcome: undefined,
    reason: undefined,
    count: undefined,
    untilAt: undefined,
    cancelRequestedAt: undefined,
    startedAt: undefined,
    endedAt: undefined,
    redriveOf: undefined,
    redrivenAs: undefined,
  };
  const task: TaskRecord = {
    id,
    tenant: 'default',
    handler: 'work',
    handlerVersion: 1,
    payload,
    schedule: { kind: 'once', at },
    policies: DEFAULT_POLICIES,
    priority: 5,
    state: 'active',
    pausedAt: undefined,
    version: 1,
    generation: 1,
    revision: 1,
    idempotencyKey: undefined,
    definition: undefined,
    createdAt: START_AT + Math.floor(n / 100),
    endedAt: undefined,
    endReason: undefined,
    anchorAt: at,
    cursorAt: undefined,
    taken: 0,
    extras: 0,
    lastOccurrenceId: occurrence.id,
    lastEnd: undefined,
  };
  return {
    taskId: id,
    task: { record: task, expected: 0 },
    occurrences: [{ record: occurrence, expected: 0 }],
  };
}

interface Timed {
  totalMs: number;
  slowestMs: number;
}

/** Commits the units in batches; only the store's part is timed. */
async function timed(
  session: StoreSession,
  from: number,
  to: number,
  batch: number,
  unitOf: (n: number) => Unit | Promise<Unit>,
): Promise<Timed> {
  const result = { totalMs: 0, slowestMs: 0 };
  for (let n = from; n < to; n += batch) {
    const units: Unit[] = [];
    for (let i = n; i < Math.min(to, n + batch); i++) units.push(await unitOf(i));
    const startedAt = performance.now();
    const refused = await session.commit(units).visible;
    const tookMs = performance.now() - startedAt;
    if (refused.length > 0) throw new Error(`unit ${refused[0].unit} was refused`);
    result.totalMs += tookMs;
    result.slowestMs = Math.max(result.slowestMs, tookMs);
  }
  return result;
}

/** Claims, then ends what `views` says; two commits an occurrence. */
async function claimUnit(session: StoreSession, n: number, end: boolean): Promise<Unit> {
  const [view] = await session.views([idOf(n)]);
  if (view === undefined) throw new Error('a task is missing');
  const [live] = view.live;
  const atMs = live.dueAt + 5;
  const running = { token: 2 ** 32 + n, attempt: 1, leaseUntil: atMs + 10_000, workerId: 'w1' };
  const record: OccurrenceRecord = end
    ? { ...live, state: 'succeeded', revision: live.revision + 1, endedAt: atMs, result: payload }
    : { ...live, state: 'running', revision: live.revision + 1, startedAt: atMs, ...running };
  const { task } = view;
  const changed: TaskRecord = {
    ...task,
    state: 'completed',
    revision: task.revision + 1,
    endedAt: atMs,
    endReason: 'succeeded',
    lastEnd: 'succeeded',
  };
  return {
    taskId: task.id,
    occurrences: [{ record, expected: live.revision }],
    ...(end ? { task: { record: changed, expected: task.revision } } : {}),
  };
}

async function timeViews(
  session: StoreSession,
  idsPerCall: number,
  stride: number,
): Promise<string> {
  let totalMs = 0;
  let read = 0;
  for (let n = 0; n < SAMPLE; n += idsPerCall) {
    const ids: string[] = [];
    for (let i = 0; i < idsPerCall; i++) ids.push(idOf(((n + i) * stride) % count));
    const startedAt = performance.now();
    const views = await session.views(ids);
    totalMs += performance.now() - startedAt;
    read += views.length;
  }
  return `${((totalMs * 1e6) / read).toFixed(0)} ns`;
}

function buffersMb(): { rss: number; buffers: number; heap: number } {
  globalThis.gc?.();
  const { rss, arrayBuffers, heapUsed } = process.memoryUsage();
  return { rss, buffers: arrayBuffers, heap: heapUsed };
}

const rows: [string, string][] = [];
const perTask = (bytes: number): string => `${(bytes / count).toFixed(1)} bytes`;
const perOp = (t: Timed, n: number): string => `${((t.totalMs * 1e6) / n).toFixed(0)} ns`;

const before = buffersMb();
const store = memoryStore();
const retention = { succeededMs: 3_600_000, failedMs: 2_592_000_000 };
const session = await store.open({ clock: systemClock(), retention });
const bulk = count - Math.min(SAMPLE, count / 2);
const created = await timed(session, 0, bulk, BATCH, createUnit);
const single = await timed(session, bulk, count, 1, createUnit);
const after = buffersMb();
const { bytes, pending } = await session.counts();
rows.push(['pending one-offs', String(pending)]);
rows.push(['a task, counted by the store', perTask(bytes)]);
rows.push(['… array buffers', perTask(after.buffers - before.buffers)]);
rows.push(['… JavaScript heap', perTask(after.heap - before.heap)]);
rows.push(['… resident', perTask(after.rss - before.rss)]);
rows.push([`create, commits of ${BATCH}`, perOp(created, bulk)]);
rows.push(['… slowest commit', `${created.slowestMs.toFixed(1)} ms`]);
rows.push(['create, commits of 1', perOp(single, count - bulk)]);
rows.push(['views, 500 ids a call, as created', await timeViews(session, 500, 1)]);
rows.push(['views, 500 ids a call, at random', await timeViews(session, 500, 7919)]);
rows.push(['views, 1 id a call, at random', await timeViews(session, 1, 7919)]);
const claimed = await timed(session, 0, SAMPLE, BATCH, (n) => claimUnit(session, n, false));
rows.push([`claim, commits of ${BATCH}`, perOp(claimed, SAMPLE)]);
const ended = await timed(session, 0, SAMPLE, BATCH, (n) => claimUnit(session, n, true));
rows.push([`finish, commits of ${BATCH}`, perOp(ended, SAMPLE)]);
const startedAt = performance.now();
let removed = 0;
for (;;) {
  const step = await session.prune(START_AT + 10 * 86_400_000, 1000);
  if (step.removed === 0) break;
  removed += step.removed;
}
rows.push([
  `prune (${removed})`,
  `${(((performance.now() - startedAt) * 1e6) / removed).toFixed(0)} ns`,
]);
// The first touch of a page is the machine's work, and dear on some: rows that were used before show the store's.
const again = await timed(session, count, count + SAMPLE, BATCH, createUnit);
rows.push([`create, commits of ${BATCH}, memory used before`, perOp(again, SAMPLE)]);

const width = Math.max(...rows.map(([name]) => name.length));
for (const [name, value] of rows) console.log(`| ${name.padEnd(width)} | ${value.padStart(12)} |`);
await session.close();
