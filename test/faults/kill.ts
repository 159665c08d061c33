/**
 * Rounds of a process that accepts and runs tasks and is killed at a random instant. After each the store is opened
 * and looked at; after the last a scheduler of this process runs what is left, and the audit judges all of it.
 */
import { join } from 'node:path';
import { lmdbStore, Scheduler, systemClock } from '../../src/index.js';
import type { StoreSession } from '../../src/store/store.js';
import { Dice } from '../simulation/dice.js';
import { audit, type Process } from './audit.js';
import type { FaultsHandlers } from './callers.js';
import { handlersOf } from './handlers.js';
import { Journal, readJournal } from './journal.js';
import { countsAgree } from './look.js';
import { Child } from './process.js';

export interface KillOptions {
  readonly rounds: number;
  readonly seed: number;
  /** An empty directory. */
  readonly path: string;
  readonly say: (line: string) => void;
}

export interface Faults {
  /** What is wrong; empty when all is well. */
  readonly faults: readonly string[];
  /** What there was to go wrong. */
  readonly tally: Readonly<Record<string, number>>;
}

const RETENTION = { succeededMs: 86_400_000, failedMs: 86_400_000 };
/** Kills come within so long of the moment that they are counted from, ms. */
const WHILE_OPENING_MS = 80;
const WHILE_RUNNING_MS = 700;
/** What is left after the last kill is over by then, or something hangs. */
const DRAIN_MS = 20_000;
const DRAIN_LOOK_MS = 20;

export async function runKills(options: KillOptions): Promise<Faults> {
  const { rounds, seed, say } = options;
  const dice = new Dice(seed);
  const store = join(options.path, 'store');
  const processes: Process[] = [];
  const faults: string[] = [];
  let epoch = 0;
  for (let round = 1; round <= rounds; round++) {
    const file = join(options.path, `round-${round}.jsonl`);
    const how = await killOnce(store, file, dice);
    const lines = readJournal(file);
    const session = await lmdbStore({ path: store }).open({
      clock: systemClock(),
      retention: RETENTION,
    });
    try {
      processes.push({ lines, epochs: [epoch + 1, session.epoch - 1], killed: true });
      epoch = session.epoch;
      for (const fault of await look(session, processes)) faults.push(`round ${round}: ${fault}`);
    } finally {
      await session.close();
    }
    say(`round ${round}: killed ${how}, ${lines.length} lines`);
  }
  const file = join(options.path, 'drain.jsonl');
  const drained = await drain(store, file, processes, epoch);
  faults.push(...drained.faults);
  return { faults, tally: drained.tally };
}

async function killOnce(store: string, file: string, dice: Dice): Promise<string> {
  const mode = dice.chance(0.3) ? 'threads' : 'inline';
  const child = new Child('./child.ts', [store, file, String(dice.below(2 ** 31)), mode]);
  const isOpening = dice.chance(0.15);
  await child.line();
  if (!isOpening) await child.line();
  const ms = dice.below(isOpening ? WHILE_OPENING_MS : WHILE_RUNNING_MS);
  await systemClock().sleep(ms);
  await child.kill();
  return `${ms} ms ${isOpening ? 'into opening' : 'into running'}, ${mode}`;
}

/** Right after a kill: what was promised is there, and counts and records agree. */
async function look(session: StoreSession, processes: readonly Process[]): Promise<string[]> {
  const faults = await countsAgree(session);
  const [{ lines }] = processes.slice(-1) as [Process];
  for (const line of lines) {
    if (line.kind !== 'told') continue;
    const views = await session.views(line.tasks.map(({ id }) => id));
    for (const [i, { id, key }] of line.tasks.entries()) {
      if (views[i] === undefined) faults.push(`task ${id} was acknowledged and is gone`);
      if (key === undefined) continue;
      const holder = await session.taskIdOfKey('default', key, systemClock().now());
      if (holder !== id) faults.push(`key ${key} is held by ${holder}, not by ${id}`);
    }
  }
  return faults;
}

/** Runs all that is left, then audits. */
async function drain(
  path: string,
  file: string,
  before: readonly Process[],
  epoch: number,
): Promise<Faults> {
  const journal = new Journal(file);
  const store = lmdbStore({ path });
  const scheduler = await Scheduler.open({ handlers: handlersOf(journal.note), store });
  try {
    await scheduler.start();
    const faults = await waitUntilAllEnded(scheduler);
    if (faults.length > 0) return { faults, tally: {} };
    const own = {
      lines: readJournal(file),
      epochs: [epoch + 1, epoch + 1] as const,
      killed: false,
    };
    return await audit(scheduler, [...before, own]);
  } finally {
    await scheduler.shutdown({ drain: false });
    journal.close();
  }
}

/** Looks now and then; a fault when something never ends. */
export async function waitUntilAllEnded(scheduler: Scheduler<FaultsHandlers>): Promise<string[]> {
  const clock = systemClock();
  const untilMs = clock.now() + DRAIN_MS;
  for (let looks = 0; ; ) {
    const { pending, ready, running } = await scheduler.stats();
    // Counts are of what is decided: what reads see follows, and a second look is late enough.
    looks = pending + ready + running === 0 ? looks + 1 : 0;
    if (looks === 2) return [];
    if (clock.now() > untilMs) {
      return [`never ended: ${JSON.stringify({ pending, ready, running })}`];
    }
    await clock.sleep(DRAIN_LOOK_MS);
  }
}
