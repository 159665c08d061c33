/** Invariants 2 and 12: of each schedule, each nominal time stands in exactly one occurrence, and the schedule goes on. */
import { isOver, type RawOccurrence, type RawSchedule } from './raw.js';
import type { TaskShadow } from './shadow.js';

/** Between nominal times; undefined where the end of runs decides. The world's crons are of this one form. */
function periodMs({ kind, everyMs, expression }: RawSchedule): number | undefined {
  if (kind === 'fixedRate') return everyMs;
  const seconds =
    kind === 'cron' ? /^\*\/(\d+) \* \* \* \* \*$/.exec(expression ?? '')?.[1] : undefined;
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

export function scheduleFaults({ task, occurrences }: TaskShadow): string[] {
  const { schedule, generation } = task;
  const planned = [...occurrences.values()].filter(
    (each) =>
      each.generation === generation && (each.kind === 'nominal' || each.kind === 'sequence'),
  );
  if (schedule.kind === 'once') return onceFaults(planned);
  if (schedule.kind === 'fixedDelay') return delayFaults(planned, task.taken);
  const everyMs = periodMs(schedule);
  if (everyMs === undefined) return [];
  planned.sort((a, b) => a.nominalAt - b.nominalAt);
  return [
    ...rateFaults(planned, everyMs, schedule.kind === 'cron' ? 0 : task.anchorAt),
    ...cursorFaults(planned, { task, occurrences }),
  ];
}

function onceFaults(planned: readonly RawOccurrence[]): string[] {
  return planned.length === 1 ? [] : [`12 a one-off has ${planned.length} occurrences`];
}

function delayFaults(planned: readonly RawOccurrence[], taken: number): string[] {
  const ordinals = planned.map(({ ordinal }) => ordinal).sort((a, b) => a - b);
  const wrong = ordinals.filter((ordinal, index) => ordinal !== index + 1);
  if (wrong.length > 0) return [`2 sequence ${ordinals.join(' ')} has a gap or a double`];
  const live = planned.filter(({ state }) => !isOver(state)).length;
  if (live > 1) return [`2 ${live} of a fixedDelay live at once`];
  return taken === planned.length
    ? []
    : [`12 ${taken} taken of a fixedDelay, ${planned.length} there`];
}

function rateFaults(planned: readonly RawOccurrence[], everyMs: number, phaseAt: number): string[] {
  const faults: string[] = [];
  const isOff = (atMs: number) => (atMs - phaseAt) % everyMs !== 0;
  let expectedAt: number | undefined;
  for (const { id, nominalAt, untilAt, count } of planned) {
    if (isOff(nominalAt)) faults.push(`12 ${id} is not a time of its schedule`);
    if (expectedAt !== undefined && nominalAt !== expectedAt) {
      const what =
        nominalAt < expectedAt ? '2 a nominal time stands in two' : '12 times are in none';
      faults.push(`${what}: ${id} at ${nominalAt}, expected ${expectedAt}`);
    }
    const lastAt = untilAt ?? nominalAt;
    if (count !== undefined && count !== (lastAt - nominalAt) / everyMs + 1) {
      faults.push(`12 ${id} stands for ${count} times, but reaches to ${lastAt}`);
    }
    expectedAt = lastAt + everyMs;
  }
  return faults;
}

function cursorFaults(planned: readonly RawOccurrence[], { task }: TaskShadow): string[] {
  const { schedule, cursorAt, taken, state, endReason } = task;
  const newest = planned.at(-1);
  if (newest === undefined) return ['12 a recurring task without an occurrence'];
  const lastAt = newest.untilAt ?? newest.nominalAt;
  const counted = planned.reduce((sum, { count }) => sum + (count ?? 1), 0);
  const faults: string[] = [];
  if (cursorAt !== lastAt)
    faults.push(`12 the cursor is at ${cursorAt}, the newest time ${lastAt}`);
  if (taken !== counted) faults.push(`12 ${taken} times taken, ${counted} accounted for`);
  const goesOn = (state === 'active' || state === 'paused') && endReason === undefined;
  const isLimited = schedule.limit !== undefined && taken >= schedule.limit;
  if (goesOn && !isLimited && schedule.endAt === undefined) {
    // One that is caught up may wait for another, and takes the next time when it is let through.
    if (newest.state !== 'scheduled') {
      faults.push(`12 the schedule has stopped at ${newest.id}, which is ${newest.state}`);
    }
  }
  return faults;
}
