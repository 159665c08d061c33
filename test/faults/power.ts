/**
 * Power loss: a process that accepts and runs tasks is stopped, its file looked at (A), let go on, and stopped before
 * what it did meanwhile is flushed (B). Of A and B images are made of what the disk may hold then. Each must open, agree
 * with itself, and hold all that was acknowledged, not only by A but up to B.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lmdbStore, Scheduler, systemClock, verifyStore } from '../../src/index.js';
import type { StoreSession } from '../../src/store/store.js';
import { Dice } from '../simulation/dice.js';
import { handlersOf } from './handlers.js';
import { changedPages, imageOf, isUsable, type Pair, unflushed } from './image.js';
import { type Line, readJournal } from './journal.js';
import { type Faults, waitUntilAllEnded } from './kill.js';
import { countsAgree } from './look.js';
import { Child } from './process.js';

export interface PowerOptions {
  readonly images: number;
  readonly seed: number;
  /** An empty directory. */
  readonly path: string;
  readonly say: (line: string) => void;
  /** The deliberately broken store: ends with the first image that has a fault. */
  readonly broken?: boolean;
}

/** Images of one pair of looks. */
const IMAGES_A_PAIR = 4;
/** Of so many images one is run to the end of all its tasks. */
const RUN_EVERY = 8;
/** The process begins anew after so many pairs, or its file grows long. */
const PAIRS_A_PROCESS = 8;
/** A usable pair is there after a few tries; a disk on which none is ends the test. */
const TRIES_MAX = 400;
const BETWEEN_MS = 60;
/** A and B are at most so far apart, ms. */
const BETWEEN_LOOKS_MS = 12;
/** Share of acknowledgements at which the process stops by itself: many an A and B is such an instant. */
const STOPS = '0.2';
const RETENTION = { succeededMs: 86_400_000, failedMs: 86_400_000 };

export async function runPowerLoss(options: PowerOptions): Promise<Faults> {
  const { images, say } = options;
  const dice = new Dice(options.seed);
  const faults: string[] = [];
  const tally = {
    images: 0,
    pairs: 0,
    tries: 0,
    acknowledged: 0,
    changedPages: 0,
    unflushedAtA: 0,
    unflushedAtB: 0,
  };
  const goesOn = () => tally.images < images && !(options.broken === true && faults.length > 0);
  for (let run = 0; goesOn(); run++) {
    const source = new Source(join(options.path, `run-${run}`), dice, options.broken === true);
    try {
      await source.begin();
      for (let pairs = 0; pairs < PAIRS_A_PROCESS && goesOn(); pairs++) {
        const { pair, acknowledged } = await source.pair();
        const pages = changedPages(pair);
        tally.pairs++;
        tally.acknowledged += acknowledged.length;
        tally.changedPages += pages.length;
        tally.unflushedAtA += Number(unflushed(pair).atA);
        tally.unflushedAtB += Number(unflushed(pair).atB);
        for (let i = 0; i < IMAGES_A_PAIR && goesOn(); i++) {
          const share = [0, 1][i] ?? dice.pick([0.05, 0.3, 0.5, 0.7, 0.95]);
          const path = join(options.path, 'image');
          mkdirSync(path);
          writeFileSync(join(path, 'data.mdb'), imageOf(pair, pages, share, dice));
          const runs = tally.images % RUN_EVERY === 0;
          for (const fault of await judge(path, acknowledged, runs)) {
            faults.push(`run ${run}, pair ${tally.pairs}, image ${i}, share ${share}: ${fault}`);
          }
          rmSync(path, { recursive: true });
          tally.images++;
        }
      }
    } finally {
      tally.tries += source.tries;
      await source.end();
    }
    say(`run ${run}: ${tally.images} images, ${faults.length} faults`);
  }
  return { faults, tally };
}

/** A process that gives pairs of looks at its file. */
class Source {
  tries = 0;
  readonly #path: string;
  readonly #file: string;
  readonly #journal: string;
  readonly #dice: Dice;
  readonly #child: Child;

  constructor(path: string, dice: Dice, broken: boolean) {
    mkdirSync(path);
    this.#path = path;
    this.#file = join(path, 'data.mdb');
    this.#journal = join(path, 'journal.jsonl');
    this.#dice = dice;
    const seed = String(dice.below(2 ** 31));
    const mode = broken ? 'hasty' : 'inline';
    this.#child = new Child('./child.ts', [path, this.#journal, seed, mode, STOPS]);
  }

  async begin(): Promise<void> {
    while ((await this.#child.line()) !== 'running');
    await systemClock().sleep(BETWEEN_MS);
  }

  /** The process is stopped meanwhile, and goes on with the next. */
  async pair(): Promise<{ pair: Pair; acknowledged: readonly Line[] }> {
    await this.#between(BETWEEN_MS);
    let a = readFileSync(this.#file);
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      this.tries++;
      await this.#between(this.#dice.below(BETWEEN_LOOKS_MS));
      const b = readFileSync(this.#file);
      const pair = { a, b };
      if (isUsable(pair) && unflushed(pair).atB) {
        return { pair, acknowledged: readJournal(this.#journal) };
      }
      a = b;
    }
    throw new Error(`no two looks without a flush between them in ${TRIES_MAX} tries`);
  }

  async #between(ms: number): Promise<void> {
    this.#child.goOn();
    if (ms > 0) await systemClock().sleep(ms);
    await this.#child.stop();
  }

  async end(): Promise<void> {
    await this.#child.kill();
    rmSync(this.#path, { recursive: true });
  }
}

async function judge(path: string, lines: readonly Line[], runs: boolean): Promise<string[]> {
  try {
    // Who only reads, before a scheduler has opened it, sees what a scheduler would.
    const before = await verifyStore({ path });
    const faults = before.disagreements.map((text) => `verify, before it was opened: ${text}`);
    const session = await lmdbStore({ path }).open({ clock: systemClock(), retention: RETENTION });
    try {
      faults.push(...(await countsAgree(session)));
      faults.push(...(await holds(session, lines)));
    } finally {
      await session.close();
    }
    const { disagreements } = await verifyStore({ path });
    faults.push(...disagreements.map((text) => `verify: ${text}`));
    if (runs && faults.length === 0) faults.push(...(await runToTheEnd(path)));
    return faults;
  } catch (error) {
    return [`the image cannot be used: ${error instanceof Error ? error.stack : error}`];
  }
}

/** All that the callers were told. */
async function holds(session: StoreSession, lines: readonly Line[]): Promise<string[]> {
  const faults: string[] = [];
  for (const line of lines) {
    if (line.kind === 'told') {
      const views = await session.views(line.tasks.map(({ id }) => id));
      for (const [i, { id, key }] of line.tasks.entries()) {
        if (views[i] === undefined) faults.push(`task ${id} was acknowledged and is gone`);
        if (key === undefined) continue;
        const holder = await session.taskIdOfKey('default', key, systemClock().now());
        if (holder !== id) faults.push(`key ${key} is held by ${holder}, not by ${id}`);
      }
    } else if (line.kind === 'cancelled') {
      const [view] = await session.views([line.taskId]);
      if (view?.task.state !== 'cancelled') faults.push(`task ${line.taskId} is not cancelled`);
    }
  }
  return faults;
}

async function runToTheEnd(path: string): Promise<string[]> {
  const handlers = handlersOf(() => {});
  const scheduler = await Scheduler.open({ handlers, store: lmdbStore({ path }) });
  try {
    await scheduler.start();
    return await waitUntilAllEnded(scheduler);
  } finally {
    await scheduler.shutdown({ drain: false });
  }
}
