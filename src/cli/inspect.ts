/** `tickwheel inspect`: looks at a store on disk, also while a scheduler runs on it, and changes nothing. */
import { lmdbStore, type Occurrence, Scheduler, TaskNotFoundError, verifyStore } from '../index.js';
import type { InspectOptions } from './inspect/options.js';
import {
  deadLettersText,
  jsonOf,
  type Shown,
  shownText,
  statsText,
  tasksText,
  verificationText,
} from './inspect/text.js';

const SHOWN_MAX = 20;

export interface Inspected {
  readonly text: string;
  /** False: `verify` found what does not agree. */
  readonly isSound: boolean;
}

/** @throws StoreCorruptError, StoreVersionError, StoreUnavailableError, TaskNotFoundError, InvalidArgumentError */
export async function inspect(options: InspectOptions): Promise<Inspected> {
  if (options.view === 'verify') return verify(options);
  const store = lmdbStore({ path: options.path, readOnly: true });
  await using scheduler = await Scheduler.open({ store });
  return { text: await look(scheduler, options), isSound: true };
}

async function verify({ path, json }: InspectOptions): Promise<Inspected> {
  const found = await verifyStore({ path });
  const text = json ? jsonOf(found) : verificationText(found);
  return { text, isSound: found.disagreementCount === 0 };
}

async function look(scheduler: Scheduler, options: InspectOptions): Promise<string> {
  const { view, json } = options;
  switch (view) {
    case 'stats': {
      const stats = await scheduler.stats();
      const { pending, ready, running, deadLetters, openTasks, tenants } = stats;
      return json
        ? jsonOf({ pending, ready, running, deadLetters, openTasks, tenants })
        : statsText(stats);
    }
    case 'list': {
      const page = await scheduler.list({
        ...pageOf(options),
        ...ifGiven('status', options.status),
      });
      return json ? jsonOf(page) : tasksText(page);
    }
    case 'dead-letters': {
      const page = await scheduler.deadLetters(pageOf(options));
      return json ? jsonOf(page) : deadLettersText(page);
    }
    default: {
      const shown = await show(scheduler, options.id);
      return json ? jsonOf(shown) : shownText(shown);
    }
  }
}

function pageOf({ limit, tenant, handler, cursor }: InspectOptions) {
  return {
    limit,
    ...ifGiven('tenant', tenant),
    ...ifGiven('handler', handler),
    ...ifGiven('cursor', cursor),
  };
}

function ifGiven<N extends string, V>(name: N, value: V | undefined): { [K in N]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [K in N]?: V });
}

/** A task with its newest occurrences, or one occurrence. */
async function show(scheduler: Scheduler, id: string): Promise<Shown> {
  const task = await scheduler.get(id);
  if (task === undefined) {
    const occurrence = await scheduler.occurrence(id);
    if (occurrence === undefined) {
      throw new TaskNotFoundError(`show: there is no task and no occurrence '${id}'`);
    }
    return { task, occurrences: [await withAttempts(scheduler, occurrence)], cursor: undefined };
  }
  const { items, cursor } = await scheduler.occurrences(id, { limit: SHOWN_MAX });
  const occurrences = [];
  for (const occurrence of items) occurrences.push(await withAttempts(scheduler, occurrence));
  return { task, occurrences, cursor };
}

async function withAttempts(scheduler: Scheduler, occurrence: Occurrence) {
  return { occurrence, attempts: await scheduler.attempts(occurrence.id) };
}
