/** The flags of `load-test`: what they are called, what they mean, what is allowed. */
import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import { describe, parseDurationMs } from '../../core/units.js';
import { InvalidArgumentError } from '../../index.js';
import { DEFAULT_STORE, STORE_NAMES, type StoreName } from './stores.js';

export interface LoadOptions {
  readonly store: StoreName;
  /** Of a store on disk; undefined: one of its own, removed afterwards. */
  readonly path: string | undefined;
  readonly load: SyntheticLoad | TraceLoad;
  /** Of the load, without preload and drain; undefined: a trace to its end. */
  readonly durationMs: number | undefined;
  /** Length of a run before that is not counted, so that the load meets compiled code. */
  readonly warmupMs: number;
  readonly dueInMs: number;
  readonly pendingTasks: number;
  readonly spreadMs: number;
  readonly tenants: number;
  readonly threads: number;
  readonly payloadBytes: number;
  readonly keys: 'none' | 'random' | 'ordered';
  readonly workMs: number;
  readonly seed: number;
  readonly jsonFile: string | undefined;
  readonly reportFile: string | undefined;
}

export interface SyntheticLoad {
  readonly kind: 'synthetic';
  readonly ratePerSecond: number;
}

export interface TraceLoad {
  readonly kind: 'trace';
  /** Undefined: the bundled sample. */
  readonly file: string | undefined;
  readonly speed: number;
  /** Undefined: where the trace is busiest. */
  readonly fromMinute: number | undefined;
}

/** The flags as they were typed. */
export type RawOptions = { readonly [flag in Flag]?: string };

type Flag =
  | 'store'
  | 'path'
  | 'rate'
  | 'duration'
  | 'warmup'
  | 'dueIn'
  | 'pending'
  | 'spread'
  | 'tenants'
  | 'threads'
  | 'payload'
  | 'keys'
  | 'work'
  | 'seed'
  | 'trace'
  | 'speed'
  | 'from'
  | 'json'
  | 'report';

const KEYS = ['none', 'random', 'ordered'] as const;
const RATE_MAX = 1_000_000;
const PENDING_MAX = 100_000_000;
const TENANTS_MAX = 1_000_000;
const THREADS_MAX = 256;
/**
 * Below the scheduler's own limit of 256 KiB, so that the generator's names fit beside the padding.
 */
const PAYLOAD_MAX_BYTES = 256_000;
const SPEED_MAX = 100_000;
const MINUTE_MAX = 10_000_000;
const SEED_MAX = 2 ** 32 - 1;
const DEFAULT_SPEED = '10';
const DEFAULT_DURATION = '60s';
/** Long enough for the compiler to have seen everything. */
const DEFAULT_WARMUP_MS = 4000;
/** Where the report goes when nothing was asked for. */
const DEFAULT_REPORT_FILE = 'report.html';

export function declareLoadOptions(command: Command): Command {
  return command
    .option('--store <name>', `store to run on: ${STORE_NAMES.join(', ')}`, DEFAULT_STORE)
    .option('--path <dir>', 'where lmdb keeps its files (default: a directory removed afterwards)')
    .option('--rate <n>', 'synthetic load: creates a second, at an even pace')
    .option(
      '--duration <time>',
      `length of the load (default: ${DEFAULT_DURATION}; --trace: all of it)`,
    )
    .option(
      '--warmup <time>',
      'run without counting first (default: 4s, but no longer than --duration)',
    )
    .option('--due-in <time>', 'due times lie uniformly in the next <time>', '2s')
    .option('--pending <n>', 'first store this many tasks, then run the load', '0')
    .option('--spread <time>', 'due times of --pending lie uniformly in the next <time>', '30d')
    .option('--tenants <n>', 'spread synthetic tasks over this many tenants', '1')
    .option('--threads <n>', 'worker threads (default: one for each core)')
    .option('--payload <bytes>', 'size of each payload, about', '64')
    .option('--keys <kind>', `idempotency keys: ${KEYS.join(', ')}`, 'none')
    .option('--work <time>', 'how long each handler takes', '0ms')
    .option('--seed <n>', 'the same seed gives the same load', '1')
    .option('--trace <file>', 'replay invocation counts a minute (CSV: function,owner,m1,m2,…)')
    .option('--speed <n>', `replay a trace this many times faster (default: ${DEFAULT_SPEED})`)
    .option(
      '--from <minute>',
      'begin at this minute of the trace, from 0 (default: its busiest hour)',
    )
    .option('--json <file>', 'write the figures as JSON')
    .option('--report <file>', 'write a report with charts, one HTML file');
}

/** @throws InvalidArgumentError naming the flag, its value and what is allowed */
export function parseLoadOptions(raw: RawOptions): LoadOptions {
  const load = parseLoad(raw);
  const isSample = load.kind === 'trace' && load.file === undefined;
  const fallbackDuration = load.kind === 'trace' && !isSample ? undefined : DEFAULT_DURATION;
  const duration = raw.duration ?? fallbackDuration;
  const durationMs = duration === undefined ? undefined : durationOf('--duration', duration);
  const store = oneOf('--store', raw.store ?? DEFAULT_STORE, STORE_NAMES);
  if (store === 'memory' && raw.path !== undefined) refuse('--path', raw.path, '--store lmdb');
  for (const flag of ['path', 'trace', 'json', 'report'] as const) {
    if (raw[flag] === '') refuse(`--${flag}`, '', 'a path');
  }
  return {
    store,
    path: raw.path,
    load,
    durationMs,
    warmupMs:
      raw.warmup === undefined
        ? Math.min(DEFAULT_WARMUP_MS, durationMs ?? DEFAULT_WARMUP_MS)
        : durationOf('--warmup', raw.warmup),
    dueInMs: durationOf('--due-in', raw.dueIn ?? '2s'),
    pendingTasks: whole('--pending', raw.pending ?? '0', 0, PENDING_MAX),
    spreadMs: durationOf('--spread', raw.spread ?? '30d'),
    tenants: whole('--tenants', raw.tenants ?? '1', 1, TENANTS_MAX),
    threads: whole('--threads', raw.threads ?? String(availableParallelism()), 1, THREADS_MAX),
    payloadBytes: whole('--payload', raw.payload ?? '64', 0, PAYLOAD_MAX_BYTES),
    keys: oneOf('--keys', raw.keys ?? 'none', KEYS),
    workMs: durationOf('--work', raw.work ?? '0ms'),
    seed: whole('--seed', raw.seed ?? '1', 0, SEED_MAX),
    jsonFile: raw.json,
    reportFile: raw.report ?? (isSample ? DEFAULT_REPORT_FILE : undefined),
  };
}

/** `--rate`: synthetic; `--trace`: that trace; neither: the bundled sample. */
function parseLoad(raw: RawOptions): SyntheticLoad | TraceLoad {
  if (raw.rate === undefined) {
    return {
      kind: 'trace',
      file: raw.trace,
      speed: positive('--speed', raw.speed ?? DEFAULT_SPEED, SPEED_MAX),
      fromMinute: raw.from === undefined ? undefined : whole('--from', raw.from, 0, MINUTE_MAX),
    };
  }
  for (const flag of ['trace', 'speed', 'from'] as const) {
    if (raw[flag] === undefined) continue;
    throw new InvalidArgumentError(
      `--${flag} is ${describe(raw[flag])} beside --rate; allowed: either --rate, or a trace`,
    );
  }
  return { kind: 'synthetic', ratePerSecond: positiveOrZero('--rate', raw.rate, RATE_MAX) };
}

const NUMBER = /^\d+(\.\d+)?$/;

function whole(flag: string, text: string, min: number, max: number): number {
  const value = numberOf(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  return refuse(flag, text, `a whole number, ${min} to ${max}`);
}

function positive(flag: string, text: string, max: number): number {
  const value = numberOf(text);
  return value > 0 && value <= max ? value : refuse(flag, text, `a number above 0, to ${max}`);
}

function positiveOrZero(flag: string, text: string, max: number): number {
  const value = numberOf(text);
  return value >= 0 && value <= max ? value : refuse(flag, text, `a number, 0 to ${max}`);
}

function numberOf(text: string): number {
  return NUMBER.test(text) ? Number(text) : Number.NaN;
}

function refuse(flag: string, text: string, allowed: string): never {
  throw new InvalidArgumentError(`${flag} is ${describe(text)}; allowed: ${allowed}`);
}

/** As in the API, a plain number is milliseconds. */
function durationOf(flag: string, text: string): number {
  return parseDurationMs(NUMBER.test(text) ? Number(text) : text, flag);
}

function oneOf<T extends string>(flag: string, text: string, allowed: readonly T[]): T {
  return allowed.find((name) => name === text) ?? refuse(flag, text, allowed.join(', '));
}
