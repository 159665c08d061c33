/**
 * The LMDB store by itself, beside raw lmdb-js that puts the same records in the same run, and the disk's flush.
 *
 *   npx tsx bench/store.ts [--tasks N] [--path DIR] [--json FILE]
 *
 * Ratios are of one run on one machine; absolute figures are that machine's.
 */
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { open as openLmdb } from 'lmdb';
import { systemClock } from '../src/clock/system.js';
import { createIdSource } from '../src/core/id.js';
import {
  copyOfOccurrence,
  copyOfTask,
  type OccurrenceRecord,
  occurrenceId,
  type TaskRecord,
} from '../src/core/model.js';
import { lmdbStore } from '../src/store/lmdb/lmdb-store.js';
import type { Commit, StoreSession, Unit } from '../src/store/store.js';
import { occurrenceOf, policies, taskOf } from '../test/store/builders.js';

const { values: flags } = parseArgs({
  options: {
    tasks: { type: 'string', default: '300000' },
    path: { type: 'string' },
    json: { type: 'string' },
  },
});
// As `load-test` does: V8 else makes what survives one young collection in the old generation, and it dies there.
setFlagsFromString('--no-allocation-site-pretenuring');

const TASKS = Number(flags.tasks);
const BATCH = 1000;
const IN_FLIGHT = 4;
const RETENTION = { succeededMs: 3_600_000, failedMs: 3_600_000 };
const POLICIES = policies();
const clock = systemClock();
const ids = createIdSource({ random: Math.random, nowMs: () => clock.now() });
const root = mkdtempSync(join(flags.path ?? tmpdir(), 'tickwheel-bench-'));
const results: Record<string, number> = {};

function note(name: string, value: number, unit: string): void {
  results[name] = value;
  console.log(`${name.padEnd(58)} ${value >= 100 ? Math.round(value) : value.toFixed(2)} ${unit}`);
}

interface Made {
  readonly task: TaskRecord;
  readonly occurrence: OccurrenceRecord;
}

function make(n: number, dueAt: number): Made {
  const id = ids.next();
  const task = taskOf(n, {
    id,
    payload: Buffer.alloc(64, n),
    policies: POLICIES,
    schedule: { kind: 'once', at: dueAt },
    anchorAt: dueAt,
    createdAt: clock.now(),
    lastOccurrenceId: occurrenceId(id, 1, 'nominal', dueAt),
  });
  // One text, as the engine has it: two that are equal would be compared letter by letter.
  return { task, occurrence: occurrenceOf(task, { id: task.lastOccurrenceId as string }) };
}

const creating = ({ task, occurrence }: Made): Unit => ({
  taskId: task.id,
  task: { record: task, expected: 0 },
  occurrences: [{ record: occurrence, expected: 0 }],
});

// Records are copied as the engine copies them: a spread would cost more than the store.

function starting({ task, occurrence }: Made, token: number): Unit {
  const record = copyOfOccurrence(occurrence);
  record.state = 'running';
  record.revision = 2;
  record.attempt = 1;
  record.token = token;
  record.leaseUntil = token;
  record.workerId = 'bench';
  record.startedAt = clock.now();
  return { taskId: task.id, occurrences: [{ record, expected: 1 }] };
}

function ending({ task, occurrence }: Made, token: number): Unit {
  const now = clock.now();
  const record = copyOfOccurrence(occurrence);
  record.state = 'succeeded';
  record.revision = 3;
  record.attempt = 1;
  record.token = token;
  record.workerId = 'bench';
  record.outcome = 'succeeded';
  record.startedAt = now;
  record.endedAt = now;
  const done = copyOfTask(task);
  done.state = 'completed';
  done.revision = 2;
  done.endedAt = now;
  done.endReason = 'succeeded';
  done.lastEnd = 'succeeded';
  return {
    taskId: task.id,
    task: { record: done, expected: 1 },
    occurrences: [{ record, expected: 2 }],
  };
}

/** Hands over the batches, a few on their way at a time, and waits until all is durable. */
async function pump(session: StoreSession, batches: Iterable<readonly Unit[]>): Promise<void> {
  const under: Commit[] = [];
  const durable: Promise<void>[] = [];
  for (const units of batches) {
    const commit = session.commit(units);
    under.push(commit);
    durable.push(commit.durable);
    if (under.length < IN_FLIGHT) continue;
    const refusals = await (under.shift() as Commit).visible;
    if (refusals.length > 0) throw new Error('a unit was refused');
  }
  await Promise.all(durable);
}

function* batchesOf(made: readonly Made[], unitOf: (made: Made, n: number) => Unit) {
  for (let at = 0; at < made.length; at += BATCH) {
    yield made.slice(at, at + BATCH).map((each, i) => unitOf(each, at + i));
  }
}

async function rate(name: string, run: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  const before = process.cpuUsage();
  const written = writesOfProcess();
  await run();
  const perSecond = (TASKS / (performance.now() - startMs)) * 1000;
  const { user, system } = process.cpuUsage(before);
  note(name, perSecond, 'tasks/s');
  // Beside others on the machine, this says more.
  note('  of all threads together', (user + system) / TASKS, 'µs of CPU a task');
  if (written !== undefined) {
    const { calls, bytes } = writesOfProcess() as Writes;
    const aTask = (calls - written.calls) / TASKS;
    note('  runs of pages written', aTask, 'a task');
    note('  pages written', (bytes - written.bytes) / PAGE_BYTES / TASKS, 'a task');
    note('  of what the disk flushes of scattered runs', (aTask * perSecond) / scatteredRate, '');
  }
  return perSecond;
}

interface Writes {
  readonly calls: number;
  readonly bytes: number;
}

/**
 * Of this process so far: LMDB writes each run of neighbouring pages with one call, and a few more calls wake threads. Undefined
 * where no Linux tells it.
 */
function writesOfProcess(): Writes | undefined {
  try {
    const text = readFileSync('/proc/self/io', 'utf8');
    const of = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(text)?.[1]);
    return { calls: of('syscw'), bytes: of('wchar') };
  } catch {
    return undefined;
  }
}

const PAGE_BYTES = 4096;
const SCATTERED = 500;
let scatteredRate = Number.NaN;

/** What bounds every store that writes a page here and a page there: pages at random places, flushed 500 at a time. */
function scatteredWrites(): number {
  const file = join(root, 'scattered');
  const fd = openSync(file, 'w');
  const chunk = Buffer.alloc(2 ** 20, 1);
  for (let at = 0; at < 256; at++) writeSync(fd, chunk, 0, chunk.length, at * chunk.length);
  fdatasyncSync(fd);
  const pages = (256 * chunk.length) / PAGE_BYTES;
  const ms: number[] = [];
  for (let round = 0; round < 20; round++) {
    const startMs = performance.now();
    for (let i = 0; i < SCATTERED; i++) {
      const page = Math.floor(Math.random() * pages);
      writeSync(fd, chunk, 0, PAGE_BYTES, page * PAGE_BYTES);
    }
    fdatasyncSync(fd);
    ms.push(performance.now() - startMs);
  }
  closeSync(fd);
  rmSync(file);
  ms.sort((a, b) => a - b);
  const perSecond = (SCATTERED / (ms[ms.length >> 1] as number)) * 1000;
  note('the disk: scattered pages written and flushed', perSecond, 'a second');
  return perSecond;
}

/** Two puts a task, queued, of the sizes that the store writes: record and due entry by coarse bucket. */
async function raw(name: string, spreadMs: number): Promise<number> {
  const db = openLmdb(join(root, `${name}.mdb`), {
    noSubdir: true,
    encoding: 'binary',
    keyEncoding: 'binary',
    mapSize: 2 ** 38,
  } as never);
  const tasks = db.openDB('tasks', { encoding: 'binary', keyEncoding: 'binary' } as never);
  const due = db.openDB('due', { encoding: 'binary', keyEncoding: 'binary' } as never);
  const perSecond = await rate(`raw lmdb-js, two queued puts a task, ${name}`, async () => {
    const under: Promise<unknown>[] = [];
    for (let at = 0; at < TASKS; at += BATCH) {
      const record = Buffer.alloc(BATCH * 150, 7);
      for (let i = 0; i < BATCH; i++) {
        const key = Buffer.alloc(16);
        key.writeBigUInt64BE(BigInt(at + i), 0);
        void tasks.put(key as never, record.subarray(i * 150, i * 150 + 150) as never);
        const dueKey = Buffer.alloc(20);
        dueKey.writeUInt32BE(Math.floor((Math.random() * spreadMs) / 86_400_000), 0);
        key.copy(dueKey, 4);
        void due.put(dueKey as never, record.subarray(0, 31) as never);
      }
      under.push(Promise.resolve(db.committed));
      if (under.length >= IN_FLIGHT) await under.shift();
    }
    await db.flushed;
  });
  await db.close();
  return perSecond;
}

async function flushLatency(session: StoreSession): Promise<void> {
  const ms: number[] = [];
  for (let i = 0; i < 100; i++) {
    const startMs = performance.now();
    await session.commit([creating(make(i, clock.now() + 1e9))]).durable;
    ms.push(performance.now() - startMs);
  }
  ms.sort((a, b) => a - b);
  note('one durable create, p50', ms[50] as number, 'ms');
  note('one durable create, p99', ms[98] as number, 'ms');
}

async function main(): Promise<void> {
  console.log(
    `${cpus()[0]?.model}, ${cpus().length} cores, node ${process.version}, ${TASKS} tasks\n`,
  );
  scatteredRate = scatteredWrites();
  const path = join(root, 'store');
  const store = lmdbStore({ path });
  const session = await store.open({ clock, retention: RETENTION });
  await load(session);
  await flushLatency(session);

  const day = 86_400_000;
  const rawRate = await raw('30 days', 30 * day);
  const far = Array.from({ length: TASKS }, (_, n) =>
    make(n, clock.now() + Math.floor(Math.random() * 30 * day)),
  );
  // Made beforehand: what is measured is the store.
  const creates = [...batchesOf(far, creating)];
  const created = await rate('store, creates over 30 days, durable', () => pump(session, creates));
  note('  of raw queued puts', created / rawRate, '');
  note('  bytes of disk a task', statSync(join(path, 'data.mdb')).size / TASKS, 'bytes');

  await load(session);
  const now = Array.from({ length: TASKS }, (_, n) => make(n, clock.now()));
  await rate('store, life cycle due now (create, start, end)', async () => {
    await pump(session, lifeOf(now));
  });

  const soon = Array.from({ length: TASKS }, (_, n) => make(n, clock.now() + 5000));
  await pump(session, batchesOf(soon, creating));
  const shuffled = soon
    .map((made) => ({ made, order: Math.random() }))
    .sort((a, b) => a.order - b.order);
  const random = shuffled.map(({ made }) => made);
  await rate('store, start and end in random order', async () => {
    await pump(session, pairsOf(random));
  });
  await session.close();

  const openedMs = performance.now();
  const again = await store.open({ clock, retention: RETENTION });
  note('reopen', performance.now() - openedMs, 'ms');
  await again.close();
  if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify(results, null, 2));
}

/** As the engine does: what is near is known to it. */
async function load(session: StoreSession): Promise<void> {
  const room = { total: 2_000_000, of: () => 2_000_000, crowded: [] };
  for (;;) {
    const step = await session.due?.load(clock.now(), room);
    if (step?.more !== true) return;
  }
}

function* lifeOf(made: readonly Made[]): Generator<Unit[]> {
  for (let at = 0; at < made.length; at += BATCH) {
    const some = made.slice(at, at + BATCH);
    yield some.map(creating);
    yield some.map((each, i) => starting(each, at + i + 1));
    yield some.map((each, i) => ending(each, at + i + 1));
  }
}

function* pairsOf(made: readonly Made[]): Generator<Unit[]> {
  for (let at = 0; at < made.length; at += BATCH) {
    const some = made.slice(at, at + BATCH);
    yield some.map((each, i) => starting(each, at + i + 1));
    yield some.map((each, i) => ending(each, at + i + 1));
  }
}

try {
  await main();
} finally {
  rmSync(root, { recursive: true, force: true });
}
