/**
 * Deliberately broken variants, at least one for each invariant that code can break: the fixed seeds must catch each. What
 * is broken is a store, an executor, or a part of the engine; never the oracle.
 */
import { ReadyQueue } from '../../src/core/ready-queue.js';
import { Batch } from '../../src/engine/batch.js';
import { Engine } from '../../src/engine/engine.js';
import { Scopes } from '../../src/engine/scopes.js';
import type { Executor } from '../../src/execution/executor.js';
import type { DueWindow, StoreSession, Unit } from '../../src/store/store.js';
import type { SimExecutor } from './executor.js';

export interface BrokenVariant {
  readonly name: string;
  /** The invariant that it breaks: one of the violations must name it. */
  readonly breaks: number;
  /** The one that the violations name, where they show it by another. */
  readonly seenAs?: number;
  /** Where it can be seen; default: the memory store. */
  readonly stores?: readonly string[];
  /** Breaks the store. */
  readonly session?: (session: StoreSession) => StoreSession;
  /** Breaks what the engine makes of a store that is whole. */
  readonly writes?: (session: StoreSession) => StoreSession;
  readonly executor?: (executor: SimExecutor) => Executor;
  /** Breaks parts of the engine; returns what mends them. */
  readonly patch?: () => () => void;
  /** The scheduler's wall clock is ahead by this much. */
  readonly skewMs?: number;
}

/** The session, or a part of it, with some of its members replaced. */
function but<T extends object>(whole: T, changes: Partial<T>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      const own = (changes as Record<string | symbol, unknown>)[name];
      if (own !== undefined) return own;
      const value = (target as Record<string | symbol, unknown>)[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A session that writes something other than it was given. */
function writing(change: (unit: Unit) => Unit): (session: StoreSession) => StoreSession {
  return (session) =>
    but(session, { commit: (units) => session.commit(units.map((unit) => change(unit))) });
}

type Occurrences = NonNullable<Unit['occurrences']>;

function withOccurrences(change: (occurrences: Occurrences) => Occurrences) {
  return writing((unit) =>
    unit.occurrences === undefined ? unit : { ...unit, occurrences: change(unit.occurrences) },
  );
}

// biome-ignore lint/suspicious/noExplicitAny: methods of any shape are replaced, and put back
type AnyClass = { prototype: any };

/** Replaces a method; the one before is given to the new one. */
function replacing(
  { prototype }: AnyClass,
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: as above
  make: (before: (...args: any[]) => any) => (...args: any[]) => any,
): () => () => void {
  return () => {
    const before = prototype[name];
    prototype[name] = make(before);
    return () => {
      prototype[name] = before;
    };
  };
}

/** Events of attempts and calls on their way to the state machine, changed. */
function deciding(change: (event: AnyEvent, active: AnyActive) => AnyEvent | undefined) {
  return replacing(
    Batch,
    'decide',
    (before) =>
      function (this: Batch, active: AnyActive, event: AnyEvent, ...rest: unknown[]) {
        const changed = change(event, active);
        return changed === undefined ? true : before.call(this, active, changed, ...rest);
      },
  );
}

type AnyEvent = { readonly kind: string; readonly [field: string]: unknown };
type AnyActive = {
  find(id: string): { token: number } | undefined;
  readonly view?: { task: { state: string } } | undefined;
};

export const BROKEN: readonly BrokenVariant[] = [
  {
    name: 'durable is said as soon as it is visible',
    breaks: 1,
    stores: ['memory', 'lmdb'],
    session: (session) =>
      but(session, {
        commit: (units) => {
          const { visible } = session.commit(units);
          return { visible, durable: visible.then(() => {}) };
        },
      }),
  },
  {
    name: 'the end of an attempt is lost',
    breaks: 10,
    executor: (executor) => losing(executor, 9),
  },
  {
    name: 'a nominal time is created twice',
    breaks: 2,
    writes: withOccurrences((occurrences) =>
      occurrences.flatMap((each) => {
        const { record, expected } = each;
        if (expected !== 0 || record.kind !== 'nominal') return [each];
        const ordinal = record.ordinal + 1;
        const id = record.id.replace(/\d+$/, String(ordinal));
        return [each, { record: { ...record, id, ordinal }, expected }];
      }),
    ),
  },
  {
    name: 'keys are told apart by the task that has them',
    breaks: 3,
    writes: (session) => {
      const keyOf = (key: string | undefined, id: string) => key && `${key.split(' ')[0]} of ${id}`;
      return but(session, {
        taskIdOfKey: () => Promise.resolve(undefined),
        commit: (units) =>
          session.commit(
            units.map((unit) => {
              if (unit.task === undefined) return unit;
              const { record, expected } = unit.task;
              const idempotencyKey = keyOf(record.idempotencyKey, record.id);
              return { ...unit, task: { record: { ...record, idempotencyKey }, expected } };
            }),
          ),
      });
    },
  },
  {
    name: 'a run is given to two threads',
    breaks: 4,
    executor: (executor) =>
      new Proxy(executor, {
        get: (target, name) => {
          if (name === 'start') {
            return (runs: Parameters<Executor['start']>[0]) => {
              target.start(runs);
              target.start(runs.slice(0, 1));
            };
          }
          const value = (target as unknown as Record<string | symbol, unknown>)[name];
          return typeof value === 'function' ? value.bind(target) : value;
        },
      }),
  },
  {
    name: 'who lost a key is told that it won',
    breaks: 3,
    session: (session) =>
      but(session, {
        commit: (units) => {
          const { durable, visible } = session.commit(units);
          return { durable, visible: visible.then(() => []) };
        },
      }),
  },
  {
    name: 'an end counts for whatever attempt runs now',
    breaks: 5,
    patch: () => {
      const undo = [
        deciding((event, active) => {
          const { token } = active.find(event.occurrenceId as string) ?? {};
          return event.kind === 'succeeded' && token !== undefined ? { ...event, token } : event;
        })(),
      ];
      return () => {
        for (const each of undo) each();
      };
    },
    executor: (executor) => echoing(executor),
  },
  {
    name: 'every opening has the first epoch',
    breaks: 6,
    session: (session) => but(session, { epoch: 1 }),
  },
  {
    name: 'a cancel is acknowledged and forgotten',
    breaks: 7,
    patch: deciding((event) => (event.kind === 'cancel' ? undefined : event)),
  },
  {
    name: 'what has ended can be started again',
    breaks: 7,
    writes: withOccurrences((occurrences) =>
      occurrences.map((each) => {
        const { record, expected } = each;
        const isRetold = record.state === 'dead' && record.redrivenAs !== undefined;
        return isRetold ? { record: { ...record, state: 'scheduled' }, expected } : each;
      }),
    ),
  },
  { name: 'the wall clock is 300 ms ahead', breaks: 8, skewMs: 300 },
  {
    name: 'a window is read with gaps',
    breaks: 9,
    // Reconciliation finds what was not loaded before its loss could be seen.
    seenAs: 10,
    session: (session) =>
      but(session, {
        scanLive: async (query) => {
          const page = await session.scanLive(query);
          return { ...page, items: page.items.filter((_, index) => index % 5 !== 4) };
        },
      }),
  },
  {
    name: 'what comes near is told with gaps',
    breaks: 9,
    seenAs: 10,
    stores: ['lmdb'],
    session: (session) => {
      const due = session.due as DueWindow;
      const load: DueWindow['load'] = async (nowMs, room) => {
        const step = await due.load(nowMs, room);
        return { ...step, entries: step.entries.slice(1) };
      };
      return but(session, { due: but(due, { load }) });
    },
  },
  {
    name: 'attempts run without a lease',
    breaks: 10,
    writes: withOccurrences((occurrences) =>
      occurrences.map(({ record, expected }) => ({
        record: { ...record, leaseUntil: undefined },
        expected,
      })),
    ),
  },
  {
    name: 'handlers are started before the claim is visible',
    breaks: 10,
    writes: (session) =>
      but(session, {
        commit: (units) => {
          const { durable, visible } = session.commit(units);
          visible.catch(() => {});
          return { visible: Promise.resolve([]), durable };
        },
      }),
  },
  {
    name: 'a paused tenant goes on',
    breaks: 11,
    patch: replacing(Scopes, 'pause', () => () => () => {}),
  },
  {
    name: 'pause does not wait for what is on its way',
    breaks: 11,
    patch: replacing(Engine, 'startsEnded', () => () => Promise.resolve()),
  },
  {
    name: 'of times that were missed together only the first is counted',
    breaks: 12,
    writes: withOccurrences((occurrences) =>
      occurrences.map((each) => {
        const { record, expected } = each;
        if (record.state !== 'missed' || (record.count ?? 1) === 1) return each;
        return { record: { ...record, count: 1, untilAt: record.nominalAt }, expected };
      }),
    ),
  },
  {
    name: 'what is missed has no reason',
    breaks: 12,
    writes: withOccurrences((occurrences) =>
      occurrences.map((each) => {
        const { record, expected } = each;
        if (record.state !== 'missed') return each;
        return { record: { ...record, reason: undefined }, expected };
      }),
    ),
  },
  {
    name: 'a record that cannot be read stops the engine',
    breaks: 13,
    session: (session) =>
      but(session, {
        views: async (ids) => {
          const views = await session.views(ids);
          const isBad = views.some(
            (view) => view?.task.handler === 'image' && view.task.extras > 0,
          );
          if (isBad) throw new Error('simulated: a record cannot be read');
          return views;
        },
      }),
  },
  {
    name: 'the tenant that asked first is served first',
    breaks: 14,
    patch: replacing(
      ReadyQueue,
      'setTenantLimits',
      (before) =>
        function (this: unknown, tenant: string, limits: object) {
          before.call(this, tenant, { ...limits, weight: tenant === 'b' ? 0.001 : 1000 });
        },
    ),
  },
  {
    name: 'a counter drifts',
    breaks: 15,
    session: (session) =>
      but(session, {
        counts: async () => {
          const counts = await session.counts();
          return { ...counts, deadLetters: Math.min(counts.deadLetters, 3) };
        },
      }),
  },
  {
    name: 'failures are not charged',
    breaks: 16,
    patch: deciding((event) => {
      if (event.kind !== 'failed') return event;
      const { occurrenceId, token } = event;
      return { kind: 'released', occurrenceId, token };
    }),
  },
  {
    name: 'crashes are not charged',
    breaks: 16,
    patch: deciding((event) => {
      if (event.kind !== 'crashed') return event;
      const { occurrenceId, token } = event;
      return { kind: 'displaced', occurrenceId, token };
    }),
  },
];

/** An executor that reports only some of the ends. */
function losing(executor: SimExecutor, every: number): Executor {
  let ends = 0;
  return reporting(executor, (reports) =>
    reports.filter(({ kind }) => kind !== 'succeeded' || ++ends % every !== 0),
  );
}

/** An executor that says of a lost run that it has succeeded. */
function echoing(executor: SimExecutor): Executor {
  return reporting(executor, (reports) =>
    reports.map((report) =>
      report.kind === 'lost' && report.entered && report.blame === 'displaced'
        ? { kind: 'succeeded', runId: report.runId, atMs: 0, result: undefined }
        : report,
    ),
  );
}

type Reports = Parameters<Parameters<Executor['open']>[0]['report']>[0];

function reporting(executor: SimExecutor, change: (reports: Reports) => Reports): Executor {
  return new Proxy(executor, {
    get: (target, name) => {
      if (name === 'open') {
        const open: Executor['open'] = (host) =>
          target.open({ ...host, report: (reports) => host.report(change(reports)) });
        return open;
      }
      const value = (target as unknown as Record<string | symbol, unknown>)[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
