/**
 * The instants at which a cron expression fires in a time zone: a calendar of wall times (cron-calendar.ts)
 * mapped through the offsets of the zone (zone.ts) by the rules of Debian's cron.
 *
 * 1. A wild job (minute or hour field begins with `*`) fires at every instant whose wall time matches:
 *    never for times that a forward change skips, in both passes of times that a backward change repeats.
 * 2. A fixed job (any other) fires once, at the first instant after the change, for all the times that a
 *    forward change of under three hours skips, and only in the first pass of repeated times.
 * 3. Forward changes of three hours or more correct the calendar: what they skip is not caught up.
 */
import { type CronCalendar, calendarOf } from './cron-calendar.js';
import { InvalidScheduleError } from './errors.js';
import { describe } from './units.js';
import { type Zone, type ZonePiece, zoneOf } from './zone.js';

export interface CronRule {
  readonly expression: string;
  readonly timezone: string;
}

/** No cron time lies before this instant. */
const EARLIEST_MS = Date.UTC(1900, 0, 1);
const LATEST_MS = Date.UTC(3000, 0, 1);
/** From here on a forward change is a correction of the calendar, not daylight saving. */
const CORRECTION_MS = 3 * 3_600_000;
/** The longest wait that a calendar can ask for is 40 years (29 February on a given weekday); this bounds a search. */
const HORIZON_MS = 100 * 365.25 * 86_400_000;
/** A wild job can match nothing but times that its zone skips; looked for after this instant. */
const SKIPPED_PROBE_MS = Date.UTC(2030, 0, 1);

/**
 * Checks that a rule is well-formed, that its zone exists, and that it fires at all.
 * @throws InvalidScheduleError
 */
export function validateCron(rule: CronRule): void {
  const { calendar } = readRule(rule);
  if (!calendar.wild) return;
  if (nextCronMs(rule, SKIPPED_PROBE_MS) === undefined) {
    throw new InvalidScheduleError(
      `cron expression ${describe(rule.expression)} can never fire in ${rule.timezone}`,
    );
  }
}

/**
 * The first instant strictly after `afterMs`, epoch ms; undefined when there is none in the next hundred
 * years or before the year 3000. Nothing before 1900 is given. 4 µs in UTC, 5 to 20 elsewhere.
 * @throws InvalidScheduleError as validateCron, but for never firing in the zone
 */
export function nextCronMs(rule: CronRule, afterMs: number): number | undefined {
  const { calendar, zone } = readRule(rule);
  const startMs = Math.max(afterMs, EARLIEST_MS - 1);
  if (startMs >= LATEST_MS) return undefined;
  let piece = zone.pieceAt(startMs);
  const firstPassMs = calendar.wild
    ? Number.NEGATIVE_INFINITY
    : piece.startAt + piece.offsetBeforeMs - 1;
  let wall = calendar.nextAfter(Math.max(startMs + piece.offsetMs, firstPassMs));
  while (wall !== undefined) {
    if (wall - piece.offsetMs < piece.endAt) return wall - piece.offsetMs;
    if (piece.endAt - startMs > HORIZON_MS) return undefined;
    piece = zone.pieceAt(piece.endAt);
    if (catchesUp(calendar, piece, wall)) return piece.startAt;
    wall = carryOver(calendar, piece, wall);
  }
  return undefined;
}

/** The first match in a piece that `wall`, the first match after the piece before it, was carried into. */
function carryOver(calendar: CronCalendar, piece: ZonePiece, wall: number): number | undefined {
  const wallStartMs = piece.startAt + piece.offsetMs;
  const repeats = piece.offsetMs < piece.offsetBeforeMs;
  if (wall < wallStartMs || (repeats && calendar.wild)) return calendar.nextAfter(wallStartMs - 1);
  return wall;
}

/**
 * The newest instant in `(afterMs, untilMs]`, epoch ms, found by searching back from its end, so that its cost does not
 * depend on how many lie between: about that of nextCronMs.
 * @throws InvalidScheduleError as nextCronMs
 */
export function newestCronMs(
  rule: CronRule,
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
): number | undefined {
  const { calendar, zone } = readRule(rule);
  const floorMs = Math.max(afterMs, EARLIEST_MS - 1);
  let endMs = Math.min(untilMs, LATEST_MS);
  if (endMs <= floorMs) return undefined;
  let piece = zone.pieceAt(endMs);
  let wall = calendar.lastUntil(endMs + piece.offsetMs);
  while (wall !== undefined) {
    const instant = instantIn(calendar, piece, wall);
    if (instant !== undefined) return instant > floorMs ? instant : undefined;
    if (piece.startAt <= floorMs) return undefined;
    endMs = piece.startAt - 1;
    const wallEndMs = endMs + piece.offsetBeforeMs;
    const repeats = piece.offsetMs < piece.offsetBeforeMs;
    if (wall > wallEndMs || (repeats && calendar.wild)) wall = calendar.lastUntil(wallEndMs);
    piece = zone.pieceAt(endMs);
  }
  return undefined;
}

/** When a match fires in a piece; undefined if that is before the piece or not at all. */
function instantIn(calendar: CronCalendar, piece: ZonePiece, wall: number): number | undefined {
  const wallStartMs = piece.startAt + piece.offsetMs;
  const firstPassMs = calendar.wild
    ? wallStartMs
    : Math.max(wallStartMs, piece.startAt + piece.offsetBeforeMs);
  if (wall >= firstPassMs) return wall - piece.offsetMs;
  return catchesUp(calendar, piece, wall) ? piece.startAt : undefined;
}

/** Whether a match lies among the times skipped at a piece's start, and fires there for it. */
function catchesUp(calendar: CronCalendar, piece: ZonePiece, wall: number): boolean {
  const skippedMs = piece.offsetMs - piece.offsetBeforeMs;
  if (calendar.wild || skippedMs <= 0 || skippedMs >= CORRECTION_MS) return false;
  return wall >= piece.startAt + piece.offsetBeforeMs && wall < piece.startAt + piece.offsetMs;
}

function readRule(rule: CronRule): { calendar: CronCalendar; zone: Zone } {
  const zone = zoneOf(rule.timezone);
  if (zone === undefined) {
    throw new InvalidScheduleError(
      `time zone is ${describe(rule.timezone)}; allowed: an IANA name such as 'Europe/Berlin'`,
    );
  }
  return { calendar: calendarOf(rule.expression), zone };
}
