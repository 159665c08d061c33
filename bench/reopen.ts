/**
 * How long after `open` the first task is dispatched, in a store with many pending whose process was killed.
 *
 *   npx tsx bench/reopen.ts [--pending 1000000] [--due 1000] [--path DIR] [--json FILE]
 *
 * One process stores `--pending` one-offs with 64 bytes each, due over 30 days, and `--due` that are overdue by the time it
 * is killed, while it goes on scheduling. Another opens what is left, starts, and notes when each handler is entered. The
 * disk's cache is warm: cold, a look at a page costs what the disk takes. 10M pending need about 2 GB of disk and a few minutes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MemoryPeaks } from '../src/cli/load/memory.js';
import { lmdbStore, type ScheduleOptions, Scheduler, systemClock } from '../src/index.js';

const { values: flags } = parseArgs({
  options: {
    pending: { type: 'string', default: '1000000' },
    due: { type: 'string', default: '1000' },
    path: { type: 'string' },
    json: { type: 'string' },
    /** Internal: which of the two processes this is. */
    role: { type: 'string' },
  },
});
const PENDING = Number(flags.pending);
const DUE = Number(flags.due);
const SPREAD_MS = 30 * 86_400_000;
/** What is far is far enough that none comes due meanwhile. */
const FIRST_MS = 3_600_000;
const BATCH = 10_000;
const PAYLOAD_BYTES = 64;
const clock = systemClock();

function items(count: number, dueMs: () => number) {
  return Array.from({ length: count }, () => {
    const options: ScheduleOptions = { runAt: dueMs() };
    return { handler: 'note', payload: Buffer.alloc(PAYLOAD_BYTES, 7), options };
  });
}

const farMs = (): number => clock.now() + FIRST_MS + Math.random() * (SPREAD_MS - FIRST_MS);

/** Fills the store, says so, and goes on until it is killed. */
async function fill(path: string): Promise<never> {
  const scheduler = await Scheduler.open({ store: lmdbStore({ path }) });
  const put = async (count: number, dueMs: () => number): Promise<void> => {
    for (const made of await scheduler.scheduleMany(items(count, dueMs))) {
      if (made instanceof Error) throw made;
    }
  };
  // Not started, so that nothing runs here.
  await put(DUE, () => clock.now());
  for (let done = 0; done < PENDING; done += BATCH) {
    await put(Math.min(BATCH, PENDING - done), farMs);
  }
  process.stdout.write('filled\n');
  for (;;) await put(100, farMs);
}

async function reopen(path: string): Promise<void> {
  let entered = 0;
  let firstMs = 0;
  let whenAll!: () => void;
  const all = new Promise<void>((resolve) => {
    whenAll = resolve;
  });
  const note = (): void => {
    if (entered++ === 0) firstMs = clock.monotonic();
    if (entered === DUE) whenAll();
  };
  const beganMs = clock.monotonic();
  const scheduler = await Scheduler.open({ handlers: { note }, store: lmdbStore({ path }) });
  const openMs = clock.monotonic();
  await scheduler.start();
  const startedMs = clock.monotonic();
  await all;
  const allMs = clock.monotonic();
  const { pending } = await scheduler.stats();
  if (pending < PENDING) throw new Error(`${pending} pending of ${PENDING}`);
  const peaks = new MemoryPeaks();
  peaks.sample();
  await scheduler.shutdown();
  const result = {
    pending,
    openMs: openMs - beganMs,
    startMs: startedMs - openMs,
    firstDispatchMs: firstMs - beganMs,
    allOverdueMs: allMs - beganMs,
    rssAnonMiB: (peaks.rssAnonBytes ?? 0) / 2 ** 20,
    storeMiB: statSync(join(path, 'data.mdb')).size / 2 ** 20,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

function child(role: string, path: string): ChildProcess {
  const file = fileURLToPath(import.meta.url);
  const args = ['--import', 'tsx', file, '--role', role, '--path', path];
  return spawn(process.execPath, [...args, '--pending', String(PENDING), '--due', String(DUE)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function lineOf(process: ChildProcess): Promise<string> {
  const lines = createInterface({ input: process.stdout as NodeJS.ReadableStream });
  for await (const line of lines) return line;
  throw new Error('a process ended and said nothing');
}

async function main(): Promise<void> {
  console.log(`${cpus()[0]?.model}, ${cpus().length} cores, node ${process.version}`);
  const path = mkdtempSync(join(flags.path ?? tmpdir(), 'tickwheel-bench-'));
  try {
    const filling = child('fill', path);
    const beganMs = clock.monotonic();
    await lineOf(filling);
    console.log(`filled in ${Math.round(clock.monotonic() - beganMs)} ms; killed`);
    filling.kill('SIGKILL');
    const result = JSON.parse(await lineOf(child('reopen', path))) as Record<string, number>;
    for (const [name, value] of Object.entries(result)) {
      console.log(`${name.padEnd(18)} ${Math.round(value * 10) / 10}`);
    }
    if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify(result, null, 2));
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

if (flags.role === 'fill') await fill(flags.path as string);
else if (flags.role === 'reopen') await reopen(flags.path as string);
else await main();
