/** What `inspect` prints, for a terminal. */
import type { Attempt, Occurrence, Page, Stats, Task, Verification } from '../../index.js';

type Cell = string | number | undefined;

export function statsText(stats: Stats): string {
  const counts = (of: { pending: number; ready: number; running: number; deadLetters: number }) => [
    of.pending,
    of.ready,
    of.running,
    of.deadLetters,
  ];
  const tenants = Object.entries(stats.tenants).map(([name, of]) => [name, ...counts(of)]);
  const head = ['tenant', 'pending', 'ready', 'running', 'dead letters'];
  return [
    table([head, ...tenants, ['all', ...counts(stats)]]),
    `\ntasks that have not ended: ${stats.openTasks}`,
  ].join('\n');
}

export function tasksText({ items, cursor }: Page<Task>): string {
  const head = ['id', 'tenant', 'handler', 'status', 'next run', 'created'];
  const rows = items.map((task) => [
    task.id,
    task.tenant,
    task.handler,
    task.status,
    at(task.nextRunAt),
    at(task.createdAt),
  ]);
  return withCursor(table([head, ...rows]), cursor);
}

export function deadLettersText({ items, cursor }: Page<Occurrence>): string {
  const head = ['occurrence', 'tenant', 'status', 'ended', 'error'];
  const rows = items.map((dead) => [
    dead.id,
    dead.tenant,
    dead.status,
    at(dead.endedAt),
    oneLine(errorOf(dead)),
  ]);
  return withCursor(table([head, ...rows]), cursor);
}

export interface Shown {
  readonly task: Task | undefined;
  readonly occurrences: readonly { occurrence: Occurrence; attempts: readonly Attempt[] }[];
  readonly cursor: string | undefined;
}

export function shownText({ task, occurrences, cursor }: Shown): string {
  const parts: string[] = [];
  if (task !== undefined) parts.push(fields(task));
  for (const { occurrence, attempts } of occurrences) {
    parts.push(fields(occurrence));
    const rows = attempts.map((each) => [
      `#${each.attempt}`,
      each.outcome ?? 'running',
      at(each.startedAt),
      at(each.endedAt),
      oneLine(errorOf(each)),
    ]);
    if (rows.length > 0)
      parts.push(table([['attempt', 'outcome', 'started', 'ended', 'error'], ...rows]));
  }
  if (cursor !== undefined) parts.push('… older occurrences are not shown');
  return parts.join('\n\n');
}

export function verificationText(found: Verification): string {
  const { tasks, occurrences, attempts, dueEntries, disagreements, disagreementCount } = found;
  const lines = [
    `${tasks} tasks, ${occurrences} occurrences, ${attempts} attempts, ${dueEntries} entries of the due index`,
    ...disagreements,
    ...found.notCompared.map((what) => `not compared: ${what}`),
  ];
  if (disagreementCount > disagreements.length) {
    lines.push(`… and ${disagreementCount - disagreements.length} more`);
  }
  lines.push(disagreementCount === 0 ? 'all agrees' : `${disagreementCount} do not agree`);
  return lines.join('\n');
}

/** Bytes and big numbers as text; what can't be read here, as a payload under a codec, as its reason. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(plain(value), undefined, 2);
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  }
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Map) return [...value].map(plain);
  if (value instanceof Set || Array.isArray(value)) return [...value].map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) copy[name] = plain(readable(value, name));
  return copy;
}

function readable(of: object, name: string): unknown {
  try {
    return (of as Record<string, unknown>)[name];
  } catch {
    return '(not readable here)';
  }
}

function errorOf(of: Occurrence | Attempt): string | undefined {
  const error = readable(of, 'error') as { message?: string } | string | undefined;
  return typeof error === 'string' ? error : error?.message;
}

function fields(of: Task | Occurrence): string {
  const shown = plain(of) as Record<string, unknown>;
  const rows = Object.entries(shown)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
  return table(rows);
}

function table(rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map((cell) => String(cell ?? '–')));
  const widths =
    texts[0]?.map((_, i) => Math.max(...texts.map((row) => row[i]?.length ?? 0))) ?? [];
  return texts
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function withCursor(text: string, cursor: string | undefined): string {
  return cursor === undefined ? text : `${text}\n\nthere may be more: --cursor ${cursor}`;
}

function at(date: Date | undefined): string | undefined {
  return date?.toISOString();
}

function oneLine(text: string | undefined): string | undefined {
  return text?.split('\n', 1)[0].slice(0, 100);
}
