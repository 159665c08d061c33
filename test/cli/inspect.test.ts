/** `tickwheel inspect` beside a scheduler: the built command, in processes of its own. `npm test` builds first. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { declareInspectOptions } from '../../src/cli/inspect/options.js';
import { lmdbStore, Scheduler } from '../../src/index.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const CHILD = fileURLToPath(new URL('./fixtures/busy-scheduler.ts', import.meta.url));
let root: string;
let path: string;
let child: ChildProcess;
let lines: AsyncIterator<string>;
let known: { far: string; dead: string };

/** A scheduler at work in a process of its own, all the while. */
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  path = join(root, 'data');
  child = spawn(process.execPath, ['--import', 'tsx', CHILD, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  known = JSON.parse((await lines.next()).value as string);
});

afterAll(async () => {
  if (child.exitCode === null && child.signalCode === null) {
    const over = once(child, 'exit');
    child.kill('SIGKILL');
    await over;
  }
  rmSync(root, { recursive: true, force: true });
});

interface Ran {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

function inspect(...args: string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const run = execFile(
      process.execPath,
      [MAIN, 'inspect', '--path', path, ...args],
      (_, stdout, stderr) => resolve({ code: run.exitCode ?? undefined, stdout, stderr }),
    );
  });
}

async function inspectJson(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await inspect(...args, '--json');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

/** Processes are begun, which takes long where many are begun at once. */

describe('tickwheel inspect, while a scheduler runs', () => {
  afterEach(() => {
    // Whatever looks at its store, the scheduler goes on.
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
  });

  it('counts what is there, and a moment later what is there then', async () => {
    const before = await inspectJson('stats');
    expect(before.pending).toBeGreaterThan(0);
    expect(before.deadLetters).toBe(1);
    child.stdin?.write('add\n');
    expect((await lines.next()).value).toBe('added');
    const after = await inspectJson('stats');
    expect(after.tenants).toMatchObject({ late: { pending: 5 } });
    expect(after.openTasks).toBe(Number(before.openTasks) + 5);
    const { stdout } = await inspect();
    expect(stdout).toMatch(/late +5 +0 +0 +0/);
    expect(stdout).toContain(`tasks that have not ended: ${after.openTasks}`);
  });

  it('lists tasks page by page, by tenant and status', async () => {
    const first = await inspectJson('list', '--tenant', 'far', '--limit', '3');
    expect(first.items).toHaveLength(3);
    const second = await inspectJson('list', '--tenant', 'far', '--cursor', String(first.cursor));
    expect(second.items).toHaveLength(7);
    const text = await inspect('list', '--tenant', 'far', '--status', 'scheduled');
    expect(text.stdout.split('\n').filter((line) => line.includes('scheduled'))).toHaveLength(10);
  });

  it('shows a task, and an occurrence with its attempts', async () => {
    const { task } = (await inspectJson('show', known.far)) as { task: object };
    expect(task).toMatchObject({ id: known.far, tenant: 'far', payload: { n: 0 } });
    const dead = (await inspectJson('dead-letters')) as { items: { id: string }[] };
    const id = dead.items[0]?.id as string;
    expect(id).toContain(known.dead);
    const { stdout, stderr, code } = await inspect('show', id);
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/#1 +failed/);
    expect(stdout).toMatch(/#2 +failed .* broken/);
  });

  it('verifies', async () => {
    const { code, stdout } = await inspect('verify');
    expect(stdout).toContain('all agrees');
    expect(code).toBe(0);
  });

  it('leaves the lock with the scheduler', async () => {
    await expect(Scheduler.open({ store: lmdbStore({ path }) })).rejects.toMatchObject({
      code: 'TICKWHEEL_STORE_LOCKED',
    });
  });
});

describe('tickwheel inspect', () => {
  it('says what it was given and what is allowed', async () => {
    for (const args of [['nothing'], ['show'], ['stats', 'id'], ['list', '--limit', '0']]) {
      const { code, stderr } = await inspect(...args);
      expect(code, args.join(' ')).toBe(2);
      expect(stderr).toContain('allowed');
    }
  });

  it('fails where there is no store, and makes none', async () => {
    const { code, stderr } = await inspect('--path', join(root, 'nowhere'));
    expect(code).toBe(1);
    expect(stderr).toContain('TICKWHEEL_STORE_UNAVAILABLE');
  });

  it('fails on a file that is damaged', async () => {
    const bad = join(root, 'bad');
    rmSync(bad, { recursive: true, force: true });
    await (await Scheduler.open({ store: lmdbStore({ path: bad }) })).shutdown();
    writeFileSync(join(bad, 'data.mdb'), 'no store at all '.repeat(1000));
    const { code, stderr } = await inspect('--path', bad, 'verify');
    expect(code).toBe(1);
    expect(stderr).toContain('TICKWHEEL_STORE_CORRUPT');
  });

  it('has the flags that the README tells', () => {
    const { options } = declareInspectOptions(new Command());
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const [, section = ''] = readme.split('## Looking at a store');
    const told = section.split('\n## ')[0]?.matchAll(/^\| `(--[^`]+)` \|/gm) ?? [];
    expect([...told].map(([, flags]) => flags)).toEqual(options.map(({ flags }) => flags));
  });
});

describe('a scheduler on a store that is read only', () => {
  it('refuses to change or to start anything', async () => {
    const store = lmdbStore({ path: join(root, 'quiet') });
    const first = await Scheduler.open({ store });
    const { id } = await first.schedule('any', 1, { delay: '1h' });
    await first.shutdown();
    const readOnly = lmdbStore({ path: join(root, 'quiet'), readOnly: true });
    await using scheduler = await Scheduler.open({ store: readOnly });
    expect(await scheduler.get(id)).toMatchObject({ id, payload: 1 });
    const refused = { code: 'TICKWHEEL_SCHEDULER_STATE' };
    await expect(scheduler.schedule('any', 1)).rejects.toMatchObject(refused);
    await expect(scheduler.cancel(id)).rejects.toMatchObject(refused);
    await expect(scheduler.start()).rejects.toMatchObject(refused);
  });
});
