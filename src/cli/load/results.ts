/** The files that a run writes in the end: whether they can be is asked before it begins. */
import { constants, existsSync } from 'node:fs';
import { access, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe } from '../../core/units.js';
import { InvalidArgumentError } from '../../index.js';
import type { LoadOptions } from './options.js';
import { reportHtml } from './report-html.js';
import type { LoadResult } from './result.js';

type Files = Pick<LoadOptions, 'jsonFile' | 'reportFile'>;

/** @throws InvalidArgumentError naming the flag: no run of an hour for a file that cannot be written */
export async function assertWritable({ jsonFile, reportFile }: Files): Promise<void> {
  await assertFile('--json', jsonFile);
  await assertFile('--report', reportFile);
}

async function assertFile(flag: string, file: string | undefined): Promise<void> {
  if (file === undefined) return;
  const place = existsSync(file) ? file : dirname(file);
  try {
    if ((await stat(place)).isDirectory() !== (place === file)) {
      return await access(place, constants.W_OK);
    }
  } catch (error) {
    const { message } = error as Error;
    throw new InvalidArgumentError(`${flag} can't be written: ${message}`, { cause: error });
  }
  throw new InvalidArgumentError(`${flag} is ${describe(file)}; allowed: a file`);
}

/** Writes the files that were asked for. */
export async function writeResults(files: Files, result: LoadResult): Promise<void> {
  const { jsonFile, reportFile } = files;
  if (jsonFile !== undefined) {
    await writeFile(jsonFile, `${JSON.stringify(result.figures, null, 2)}\n`);
  }
  if (reportFile !== undefined) await writeFile(reportFile, reportHtml(result));
}
