/**
 * What the library does, on a virtual clock: twelve hours pass in milliseconds. Each scene returns what happened;
 * `npm run examples` prints it, and test/examples.test.ts holds it.
 */
import { pathToFileURL } from 'node:url';
import {
  cron,
  fixedRate,
  type HandlerMap,
  memoryStore,
  Scheduler,
  TimerWheel,
  VirtualClock,
} from 'tickwheel';

const NINE = '2026-03-02T09:00:00Z';

/** Plays a scene on a scheduler of its own, whose clock moves only when the scene says so. */
async function play<H extends HandlerMap, T>(
  startAt: string,
  handlers: H,
  scene: (scheduler: Scheduler<H>, clock: VirtualClock) => Promise<T>,
): Promise<T> {
  const clock = new VirtualClock(startAt);
  const scheduler = await Scheduler.open({ clock, handlers, store: memoryStore() });
  await scheduler.start();
  try {
    return await scene(scheduler, clock);
  } finally {
    await scheduler.shutdown({ drain: false });
  }
}

/** The hour and minute, UTC. */
function minuteOf(at: number): string {
  return new Date(at).toISOString().slice(11, 16);
}

function secondsSince(startAt: string, at: number): number {
  return (at - Date.parse(startAt)) / 1000;
}

/** `*`/15 from 09:07 on. */
export async function cronFromNineOhSeven(): Promise<string[]> {
  const fired: string[] = [];
  const report = (_payload: undefined, ctx: { clock: { now(): number } }): void => {
    fired.push(minuteOf(ctx.clock.now()));
  };
  return play('2026-03-02T09:07:00Z', { report }, async (scheduler, clock) => {
    await scheduler.schedule('report', undefined, { schedule: cron('*/15 * * * *') });
    await clock.advance('45m');
    return fired;
  });
}

/** When a run began, and for which nominal time; seconds from the start. */
export interface Began {
  readonly nominal: number;
  readonly at: number;
}

/** A rate of 60 s whose runs take 150 s. */
export async function slowRuns(overlap: 'skip' | 'bufferAll'): Promise<Began[]> {
  const began: Began[] = [];
  const handlers: HandlerMap = {
    async crawl(_payload, ctx) {
      const nominal = secondsSince(NINE, ctx.nominalAt.getTime());
      began.push({ nominal, at: secondsSince(NINE, ctx.clock.now()) });
      await ctx.sleep('150s');
    },
  };
  return play(NINE, handlers, async (scheduler, clock) => {
    await scheduler.schedule('crawl', {}, { schedule: fixedRate({ every: '60s' }), overlap });
    await clock.advance('200s');
    return began.slice();
  });
}

/** A rate of 30 s, for a minute. */
export async function heartbeatForAMinute(): Promise<number[]> {
  const beats: number[] = [];
  const handlers: HandlerMap = {
    beat: (_payload, ctx) => {
      beats.push(secondsSince(NINE, ctx.clock.now()));
    },
  };
  return play(NINE, handlers, async (scheduler, clock) => {
    await scheduler.schedule('beat', {}, { schedule: fixedRate({ every: '30s' }) });
    await clock.advance('1m');
    return beats;
  });
}

/** A run that fails twice, with the default retry policy. */
export async function importWithRetries() {
  const startedAt: number[] = [];
  const handlers: HandlerMap = {
    load(file: string, ctx) {
      startedAt.push(secondsSince(NINE, ctx.clock.now()));
      if (ctx.attempt < 3) throw new Error(`${file} is locked`);
      return { rows: 120 };
    },
  };
  return play(NINE, handlers, async (scheduler, clock) => {
    const task = await scheduler.schedule('load', 'orders.csv');
    await clock.advance('10s');
    const { status, attempt, failures, result } = await scheduler.wait(task.id);
    return { startedAt, status, attempt, failures, result };
  });
}

/** A run that never succeeds. */
export async function cleanupThatDies() {
  const handlers: HandlerMap = {
    cleanup(_payload, ctx) {
      throw new Error(`disk is read-only (attempt ${ctx.attempt})`);
    },
  };
  return play(NINE, handlers, async (scheduler, clock) => {
    const task = await scheduler.schedule('cleanup', {}, { retry: { maxAttempts: 2 } });
    await clock.advance('1m');
    const { status, attempt, error } = await scheduler.wait(task.id);
    const { items } = await scheduler.deadLetters();
    const { deadLetters } = await scheduler.stats();
    return {
      status,
      attempt,
      error: error?.message,
      inDeadLetters: items.map((dead) => dead.taskId === task.id),
      deadLetters,
      taskStatus: (await scheduler.get(task.id))?.status,
    };
  });
}

/** The loop sleeps for twelve hours; a task that is due now comes in, and nobody moves the clock. */
export async function dueNowBesideFarTimer() {
  const handlers: HandlerMap = { run: (name: string) => name };
  return play(NINE, handlers, async (scheduler, clock) => {
    const far = await scheduler.schedule('run', 'far', { delay: '12h' });
    await clock.advance(0);
    const near = await scheduler.schedule('run', 'near');
    const { result, startedAt } = await scheduler.wait(near.id);
    const farStatus = (await scheduler.get(far.id))?.status;
    await clock.advance('12h');
    const farRun = await scheduler.wait(far.id);
    return {
      nearResult: result as string,
      nearStartedAt: secondsSince(NINE, startedAt?.getTime() ?? Number.NaN),
      farStatusMeanwhile: farStatus,
      farStartedAt: secondsSince(NINE, farRun.startedAt?.getTime() ?? Number.NaN),
    };
  });
}

/** Paused over its ten o'clock slot, resumed at half past. */
export async function pausedDigest() {
  let runs = 0;
  const handlers: HandlerMap = {
    digest: () => {
      runs += 1;
    },
  };
  return play(NINE, handlers, async (scheduler, clock) => {
    const hourly = fixedRate({ every: '1h', startDelay: '1h' });
    const task = await scheduler.schedule('digest', {}, { schedule: hourly });
    await scheduler.pause(task.id);
    await clock.advance('90m');
    const whilePaused = runs;
    await scheduler.resume(task.id);
    await clock.advance(0);
    const afterResume = runs;
    const nextRunAt = (await scheduler.get(task.id))?.nextRunAt;
    return { whilePaused, afterResume, nextRunAt: minuteOf(nextRunAt?.getTime() ?? Number.NaN) };
  });
}

/** A thousand tasks scheduled and cancelled. */
export async function cancelLeavesNothing() {
  return play(NINE, { remind: () => {} }, async (scheduler, clock) => {
    const items = Array.from({ length: 1000 }, (_, i) => ({
      handler: 'remind' as const,
      options: { delay: `${i + 1}m` },
    }));
    const tasks = await scheduler.scheduleMany(items);
    await clock.advance(0);
    const before = await scheduler.stats();
    for (const task of tasks) {
      if (!(task instanceof Error)) await scheduler.cancel(task.id);
    }
    await clock.advance(0);
    const after = await scheduler.stats();
    return {
      pendingBefore: before.pending,
      nextDueBefore: minuteOf(before.nextDueAt?.getTime() ?? Number.NaN),
      pendingAfter: after.pending,
      nextDueAfter: after.nextDueAt,
    };
  });
}

/** The same on the wheel alone, which knows ticks and numbers only. */
export async function cancelOnTheWheel() {
  const wheel = await TimerWheel.create();
  const dueTicks = Float64Array.from({ length: 1000 }, (_, i) => (i + 1) * 60_000);
  const refs = Uint32Array.from({ length: 1000 }, (_, i) => i);
  const handles = wheel.insertMany(dueTicks, refs);
  const sizeBefore = wheel.size;
  const cancelled = wheel.cancelMany(handles);
  const facts = { sizeBefore, cancelled, size: wheel.size, nextExpiry: wheel.nextExpiry() };
  wheel.close();
  return facts;
}

async function tour(): Promise<void> {
  const show = (title: string, facts: unknown): void => {
    console.log(title);
    console.dir(facts, { depth: null, breakLength: 100 });
  };
  show('cron */15 from 09:07 fires at', await cronFromNineOhSeven());
  show("every 60 s, a run of 150 s, overlap 'skip'", await slowRuns('skip'));
  show("every 60 s, a run of 150 s, overlap 'bufferAll'", await slowRuns('bufferAll'));
  show('every 30 s, the first minute: beats at second', await heartbeatForAMinute());
  show('an import that fails twice: attempts at second', await importWithRetries());
  show('a cleanup with two attempts, both failing', await cleanupThatDies());
  show('due now beside a timer twelve hours out', await dueNowBesideFarTimer());
  show('an hourly digest paused over ten, resumed at 10:30', await pausedDigest());
  show('a thousand tasks, cancelled', await cancelLeavesNothing());
  show('a thousand timers on the wheel, cancelled', await cancelOnTheWheel());
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await tour();
