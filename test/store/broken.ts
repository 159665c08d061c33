/** Stores that are wrong in one way each, made from a right one: the conformance suite must find every one. */
import { VirtualClock } from '../../src/clock/virtual.js';
import { type MemoryStoreOptions, memoryStore } from '../../src/store/memory/memory-store.js';
import type { Commit, StoreSession, Unit } from '../../src/store/store.js';
import { START_MS } from './builders.js';
import type { MakeSubject } from './trial.js';

/** Methods of a session that differ; all others are the right store's. */
type Flaw = (right: StoreSession) => Partial<StoreSession>;

export interface Broken {
  readonly what: string;
  readonly options?: MemoryStoreOptions;
  readonly flaw: Flaw;
  /** A check that must fail on it, by a part of its name. */
  readonly foundBy: string;
}

const rewritten = (right: StoreSession, rewrite: (units: readonly Unit[]) => readonly Unit[]) => ({
  commit: (units: readonly Unit[]): Commit => right.commit(rewrite(units)),
});

/** Each part of the unit as a unit of its own. */
function splitUp({ taskId, task, occurrences, attempts, ...rest }: Unit): Unit[] {
  return [
    { taskId, ...rest },
    ...(task === undefined ? [] : [{ taskId, task }]),
    ...(occurrences ?? []).map((occurrence) => ({ taskId, occurrences: [occurrence] })),
    ...(attempts === undefined ? [] : [{ taskId, attempts }]),
  ];
}

/** Judges a batch's guards by what the store held before the batch. */
async function withoutGuards(right: StoreSession, units: readonly Unit[]): Promise<Unit[]> {
  const forced: Unit[] = [];
  for (const unit of units) {
    const [view] = await right.views([unit.taskId]);
    const revision = view?.task.revision ?? 0;
    const occurrences = [];
    for (const { record } of unit.occurrences ?? []) {
      const stored = await right.occurrence(record.id);
      occurrences.push({ record, expected: stored?.revision ?? 0 });
    }
    const { task, remove } = unit;
    forced.push({
      ...unit,
      occurrences,
      ...(task === undefined ? {} : { task: { record: task.record, expected: revision } }),
      ...(remove === undefined ? {} : { remove: { revision } }),
    });
  }
  return forced;
}

export const BROKEN: readonly Broken[] = [
  {
    what: 'looks at no guard',
    flaw: (right) => ({
      commit(units) {
        const inner = withoutGuards(right, units).then((forced) => right.commit(forced));
        return {
          visible: inner.then(({ visible }) => visible),
          durable: inner.then(({ durable }) => durable),
        };
      },
    }),
    foundBy: 'changes only from the revision that was expected',
  },
  {
    what: 'loses the tail of a batch',
    flaw: (right) =>
      rewritten(right, (units) => (units.length > 1000 ? units.slice(0, 1000) : units)),
    foundBy: 'all units of a large batch take effect',
  },
  {
    what: 'says visible before it is',
    options: { commitDelay: 5 },
    flaw: (right) => ({
      commit: (units) => ({ visible: Promise.resolve([]), durable: right.commit(units).durable }),
    }),
    foundBy: 'a visible commit is seen by every read called afterwards',
  },
  {
    what: 'says durable with visible',
    options: { flushDelay: 5 },
    flaw: (right) => ({
      commit(units) {
        const { visible } = right.commit(units);
        return { visible, durable: visible.then(() => {}) };
      },
    }),
    foundBy: 'what was durable survives a crash',
  },
  {
    what: 'applies units in the wrong order',
    flaw: (right) => rewritten(right, (units) => units.toReversed()),
    foundBy: 'units of one batch build on each other',
  },
  {
    what: 'takes the whole batch back when one unit is refused',
    flaw: (right) => ({
      commit(units) {
        const { visible, durable } = right.commit(units);
        const undo = visible.then(async (refusals) => {
          if (refusals.length === 0) return refusals;
          const made = units.filter((unit) => unit.task?.expected === 0);
          const removals = made.map(({ taskId }) => ({ taskId, remove: { revision: 1 } }));
          await right.commit(removals).visible;
          return refusals;
        });
        return { visible: undo, durable };
      },
    }),
    foundBy: 'does not spoil the others',
  },
  {
    what: 'applies half a unit',
    flaw: (right) => ({
      commit(units) {
        const places = units.flatMap((unit, index) => splitUp(unit).map(() => index));
        const { visible, durable } = right.commit(units.flatMap(splitUp));
        const mapped = visible.then((refusals) => {
          const byUnit = new Map(
            refusals.map((refusal) => {
              const unit = places[refusal.unit] as number;
              return [unit, { ...refusal, unit }];
            }),
          );
          return [...byUnit.values()];
        });
        return { visible: mapped, durable };
      },
    }),
    foundBy: 'one bad guard changes nothing at all',
  },
  {
    what: 'keeps no idempotency keys',
    flaw: () => ({ taskIdOfKey: async () => undefined }),
    foundBy: 'a key names one task of its tenant',
  },
  {
    what: 'frees a key a millisecond early',
    flaw: (right) => ({
      taskIdOfKey: (tenant, key, nowMs) => right.taskIdOfKey(tenant, key, nowMs + 1),
    }),
    foundBy: 'and not a millisecond before',
  },
  {
    what: 'keeps no attempts',
    flaw: (right) => rewritten(right, (units) => units.map((unit) => ({ ...unit, attempts: [] }))),
    foundBy: 'attempts are kept in the order',
  },
  {
    what: 'lists by place, so that a removal shifts the pages',
    flaw: (right) => ({
      async listTasks(query) {
        const { items } = await right.listTasks({ ...query, cursor: undefined, limit: 4096 });
        const from = Number(query.cursor ?? 0);
        const page = items.slice(from, from + query.limit);
        const end = from + page.length;
        return end < items.length ? { items: page, cursor: String(end) } : { items: page };
      },
    }),
    foundBy: 'a cursor stays usable when tasks go and come',
  },
  {
    what: 'lists occurrences oldest first',
    flaw: (right) => ({
      async listOccurrences(taskId, query) {
        const page = await right.listOccurrences(taskId, query);
        return { ...page, items: page.items.toReversed() };
      },
    }),
    foundBy: 'occurrences are listed newest first',
  },
  {
    what: 'reads more than it was asked for',
    flaw: (right) => ({ scanLive: (query) => right.scanLive({ ...query, limit: 9999 }) }),
    foundBy: 'every live occurrence is scanned',
  },
  {
    what: 'forgets to count what ended',
    flaw: (right) => ({
      async counts() {
        return { ...(await right.counts()), deadLetters: 0 };
      },
    }),
    foundBy: 'occurrences are counted by state',
  },
  {
    what: 'prunes a millisecond early',
    flaw: (right) => ({ prune: (nowMs, max) => right.prune(nowMs + 1, max) }),
    foundBy: 'for as long as its end asks for',
  },
  {
    what: 'prunes nothing',
    flaw: () => ({ prune: async () => ({ removed: 0, nextAtMs: undefined }) }),
    foundBy: 'for as long as its end asks for',
  },
  {
    what: 'has the same epoch each time',
    flaw: () => ({ epoch: 1 }),
    foundBy: 'under a higher epoch',
  },
  {
    what: 'loses undefined and payload bytes of zero length',
    flaw: (right) => ({
      async views(ids) {
        return JSON.parse(JSON.stringify(await right.views(ids)));
      },
    }),
    foundBy: 'every field of a record comes back',
  },
];

/** A right store whose sessions have the flaw. */
export function brokenSubject({ flaw, options }: Broken): MakeSubject {
  return () => {
    const right = memoryStore(options);
    const store = {
      capabilities: right.capabilities,
      async open(opening: Parameters<typeof right.open>[0]): Promise<StoreSession> {
        return withFlaw(await right.open(opening), flaw);
      },
    };
    const clock = new VirtualClock(START_MS);
    return { store, clock, crash: () => right.crash(), recount: () => right.recount() };
  };
}

function withFlaw(right: StoreSession, flaw: Flaw): StoreSession {
  const changed = flaw(right) as Record<string | symbol, unknown>;
  return new Proxy(right, {
    get(target, name) {
      if (name in changed) return changed[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
