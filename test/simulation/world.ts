/**
 * One seed's world: callers, a store that fails, workers that die, a clock that jumps; the real scheduler lives in it, one
 * process after the other. After every step the oracle looks at all that changed.
 */
import { nextTurn } from '../../src/clock/turn.js';
import {
  type OpenOptions,
  type Scheduler,
  StoreUnavailableError,
  VirtualClock,
} from '../../src/index.js';
import { openWith } from '../../src/scheduler.js';
import type { Unit } from '../../src/store/store.js';
import type { BrokenVariant } from './broken.js';
import { Callers, HANDLERS, TENANTS } from './callers.js';
import { Dice } from './dice.js';
import { type ExecutorObserver, SimExecutor } from './executor.js';
import { Oracle } from './oracle/oracle.js';
import type { SimPayload } from './plans.js';
import { ProcessClock } from './process.js';
import { Tally } from './report.js';
import { type Boundary, type RealStore, type StoreObserver, WatchedStore } from './store.js';
import { Trace } from './trace.js';
import { Turns } from './turns.js';
import { makeWheel } from './wheels.js';

export interface WorldOptions {
  readonly seed: number;
  readonly steps: number;
  readonly makeStore: (dice: Dice) => RealStore;
  readonly broken?: BrokenVariant | undefined;
  readonly follow?: ((line: string) => void) | undefined;
}

export interface SimResult {
  readonly seed: number;
  readonly hash: string;
  readonly violations: readonly string[];
  /** The step in which the first violation was seen. */
  readonly step: number;
  readonly tally: Tally;
  readonly tail: readonly string[];
}

const START_MS = Date.UTC(2026, 0, 1);
const LEASE_MS = 3000;
const THREADS = 2;
const SLOTS_A_THREAD = 2;
/** The whole store is read, and all counters recounted, after so many steps. */
const ALL_EVERY = 40;
const FULL_RETRY_MS = 1100;
/** Of the event loop, that one of the engine takes at most, as long as no commit waits for time to pass. */
const TURNS_OF_A_TURN = 50;
/** Bytes that end so cannot be read back: which ones do follows from the number of the call. */
const BAD_BYTE = 3;

/** What happens in a step, and how often. */
const STEPS = {
  schedule: 24,
  scheduleMany: 3,
  flood: 0.6,
  imports: 0.4,
  pass: 22,
  passLong: 2.5,
  cancel: 3,
  pause: 4,
  resume: 5,
  trigger: 4,
  update: 4,
  pin: 2,
  cancelOccurrence: 3,
  redrive: 4,
  pauseScope: 1.6,
  resumeScope: 2.4,
  delete: 2,
  limits: 1,
  look: 2,
  race: 4,
  rush: 1.5,
  crash: 2,
  shutdown: 0.8,
  jump: 1.5,
  stop: 0.8,
  diskFull: 0.8,
  diskSlow: 0.8,
  diskFails: 0.6,
};

export class World implements StoreObserver, ExecutorObserver {
  readonly #options: WorldOptions;
  readonly #dice: Dice;
  readonly #clock = new VirtualClock(START_MS, { settleTimeout: 20 });
  readonly #trace = new Trace();
  readonly #tally = new Tally();
  readonly #oracle: Oracle;
  readonly #callers: Callers;
  readonly #real: RealStore;
  readonly #store: WatchedStore;
  readonly #slowEntry: boolean;
  #scheduler!: Scheduler;
  #executor!: SimExecutor;
  #process!: ProcessClock;
  #life = 0;
  #alive = false;
  #calm = false;
  #fullUntilMs = Number.NEGATIVE_INFINITY;
  #slowUntilMs = 0;
  /** Die at this boundary of this many more commits. */
  #deathAt: { boundary: Boundary; left: number } | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#dice = new Dice(options.seed);
    this.#trace.follow = options.follow;
    this.#slowEntry = this.#dice.chance(0.3);
    this.#oracle = new Oracle({
      wallMs: () => this.#clock.now(),
      slots: THREADS * SLOTS_A_THREAD,
      moved: (from, to, anew) => this.#tally.moved(from, to, anew),
    });
    this.#callers = new Callers({
      dice: this.#dice.fork(),
      oracle: this.#oracle,
      trace: this.#trace,
      now: () => this.#clock.now(),
      monotonic: () => this.#clock.monotonic(),
      fault: (name) => this.fault(name),
    });
    this.#real = options.makeStore(this.#dice.fork());
    this.#store = new WatchedStore(this.#real, this, options.broken ?? {});
    this.#store.faults.full = () => this.#clock.monotonic() < this.#fullUntilMs && this.#alive;
    for (const [tenant, weight] of [
      ['a', 1],
      ['b', 3],
    ] as const) {
      this.#oracle.fairness.weights.set(tenant, weight);
    }
    const { paused } = this.#oracle.shadow;
    // Of the handlers, only this one has neither limits nor versions. What a full disk refused is tried again a second
    // later, and others go first meanwhile. Of what the store has not told yet, others may be loaded first: shares are
    // of what is in memory.
    this.#oracle.fairness.isOpen = (tenant, handler) =>
      handler === 'mail' &&
      this.#store.session?.hasTold(this.#clock.now()) === true &&
      this.#clock.monotonic() > this.#fullUntilMs + FULL_RETRY_MS &&
      !paused.has(`paused:tenant:${tenant}`) &&
      !paused.has(`paused:handler:${handler}`);
  }

  async run(): Promise<SimResult> {
    const undo = this.#options.broken?.patch?.();
    const giveBackTurns = new Turns(() => this.#store.underWay()).install();
    let step = 0;
    try {
      await this.#open();
      for (step = 1; step <= this.#options.steps && this.#isFine; step++) {
        await this.#step();
        await this.#check(step);
      }
      if (this.#isFine) await this.#end();
    } catch (error) {
      this.#oracle.fault(`13 the world broke: ${(error as Error).stack ?? error}`);
    } finally {
      undo?.();
    }
    await this.#kill();
    await this.#real.dispose?.();
    giveBackTurns();
    for (const move of this.#tally.illegal) this.#oracle.fault(`7 no legal way: ${move}`);
    return {
      seed: this.#options.seed,
      hash: this.#trace.hash,
      violations: this.#oracle.violations,
      step,
      tally: this.#tally,
      tail: this.#trace.tail,
    };
  }

  get #isFine(): boolean {
    return this.#oracle.violations.length === 0;
  }

  // --- processes -------------------------------------------------------------------------------------

  async #open(): Promise<void> {
    this.#life++;
    const fault = (message: string) => this.#oracle.fault(`13 ${message}`);
    this.#process = new ProcessClock(this.#clock, fault, this.#options.broken?.skewMs);
    this.#store.clock = this.#process;
    const versions = this.#calm ? [1, 2] : this.#dice.pick([[1], [1, 2], [1, 2], [2]]);
    if (versions.length === 1) this.fault('version missing');
    const dice = this.#dice.fork();
    this.#executor = new SimExecutor({
      handlers: new Map([
        ['mail', [1]],
        ['report', [1]],
        ['image', versions],
      ]),
      threads: THREADS,
      slotsAThread: SLOTS_A_THREAD,
      dice,
      observer: this,
      calm: () => this.#calm,
      entryMs: () => (this.#slowEntry && !this.#calm ? dice.pick([0, 0, 2, 8]) : 0),
    });
    const executor = this.#options.broken?.executor?.(this.#executor) ?? this.#executor;
    this.#alive = true;
    this.#scheduler = await openWith(this.#openOptions(), {
      executor,
      makeWheel,
      windowMax: this.#real.windowMax,
    });
    this.#callers.connect(this.#scheduler, this.#life);
    this.#scheduler.on('*', (event) => {
      this.#trace.add(`event ${event.type} ${event.occurrenceId ?? event.taskId}`);
    });
    this.#trace.add(`life ${this.#life}`);
    // Not awaited: callers are served while the store is being scanned.
    const scheduler = this.#scheduler;
    this.#scheduler.start().catch((error) => {
      if (
        this.#alive &&
        scheduler === this.#scheduler &&
        !(error instanceof StoreUnavailableError)
      ) {
        this.#oracle.fault(`13 it did not start: ${error}`);
      }
    });
  }

  #openOptions(): OpenOptions {
    const life = this.#life;
    return {
      store: this.#store,
      clock: this.#process,
      random: this.#dice.fork().next,
      limits: { maxReady: 8 },
      retention: { succeeded: '3000d', failed: '3000d' },
      tenants: {
        b: { weight: 3 },
        c: { maxConcurrency: 1 },
        d: { maxRatePerSecond: 3 },
        e: { maxPending: 12 },
      },
      handlerLimits: { report: { maxConcurrency: 2 } },
      leaseDuration: LEASE_MS,
      timeoutGrace: 1000,
      shutdownTimeout: 4000,
      payloadCodec: { id: 'sim', encode: (bytes) => bytes, decode: (bytes) => this.#decode(bytes) },
      onError: (error, { source }) => {
        const isTold = error instanceof StoreUnavailableError && this.#store.session?.failed;
        if (life !== this.#life || !this.#alive || isTold) return;
        this.#oracle.fault(`13 ${source}: ${(error as Error).stack ?? error}`);
      },
    };
  }

  #decode(bytes: Uint8Array): Uint8Array {
    if (bytes.length > 20 && ((bytes.at(-1) as number) & 31) === BAD_BYTE) {
      this.fault('bad record');
      throw new Error('simulated: these bytes cannot be read');
    }
    return bytes;
  }

  async #kill(): Promise<void> {
    if (!this.#alive) return;
    this.#alive = false;
    this.#process.kill();
    this.#executor.kill();
    this.#deathAt = undefined;
    await this.#store.kill();
  }

  /** At the boundaries of commits a process may die. */
  boundary(boundary: Boundary): void {
    const death = this.#deathAt;
    if (death === undefined || death.boundary !== boundary || --death.left > 0) return;
    this.fault(`crash ${boundary}`);
    this.#trace.add(`crash ${boundary}`);
    void this.#kill();
  }

  /** Where the process died, or its store failed: after a while there is another one. */
  async #ensureAlive(): Promise<void> {
    if (this.#alive && this.#store.session?.failed === true) {
      this.#trace.add('the store has failed');
      await this.#shutDown(false);
    }
    if (this.#alive) return;
    await this.#clock.advance(this.#dice.pick([0, 10, 5000, 20_000]));
    await this.#open();
    await this.#clock.advance(0);
  }

  async #shutDown(drain: boolean): Promise<void> {
    let over = false;
    const life = this.#life;
    const done = this.#scheduler.shutdown({ drain }).catch((error) => {
      if (!(error instanceof StoreUnavailableError)) {
        this.#oracle.fault(`13 shutdown: ${(error as Error).stack}`);
      }
    });
    void done.then(() => {
      over = true;
    });
    // Past the timeout of the drain come the abort and its grace; a full disk may hold up the end of it.
    for (let i = 0; i < 200 && !over && this.#alive; i++) await this.#clock.advance(100);
    if (!over && this.#alive && life === this.#life)
      this.#oracle.fault('13 shutdown did not come to an end');
    if (!this.#alive) return;
    // What is left of the process ends with it.
    this.#alive = false;
    this.#process.kill();
    this.#executor.kill();
    this.#deathAt = undefined;
    this.#store.session?.die();
  }

  // --- steps -----------------------------------------------------------------------------------------

  async #step(): Promise<void> {
    await this.#clock.advance(0);
    await this.#ensureAlive();
    const kind = this.#dice.weighted(STEPS);
    this.#trace.add(`step ${kind} at ${this.#clock.now()}`);
    await this.#take(kind);
    this.#store.faults.delayMs = this.#clock.monotonic() < this.#slowUntilMs ? 30 : 0;
  }

  async #take(kind: keyof typeof STEPS): Promise<void> {
    const { id, call } = this.#callOf(kind);
    if (call !== undefined) {
      await this.#wait(call);
      return;
    }
    switch (kind) {
      case 'pass':
        await this.#clock.advance(this.#dice.below(2500));
        return;
      case 'passLong':
        await this.#clock.advance(this.#dice.below(60_000));
        return;
      case 'race':
        await this.#race(id);
        return;
      case 'rush':
        await this.#rush();
        return;
      case 'crash':
        this.#deathAt = {
          boundary: this.#dice.pick(['before', 'visible', 'durable'] as const),
          left: 1 + this.#dice.below(6),
        };
        this.#store.arm();
        await this.#clock.advance(this.#dice.below(3000));
        return;
      case 'shutdown': {
        const drain = this.#dice.chance(0.6);
        this.fault(drain ? 'shutdown' : 'shutdown at once');
        await this.#shutDown(drain);
        return;
      }
      case 'jump':
        await this.#jump();
        return;
      case 'stop':
        await this.#stop();
        return;
      default:
        this.#breakDisk(kind);
        await this.#clock.advance(this.#dice.below(400));
    }
  }

  #callOf(kind: keyof typeof STEPS): {
    id: string | undefined;
    call: Promise<unknown> | undefined;
  } {
    const callers = this.#callers;
    const id = callers.pickTask();
    const call = (() => {
      switch (kind) {
        case 'schedule':
          return callers.schedule();
        case 'scheduleMany':
          return callers.scheduleMany();
        case 'flood':
          return callers.flood();
        case 'imports':
          return callers.imports();
        case 'redrive':
          return callers.redrive();
        case 'pauseScope':
          return callers.pauseScope();
        case 'resumeScope':
          return callers.resumeScope();
        case 'limits':
          return callers.limits();
        case 'pin':
          return callers.pin();
        case 'cancel':
        case 'pause':
        case 'resume':
        case 'trigger':
        case 'update':
        case 'cancelOccurrence':
        case 'delete':
        case 'look':
          return id === undefined ? callers.schedule() : callers[kind](id);
        default:
          return undefined;
      }
    })();
    return { id, call };
  }

  /** Mostly a caller waits for its answer before the next calls. */
  async #wait(call: Promise<unknown>): Promise<void> {
    let over = false;
    void call.then(() => {
      over = true;
    });
    if (this.#dice.chance(0.25)) {
      await this.#clock.advance(this.#dice.below(5));
      return;
    }
    for (let i = 0; i < 200 && !over && this.#alive; i++)
      await this.#clock.advance(i < 20 ? 1 : 10);
  }

  /** Calls for the same task at once, at a time when something of it may be happening. */
  async #race(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    this.fault('race of calls');
    const kinds = [
      'cancel',
      'pause',
      'resume',
      'trigger',
      'update',
      'cancelOccurrence',
      'trigger',
      'update',
    ] as const;
    for (let i = 2 + this.#dice.below(4); i > 0; i--) {
      const kind = this.#dice.pick(kinds);
      if (kind !== 'cancel' || this.#dice.chance(0.4)) void this.#callers[kind](id);
      if (this.#dice.chance(0.3)) await this.#clock.advance(this.#dice.below(3));
    }
    await this.#clock.advance(this.#dice.below(50));
  }

  /** A pause while what it must hold is on its way to its handlers. */
  async #rush(): Promise<void> {
    const scope = { tenant: this.#dice.pick(TENANTS) };
    this.fault('pause of what is on its way');
    void this.#callers.burst(scope.tenant, 4);
    await this.#clock.advance(this.#dice.below(4));
    await this.#wait(this.#callers.pauseScope(scope));
    await this.#clock.advance(this.#dice.below(100));
    if (this.#alive && this.#dice.chance(0.7)) void this.#callers.resumeScope(scope);
  }

  async #jump(): Promise<void> {
    const ms = this.#dice.pick([3000, 20_000, 120_000, 86_400_000 * 2, -500, -2500, -60_000]);
    this.fault(ms < 0 ? 'clock back' : 'clock forward');
    // One that read the clock before commits by what it read: no turn of the engine is to be in the midst of it.
    for (let turns = 0; turns < TURNS_OF_A_TURN; turns++) await nextTurn();
    if (ms < 0) this.#oracle.wentBack();
    await this.#clock.jumpWall(ms > 0 ? this.#dice.below(ms) : ms);
  }

  /** SIGSTOP, and after some leases SIGCONT. */
  async #stop(): Promise<void> {
    this.fault('process stopped');
    this.#process.stop();
    await this.#clock.advance(this.#dice.below(5 * LEASE_MS));
    if (!this.#alive) return;
    this.#process.goOn();
    await this.#clock.advance(0);
  }

  #breakDisk(kind: keyof typeof STEPS): void {
    const untilMs = this.#clock.monotonic() + this.#dice.below(4000);
    if (kind === 'diskFull') {
      this.fault('disk full');
      this.#fullUntilMs = untilMs;
    } else if (kind === 'diskSlow') {
      this.fault('disk slow');
      this.#slowUntilMs = untilMs;
    } else {
      const what = this.#dice.pick(['commit', 'flush'] as const);
      this.fault(`${what} fails`);
      this.#store.faults.failNext = what;
      this.#store.arm();
    }
  }

  // --- looking ---------------------------------------------------------------------------------------

  async #check(step: number): Promise<void> {
    this.#callers.checkAnswers();
    if (!this.#alive || this.#store.session?.failed === true) return;
    await this.#oracle.checkTouched();
    if (step % ALL_EVERY !== 0) return;
    await this.#clock.advance(0);
    await this.#checkAll();
  }

  /** At rest: nothing is on its way to the store, so all must agree. */
  async #checkAll(): Promise<void> {
    const { session } = this.#store;
    if (!this.#alive || session === undefined || session.failed || session.underWay > 0) return;
    const isFull = this.#clock.monotonic() < this.#fullUntilMs + 2000;
    const stats = await this.#scheduler.stats().catch(() => undefined);
    if (session.underWay > 0 || !this.#alive) return;
    await this.#oracle.checkAll(stats);
    await this.#look();
    // The net under the engine catches nothing, or there is a fault in the engine.
    const { repairs } = stats ?? {};
    if (repairs !== undefined && Object.values(repairs).some((count) => count > 0)) {
      this.#oracle.fault(`10 reconciled: ${JSON.stringify(repairs)}`);
    }
    if (isFull || this.#scheduler.state !== 'running') return;
    this.#oracle.checkRunning((id) => this.#executor.holds(id), this.#executor.held);
  }

  /** What a store keeps in memory may hide what it has on the disk. */
  async #look(): Promise<void> {
    const look = await this.#real.look?.(this.#clock.now());
    if (look === undefined) return;
    for (const fault of look.faults) this.#oracle.fault(`15 on the disk: ${fault}`);
    await this.#oracle.checkAll(undefined, look.reader);
    await look.close();
  }

  /** Everything is let go, nothing fails any more: then all that is due must come to its end. */
  async #end(): Promise<void> {
    this.#calm = true;
    this.#deathAt = undefined;
    this.#store.faults.failNext = undefined;
    this.#store.faults.delayMs = 0;
    this.#fullUntilMs = 0;
    this.#slowUntilMs = 0;
    this.#trace.add('calm');
    await this.#clock.advance(0);
    await this.#ensureAlive();
    // Once more, with all versions.
    await this.#shutDown(true);
    await this.#ensureAlive();
    for (const tenant of TENANTS) await this.#insist(() => this.#callers.resumeScope({ tenant }));
    for (const handler of HANDLERS)
      await this.#insist(() => this.#callers.resumeScope({ handler }));
    for (const [id, { task }] of [...this.#oracle.shadow.visible]) {
      if (task.state === 'paused') await this.#insist(() => this.#callers.resume(id));
    }
    for (let i = 0; i < 12; i++) {
      await this.#clock.advance('2m');
      await this.#oracle.checkTouched();
    }
    this.#oracle.checkEnd(this.#clock.now());
    this.#callers.checkAnswers();
    if (this.#callers.underWay > 0) this.#oracle.fault('13 calls were never answered');
    await this.#checkAll();
  }

  async #insist(call: () => Promise<unknown>): Promise<void> {
    await this.#wait(call());
  }

  // --- what the store says ---------------------------------------------------------------------------

  async opened(session: Parameters<StoreObserver['opened']>[0]): Promise<void> {
    const { shadow } = this.#oracle;
    const { kept, lost } = shadow;
    await this.#oracle.opened(this.#life, session.epoch, session);
    if (shadow.kept > kept) this.fault('unflushed commits kept');
    if (shadow.lost > lost) this.fault('unflushed commits lost');
  }

  committing(commit: number, units: readonly Unit[]): void {
    this.#trace.add(`commit ${commit} of ${units.length}`);
    this.#oracle.committing(commit, units);
  }

  visible(commit: number, refusals: readonly { unit: number; reason: string }[]): void {
    this.#trace.add(`visible ${commit} ${refusals.length}`);
    this.#oracle.visible(commit, new Map(refusals.map(({ unit, reason }) => [unit, reason])));
  }

  durable(commit: number): void {
    this.#trace.add(`durable ${commit}`);
    this.#oracle.durable(commit);
  }

  dropped(commit: number): void {
    this.#oracle.shadow.dropped(commit, !this.#alive || this.#store.session?.failed === true);
  }

  // --- what the workers say --------------------------------------------------------------------------

  entered(run: Parameters<ExecutorObserver['entered']>[0], payload: unknown): void {
    this.#trace.add(`entered ${run.occurrenceId} ${run.fencingToken} at ${this.#clock.now()}`);
    const call = (payload as SimPayload | undefined)?.call;
    this.#oracle.entered(this.#life, run, call === 0 ? undefined : call);
  }

  ended(run: { fencingToken: number }, truth: string, result: Uint8Array | undefined): void {
    this.#trace.add(`ended ${run.fencingToken} ${truth}`);
    this.#oracle.ended(run.fencingToken, truth, result);
  }

  aborted(run: { fencingToken: number }, why: string): void {
    this.#trace.add(`aborted ${run.fencingToken} ${why}`);
    this.#oracle.aborted(run.fencingToken, why);
  }

  silent(run: { fencingToken: number }): void {
    this.fault('worker silent');
    this.#oracle.silent(run.fencingToken);
  }

  broke(text: string): void {
    this.#oracle.fault(`10 ${text}`);
  }

  fault(name: string): void {
    this.#tally.fault(name);
  }
}
