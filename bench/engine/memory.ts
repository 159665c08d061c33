/**
 * What pending tasks take of memory, and what is left of it when they have ended and outlived their retention. In a
 * process of its own, for what was there before would count:
 *
 *   node --expose-gc --import tsx bench/engine/memory.ts [N = 5000000]
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { must, progress } from '../lib/report.js';
import { createAll, items, openBed } from './load.js';

export interface Memory {
  readonly tasks: number;
  /** Anonymous bytes (heap, array buffers, WebAssembly): before, with all pending, after all are forgotten. */
  readonly before: number;
  readonly pending: number;
  readonly after: number;
}

const CHUNK = 10_000;
/** The load of creation, and of running them: they are due when all are created. */
const CREATES_A_SECOND = 20_000;
const POLL_MS = 250;

/** Runs `measure` in a fresh process. */
export function memoryOf(tasks: number): Memory {
  const file = fileURLToPath(import.meta.url);
  const args = ['--expose-gc', '--import', 'tsx', file, String(tasks)];
  const { stdout, status } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  must(status === 0, 'the process that measures memory ended well');
  return JSON.parse(stdout) as Memory;
}

async function measure(tasks: number): Promise<Memory> {
  const bed = await openBed('in-process', 1, { retention: { succeeded: '1s', failed: '1s' } });
  const before = anonymousBytes();
  const dueMs = Date.now() + 5_000 + (tasks / CREATES_A_SECOND) * 1000;
  for (let done = 0; done < tasks; done += CHUNK) {
    await createAll(
      bed,
      items(Math.min(CHUNK, tasks - done), () => ({ runAt: dueMs })),
    );
    if (done % 1_000_000 === 0) progress(`engine: memory, ${done.toLocaleString('en-US')} created`);
  }
  must(Date.now() < dueMs, 'all were created before they were due');
  const pending = anonymousBytes();
  await bed.untilEnded(tasks);
  progress('engine: memory, all ended');
  for (;;) {
    const { items: left } = await bed.scheduler.list({ limit: 1 });
    if (left.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const after = anonymousBytes();
  await bed.close();
  return { tasks, before, pending, after };
}

function anonymousBytes(): number {
  for (let i = 0; i < 3; i++) (globalThis as { gc?: () => void }).gc?.();
  const kib = /^RssAnon:\s+(\d+) kB/m.exec(readStatus())?.[1];
  return kib === undefined ? process.memoryUsage().rss : Number(kib) * 1024;
}

/** Linux tells anonymous pages apart. */
function readStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8');
  } catch {
    return '';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(JSON.stringify(await measure(Number(process.argv[2] ?? 5_000_000))));
}
