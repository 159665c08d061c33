/** What is published, and what the README promises of it. Needs `npm run build` first. */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { beforeAll, describe, expect, it } from 'vitest';
import { declareLoadOptions } from '../src/cli/load/options.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

function read(file: string): string {
  return readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
}

describe('the package', () => {
  let packed: string[] = [];

  beforeAll(() => {
    const pack = ['pack', '--dry-run', '--json', '--ignore-scripts'];
    const output = execFileSync('npm', pack, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' });
    // A list of packages, or since npm 12 an object of them by name.
    const packages = Object.values(JSON.parse(output) as Record<string, unknown>);
    packed = (packages[0] as { files: { path: string }[] }).files.map(({ path }) => path);
  });

  it('holds what runs', () => {
    for (const file of ['index', 'cli/main', 'cli/load/handler', 'execution/pool/worker']) {
      expect(packed).toContain(`dist/${file}.js`);
      expect(packed).toContain(`dist/${file}.d.ts`);
    }
    expect(packed).toContain('build/wheel.wasm');
  });

  it('holds the pages that its README sends users to', () => {
    for (const page of ['guide', 'api', 'semantics', 'errors']) {
      expect(packed).toContain(`docs/${page}.md`);
    }
  });

  it('holds nothing else but what is read', () => {
    const others = packed.filter(
      (file) => !/^(dist\/.*(\.js|\.d\.ts|\.js\.map)|docs\/[a-z-]+\.md)$/.test(file),
    );
    expect(others.toSorted()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'build/wheel.wasm',
      'package.json',
    ]);
    expect(packed.filter((file) => /test|bench|example|debug/.test(file))).toEqual(
      packed.filter((file) => /^dist\/cli\/load-test\.(js|d\.ts|js\.map)$/.test(file)),
    );
  });

  it('has a command that can be run', () => {
    const main = 'dist/cli/main.js';
    expect(read(main).startsWith('#!/usr/bin/env node\n')).toBe(true);
    if (process.platform !== 'win32') {
      expect(statSync(new URL(`../${main}`, import.meta.url)).mode & 0o111).not.toBe(0);
    }
    const help = execFileSync(process.execPath, [main, '--help'], { cwd: ROOT, encoding: 'utf8' });
    expect(help).toContain('load-test');
  });
});

describe('the README', () => {
  const readme = read('README.md');

  it('has the quick start that examples run', () => {
    const [, block] = /```ts\n(\/\*\* A scheduler[\s\S]*?)```/.exec(readme) ?? [];
    expect(block).toBe(read('examples/quick-start.ts'));
  });

  it('lists every flag of the load test, and no other', () => {
    const { options } = declareLoadOptions(new Command());
    const [, section] = /\n## The load test\n([\s\S]*?)\n## /.exec(readme) ?? [];
    const listed = [...(section ?? '').matchAll(/^\| `(--[a-z-]+)/gm)].map((match) => match[1]);
    expect(listed.toSorted()).toEqual(options.map(({ long }) => long).toSorted());
  });

  it('links to files that exist', () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] as string);
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) expect(() => statSync(`${ROOT}/${link}`), link).not.toThrow();
  });
});
