/**
 * A second, literal reading of the cron policy for tests: it asks `Intl` for the wall clock at every minute, and knows
 * nothing of croner, of offsets, or of how src/core/cron.ts searches.
 */

/** One field, as what it matches rather than as text. */
export type FieldChoice =
  | { readonly kind: 'any' }
  | { readonly kind: 'step'; readonly step: number }
  | { readonly kind: 'list'; readonly values: readonly number[] }
  | { readonly kind: 'range'; readonly from: number; readonly to: number };

export interface ScannedMinute {
  readonly instant: number;
  /** The wall clock, as epoch ms of the same date and time in UTC. */
  readonly wall: number;
}

const LOWS = [0, 0, 1, 1, 0] as const;
const MINUTE_MS = 60_000;

export function fieldText(choice: FieldChoice, index: number): string {
  switch (choice.kind) {
    case 'any':
      return '*';
    case 'step':
      return `*/${Math.min(choice.step, [60, 24, 31, 12, 7][index]!)}`;
    case 'list':
      return choice.values.join(',');
    case 'range':
      return `${choice.from}-${choice.to}`;
  }
}

const scanned = new Map<string, ScannedMinute[]>();

/** The wall clock of a zone at each of `count` minutes. */
export function scan(timezone: string, startMs: number, count: number): ScannedMinute[] {
  const key = `${timezone} ${startMs} ${count}`;
  const known = scanned.get(key);
  if (known) return known;
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  const minutes: ScannedMinute[] = [];
  for (let i = 0; i < count; i++) {
    const instant = startMs + i * MINUTE_MS;
    minutes.push({ instant, wall: Date.parse(`${format.format(instant).replace(' ', 'T')}Z`) });
  }
  scanned.set(key, minutes);
  return minutes;
}

/** The instants after the first scanned minute at which the five fields fire. */
export function firesOf(
  choices: readonly FieldChoice[],
  minutes: readonly ScannedMinute[],
): number[] {
  const wild = starred(choices[0]!) || starred(choices[1]!);
  const fires: number[] = [];
  let newestWall = minutes[0]!.wall;
  for (let i = 1; i < minutes.length; i++) {
    const { instant, wall } = minutes[i]!;
    const skipped = wall - minutes[i - 1]!.wall - MINUTE_MS;
    const caughtUp =
      skipped > 0 && skipped < 180 * MINUTE_MS && anyMatch(choices, wall - skipped, wall);
    if (wild ? matches(choices, wall) : caughtUp || (wall > newestWall && matches(choices, wall))) {
      fires.push(instant);
    }
    newestWall = Math.max(newestWall, wall);
  }
  return fires;
}

function anyMatch(choices: readonly FieldChoice[], from: number, to: number): boolean {
  for (let wall = from; wall < to; wall += MINUTE_MS) if (matches(choices, wall)) return true;
  return false;
}

function matches(choices: readonly FieldChoice[], wall: number): boolean {
  const date = new Date(wall);
  const values = [
    date.getUTCMinutes(),
    date.getUTCHours(),
    date.getUTCDate(),
    date.getUTCMonth() + 1,
    date.getUTCDay(),
  ];
  const [minute, hour, dayOfMonth, month, dayOfWeek] = choices.map((choice, index) =>
    admits(choice, values[index]!, index),
  );
  const bothDays = starred(choices[2]!) || starred(choices[4]!);
  const day = bothDays ? dayOfMonth && dayOfWeek : dayOfMonth || dayOfWeek;
  return Boolean(minute && hour && month && day);
}

function admits(choice: FieldChoice, value: number, index: number): boolean {
  switch (choice.kind) {
    case 'any':
      return true;
    case 'step':
      return (value - LOWS[index]!) % Math.min(choice.step, [60, 24, 31, 12, 7][index]!) === 0;
    case 'list':
      return choice.values.includes(value);
    case 'range':
      return value >= choice.from && value <= choice.to;
  }
}

function starred(choice: FieldChoice): boolean {
  return choice.kind === 'any' || choice.kind === 'step';
}
