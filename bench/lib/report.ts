/**
 * What a benchmark hands in: tables for people, and every raw sample. `results/<name>.json` holds
 * it all; RESULTS.md is made of those files and nothing else.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describeMachine, type Machine } from './machine.js';
import { markdownTable } from './markdown.js';
import type { Summary } from './samples.js';

export interface Table {
  readonly title: string;
  /** What was done, and how to read the columns. */
  readonly note?: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Result {
  readonly name: string;
  readonly title: string;
  readonly command: string;
  readonly seed: number;
  readonly machine: Machine;
  readonly tables: readonly Table[];
  /** Values as they were measured, by name; the unit is in the name or the benchmark. */
  readonly samples: unknown;
}

const RESULTS = new URL('../results/', import.meta.url);

export class Report {
  readonly tables: Table[] = [];
  readonly #machine: Machine;
  readonly #options: {
    readonly name: string;
    readonly title: string;
    /** The benchmark's name in the suite, when it is not the result's. */
    readonly bench?: string;
    readonly seed: number;
    /** Not a smoke run, which says nothing of times, nor a part of a benchmark: their tables are shown, and kept nowhere. */
    readonly isKept: boolean;
  };

  constructor(
    options: { name: string; title: string; bench?: string; seed: number; isKept: boolean },
    packages: readonly string[] = [],
  ) {
    this.#options = options;
    this.#machine = describeMachine(packages);
  }

  table(table: Table): void {
    this.tables.push(table);
  }

  /** Prints the tables and writes `results/<name>.json`, if it is to be kept. */
  finish(samples: unknown): void {
    const { name, title, bench = name, seed, isKept } = this.#options;
    const args = process.argv.slice(2).join(' ');
    const command = `npm run bench -- ${bench}${args === '' ? '' : ` ${args}`}`;
    const result: Result = {
      name,
      title,
      command,
      seed,
      machine: this.#machine,
      tables: this.tables,
      samples,
    };
    console.log(sectionOf(result));
    if (!isKept) return;
    mkdirSync(RESULTS, { recursive: true });
    writeFileSync(new URL(`${name}.json`, RESULTS), `${JSON.stringify(result)}\n`);
  }
}

/** All results that are there, in the order of `names`; others follow. */
export function readResults(names: readonly string[]): Result[] {
  let files: string[] = [];
  try {
    files = readdirSync(RESULTS).filter((file) => file.endsWith('.json'));
  } catch {
    return [];
  }
  const results = files.map(
    (file) => JSON.parse(readFileSync(new URL(file, RESULTS), 'utf8')) as Result,
  );
  const rank = (result: Result) => {
    const at = names.findIndex(
      (name) => result.name === name || result.name.startsWith(`${name}-`),
    );
    return at < 0 ? names.length : at;
  };
  return results.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** One result as a section of Markdown. */
export function sectionOf({ title, command, seed, machine, tables }: Result): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  const where = [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB`,
    machine.os,
    `Node ${machine.node} (V8 ${machine.v8})`,
    ...versions,
    ...(machine.commit === undefined ? [] : [`commit ${machine.commit}`]),
    `load before ${machine.loadBefore}`,
    `seed ${seed}`,
  ].join('; ');
  const parts = [`## ${title}`, `\`${command}\``, `${where}.`];
  for (const table of tables) {
    parts.push(`### ${table.title}`);
    if (table.note !== undefined) parts.push(table.note);
    parts.push(markdownTable(table.columns, table.rows));
  }
  return `${parts.join('\n\n')}\n`;
}

/** `12.3 (11.9–14.0)`: the median, and the minimum and maximum. */
export function spread({ min, median, max }: Summary): string {
  return `${number(median)} (${number(min)}–${number(max)})`;
}

/** Three digits that count; whole numbers from 100 on. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** What runs, for whoever waits. */
export function progress(what: string): void {
  process.stderr.write(`${what}\n`);
}

/** A benchmark's own check of its results: without it a figure means nothing. */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`benchmark result is wrong: ${what}`);
}
