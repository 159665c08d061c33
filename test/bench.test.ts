/** Each benchmark of the suite, as a smoke run: its own checks of its results, and no times. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { BENCHES } from '../bench/suite.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

function bench(file: string, ...args: string[]): Promise<{ stdout: string }> {
  return run(process.execPath, ['--expose-gc', '--import', 'tsx', file, ...args], { cwd: root });
}

describe('the benchmark suite', () => {
  it.each(
    BENCHES.flatMap(({ name, file, variants = [] }) =>
      [[], ...variants].map((args) => ({ name, file, args })),
    ),
  )('$name $args gives right results in a smoke run', async ({ file, args }) => {
    const { stdout } = await bench(file, '--quick', ...args);
    expect(stdout).toMatch(/^## /);
    expect(stdout).toContain('| --');
    expect(stdout).not.toMatch(/NaN|undefined/);
  });

  it('refuses an option that a benchmark does not have', async () => {
    await expect(bench(BENCHES[0]!.file, '--quack')).rejects.toMatchObject({ code: 2 });
  });

  it('refuses a part that a benchmark does not have', async () => {
    await expect(bench('bench/engine.ts', '--only', 'nothing')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('allowed: throughput, lateness'),
    });
  });

  it('refuses the name of a benchmark that is not there', async () => {
    await expect(bench('bench/run.ts', 'no-such')).rejects.toMatchObject({ code: 2 });
  });

  it('lists files that are there, each name once', () => {
    expect(BENCHES.filter(({ file }) => !existsSync(`${root}/${file}`))).toEqual([]);
    expect(new Set(BENCHES.map(({ name }) => name)).size).toBe(BENCHES.length);
  });
});
