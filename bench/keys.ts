/**
 * What idempotency keys cost: creates with a key through the key index, beside a plain LMDB B-tree of the hashes and beside
 * creates without keys, in one run. A create is two puts (a record by id, a due entry) and, keyed, a look and an add.
 *
 *   npx tsx bench/keys.ts prepare DIR N        fill DIR with N live keys, once for each N (10M: about two minutes)
 *   npx tsx bench/keys.ts measure DIR [M=500000]   M creates each; JSON with the raw figures follows the table
 *
 * Memory and disk are those of the keys alone. Prepare on a disk: with /tmp in memory, flushes cost nothing.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { keyHash } from '../src/store/lmdb/keys/hash.js';
import { KeyIndex } from '../src/store/lmdb/keys/key-index.js';

const BATCH = 500;
/** Commits queued beyond the one that is waited for. */
const AHEAD = 8;
const PAYLOAD = 64;

type Binary = Database<Uint8Array, Uint8Array>;

interface Keys {
  /** Looks for the key's task, and adds one if there is none. */
  create(hash: Uint8Array, id: Uint8Array): void;
  seal(): void;
  find(hash: Uint8Array): Uint8Array | undefined;
}

interface Place {
  readonly env: RootDatabase;
  readonly records: Binary;
  readonly due: Binary;
}

function openEnv(directory: string): RootDatabase {
  mkdirSync(directory, { recursive: true });
  return open({ path: join(directory, 'data.mdb'), mapSize: 2 ** 36, maxDbs: 8, noSubdir: true });
}

function openPlace(env: RootDatabase): Place {
  const options = { encoding: 'binary', keyEncoding: 'binary', cache: false } as const;
  return { env, records: env.openDB('records', options), due: env.openDB('due', options) };
}

function openIndex(env: RootDatabase): KeyIndex {
  const options = { encoding: 'binary', cache: false } as const;
  return KeyIndex.open({ log: env.openDB('log', options), runs: env.openDB('runs', options) });
}

function openTree(env: RootDatabase): Binary {
  return env.openDB('keys', { encoding: 'binary', keyEncoding: 'binary', cache: false });
}

function indexKeys(index: KeyIndex): Keys {
  return {
    create: (hash, id) => {
      if (index.find(hash) === undefined) index.add(hash, id);
    },
    seal: () => index.seal(),
    find: (hash) => index.find(hash),
  };
}

function treeKeys(tree: Binary): Keys {
  return {
    create: (hash, id) => {
      if (tree.getBinaryFast(hash) === undefined) void tree.put(hash, id);
    },
    seal: () => {},
    find: (hash) => tree.getBinary(hash),
  };
}

const NO_KEYS: Keys = { create: () => {}, seal: () => {}, find: () => undefined };

/** In the order of `n`, as ids of tasks are. */
function idOf(n: number): Uint8Array {
  const id = new Uint8Array(16);
  const view = new DataView(id.buffer);
  view.setUint32(0, 1 + Math.floor(n / 2 ** 16));
  view.setUint16(4, n % 2 ** 16);
  view.setUint32(8, Math.imul(n, 0x9e37_79b1) >>> 0);
  return id;
}

const orderedKey = (n: number): string => `order-${n.toString().padStart(12, '0')}`;
const randomKey = (n: number): string => `${(Math.imul(n, 0x85eb_ca6b) >>> 0).toString(36)}-${n}`;

/** Turns of BATCH creates; waits for visible a few turns behind, and for durable at the end. */
async function inBatches(
  env: RootDatabase,
  from: number,
  to: number,
  createOne: (n: number) => void,
  seal: () => void,
): Promise<{ perSecond: number; turnMsMax: number; busy: number }> {
  const startedAt = performance.now();
  const waiting: Promise<boolean>[] = [];
  let turnMsMax = 0;
  let turnsMs = 0;
  for (let n = from; n < to; n += BATCH) {
    const turnAt = performance.now();
    for (let i = n; i < Math.min(to, n + BATCH); i++) createOne(i);
    seal();
    // A promise of its own: lmdb-js's is bound only when it is asked.
    waiting.push(new Promise((resolve, reject) => env.committed.then(resolve, reject)));
    const turnMs = performance.now() - turnAt;
    turnsMs += turnMs;
    turnMsMax = Math.max(turnMsMax, turnMs);
    if (waiting.length > AHEAD) await waiting.shift();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(waiting);
  await env.flushed;
  const tookMs = performance.now() - startedAt;
  return { perSecond: ((to - from) * 1000) / tookMs, turnMsMax, busy: turnsMs / tookMs };
}

async function prepare(directory: string, count: number): Promise<void> {
  rmSync(directory, { recursive: true, force: true });
  const indexEnv = openEnv(join(directory, 'index'));
  const index = openIndex(indexEnv);
  const filled = await inBatches(
    indexEnv,
    0,
    count,
    (n) => index.add(keyHash('default', orderedKey(n)), idOf(n)),
    () => index.seal(),
  );
  console.log(`index: ${Math.round(filled.perSecond)} adds/s`, index.stats);
  await index.close();
  await indexEnv.close();
  const treeEnv = openEnv(join(directory, 'tree'));
  const tree = openTree(treeEnv);
  // In the order of hashes, which random puts of that many keys would take an hour for.
  const order = sortedHashes(count);
  await inBatches(
    treeEnv,
    0,
    count,
    (n) => void tree.put(order.hash(n), order.id(n)),
    () => {},
  );
  await treeEnv.close();
  await openEnv(join(directory, 'none')).close();
  writeFileSync(join(directory, 'count'), JSON.stringify({ prepared: count, next: count }));
}

/** The hashes of the ordered keys, sorted: 16 bytes and 4 of their number each, in one buffer. */
function sortedHashes(count: number) {
  const all = new Float64Array(count);
  const bytes = new Uint8Array(count * 16);
  for (let n = 0; n < count; n++) {
    const hash = keyHash('default', orderedKey(n));
    bytes.set(hash, n * 16);
    const first = new DataView(hash.buffer).getUint32(0);
    // 26 bits of number below 27 bits of hash: near enough to sorted.
    all[n] = Math.floor(first / 32) * 2 ** 26 + n;
  }
  all.sort();
  const at = (n: number) => all[n] % 2 ** 26;
  return {
    hash: (n: number) => bytes.slice(at(n) * 16, at(n) * 16 + 16),
    id: (n: number) => idOf(at(n)),
  };
}

interface Figures {
  readonly name: string;
  readonly keys: string;
  readonly perSecond: number;
  readonly turnMsMax: number;
  /** Share of the time that the main thread spent in creates. */
  readonly busy: number;
  readonly hitNs?: number;
  readonly missNs?: number;
}

function nsOfFinds(keys: Keys, hashOf: (n: number) => Uint8Array, isThere: boolean): number {
  const hashes = Array.from({ length: 50_000 }, (_, n) => hashOf(n));
  const startedAt = performance.now();
  let found = 0;
  for (const hash of hashes) if (keys.find(hash) !== undefined) found++;
  const ns = ((performance.now() - startedAt) * 1e6) / hashes.length;
  if (found !== (isThere ? hashes.length : 0)) throw new Error(`${found} were found`);
  return ns;
}

async function measureOne(
  name: string,
  place: Place,
  keys: Keys,
  { count, next: from, creates }: { count: number; next: number; creates: number },
): Promise<Figures[]> {
  const figures: Figures[] = [];
  const payload = new Uint8Array(PAYLOAD + 60).fill(7);
  let next = from;
  for (const kind of ['random', 'ordered'] as const) {
    const keyOf = kind === 'random' ? randomKey : orderedKey;
    const finds =
      keys === NO_KEYS || kind === 'ordered'
        ? {}
        : {
            hitNs:
              count === 0
                ? undefined
                : nsOfFinds(keys, (n) => keyHash('default', orderedKey((n * 7919) % count)), true),
            missNs: nsOfFinds(keys, (n) => keyHash('default', `absent-${n}`), false),
          };
    const timed = await inBatches(
      place.env,
      next,
      next + creates,
      (n) => {
        const id = idOf(n);
        if (keys !== NO_KEYS) keys.create(keyHash('default', keyOf(n)), id);
        void place.records.put(id, payload);
        const due = new Uint8Array(24);
        due.set(id, 8);
        void place.due.put(due, payload.subarray(0, 16));
      },
      () => keys.seal(),
    );
    next += creates;
    figures.push({ name, keys: kind, ...timed, ...finds } as Figures);
  }
  return figures;
}

/** Pages of the databases, in bytes. */
function bytesIn(env: RootDatabase, names: readonly string[]): number {
  let bytes = 0;
  for (const name of names) {
    const stats = env.openDB(name, { encoding: 'binary' }).getStats() as Record<string, number>;
    const pages = stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages;
    bytes += pages * stats.pageSize;
  }
  return bytes;
}

async function measure(directory: string, creates: number): Promise<void> {
  const { prepared: count, next } = JSON.parse(readFileSync(join(directory, 'count'), 'utf8'));
  // Keys that were not there in an earlier run either.
  writeFileSync(
    join(directory, 'count'),
    JSON.stringify({ prepared: count, next: next + 2 * creates }),
  );
  const range = { count, next, creates };
  const figures: Figures[] = [];

  const none = openEnv(join(directory, 'none'));
  figures.push(...(await measureOne('no keys', openPlace(none), NO_KEYS, range)));
  await none.close();

  const indexEnv = openEnv(join(directory, 'index'));
  const openedAt = performance.now();
  const index = openIndex(indexEnv);
  const openMs = performance.now() - openedAt;
  const filtersAt = performance.now();
  while (index.step()) await new Promise((resolve) => setImmediate(resolve));
  const settleMs = performance.now() - filtersAt;
  figures.push(...(await measureOne('index', openPlace(indexEnv), indexKeys(index), range)));
  const { stats } = index;
  const indexBytes = bytesIn(indexEnv, ['log', 'runs']);
  await index.close();
  await indexEnv.close();

  const treeEnv = openEnv(join(directory, 'tree'));
  const tree = openTree(treeEnv);
  figures.push(...(await measureOne('B-tree', openPlace(treeEnv), treeKeys(tree), range)));
  const treeBytes = bytesIn(treeEnv, ['keys']);
  await treeEnv.close();

  console.table(
    figures.map(({ name, keys, perSecond, turnMsMax, busy, hitNs, missNs }) => ({
      creates: name,
      keys: name === 'no keys' ? '' : keys,
      'k/s': Math.round(perSecond / 1000),
      'longest turn, ms': Number(turnMsMax.toFixed(1)),
      'main thread, %': Math.round(busy * 100),
      'hit, ns': hitNs && Math.round(hitNs),
      'miss, ns': missNs && Math.round(missNs),
    })),
  );
  const total = next + 2 * creates;
  const disk = { index: indexBytes / total, tree: treeBytes / total };
  console.log(
    `bytes on disk a key: index ${disk.index.toFixed(1)}, B-tree ${disk.tree.toFixed(1)}`,
  );
  console.log(
    `filters ${(stats.filterBytes / stats.entries).toFixed(2)} bytes an entry, memory ${(stats.memoryBytes / 2 ** 20).toFixed(1)} MiB, ${stats.runs} runs`,
  );
  console.log(
    `open ${openMs.toFixed(0)} ms, filters and leftovers ${settleMs.toFixed(0)} ms after`,
  );
  const machine = { cpu: cpus()[0].model, cores: cpus().length, node: process.version };
  console.log(JSON.stringify({ machine, count, creates, figures, stats, disk, openMs, settleMs }));
}

const [mode, directory, number] = process.argv.slice(2);
if (mode === 'prepare') await prepare(directory, Number(number));
else if (mode === 'measure' && existsSync(join(directory, 'count'))) {
  await measure(directory, Number(number ?? 500_000));
} else console.log('npx tsx bench/keys.ts prepare DIR N, then: measure DIR [M]');
