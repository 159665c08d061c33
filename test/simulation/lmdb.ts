/**
 * The LMDB store of a world: real files, in a directory that is removed in the end. What it writes takes as long as it
 * takes, and the world stands still meanwhile (`underWay`): a commit is told when it and all of the store's own work is
 * done, its flush after a delay of the world's own.
 *
 * A process that dies leaves its file as it is (kill -9), or, as after power loss, as it was before some of the commits
 * that it was not told were durable. For that the file is copied before each commit once a death is near. The next
 * process finds a copy: in this one, nothing else may have the old file open.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/clock/clock.js';
import { LmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import type { Tuning } from '../../src/store/lmdb/opening.js';
import { openReader, ReadOnlySession } from '../../src/store/lmdb/read-only-session.js';
import type { LmdbSession } from '../../src/store/lmdb/session.js';
import { verifyStore } from '../../src/store/lmdb/verify/verify.js';
import type {
  Commit,
  DueWindow,
  Store,
  StoreOpenOptions,
  StoreSession,
  Unit,
} from '../../src/store/store.js';
import type { Dice } from './dice.js';
import type { Look, RealStore } from './store.js';

const FILE = 'data.mdb';
/** In memory where the system has such a place, as the world waits for each flush. */
const MEMORY = '/dev/shm';
const PLACE = process.env.TMPDIR === undefined && existsSync(MEMORY) ? MEMORY : tmpdir();
const FLUSH_MS = [0, 0, 5, 40];
/** So small that indexes are flushed, merged and moved in a world of some hundred tasks. */
const SMALL: Tuning = {
  keys: { entriesMax: 8, workMax: 64 },
  rowLog: { rowsMax: 24, bytesMax: 2 ** 20, movesMin: 2, removalsMax: 4 },
};
/** With this much room in the near window, buckets that are not due yet are split. */
const ROOM_SMALL = 3;

/** The file as it was when so many commits had been made. */
interface Image {
  readonly commits: number;
  readonly path: string;
}

export class LmdbWorld implements RealStore {
  readonly store: Store;
  readonly windowMax: number | undefined;
  readonly #dice: Dice;
  readonly #root = mkdtempSync(join(PLACE, 'tickwheel-simulation-'));
  readonly #tuning: Tuning;
  readonly #flushMs: number;
  #directories = 0;
  #path: string;
  #session: SlowSession | undefined;
  /** Opening, closing, copying: more than a commit. */
  #work: Promise<unknown> | undefined;
  #isArmed = false;
  #images: Image[] = [];

  /** @param windowMax how many occurrences the near window holds, if not as many as usual */
  constructor(dice: Dice, windowMax?: number) {
    this.#dice = dice;
    this.windowMax = windowMax;
    this.#tuning = dice.chance(0.7) ? SMALL : {};
    this.#flushMs = dice.pick(FLUSH_MS);
    this.#path = this.#directory();
    this.store = {
      capabilities: new LmdbStore(this.#path).capabilities,
      open: (options) => this.#working(this.#open(options)),
    };
  }

  #directory(): string {
    const path = join(this.#root, String(++this.#directories));
    mkdirSync(path);
    return path;
  }

  underWay(): Promise<unknown> | undefined {
    return this.#work ?? this.#session?.inner.atRest();
  }

  #working<T>(work: Promise<T>): Promise<T> {
    const over = () => {
      if (this.#work === done) this.#work = undefined;
    };
    const done: Promise<unknown> = work.then(over, over);
    this.#work = done;
    return work;
  }

  async #open(options: StoreOpenOptions): Promise<StoreSession> {
    const inner = (await new LmdbStore(this.#path, this.#tuning).open(options)) as LmdbSession;
    await inner.atRest();
    this.#disarm();
    this.#session = new SlowSession(inner, {
      clock: options.clock,
      flushMs: this.#flushMs,
      room: (room) => (this.#dice.chance(0.4) ? Math.min(room, ROOM_SMALL) : room),
      committing: (commits) => this.#keep(inner, commits),
    });
    return this.#session;
  }

  // --- death -----------------------------------------------------------------------------------------

  arm(): void {
    this.#isArmed = true;
  }

  #disarm(): void {
    this.#isArmed = false;
    for (const { path } of this.#images.splice(0)) rmSync(path);
  }

  /** Before a commit: the file is whole, as nothing else is under way. */
  #keep(inner: LmdbSession, commits: number): void {
    if (!this.#isArmed || inner.atRest() !== undefined) return;
    const path = join(this.#root, `image-${commits}`);
    copyFileSync(join(this.#path, FILE), path);
    this.#images.push({ commits, path });
  }

  async crash(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined) await this.#work;
    else {
      const durable = session.die();
      const allowed = this.#images.filter(({ commits }) => commits >= durable);
      const image = this.#dice.chance(0.7) && allowed.length > 0 ? this.#dice.pick(allowed) : null;
      await this.#working(this.#bury(session.inner, image?.path));
    }
  }

  async #bury(inner: LmdbSession, image: string | undefined): Promise<void> {
    await inner.atRest();
    const dead = this.#path;
    this.#path = this.#directory();
    copyFileSync(image ?? join(dead, FILE), join(this.#path, FILE));
    await inner.close();
    rmSync(dead, { recursive: true });
    this.#disarm();
  }

  /** Reads a copy of the file, as another process would, after all of its indexes were compared with its records. */
  async look(nowMs: number): Promise<Look> {
    const path = this.#directory();
    copyFileSync(join(this.#path, FILE), join(path, FILE));
    const { disagreements, notCompared } = await verifyStore({ path, nowMs: () => nowMs });
    const reader = new ReadOnlySession(await openReader(path));
    const close = async () => {
      await reader.close();
      rmSync(path, { recursive: true });
    };
    const faults = [...disagreements, ...notCompared.map((what) => `not compared: ${what}`)];
    return { reader, faults, close: () => this.#working(close()) };
  }

  async dispose(): Promise<void> {
    await this.crash();
    rmSync(this.#root, { recursive: true });
  }
}

interface SlowOptions {
  readonly clock: Clock;
  readonly flushMs: number;
  /** How much room the near window has, of what the engine says. */
  room(room: number): number;
  /** A commit is about to be made after so many. */
  committing(commits: number): void;
}

/** Visible is told when the real commit is durable; durable a while of the world's time later. */
class SlowSession implements StoreSession {
  readonly inner: LmdbSession;
  readonly epoch: number;
  readonly due: DueWindow;
  readonly #options: SlowOptions;
  #commits = 0;
  #durable = 0;
  #waits = 0;

  constructor(inner: LmdbSession, options: SlowOptions) {
    this.inner = inner;
    this.epoch = inner.epoch;
    this.#options = options;
    const { due } = inner;
    this.due = {
      isNear: (lane, dueAt) => due.isNear(lane, dueAt),
      isTold: (lane, dueAt) => due.isTold(lane, dueAt),
      load: async (nowMs, room) => {
        // What is due has room: those who wait longer than others are not to blame for a window that is full.
        const isDue = (due.earliestMs() ?? Number.POSITIVE_INFINITY) <= nowMs;
        const total = isDue ? room.total : options.room(room.total);
        const step = await due.load(nowMs, { ...room, total });
        await inner.atRest();
        return step;
      },
      earliestMs: () => due.earliestMs(),
      runningTasks: () => due.runningTasks(),
    };
  }

  /** @returns how many commits were durable */
  die(): number {
    return this.#durable;
  }

  get unflushedBytes(): number {
    return this.inner.unflushedBytes;
  }

  get waitsForClock(): boolean {
    return this.#waits > 0;
  }

  commit(units: readonly Unit[]): Commit {
    this.#options.committing(this.#commits);
    const number = ++this.#commits;
    const { visible, durable } = this.inner.commit(units);
    const told = durable.then(() => visible);
    // As `visible` rejects where `durable` does, and with the same.
    visible.catch(() => {});
    return { visible: told, durable: told.then(() => this.#flushed(number)) };
  }

  /** In order, since each waits as long. */
  #flushed(number: number): Promise<void> {
    const { clock, flushMs } = this.#options;
    const over = () => {
      this.#durable = number;
    };
    if (flushMs === 0) return Promise.resolve().then(over);
    this.#waits++;
    return new Promise((resolve) => {
      const monotonicMs = clock.monotonic() + flushMs;
      clock.arm({ wallMs: Number.POSITIVE_INFINITY, monotonicMs }, () => {
        this.#waits--;
        over();
        resolve();
      });
    });
  }

  views: StoreSession['views'] = (ids, places) => this.inner.views(ids, places);
  taskIdOfKey: StoreSession['taskIdOfKey'] = (tenant, key, nowMs) =>
    this.inner.taskIdOfKey(tenant, key, nowMs);
  occurrence: StoreSession['occurrence'] = (id) => this.inner.occurrence(id);
  attempts: StoreSession['attempts'] = (id) => this.inner.attempts(id);
  listTasks: StoreSession['listTasks'] = (query) => this.inner.listTasks(query);
  listOccurrences: StoreSession['listOccurrences'] = (id, query) =>
    this.inner.listOccurrences(id, query);
  listDeadLetters: StoreSession['listDeadLetters'] = (query) => this.inner.listDeadLetters(query);
  scanLive: StoreSession['scanLive'] = (query) => this.inner.scanLive(query);
  settings: StoreSession['settings'] = () => this.inner.settings();
  counts: StoreSession['counts'] = () => this.inner.counts();

  async prune(nowMs: number, max: number): ReturnType<StoreSession['prune']> {
    const pruned = await this.inner.prune(nowMs, max);
    await this.inner.atRest();
    return pruned;
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
