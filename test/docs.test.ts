/** What README.md and docs/ show: links resolve, and the guide's programs compile. Needs `npm run build` first. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { TaskState } from '../src/core/model.js';
import { MOVES } from '../src/core/transitions.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FENCED = /^```[\s\S]*?^```/gm;

function pages(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(ROOT, folder, name));
}

const PAGES = [join(ROOT, 'README.md'), join(ROOT, 'CHANGELOG.md'), ...pages('docs')];

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = readFileSync(page, 'utf8')
    .replace(FENCED, '')
    .matchAll(/^#+ (.+)$/gm);
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
  return new Set([...headings].map(([, heading]) => anchorOf(heading as string)));
}

/** Links of a page that lead nowhere; those to other hosts are not asked for. */
function brokenLinks(page: string): string[] {
  const text = readFileSync(page, 'utf8').replace(FENCED, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link as string)
    .filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [file, anchor] = link.split('#') as [string, string?];
      const target = file === '' ? page : resolve(dirname(page), file);
      if (!existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(target).has(anchor);
    });
}

describe('the documentation', () => {
  it.each(PAGES.map((page) => [relative(ROOT, page), page]))('%s: links resolve', (_, page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it('lists every decision', () => {
    const index = readFileSync(join(ROOT, 'docs/adr/README.md'), 'utf8');
    const decisions = readdirSync(join(ROOT, 'docs/adr')).filter((name) => /^\d/.test(name));
    expect(decisions.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  });

  it('is linked from the README, page by page', () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const unlinked = readdirSync(join(ROOT, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .filter((name) => !readme.includes(`](docs/${name})`));
    expect(unlinked).toEqual([]);
  });
});

describe('the diagram of a life', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
  const [, diagram = ''] = /```mermaid\nstateDiagram-v2\n([\s\S]*?)```/.exec(page) ?? [];
  const names = new Map(
    [...diagram.matchAll(/state "([^"]+)" as (\w+)$/gm)].map(([, name, id]) => [id, name]),
  );
  const nameOf = (id: string): string => (id === '[*]' ? 'none' : (names.get(id) ?? id));

  /** The edges in the part of that title, `from → to`. */
  function edgesOf(title: string): string[] {
    const [, part = ''] =
      new RegExp(`state "${title}" as \\w+ \\{\\n([\\s\\S]*?)\\n {4}\\}`).exec(diagram) ?? [];
    return [...part.matchAll(/^\s*(\S+) --> (\S+?)(?::|$)/gm)]
      .map(([, from, to]) => `${nameOf(from as string)} → ${nameOf(to as string)}`)
      .sort();
  }

  it('shows every legal move of an occurrence, and no other', () => {
    expect(edgesOf('an occurrence')).toEqual(MOVES.map(({ from, to }) => `${from} → ${to}`).sort());
  });

  it('shows the states of a task', () => {
    const states = new Set(edgesOf('a task').flatMap((edge) => edge.split(' → ')));
    const all: Record<TaskState | 'none', true> = {
      none: true,
      active: true,
      paused: true,
      completed: true,
      cancelled: true,
    };
    expect([...states].sort()).toEqual(Object.keys(all).sort());
  });
});

describe('the guide', () => {
  it('shows programs that compile under strict rules', () => {
    const folder = join(ROOT, 'build/guide');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const guide = readFileSync(join(ROOT, 'docs/guide.md'), 'utf8');
    const blocks = [...guide.matchAll(/(?:`(\w+\.ts)`[^\n]*\n\n)?```ts\n([\s\S]*?)```/g)];
    expect(blocks.length).toBeGreaterThan(5);
    for (const [index, [, name = `program-${index}.ts`, code]] of blocks.entries()) {
      writeFileSync(join(folder, name), programOf(code as string));
    }
    const config = { extends: '../../tsconfig.json', include: ['.'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' });
    expect(stdout).toBe('');
  });
});

/** A piece without imports of its own goes on where a program has opened a scheduler. */
function programOf(code: string): string {
  if (code.includes("from 'tickwheel'")) return code;
  return (
    "import type { Scheduler, VirtualClock } from 'tickwheel';\n" +
    'export async function piece(scheduler: Scheduler, clock: VirtualClock) {\n' +
    `await clock.advance(0);\n${code}return scheduler;\n}\n`
  );
}
