/**
 * A trace: how often each function was invoked in each minute. The text is one line a function,
 * `function,owner,m1,m2,…`, an empty count meaning none, under a header that names the columns.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { InvalidArgumentError } from '../../index.js';

export interface Trace {
  readonly functions: readonly string[];
  readonly minutes: number;
  /** Invocations of function f in minute m at [m × functions + f]. */
  readonly counts: Uint32Array;
}

/** Columns before the counts. */
const NAME_COLUMNS = 2;
const HOUR_MINUTES = 60;
/**
 * Far above any trace published, and small enough that a minute's tasks can be planned in memory.
 */
const COUNT_MAX = 10_000_000;
const COUNT = /^\d{1,8}$/;

/**
 * @throws InvalidArgumentError when the file can't be read, or naming the line that is malformed
 */
export async function readTrace(file: string): Promise<Trace> {
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Infinity });
  try {
    return await parseTrace(lines, file);
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidArgumentError(`--trace can't be read: ${reason}`, { cause: error });
  } finally {
    lines.close();
  }
}

/** @throws InvalidArgumentError naming `source` and the line that is malformed */
export async function parseTrace(
  lines: AsyncIterable<string> | Iterable<string>,
  source: string,
): Promise<Trace> {
  let minutes: number | undefined;
  let lineNumber = 0;
  const names = new Map<string, number>();
  const rows: Uint32Array[] = [];
  for await (const line of lines) {
    lineNumber += 1;
    if (line.trim() === '') continue;
    const place = `trace ${source} line ${lineNumber}`;
    const cells = line.split(',');
    if (minutes === undefined) {
      minutes = minutesOfHeader(cells, place);
    } else {
      rows.push(countsOfRow(cells, minutes, place));
      claimName(names, cells[0] as string, lineNumber, place);
    }
  }
  if (minutes === undefined || rows.length === 0) {
    throw new InvalidArgumentError(
      `trace ${source} has no functions; ` +
        `needed: a header 'function,owner,m1,…' and a line a function`,
    );
  }
  return { functions: [...names.keys()], minutes, counts: byMinute(rows, minutes) };
}

function minutesOfHeader(cells: readonly string[], place: string): number {
  const named = cells[0] === 'function' && cells[1] === 'owner' && cells[NAME_COLUMNS] === 'm1';
  if (named) return cells.length - NAME_COLUMNS;
  const start = cells.slice(0, 3).join(',').slice(0, 60);
  throw new InvalidArgumentError(`${place} starts with '${start}'; needed: 'function,owner,m1,…'`);
}

function countsOfRow(cells: readonly string[], minutes: number, place: string): Uint32Array {
  if (cells.length !== minutes + NAME_COLUMNS) {
    const needed = minutes + NAME_COLUMNS;
    throw new InvalidArgumentError(
      `${place} has ${cells.length} columns; needed: ${needed}, as in the header`,
    );
  }
  const counts = new Uint32Array(minutes);
  for (let minute = 0; minute < minutes; minute += 1) {
    const cell = cells[minute + NAME_COLUMNS] as string;
    if (cell === '') continue;
    const count = COUNT.test(cell) ? Number(cell) : Number.NaN;
    if (!(count <= COUNT_MAX)) {
      throw new InvalidArgumentError(
        `${place} column m${minute + 1} is '${cell.slice(0, 20)}'; ` +
          `allowed: a whole number, 0 to ${COUNT_MAX}, or nothing`,
      );
    }
    counts[minute] = count;
  }
  return counts;
}

function claimName(
  names: Map<string, number>,
  name: string,
  lineNumber: number,
  place: string,
): void {
  if (name === '') throw new InvalidArgumentError(`${place} has no function name`);
  const earlier = names.get(name);
  if (earlier !== undefined) {
    throw new InvalidArgumentError(`${place} repeats function '${name}' of line ${earlier}`);
  }
  names.set(name, lineNumber);
}

function byMinute(rows: readonly Uint32Array[], minutes: number): Uint32Array {
  const counts = new Uint32Array(minutes * rows.length);
  rows.forEach((row, index) => {
    for (let minute = 0; minute < minutes; minute += 1) {
      counts[minute * rows.length + index] = row[minute] as number;
    }
  });
  return counts;
}

/** Invocations of all functions in one minute. */
export function minuteTotal(trace: Trace, minute: number): number {
  const width = trace.functions.length;
  let total = 0;
  for (let at = minute * width; at < (minute + 1) * width; at += 1)
    total += trace.counts[at] as number;
  return total;
}

/**
 * The first minute (from 0) of the 60 in a row with the most invocations; 0 for a shorter trace.
 */
export function busiestHourStart(trace: Trace): number {
  let inWindow = 0;
  let best = { start: 0, total: -1 };
  for (let minute = 0; minute < trace.minutes; minute += 1) {
    inWindow += minuteTotal(trace, minute);
    const start = minute - HOUR_MINUTES + 1;
    if (start < 0) continue;
    if (start > 0) inWindow -= minuteTotal(trace, start - 1);
    if (inWindow > best.total) best = { start, total: inWindow };
  }
  return best.start;
}
