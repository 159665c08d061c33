#!/usr/bin/env node
/** The `tickwheel` command. Exit codes: 0 done, 1 failed, 2 used wrongly. */
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Command, CommanderError } from 'commander';
import { InvalidArgumentError, TickwheelError } from '../index.js';
import {
  declareInspectOptions,
  parseInspectOptions,
  type RawInspectOptions,
} from './inspect/options.js';
import { inspect } from './inspect.js';
import { packageVersion } from './load/about.js';
import { declareLoadOptions, parseLoadOptions, type RawOptions } from './load/options.js';
import { exitCodeOf } from './load/result.js';
import { assertWritable, writeResults } from './load/results.js';
import { formatTable } from './load/table.js';
import { runLoadTest } from './load-test.js';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

function declareCommands(): Command {
  const program = new Command('tickwheel')
    .description('Runs and measures the tickwheel task scheduler.')
    .version(packageVersion())
    .exitOverride();
  declareLoadOptions(program.command('load-test'))
    .description(
      'Loads a scheduler at a fixed rate or with a recorded workload, audits every task by its ' +
        'id, and tells how late tasks started. Without --rate or --trace: a minute of a real ' +
        'workload, from a bundled sample.',
    )
    .allowExcessArguments(false)
    .action(loadTest);
  declareInspectOptions(program.command('inspect'))
    .description('Looks at a store on disk without changing it, also while a scheduler runs on it.')
    .allowExcessArguments(false)
    .action(inspectStore);
  return program;
}

async function inspectStore(
  what: string | undefined,
  id: string | undefined,
  raw: RawInspectOptions,
): Promise<void> {
  const { text, isSound } = await inspect(parseInspectOptions(what, id, raw));
  process.stdout.write(`${text}\n`);
  process.exitCode = isSound ? 0 : EXIT_FAILED;
}

async function loadTest(raw: RawOptions): Promise<void> {
  const options = parseLoadOptions(raw);
  await assertWritable(options);
  // As docs/engine-limits.md advises for a process that does nothing else.
  setFlagsFromString('--no-allocation-site-pretenuring');
  const command = ['tickwheel', ...process.argv.slice(2)].join(' ');
  const result = await runLoadTest(options, { command, progress: process.stderr });
  process.stdout.write(`${formatTable(result)}\n`);
  await writeResults(options, result);
  for (const file of [options.jsonFile, options.reportFile]) {
    if (file !== undefined) process.stdout.write(`\nwritten: ${resolve(file)}\n`);
  }
  process.exitCode = exitCodeOf(result.figures);
}

/** A reader that has seen enough (`| head`) ends no run: what is left is written for nobody, files all the same. */
function ignoreClosedPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

async function main(): Promise<void> {
  ignoreClosedPipe(process.stdout);
  ignoreClosedPipe(process.stderr);
  try {
    await declareCommands().parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Tells a failure and gives its exit code. */
function report(error: unknown): number {
  // Commander has told it already; help and version come as errors too, with exit code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const isUsage = error instanceof InvalidArgumentError;
  process.stderr.write(`tickwheel: ${isUsage ? error.message : describeFailure(error)}\n`);
  return isUsage ? EXIT_USAGE : EXIT_FAILED;
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What the store, the caller or the system did needs no stack.
  if (error instanceof TickwheelError) return `${error.message} (${error.code})`;
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}

await main();
