/**
 * The command as it is installed: the built one, in a process of its own. `npm test` builds first.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tickwheel-cli-'));
});
afterAll(() => rm(folder, { recursive: true }));

function tickwheel(...args: string[]) {
  return new Promise<{ code: number | undefined; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { cwd: folder },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? undefined, stdout, stderr }),
    );
  });
}

describe('tickwheel load-test', () => {
  it('loads the memory store on threads and loses, doubles or hastens nothing', async () => {
    const run = await tickwheel(
      ...['load-test', '--store', 'memory', '--rate', '200', '--duration', '1s'],
      ...[
        '--due-in',
        '500ms',
        '--threads',
        '1',
        '--tenants',
        '3',
        '--keys',
        'random',
        '--work',
        '1ms',
      ],
      ...['--pending', '50', '--spread', '1d', '--seed', '11'],
      ...['--json', 'out.json', '--report', 'out.html'],
    );
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toMatch(/accepted +250/);
    expect(run.stdout).toContain(join(folder, 'out.html'));
    const figures = JSON.parse(await readFile(join(folder, 'out.json'), 'utf8'));
    expect(figures).toMatchObject({
      accepted: 250,
      rejected: 0,
      lost: 0,
      duplicated: 0,
      early: 0,
      seed: 11,
    });
    expect(figures.finished).toBeGreaterThanOrEqual(200);
    expect(figures.started).toBeGreaterThanOrEqual(figures.finished);
    expect(figures.storeBytes).toBeGreaterThan(0);
    expect(await readFile(join(folder, 'out.html'), 'utf8')).toContain('<svg');
  });

  it('plays the bundled sample when nothing else is asked for, and reports by itself', async () => {
    const run = await tickwheel(
      'load-test',
      '--speed',
      '1',
      '--duration',
      '500ms',
      '--due-in',
      '0ms',
    );
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toContain('Azure Functions Trace 2019 from minute 0');
    expect(run.stdout).toContain(join(folder, 'report.html'));
  });

  it.each([
    [['load-test', '--rate', 'fast'], /--rate is 'fast'; allowed: a number/],
    [['load-test', '--trace', 'none.csv'], /--trace can't be read/],
    [['load-test', '--json', 'none/out.json'], /--json can't be written: ENOENT/],
    [['load-test', '--report', '.'], /--report is '\.'; allowed: a file/],
    [
      ['load-test', '--store', 'memory', '--path', 'data'],
      /--path is 'data'; allowed: --store lmdb/,
    ],
    [['load-test', '--nonsense'], /unknown option '--nonsense'/],
    [['load-test', 'extra'], /too many arguments/],
    [['frobnicate'], /unknown command 'frobnicate'/],
  ])('%j: says what is wrong and ends with 2', async (args, message) => {
    const run = await tickwheel(...args);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toMatch(message);
  });

  it.runIf(process.platform !== 'win32')('leaves no files behind when it is ended', async () => {
    const temporary = await mkdtemp(join(folder, 'tmp-'));
    const child = spawn(process.execPath, [MAIN, 'load-test', '--rate', '100', '--warmup', '0'], {
      cwd: folder,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    // The first line of progress: the run has begun.
    await once(child.stderr, 'data');
    expect(await readdir(temporary)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([null, 'SIGINT']);
    expect(await readdir(temporary)).toEqual([]);
  });

  it('goes on when nobody reads any more, and writes its files', async () => {
    const load = ['load-test', '--store', 'memory', '--rate', '50', '--duration', '200ms'];
    const child = spawn(
      process.execPath,
      [MAIN, ...load, '--due-in', '0', '--warmup', '0', '--json', 'unread.json'],
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    child.stdout.destroy();
    child.stderr.destroy();
    expect(await once(child, 'exit')).toEqual([0, null]);
    const figures = JSON.parse(await readFile(join(folder, 'unread.json'), 'utf8'));
    expect(figures).toMatchObject({ accepted: 10, lost: 0 });
  });

  it('explains its flags', async () => {
    const run = await tickwheel('load-test', '--help');
    expect(run).toMatchObject({ code: 0, stderr: '' });
    for (const flag of ['--rate', '--trace', '--pending', '--json', '--report']) {
      expect(run.stdout).toContain(flag);
    }
  });
});
