/**
 * The style of the repository, as a test. Each rule is a list of offences that must be empty; what is let through
 * stands here with its reason, and an exception that nothing needs any more is an offence too.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Tracked, or new and not ignored: what a commit of everything would hold. */
const files = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));

const texts = new Map<string, string>();
function textOf(file: string): string {
  let text = texts.get(file);
  if (text === undefined) {
    text = readFileSync(join(ROOT, file), 'utf8');
    texts.set(file, text);
  }
  return text;
}

const sources = files.filter((file) => file.startsWith('src/') && file.endsWith('.ts'));
const code = files.filter((file) => /\.(ts|mts|js|mjs)$/.test(file));

/** The code without its comments, which may speak of what the code may not do; lines stay where they are. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/(^|\s)\/\/.*$/gm, '$1');
}

/** `file:line: the line` of each match that no exception covers, and each exception that covers nothing. */
function offences(
  where: readonly string[],
  banned: RegExp,
  exceptions: Readonly<Record<string, string>> = {},
): string[] {
  const found: string[] = [];
  const used = new Set<string>();
  for (const file of where) {
    for (const [index, line] of withoutComments(textOf(file)).split('\n').entries()) {
      if (!banned.test(line)) continue;
      if (file in exceptions) used.add(file);
      else found.push(`${file}:${index + 1}: ${line.trim()}`);
    }
  }
  const unused = Object.keys(exceptions).filter((file) => !used.has(file));
  return [...found, ...unused.map((file) => `${file}: an exception that nothing needs`)];
}

// --- layers ----------------------------------------------------------------------------------------------

/** Imports point to a lower rank only. Layers of one rank are siblings and never import each other. */
const RANKS: Readonly<Record<string, number>> = {
  core: 0,
  clock: 1,
  wheel: 1,
  store: 1,
  execution: 1,
  observe: 1,
  engine: 2,
  scheduler: 3,
  index: 4,
  server: 5,
  cli: 5,
};

/** Imports among siblings: types of a protocol, or pieces of the clock's own folder. By layer and file. */
const SIBLINGS: readonly { from: string; to: string; typesOnly: boolean; reason: string }[] = [
  {
    from: 'store',
    to: 'src/clock/turn.ts',
    typesOnly: false,
    reason: 'lmdb-js tells why a commit failed some turns later',
  },
  {
    from: 'store',
    to: 'src/clock/clock.ts',
    typesOnly: true,
    reason: 'a store is opened with the injected clock',
  },
  {
    from: 'store',
    to: 'src/clock/system.ts',
    typesOnly: false,
    reason: 'another process that opens the files is waited for, in real time',
  },
  {
    from: 'execution',
    to: 'src/clock/clock.ts',
    typesOnly: true,
    reason: 'an executor runs handlers on the injected clock',
  },
  {
    from: 'execution',
    to: 'src/observe/log.ts',
    typesOnly: true,
    reason: 'handlers are given a logger',
  },
  {
    from: 'execution',
    to: 'src/clock/system.ts',
    typesOnly: false,
    reason: 'sleepOn: a handler sleeps on whatever clock it was given; threads have no other',
  },
  {
    from: 'execution',
    to: 'src/clock/real-time.ts',
    typesOnly: false,
    reason: 'threads load and hang in real time, also where a test’s clock stands still',
  },
  {
    from: 'execution',
    to: 'src/clock/turn.ts',
    typesOnly: false,
    reason: 'setImmediate is the clock’s: reports are gathered until the next turn',
  },
  {
    from: 'observe',
    to: 'src/clock/turn.ts',
    typesOnly: false,
    reason: 'setImmediate is the clock’s: listeners are told in a later turn',
  },
];

/** Imports of the command line beyond the public API. */
const CLI_EXTRA: Readonly<Record<string, string>> = {
  'src/core/assert.ts': 'bugs of the load test are assertions too',
  'src/core/units.ts': 'flags are parsed as the API parses durations',
};

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

const STATEMENT =
  /(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;'"]*?from\s+'([^']+)'|(?:^|\n)\s*import\s+'([^']+)'|\bimport\('([^']+)'\)(\.[A-Z])?/g;

function importsOf(file: string): { spec: string; typeOnly: boolean }[] {
  const text = withoutComments(textOf(file));
  return [...text.matchAll(STATEMENT)].map((match) => ({
    spec: (match[2] ?? match[3] ?? match[4]) as string,
    typeOnly: match[1] !== undefined || match[5] !== undefined,
  }));
}

function localImports(file: string): Import[] {
  return importsOf(file)
    .filter(({ spec }) => spec.startsWith('.'))
    .map(({ spec, typeOnly }) => {
      const to = normalize(join(dirname(file), spec)).replace(/\.js$/, '.ts');
      return { from: file, to, typeOnly };
    });
}

function layerOf(file: string): string {
  const [, first, second] = file.split('/');
  if (second !== undefined) return first as string;
  return first === 'index.ts' ? 'index' : 'scheduler';
}

function isLayered({ from, to, typeOnly }: Import): boolean {
  const layer = layerOf(from);
  const target = layerOf(to);
  if (layer === target) return true;
  if (layer === 'cli' || layer === 'server') return target === 'index' || to in CLI_EXTRA;
  const [rank, targetRank] = [RANKS[layer] as number, RANKS[target] as number];
  if (targetRank < rank) return true;
  return SIBLINGS.some((s) => s.from === layer && s.to === to && (typeOnly || !s.typesOnly));
}

/** What may name an implementation: the composition, and what it is made of. */
const WIRING: Readonly<Record<string, string>> = {
  'src/scheduler.ts': 'the composition',
  'src/options.ts': 'the default store',
  'src/index.ts': 'exports the stores',
};
const IMPLEMENTATION = /^src\/(store\/(?!store\.ts)|execution\/(in-process|pool\/))/;

describe('layers', () => {
  const imports = sources.flatMap(localImports);
  const show = ({ from, to, typeOnly }: Import) => `${from} → ${to}${typeOnly ? ' (type)' : ''}`;

  it('finds the imports that it judges', () => {
    expect(imports.length).toBeGreaterThan(200);
    expect(imports.filter(({ to }) => !files.includes(to)).map(show)).toEqual([]);
  });

  it('has a rank for every folder of src', () => {
    const layers = new Set(sources.map(layerOf));
    expect([...layers].filter((layer) => !(layer in RANKS))).toEqual([]);
  });

  it('imports only what lies below', () => {
    expect(imports.filter((each) => !isLayered(each)).map(show)).toEqual([]);
  });

  it('has no exception among siblings that nothing needs', () => {
    const unused = SIBLINGS.filter(
      (s) => !imports.some(({ from, to }) => layerOf(from) === s.from && to === s.to),
    );
    expect(unused.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  it('names implementations of protocols in the composition alone', () => {
    const named = imports.filter(
      ({ from, to }) =>
        IMPLEMENTATION.test(to) && layerOf(from) !== layerOf(to) && !(from in WIRING),
    );
    expect(named.map(show)).toEqual([]);
  });
});

// --- calls -----------------------------------------------------------------------------------------------

const OUTSIDE_CLOCK = sources.filter((file) => !file.startsWith('src/clock/'));

describe('calls', () => {
  it('asks for the time, and for timers, in src/clock alone', () => {
    const banned =
      /\bDate\.now\b|\bnew Date\(\)|\bset(Timeout|Interval|Immediate)\b|\bperformance\.|\bhrtime\b|\bAbortSignal\.timeout\b|timers\/promises/;
    expect(
      offences(OUTSIDE_CLOCK, banned, {
        'src/cli/load/board.ts':
          'the load test measures in fractions of a ms, apart from our clock',
      }),
    ).toEqual([]);
  });

  it('takes randomness from where it is given', () => {
    expect(
      offences(OUTSIDE_CLOCK, /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b/, {
        'src/options.ts': 'the default of the option `random`',
      }),
    ).toEqual([]);
  });

  it('leaves threads to piscina', () => {
    expect(offences(sources, /\bnew Worker\(|\bchild_process\b|\bcluster\b/)).toEqual([]);
  });

  it('commits in the main loop alone', () => {
    const callers = sources.filter((file) => !file.startsWith('src/store/'));
    expect(offences(callers, /\.commit\(/, { 'src/engine/loop.ts': 'the main loop' })).toEqual([]);
  });

  it('moves occurrences in core alone: no second state machine', () => {
    const states =
      'scheduled|ready|running|cancel-requested|retry-wait|succeeded|dead|quarantined|skipped|missed';
    const outside = sources.filter((file) => !file.startsWith('src/core/'));
    const assigned = new RegExp(`\\bstate: '(${states})'|\\.state = |\\bdraft\\.move\\(`);
    // Their own states, of runs and threads: neither is an occurrence's record.
    expect(
      offences(outside, assigned, {
        'src/execution/in-process.ts': 'a run in this process: running, zombie, ended',
        'src/execution/pool/thread.ts': 'a thread: loading, serving, dead',
      }),
    ).toEqual([]);
  });
});

// --- text ------------------------------------------------------------------------------------------------

const LINES_MAX = 500;
/** Longer files, each of one purpose; with the length that it may not exceed. */
const LONG_FILES: Readonly<Record<string, number>> = {
  'src/scheduler.ts': 800,
  'src/core/ready-queue.ts': 650,
};

/** `any` that inference cannot do without, or that stands for a value whose type is the caller's to say. */
const ANY: Readonly<Record<string, string>> = {
  'src/types.ts': 'inference must match any function',
  'src/present.ts': 'payloads and results whose type is the caller’s to say',
  'src/execution/handler.ts': 'typed handlers must fit in a map',
  'src/engine/scopes.ts': 'any entry will do, only the lanes are used',
};

describe('text', () => {
  it('has no any but where its reason is written beside it', () => {
    expect(offences(sources, /[:<|(,=]\s*any\b(?!')|\bas any\b|\bany\[\]/, ANY)).toEqual([]);
    for (const file of Object.keys(ANY)) {
      expect(textOf(file), file).toMatch(
        /biome-ignore(-start)? lint\/suspicious\/noExplicitAny: \w/,
      );
    }
  });

  it('keeps files short', () => {
    const hand = code.filter((file) => /^(src|assembly|bench|examples)\//.test(file));
    const long = hand
      .map((file) => ({ file, lines: textOf(file).split('\n').length - 1 }))
      .filter(({ file, lines }) => lines > (LONG_FILES[file] ?? LINES_MAX));
    expect(long).toEqual([]);
    const short = Object.keys(LONG_FILES).filter(
      (file) => textOf(file).split('\n').length - 1 <= LINES_MAX,
    );
    expect(short, 'exceptions that nothing needs').toEqual([]);
  });

  it('leaves nothing for later', () => {
    const mark = new RegExp(
      `\\b(${['TO', 'FIX'].map((a, i) => a + ['DO', 'ME'][i]).join('|')})\\b`,
    );
    const own = files.filter((file) => /\.(ts|mjs|js|md|json)$|\.ci\/run$/.test(file));
    const found = own.filter((file) => !file.startsWith('test/data/') && mark.test(textOf(file)));
    expect(found).toEqual([]);
  });

  it('skips and singles out no test', () => {
    const tests = files.filter((file) => file.startsWith('test/') && file.endsWith('.ts'));
    const marks = new RegExp(`\\b(it|describe|test)\\.(${['skip', 'only', 'todo'].join('|')})\\(`);
    expect(offences(tests, marks)).toEqual([]);
  });

  it('names no path of a machine and no registry', () => {
    // In pieces, so that this file does not name them itself.
    const paths = [
      '/wo' + 'rk/',
      '/home/[a-z]',
      '/Us' + 'ers/[A-Za-z]',
      'shared' + '/(design|api)',
    ];
    const hosts = ['regis' + 'try\\.', '127\\.0\\.0\\.1', 'local' + 'host'];
    const named = new RegExp([...paths.map((p) => `(?<![\\w.-])${p}`), ...hosts].join('|'));
    const found: string[] = [];
    for (const file of files.filter((each) => !each.startsWith('test/data/'))) {
      const match = named.exec(textOf(file));
      if (match !== null) found.push(`${file}: ${match[0]}`);
    }
    expect(found).toEqual([]);
  });
});

// --- dependencies ----------------------------------------------------------------------------------------

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

describe('dependencies', () => {
  const manifest = JSON.parse(textOf('package.json')) as Manifest;
  const used = new Map<string, string>();
  for (const file of sources) {
    for (const { spec } of importsOf(file)) {
      if (spec.startsWith('.') || spec.startsWith('node:')) continue;
      used.set(
        spec
          .split('/')
          .slice(0, spec.startsWith('@') ? 2 : 1)
          .join('/'),
        file,
      );
    }
  }

  it('declares what src imports, and nothing that it does not', () => {
    expect([...used.keys()].toSorted()).toEqual(Object.keys(manifest.dependencies).toSorted());
  });

  it('says in the README what each is for', () => {
    const readme = textOf('README.md');
    const all = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
    const silent = all.filter(
      (name) => !new RegExp(`^\\| \`${name}\` \\| .{10,}`, 'm').test(readme),
    );
    expect(silent).toEqual([]);
  });
});
