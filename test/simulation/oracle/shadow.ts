/**
 * What the store must hold: the records of all commits that are visible, and of those that are durable. After a crash
 * the store must hold what was durable, and of the commits after it the first few, each whole.
 */
import type { RawOccurrence, RawReader, RawTask, RawUnit } from './raw.js';

export interface TaskShadow {
  task: RawTask;
  readonly occurrences: Map<string, RawOccurrence>;
}

export type Records = Map<string, TaskShadow>;

interface Pending {
  readonly commit: number;
  readonly units: readonly RawUnit[];
  /** Known once it is visible. */
  accepted: readonly RawUnit[] | undefined;
}

const PAGE = 500;

export class Shadow {
  readonly visible: Records = new Map();
  /** Tenants and handlers that are paused, as `paused:tenant:a`. */
  readonly paused = new Set<string>();
  readonly #durable: Records = new Map();
  /** Of the commits under way when a process died: found by the next one, or not. */
  kept = 0;
  lost = 0;
  /** In the order given. */
  #pending: Pending[] = [];

  /** Records are the engine's until the commit is visible, and again after: what is kept is a copy. */
  committing(commit: number, units: readonly RawUnit[]): void {
    this.#pending.push({ commit, units: units.map(copyOf), accepted: undefined });
  }

  unitsOf(commit: number): readonly RawUnit[] {
    return this.#pending.find((each) => each.commit === commit)?.units ?? [];
  }

  becameVisible(commit: number, accepted: readonly RawUnit[]): void {
    const pending = this.#pending.find((each) => each.commit === commit);
    if (pending !== undefined) pending.accepted = accepted;
    for (const { settings } of accepted) {
      for (const [key, value] of settings ?? []) {
        if (value === undefined) this.paused.delete(key);
        else if (key.startsWith('paused:')) this.paused.add(key);
      }
    }
  }

  becameDurable(commit: number): void {
    const index = this.#pending.findIndex((each) => each.commit === commit);
    if (index < 0) return;
    const [pending] = this.#pending.splice(index, 1);
    for (const unit of pending?.accepted ?? []) apply(this.#durable, unit);
  }

  /** Refused, or its process died: after a death it may still have been written. */
  dropped(commit: number, isDead: boolean): void {
    if (isDead) return;
    this.#pending = this.#pending.filter((each) => each.commit !== commit);
  }

  /** The store was opened anew. Returns what is wrong with what it holds. */
  async reopened(reader: RawReader): Promise<string[]> {
    const found = await readAll(reader);
    const wrong = this.#differs(found);
    this.#pending = [];
    this.paused.clear();
    for (const key of (await reader.settings()).keys()) {
      if (key.startsWith('paused:')) this.paused.add(key);
    }
    this.visible.clear();
    this.#durable.clear();
    for (const [id, { task, occurrences }] of found) {
      this.visible.set(id, { task, occurrences: new Map(occurrences) });
      this.#durable.set(id, { task, occurrences: new Map(occurrences) });
    }
    return wrong;
  }

  /** Undefined as soon as the durable records with some first commits after them are what was found. */
  #differs(found: Records): string[] {
    const expected = this.#durable;
    let first: string[] | undefined;
    for (let taken = 0; ; taken++) {
      const wrong = differences(expected, found);
      if (wrong.length === 0) {
        this.kept += taken;
        this.lost += this.#pending.length - taken;
        return [];
      }
      first ??= wrong;
      const next = this.#pending[taken];
      if (next === undefined) return first;
      for (const unit of next.accepted ?? next.units.filter((each) => holds(expected, each))) {
        apply(expected, unit);
      }
    }
  }
}

function copyOf(unit: RawUnit): RawUnit {
  const copied = <T extends object>({ record, expected }: { record: T; expected: number }) => ({
    record: { ...record },
    expected,
  });
  return {
    ...unit,
    ...(unit.task === undefined ? {} : { task: copied(unit.task) }),
    ...(unit.occurrences === undefined ? {} : { occurrences: unit.occurrences.map(copied) }),
  };
}

/** The unit's guards, judged here once more. Keys are judged elsewhere. */
export function holds(records: Records, { taskId, task, occurrences }: RawUnit): boolean {
  const known = records.get(taskId);
  if (task !== undefined && task.expected !== (known?.task.revision ?? 0)) return false;
  return (occurrences ?? []).every(
    ({ record, expected }) => expected === (known?.occurrences.get(record.id)?.revision ?? 0),
  );
}

export function apply(records: Records, unit: RawUnit): void {
  if (unit.remove !== undefined) {
    records.delete(unit.taskId);
    return;
  }
  let known = records.get(unit.taskId);
  if (unit.task !== undefined) {
    if (known === undefined) {
      known = { task: unit.task.record, occurrences: new Map() };
      records.set(unit.taskId, known);
    }
    known.task = unit.task.record;
  }
  for (const { record } of unit.occurrences ?? []) known?.occurrences.set(record.id, record);
}

export async function readAll(reader: RawReader): Promise<Records> {
  const found: Records = new Map();
  let cursor: string | undefined;
  do {
    const page = await reader.listTasks({ limit: PAGE, cursor });
    for (const { task } of page.items) {
      found.set(task.id, { task, occurrences: await readOccurrences(reader, task.id) });
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

async function readOccurrences(
  reader: RawReader,
  taskId: string,
): Promise<Map<string, RawOccurrence>> {
  const found: RawOccurrence[] = [];
  let cursor: string | undefined;
  do {
    const page = await reader.listOccurrences(taskId, { limit: PAGE, cursor });
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return new Map(found.reverse().map((record) => [record.id, record]));
}

export function differences(expected: Records, found: Records): string[] {
  const wrong: string[] = [];
  for (const [id, known] of expected) {
    const other = found.get(id);
    if (other === undefined) wrong.push(`task ${id} is gone`);
    else wrong.push(...taskDifferences(known, other));
  }
  for (const id of found.keys()) if (!expected.has(id)) wrong.push(`task ${id} came from nowhere`);
  return wrong;
}

function taskDifferences(known: TaskShadow, other: TaskShadow): string[] {
  const wrong: string[] = [];
  const [task, found] = [known.task, other.task];
  if (!isSameTask(task, found)) {
    wrong.push(`task ${task.id} is ${textOfTask(found)}, not ${textOfTask(task)}`);
  }
  for (const [id, record] of known.occurrences) {
    const is = other.occurrences.get(id);
    if (is !== undefined && isSame(record, is)) continue;
    wrong.push(
      `occurrence ${id} is ${is === undefined ? 'gone' : textOf(is)}, not ${textOf(record)}`,
    );
  }
  for (const id of other.occurrences.keys()) {
    if (!known.occurrences.has(id)) wrong.push(`occurrence ${id} came from nowhere`);
  }
  return wrong;
}

/** By as much of a record as tells one version of it from another. */
export function isSame(a: RawOccurrence, b: RawOccurrence): boolean {
  return (
    a.revision === b.revision &&
    a.state === b.state &&
    a.token === b.token &&
    a.dueAt === b.dueAt &&
    a.failures === b.failures &&
    a.crashes === b.crashes &&
    a.leaseUntil === b.leaseUntil &&
    a.waiting === b.waiting
  );
}

function isSameTask(a: RawTask, b: RawTask): boolean {
  return (
    a.revision === b.revision &&
    a.state === b.state &&
    a.generation === b.generation &&
    a.cursorAt === b.cursorAt &&
    a.taken === b.taken &&
    a.payload.length === b.payload.length
  );
}

export function textOf(record: RawOccurrence): string {
  const { revision, state, token, dueAt, failures, crashes, leaseUntil, waiting } = record;
  return `${state} r${revision} t${token} due ${dueAt} ${failures}/${crashes} until ${leaseUntil} ${waiting}`;
}

function textOfTask({ revision, state, generation, cursorAt, taken, payload }: RawTask): string {
  return `${state} r${revision} g${generation} at ${cursorAt} n${taken} ${payload.length}`;
}
