import type { LoadResult } from './result.js';

/** The table at the end of a run, for a terminal. */
export function formatTable(result: LoadResult): string {
  const rows = [...result.about, ['', ''] as const, ...figureRows(result)];
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, text]) => `  ${label.padEnd(width)}  ${text}`.trimEnd()).join('\n');
}

export function figureRows(result: LoadResult): (readonly [label: string, text: string])[] {
  const { figures } = result;
  return [
    ['accepted', count(figures.accepted)],
    ['rejected', withReason(figures.rejected, result.firstRefusal)],
    ['started', count(figures.started)],
    ['finished', count(figures.finished)],
    ['lost', count(figures.lost)],
    ['duplicated', count(figures.duplicated)],
    ['early', count(figures.early)],
    ...warnings(result),
    ['creates', `${count(figures.createsPerSecond)} /s`],
    ['finishes', `${count(figures.finishesPerSecond)} /s`],
    ['acknowledged', `p50 ${ms(figures.ackMs.p50)} · p99 ${ms(figures.ackMs.p99)}`],
    ['lateness', latenessText(figures.latenessMs)],
    ['peak memory', memoryText(figures.rssBytesPeak, figures.rssAnonBytesPeak)],
    ['store size', figures.storeBytes === null ? 'not known' : bytes(figures.storeBytes)],
  ];
}

/** Faults that have no figure of their own; empty in a sound run. */
export function warnings(result: LoadResult): (readonly [string, string])[] {
  const found: (readonly [string, string])[] = [];
  if (result.stray > 0) {
    found.push(['stray', `${count(result.stray)} ran though refused, or under another task's id`]);
  }
  if (result.unanswered > 0) {
    found.push(['unanswered', `${count(result.unanswered)} in calls that never resolved`]);
  }
  if (result.firstError !== undefined) found.push(['scheduler error', result.firstError]);
  return found;
}

function withReason(rejected: number, reason: string | undefined): string {
  return rejected > 0 && reason !== undefined ? `${count(rejected)} (${reason})` : count(rejected);
}

function latenessText(lateness: LoadResult['figures']['latenessMs']): string {
  const { p50, p99, p999, max } = lateness;
  return `p50 ${ms(p50)} · p99 ${ms(p99)} · p99.9 ${ms(p999)} · max ${ms(max)}`;
}

function memoryText(rssBytes: number, anonBytes: number | null): string {
  return anonBytes === null
    ? bytes(rssBytes)
    : `${bytes(rssBytes)} (anonymous ${bytes(anonBytes)})`;
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Three significant digits below 100 ms, whole milliseconds to 10 s, then seconds. */
export function ms(value: number): string {
  if (value >= 10_000) return `${count(Number((value / 1000).toFixed(1)))} s`;
  return value < 100 ? `${Number(value.toPrecision(3))} ms` : `${count(Math.round(value))} ms`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? scaled : scaled.toFixed(1)} ${units[unit]}`;
}
