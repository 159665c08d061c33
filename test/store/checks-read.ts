/** What a store is asked: by id, in pages, all that lives, and how many. */
import assert from 'node:assert/strict';
import type { OccurrenceRecord } from '../../src/core/model.js';
import type { StoreCounts } from '../../src/store/store.js';
import {
  completed,
  createOneOff,
  creating,
  ended,
  endOneOff,
  idOf,
  next,
  occurrenceOf,
  START_MS,
  taskOf,
  writing,
} from './builders.js';
import { assertSame, type Check, type Trial } from './trial.js';

const NUMBERS = Array.from({ length: 25 }, (_, n) => n);
/** A recurring task and its first occurrences, a minute apart. */
const TASK = taskOf(1, {
  schedule: { kind: 'fixedRate', everyMs: 60_000, jitterMs: 0 },
  taken: 1,
});

function runs(count: number, patch: Partial<OccurrenceRecord> = {}): OccurrenceRecord[] {
  return Array.from({ length: count }, (_, n) => {
    const at = START_MS + n * 60_000;
    return occurrenceOf(TASK, { ordinal: at, nominalAt: at, dueAt: at, ...patch });
  });
}

const byId: Check[] = [
  {
    of: 'views',
    name: 'views come in the order asked for, undefined where there is no task',
    async run(t) {
      await t.commit(...[1, 2, 3].map((n) => createOneOff(n)));
      const ids = [idOf(3), idOf(9), 'nonsense', '', idOf(1), idOf(3), idOf(1).toUpperCase()];
      const views = await t.session.views(ids);
      assert.deepEqual(
        views.map((view) => view?.task.id),
        [idOf(3), undefined, undefined, undefined, idOf(1), idOf(3), undefined],
      );
      assertSame(await t.session.views([]), []);
    },
  },
  {
    of: 'views',
    name: 'a view holds what has not ended, oldest first, whatever ends in between',
    async run(t) {
      const all = runs(5);
      await t.commit(creating(TASK, ...all));
      await t.expectView(TASK, ...all);
      const endings = [2, 0, 4];
      for (const n of endings) {
        await t.commit(writing(undefined, ended(all[n], 'succeeded', START_MS)));
      }
      await t.expectView(TASK, all[1], all[3]);
      const sixth = occurrenceOf(TASK, { kind: 'trigger', ordinal: 1 });
      await t.commit({ taskId: TASK.id, occurrences: [{ record: sixth, expected: 0 }] });
      await t.expectView(TASK, all[1], all[3], sixth);
      await t.commit(writing(undefined, ...[all[1], all[3], sixth].map(skipped)));
      await t.expectView(TASK);
    },
  },
  {
    of: 'occurrence',
    name: 'an occurrence is found by its id while its task is kept, ended or not',
    async run(t) {
      const all = runs(30);
      await t.commit(creating(TASK, ...all));
      const late = ended(all[3], 'dead', START_MS + 5);
      await t.commit(writing(undefined, late));
      for (const record of all) {
        const expected = record.id === late.id ? late : record;
        assertSame(await t.session.occurrence(record.id), expected);
      }
      for (const id of [`${TASK.id}.2.${START_MS}`, `${TASK.id}.1.t1`, TASK.id, '', 'x.1.2']) {
        assert.equal(await t.session.occurrence(id), undefined);
        assertSame(await t.session.attempts(id), []);
      }
    },
  },
  {
    of: 'occurrence',
    name: 'generation, kind and ordinal all tell occurrences apart',
    async run(t) {
      const made: OccurrenceRecord[] = [];
      for (const generation of [1, 2]) {
        for (const kind of ['nominal', 'sequence', 'trigger', 'redrive'] as const) {
          for (const ordinal of [1, 2, 2 ** 32 + 1, -1]) {
            if (ordinal === -1 && kind !== 'nominal') continue;
            made.push(occurrenceOf(TASK, { generation, kind, ordinal }));
          }
        }
      }
      await t.commit(creating(TASK, ...made));
      for (const record of made) assertSame(await t.session.occurrence(record.id), record);
    },
  },
];

function skipped(record: OccurrenceRecord): OccurrenceRecord {
  return next(record, { state: 'skipped', reason: 'overlap', count: 1, endedAt: START_MS });
}

const taskIds = async (t: Trial, limit: number, filter = {}): Promise<string[]> => {
  const views = await t.pages((page) => t.session.listTasks({ ...filter, ...page }), limit);
  return views.map(({ task }) => task.id);
};

const lists: Check[] = [
  {
    of: 'listTasks',
    name: 'tasks are listed in the order of their creation, in pages, with what lives of them',
    async run(t) {
      for (const n of NUMBERS) await t.commit(createOneOff(n));
      for (const limit of [1, 4, 25, 1000]) {
        assert.deepEqual(await taskIds(t, limit), NUMBERS.map(idOf));
      }
      await t.commit(writing(next(taskOf(0), { priority: 1 })));
      const { items } = await t.session.listTasks({ limit: 1 });
      const task = next(taskOf(0), { priority: 1 });
      assertSame(items, [{ task, live: [occurrenceOf(task)] }]);
    },
  },
  {
    of: 'listTasks',
    name: 'tasks are filtered by tenant and handler',
    async run(t) {
      const tenantOf = (n: number): string => `tenant-${n % 3}`;
      const handlerOf = (n: number): string => `handler-${n % 2}`;
      const patchOf = (n: number) => ({ tenant: tenantOf(n), handler: handlerOf(n) });
      await t.commit(...NUMBERS.map((n) => createOneOff(n, patchOf(n))));
      const expected = (test: (n: number) => boolean): string[] => NUMBERS.filter(test).map(idOf);
      const [tenant, handler] = ['tenant-1', 'handler-0'];
      assert.deepEqual(
        await taskIds(t, 2, { tenant }),
        expected((n) => n % 3 === 1),
      );
      assert.deepEqual(
        await taskIds(t, 2, { handler }),
        expected((n) => n % 2 === 0),
      );
      assert.deepEqual(
        await taskIds(t, 2, { tenant, handler }),
        expected((n) => n % 6 === 4),
      );
      assert.deepEqual(await taskIds(t, 2, { tenant: 'nobody' }), []);
    },
  },
  {
    of: 'listTasks',
    name: 'a cursor stays usable when tasks go and come between the pages',
    async run(t) {
      await t.commit(...NUMBERS.map((n) => createOneOff(n)));
      const first = await t.session.listTasks({ limit: 5 });
      const remove = (n: number) => ({ taskId: idOf(n), remove: { revision: 1 } });
      await t.commit(...[0, 3, 4, 5, 6, 12].map(remove), createOneOff(100));
      const rest = await t.pages(
        ({ limit, cursor }) => t.session.listTasks({ limit, cursor: cursor ?? first.cursor }),
        3,
      );
      const left = NUMBERS.filter((n) => n > 6 && n !== 12);
      assert.deepEqual(
        rest.map(({ task }) => task.id),
        [...left, 100].map(idOf),
      );
      await t.commit(...[...left, 100, 1, 2].map(remove));
      assert.deepEqual(await taskIds(t, 5), []);
    },
  },
  {
    of: 'listOccurrences',
    name: 'occurrences are listed newest first, in pages',
    async run(t) {
      const all = runs(23);
      await t.commit(creating(TASK, ...all.slice(0, 10)));
      for (const record of all.slice(10)) {
        await t.commit({ taskId: TASK.id, occurrences: [{ record, expected: 0 }] });
      }
      await t.commit(writing(undefined, skipped(all[20])));
      const expected = all.with(20, skipped(all[20])).reverse();
      for (const limit of [1, 5, 23, 100]) {
        const read = await t.pages((page) => t.session.listOccurrences(TASK.id, page), limit);
        assertSame(read, expected);
      }
      assertSame(await t.session.listOccurrences(idOf(77), { limit: 5 }), { items: [] });
      assertSame(await t.session.listOccurrences('nonsense', { limit: 5 }), { items: [] });
    },
  },
  {
    of: 'listOccurrences',
    name: 'its cursor stays usable when new ones come and read ones are pruned',
    async run(t) {
      const all = runs(12);
      const done = all.map((record) => ended(record, 'succeeded', START_MS));
      const open = { ...TASK, lastOccurrenceId: all[11].id };
      await t.commit(creating(open, ...all));
      await t.commit(writing(undefined, ...done.slice(5, 9)));
      const first = await t.session.listOccurrences(TASK.id, { limit: 5 });
      assertSame(first.items, [...all.slice(9), done[8], done[7]].sort(newestFirst));
      const later = occurrenceOf(TASK, { kind: 'trigger', ordinal: 1 });
      await t.commit({ taskId: TASK.id, occurrences: [{ record: later, expected: 0 }] });
      assert.equal(await t.prune(START_MS + 3_600_000), 4);
      const rest = await t.pages(
        ({ limit, cursor }) =>
          t.session.listOccurrences(TASK.id, { limit, cursor: cursor ?? first.cursor }),
        2,
      );
      assertSame(rest, all.slice(0, 5).reverse());
    },
  },
  {
    of: 'listDeadLetters',
    name: 'dead letters are listed in the order in which they ended, until they are redriven',
    async run(t) {
      const tenantOf = (n: number): string => `tenant-${n % 2}`;
      const numbers = NUMBERS.slice(0, 10);
      await t.commit(...numbers.map((n) => createOneOff(n, { tenant: tenantOf(n) })));
      const order = numbers.map((n) => (n * 3) % 10);
      const recordOf = (n: number) => {
        const state = n % 3 === 0 ? 'quarantined' : 'dead';
        return ended(occurrenceOf(taskOf(n, { tenant: tenantOf(n) })), state, START_MS + n);
      };
      for (const n of order) await t.commit(writing(undefined, recordOf(n)));
      const list = (limit: number, filter = {}) =>
        t.pages((page) => t.session.listDeadLetters({ ...filter, ...page }), limit);
      assertSame(await list(3), order.map(recordOf));
      const odd = order.filter((n) => n % 2 === 1);
      assertSame(await list(2, { tenant: 'tenant-1', handler: 'send' }), odd.map(recordOf));
      assertSame(await list(2, { handler: 'other' }), []);
      const first = await t.session.listDeadLetters({ limit: 4 });
      const redrive = (n: number) => {
        const record = recordOf(n);
        return writing(undefined, next(record, { redrivenAs: `${record.taskId}.1.r1` }));
      };
      await t.commit(redrive(order[1]), redrive(order[3]), redrive(order[5]));
      const rest = await t.pages(
        ({ limit, cursor }) => t.session.listDeadLetters({ limit, cursor: cursor ?? first.cursor }),
        2,
      );
      assertSame(
        rest,
        [4, 6, 7, 8, 9].map((place) => recordOf(order[place])),
      );
      assert.equal((await list(100)).length, 7);
    },
  },
];

function newestFirst(a: OccurrenceRecord, b: OccurrenceRecord): number {
  return b.ordinal - a.ordinal;
}

const live: Check[] = [
  {
    of: 'scanLive',
    name: 'every live occurrence is scanned, with what timing must know, and no ended one',
    async run(t) {
      await t.commit(...NUMBERS.map((n) => createOneOff(n, { priority: n % 10 })));
      const states = ['ready', 'running', 'cancel-requested', 'retry-wait'] as const;
      for (const [n, state] of states.entries()) {
        await t.commit(writing(undefined, next(occurrenceOf(taskOf(n)), { state, dueAt: 7 })));
      }
      await t.commit(endOneOff(5, 'succeeded', START_MS), endOneOff(6, 'dead', START_MS));
      for (const limit of [1, 7, 1000]) {
        const entries = await t.pages((page) => t.session.scanLive(page), limit);
        const found = new Map(entries.map((entry) => [entry.taskId, entry]));
        assert.equal(found.size, NUMBERS.length - 2);
        for (const n of NUMBERS) {
          if (n === 5 || n === 6) continue;
          const occurrence = occurrenceOf(taskOf(n));
          assertSame(found.get(idOf(n)), {
            taskId: idOf(n),
            occurrenceId: occurrence.id,
            tenant: 'acme',
            handler: 'send',
            handlerVersion: 1,
            priority: n % 10,
            dueAt: n < 4 ? 7 : occurrence.dueAt,
            state: states[n] ?? 'scheduled',
            held: false,
          });
        }
      }
    },
  },
  {
    of: 'scanLive',
    name: 'what a pause or a sibling holds back is marked as held',
    async run(t) {
      const task = taskOf(2, { state: 'paused', pausedAt: START_MS });
      const [first, second] = runs(2);
      const waiting = { ...second, waiting: true };
      await t.commit(creating(task, occurrenceOf(task)), creating(TASK, first, waiting));
      const entries = await t.pages((page) => t.session.scanLive(page), 10);
      const held = new Map(entries.map((entry) => [entry.occurrenceId, entry.held]));
      assert.deepEqual(
        [occurrenceOf(task), first, second].map(({ id }) => held.get(id)),
        [true, false, true],
      );
      const resumed = next(task, { state: 'active', pausedAt: undefined });
      await t.commit(writing(resumed), writing(undefined, next(waiting, { waiting: false })));
      const after = await t.pages((page) => t.session.scanLive(page), 10);
      assert.deepEqual(
        after.map((entry) => entry.held),
        [false, false, false],
      );
    },
  },
  {
    of: 'scanLive',
    name: 'one that changes, and one that stays, while the chunks are read is seen',
    async run(t) {
      await t.commit(...NUMBERS.map((n) => createOneOff(n)));
      const seen = new Set<string>();
      let cursor: string | undefined;
      let round = 0;
      do {
        const page = await t.session.scanLive({ limit: 3, cursor });
        for (const entry of page.items) seen.add(entry.taskId);
        cursor = page.cursor;
        const n = round++;
        if (n < 8) {
          await t.commit(
            createOneOff(200 + n, { payload: new Uint8Array(900) }),
            writing(undefined, next(occurrenceOf(taskOf(n * 3)), { dueAt: START_MS + n })),
            { taskId: idOf(n * 3 + 1), remove: { revision: 1 } },
          );
        }
      } while (cursor !== undefined);
      for (const n of NUMBERS) if (n % 3 !== 1) assert(seen.has(idOf(n)), `task ${n} was scanned`);
    },
  },
];

async function expectCounts(t: Trial, expected: Omit<StoreCounts, 'bytes'>): Promise<void> {
  const { bytes, ...counts } = await t.session.counts();
  assert(bytes >= 0, 'bytes are counted');
  assertSame(counts, expected);
  const recounted = await t.subject.recount?.();
  if (recounted !== undefined) assertSame({ ...recounted, bytes: 0 }, { ...expected, bytes: 0 });
}

const NONE = { pending: 0, ready: 0, running: 0, deadLetters: 0, openTasks: 0 };

const counts: Check[] = [
  {
    of: 'counts',
    name: 'occurrences are counted by state, in all and for each tenant',
    async run(t) {
      await expectCounts(t, { ...NONE, tenants: new Map() });
      await t.commit(...NUMBERS.slice(0, 9).map((n) => createOneOff(n)));
      await t.commit(createOneOff(9, { tenant: 'zen' }));
      await expectCounts(t, {
        ...NONE,
        pending: 10,
        openTasks: 10,
        tenants: new Map([
          ['acme', { ...NONE, pending: 9, openTasks: 9 }],
          ['zen', { ...NONE, pending: 1, openTasks: 1 }],
        ]),
      });
      const states = ['ready', 'ready', 'running', 'cancel-requested', 'retry-wait'] as const;
      for (const [n, state] of states.entries()) {
        await t.commit(writing(undefined, next(occurrenceOf(taskOf(n)), { state })));
      }
      await t.commit(
        endOneOff(5, 'dead', START_MS),
        endOneOff(6, 'quarantined', START_MS),
        endOneOff(7, 'succeeded', START_MS),
        { taskId: idOf(9), remove: { revision: 1 } },
      );
      const acme = { pending: 2, ready: 2, running: 2, deadLetters: 2, openTasks: 6 };
      await expectCounts(t, { ...acme, tenants: new Map([['acme', acme]]) });
    },
  },
  {
    of: 'counts',
    name: 'a redriven dead letter, and a tenant with nothing left, are counted no more',
    async run(t) {
      const task = taskOf(1);
      const dead = ended(occurrenceOf(task), 'dead', START_MS);
      const over = completed(task, 'dead', START_MS);
      await t.commit(createOneOff(1));
      await t.commit(writing(over, dead));
      const one = { ...NONE, deadLetters: 1 };
      await expectCounts(t, { ...one, tenants: new Map([['acme', one]]) });
      const again = occurrenceOf(task, { kind: 'redrive', ordinal: 1, redriveOf: dead.id });
      const alive = next(over, { state: 'active', endedAt: undefined, endReason: undefined });
      const redriven = next(dead, { redrivenAs: again.id });
      await t.commit(writing(alive, redriven, again));
      const open = { ...NONE, pending: 1, openTasks: 1 };
      await expectCounts(t, { ...open, tenants: new Map([['acme', open]]) });
      const done = ended(again, 'succeeded', START_MS);
      await t.commit(writing(completed(alive, 'succeeded', START_MS), done));
      await expectCounts(t, { ...NONE, tenants: new Map() });
    },
  },
];

export const readChecks: readonly Check[] = [...byId, ...lists, ...live, ...counts];
