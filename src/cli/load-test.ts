/**
 * `tickwheel load-test`: loads a scheduler on worker threads and audits every task that it
 * accepted.
 */
import { Scheduler, systemClock } from '../index.js';
import { SAMPLE_NAME, SAMPLE_TRACE } from './data/azure-functions-2019.js';
import { aboutRun } from './load/about.js';
import { Audit } from './load/audit.js';
import { Board } from './load/board.js';
import { Creator } from './load/creator.js';
import { drain, takeCensus } from './load/drain.js';
import { generate, preload } from './load/generator.js';
import { Monitor } from './load/monitor.js';
import type { LoadOptions } from './load/options.js';
import { type ProgressStream, progressLine } from './load/progress.js';
import { replayWorkload } from './load/replay.js';
import { curveOf, figuresOf, type LoadResult } from './load/result.js';
import { openStore } from './load/stores.js';
import { preloadWorkload, syntheticWorkload } from './load/synthetic.js';
import { count } from './load/table.js';
import { parseTrace, readTrace } from './load/trace.js';
import { warmThreads } from './load/warm-threads.js';
import type { Workload } from './load/workload.js';

export interface Surroundings {
  /** What was typed, for the report. */
  readonly command: string;
  readonly progress: ProgressStream;
}

const HANDLERS = new URL('./load/handler.js', import.meta.url);
/**
 * Ended tasks are dropped soon, so that a long run shows what the load costs and not its history.
 */
const RETENTION = { succeeded: '10s', failed: '1h' } as const;
/** The run goes on until what is due within this time of the last creation has run. */
const DRAIN_HORIZON_MS = 10_000;

/** The warm-up's load: enough to have everything compiled, and far from the limit. */
const WARMUP_RATE = 8000;
/** After it the threads of the run itself are warmed, and what was given them is let end. */
const WARM_THREADS_MS = 1000;
const WARM_REST_MS = 500;

/** @throws InvalidArgumentError for a trace that can't be used */
export async function runLoadTest(
  options: LoadOptions,
  surroundings: Surroundings,
): Promise<LoadResult> {
  // First of all: a trace that can't be read is no reason to warm up.
  const load = await openWorkload(options);
  if (options.warmupMs > 0) await warmUp(options, surroundings);
  return runOnce(options, load, surroundings);
}

/**
 * A run of its own, on a store of its own, that nobody counts: what is measured afterwards is the scheduler,
 * not the first seconds of V8's compiler.
 */
async function warmUp(options: LoadOptions, surroundings: Surroundings): Promise<void> {
  const { progress } = surroundings;
  progress.write(`warming up for ${options.warmupMs} ms, not counted\n`);
  const warm: LoadOptions = {
    ...options,
    load: { kind: 'synthetic', ratePerSecond: WARMUP_RATE },
    durationMs: options.warmupMs,
    warmupMs: 0,
    dueInMs: Math.min(options.warmupMs, 500),
    pendingTasks: 0,
    workMs: 0,
    path: undefined,
  };
  const silent = { isTTY: false, write: () => true };
  await runOnce(warm, await openWorkload(warm), { ...surroundings, progress: silent });
}

async function runOnce(
  options: LoadOptions,
  load: Workload,
  surroundings: Surroundings,
): Promise<LoadResult> {
  const run = await prepare(options, load, surroundings);
  const { board, audit, creator, monitor } = run;
  let measured: Measured;
  try {
    measured = await play(run);
  } finally {
    await monitor.stop();
    await run.scheduler.shutdown();
    await run.store.dispose();
    board.withdraw();
  }
  const tally = audit.tally(measured.untilMs);
  return {
    figures: figuresOf({
      tally,
      createsPerSecond: measured.createsPerSecond,
      finishesPerSecond: measured.finishesPerSecond,
      acks: creator.acks,
      lateness: board.lateness,
      rssBytesPeak: monitor.peaks.rssBytes,
      rssAnonBytesPeak: monitor.peaks.rssAnonBytes,
      storeBytes: measured.storeBytes,
      seed: options.seed,
    }),
    stray: tally.stray,
    unanswered: creator.issued - tally.accepted - tally.rejected,
    firstRefusal: messageOf(creator.firstRefusal),
    firstError: messageOf(run.errors[0]),
    latenessCurve: curveOf(board.lateness),
    samples: monitor.series.samples,
    about: aboutRun(run.load.title, options, run.startedAt, surroundings.command),
  };
}

interface Measured {
  /** What was due by then (epoch ms) had to be finished. */
  readonly untilMs: number;
  readonly createsPerSecond: number;
  readonly finishesPerSecond: number;
  readonly storeBytes: number | null;
}

/** The run itself: store, load, drain, and read the store through for the audit. */
async function play(run: Run): Promise<Measured> {
  const { scheduler, board, audit, creator, monitor, clock } = run;
  await scheduler.start();
  if (run.warmMs > 0) {
    await warmThreads(scheduler, run.payloadBytes, clock, run.warmMs);
    await clock.sleep(WARM_REST_MS);
  }
  monitor.start();

  monitor.enter('storing');
  await preload(run.stored, creator, clock);
  const storing = monitor.soFar();

  monitor.enter('loading');
  board.recordFrom(clock.now());
  monitor.loadBegins();
  await generate(run.load, creator, clock);
  const loading = monitor.soFar();

  monitor.enter('draining');
  const untilMs = clock.now() + Math.min(run.load.dueInMs, DRAIN_HORIZON_MS);
  await drain(creator, audit, { untilMs, clock, finishes: () => board.total('finished') });
  const draining = monitor.soFar();

  monitor.enter('auditing');
  await takeCensus(scheduler, audit, clock, (tasks) => {
    monitor.enter(`auditing, ${count(tasks)} read`);
  });
  return {
    untilMs,
    createsPerSecond: (run.load.tasksTotal > 0 ? loading : storing).createdPerSecond,
    finishesPerSecond: draining.finishedPerSecond,
    storeBytes: await run.store.bytes(),
  };
}

type Run = Awaited<ReturnType<typeof prepare>>;

/** Everything that takes part in a run, none of it begun. */
async function prepare(options: LoadOptions, load: Workload, surroundings: Surroundings) {
  const clock = systemClock();
  const stored = preloadWorkload({ ...options, tasks: options.pendingTasks });
  const board = Board.create({
    tasks: stored.tasksTotal + load.tasksTotal,
    workMs: options.workMs,
  });
  board.publish();
  const store = await openStore(options.store, options.path);
  const errors: unknown[] = [];
  const scheduler = await Scheduler.open({
    store,
    handlers: HANDLERS,
    workers: { threads: options.threads },
    retention: RETENTION,
    onError: (error) => {
      if (errors.length === 0) errors.push(error);
    },
  });
  const startedAtMs = clock.now();
  const audit = new Audit(board, startedAtMs);
  const creator = new Creator({
    ...options,
    target: scheduler,
    audit,
    monotonic: () => clock.monotonic(),
    runName: startedAtMs.toString(36),
  });
  const progress = progressLine(surroundings.progress);
  const monitor = new Monitor({ board, audit, clock, progress });
  const startedAt = new Date(startedAtMs);
  return {
    clock,
    load,
    stored,
    board,
    store,
    scheduler,
    audit,
    creator,
    monitor,
    errors,
    startedAt,
    warmMs: Math.min(options.warmupMs, WARM_THREADS_MS),
    payloadBytes: options.payloadBytes,
  };
}

async function openWorkload(options: LoadOptions): Promise<Workload> {
  const { load, durationMs } = options;
  if (load.kind === 'synthetic') {
    return syntheticWorkload({ ...options, ...load, lengthMs: durationMs ?? 0 });
  }
  const trace =
    load.file === undefined
      ? await parseTrace(SAMPLE_TRACE.split('\n'), SAMPLE_NAME)
      : await readTrace(load.file);
  const source = load.file ?? SAMPLE_NAME;
  return replayWorkload({ ...options, ...load, trace, source, lengthMs: durationMs });
}

function messageOf(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
