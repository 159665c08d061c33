/** What a benchmark ran on. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly os: string;
  readonly node: string;
  readonly v8: string;
  /** Of the machine when the benchmark began: over 1, others were running as well. */
  readonly loadBefore: number;
  readonly versions: Readonly<Record<string, string>>;
  /** The commit that was measured, with + when files were changed since; undefined outside a clone. */
  readonly commit: string | undefined;
}

/** `packages` are those that the benchmark's figures depend on. */
export function describeMachine(packages: readonly string[]): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: `${type()} ${release()} ${arch()}`,
    node: process.versions.node,
    v8: process.versions.v8 ?? 'unknown',
    loadBefore: Math.round(loadavg()[0]! * 10) / 10,
    versions: Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    commit: commitNow(),
  };
}

/** Read as a file: not every package exports its package.json. */
function versionOf(name: string): string {
  const url = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version;
}

function commitNow(): string | undefined {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'src', 'assembly');
    return git('rev-parse', '--short', 'HEAD') + (changed === '' ? '' : '+');
  } catch {
    return undefined;
  }
}
