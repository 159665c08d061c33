/**
 * Very many tasks of one tenant and some of another, all due in one minute (`--spread`, seconds): how late are those of the other?
 *
 *   npx tsx bench/crowd.ts [--big 1000000] [--small 1000] [--ahead 5] [--spread 60] [--window N] [--path DIR] [--json FILE]
 *
 * `--ahead`: minutes from the last create to the first that is due; the creates are within it if they can be. It ends when the
 * last of the other tenant has started. `--window`: occurrences in memory, 2 million if not given. `--big 10000000` needs 3 GB of disk. Lateness is taken in the handler.
 */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MemoryPeaks } from '../src/cli/load/memory.js';
import { InProcessExecutor } from '../src/execution/in-process.js';
import { type Context, lmdbStore, systemClock } from '../src/index.js';
import { openWith } from '../src/scheduler.js';
import { randomOf } from './lib/random.js';

const { values: flags } = parseArgs({
  options: {
    big: { type: 'string', default: '1000000' },
    small: { type: 'string', default: '1000' },
    ahead: { type: 'string', default: '5' },
    spread: { type: 'string', default: '60' },
    path: { type: 'string' },
    json: { type: 'string' },
    seed: { type: 'string', default: '1' },
    window: { type: 'string' },
  },
});
const BIG = Number(flags.big);
const SMALL = Number(flags.small);
const MINUTE_MS = 60_000;
const SPREAD_MS = Number(flags.spread) * 1000;
const BATCH = 10_000;
const PAYLOAD = Buffer.alloc(64, 7);
const clock = systemClock();
const random = randomOf(Number(flags.seed));

interface Seen {
  started: number;
  early: number;
  readonly latenessMs: number[];
}

const of = {
  big: { started: 0, early: 0, latenessMs: [] },
  small: { started: 0, early: 0, latenessMs: [] },
};
const seen: Record<string, Seen> = of;
let whenAll!: () => void;
const all = new Promise<void>((resolve) => {
  whenAll = resolve;
});

function note(_payload: unknown, ctx: Context): void {
  const lateMs = clock.now() - ctx.dueAt.getTime();
  const tenant = seen[ctx.tenant] as Seen;
  tenant.started += 1;
  if (lateMs < 0) tenant.early += 1;
  // Of the many, one in a hundred is enough.
  if (ctx.tenant === 'small' || tenant.started % 100 === 0) tenant.latenessMs.push(lateMs);
  if (of.small.started === SMALL) whenAll();
}

function percentiles({ latenessMs }: Seen): Record<string, number> {
  const sorted = Float64Array.from(latenessMs).sort();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

const path = mkdtempSync(join(flags.path ?? tmpdir(), 'tickwheel-bench-'));
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, node ${process.version}, seed ${flags.seed}`,
);
const scheduler = await openWith(
  { clock, store: lmdbStore({ path }) },
  {
    executor: new InProcessExecutor({ handlers: { note }, slots: 64 }),
    windowMax: flags.window === undefined ? undefined : Number(flags.window),
  },
);
await scheduler.start();
const peaks = new MemoryPeaks();
const beganMs = clock.now();
const dueMs = beganMs + Number(flags.ahead) * MINUTE_MS;

async function create(tenant: string, count: number): Promise<void> {
  const items = Array.from({ length: count }, () => ({
    handler: 'note' as const,
    payload: PAYLOAD,
    options: { tenant, runAt: dueMs + Math.floor(random() * SPREAD_MS) },
  }));
  for (const made of await scheduler.scheduleMany(items)) if (made instanceof Error) throw made;
  peaks.sample();
}

for (let done = 0, small = 0; done < BIG; ) {
  const count = Math.min(BATCH, BIG - done);
  await create('big', count);
  done += count;
  // Those of the other come in among them.
  const some = Math.round((SMALL * done) / BIG) - small;
  if (some > 0) await create('small', some);
  small += some;
}
const createdMs = clock.now();
console.log(
  `created in ${createdMs - beganMs} ms, ${dueMs - createdMs} ms before the first is due`,
);
const sampling = setInterval(() => {
  peaks.sample();
  const { started } = of.big;
  console.log(
    `${Math.round((clock.now() - dueMs) / 1000)} s  big ${started}  small ${of.small.started}  anon ${Math.round((peaks.rssAnonBytes ?? 0) / 2 ** 20)} MiB`,
  );
}, 5000);
await all;
clearInterval(sampling);
const { bounds, overdue } = await scheduler.stats();
const result = {
  big: BIG,
  small: SMALL,
  createsPerSecond: Math.round(((BIG + SMALL) * 1000) / (createdMs - beganMs)),
  bigStarted: of.big.started,
  early: of.big.early + of.small.early,
  smallLatenessMs: percentiles(of.small),
  bigLatenessMs: percentiles(of.big),
  timed: bounds.timed,
  overdue,
  rssAnonMiB: Math.round((peaks.rssAnonBytes ?? 0) / 2 ** 20),
  storeMiB: Math.round(statSync(join(path, 'data.mdb')).size / 2 ** 20),
};
console.log(JSON.stringify(result, null, 2));
if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify(result, null, 2));
await scheduler.shutdown({ drain: false });
rmSync(path, { recursive: true, force: true });
