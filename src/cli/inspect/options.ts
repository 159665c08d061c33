/** The flags of `inspect`: what they are called, what they mean, what is allowed. */
import type { Command } from 'commander';
import { describe } from '../../core/units.js';
import { InvalidArgumentError, TASK_STATUSES, type TaskStatus } from '../../index.js';

const VIEWS = ['stats', 'list', 'show', 'dead-letters', 'verify'] as const;
const DEFAULT_PATH = './tickwheel-data';
const DEFAULT_LIMIT = '50';
const LIMIT_MAX = 1000;

export interface InspectOptions {
  readonly view: (typeof VIEWS)[number];
  /** Of `show`: a task, or an occurrence. */
  readonly id: string;
  readonly path: string;
  readonly json: boolean;
  readonly tenant: string | undefined;
  readonly handler: string | undefined;
  readonly status: TaskStatus | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** The flags as they were typed. */
export interface RawInspectOptions {
  readonly path?: string;
  readonly json?: boolean;
  readonly tenant?: string;
  readonly handler?: string;
  readonly status?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

export function declareInspectOptions(command: Command): Command {
  return command
    .argument('[view]', `one of: ${VIEWS.join(', ')}`, 'stats')
    .argument('[id]', 'show: of a task or an occurrence')
    .option('--path <dir>', 'where the store keeps its files', DEFAULT_PATH)
    .option('--json', 'print JSON')
    .option('--tenant <name>', 'list, dead-letters: of this tenant alone')
    .option('--handler <name>', 'list, dead-letters: of this handler alone')
    .option('--status <status>', `list: ${TASK_STATUSES.join(', ')}`)
    .option('--limit <n>', `list, dead-letters: so many, up to ${LIMIT_MAX}`, DEFAULT_LIMIT)
    .option('--cursor <cursor>', 'list, dead-letters: go on where the page before ended');
}

/** @throws InvalidArgumentError naming what was typed and what is allowed */
export function parseInspectOptions(
  view: string | undefined,
  id: string | undefined,
  raw: RawInspectOptions,
): InspectOptions {
  const known = oneOf('inspect', view ?? 'stats', VIEWS);
  if ((known === 'show') !== (id !== undefined)) {
    const what = id === undefined ? 'no id' : `an id, ${describe(id)}`;
    throw new InvalidArgumentError(`inspect ${known} was given ${what}; allowed: show ID`);
  }
  return {
    view: known,
    id: id ?? '',
    path: raw.path ?? DEFAULT_PATH,
    json: raw.json === true,
    tenant: raw.tenant,
    handler: raw.handler,
    status: raw.status === undefined ? undefined : oneOf('--status', raw.status, TASK_STATUSES),
    limit: limitOf(raw.limit ?? DEFAULT_LIMIT),
    cursor: raw.cursor,
  };
}

function limitOf(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new InvalidArgumentError(
    `--limit is ${describe(text)}; allowed: a whole number from 1 to ${LIMIT_MAX}`,
  );
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`${name} is ${describe(value)}; allowed: ${allowed.join(', ')}`);
}
