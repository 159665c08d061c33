/** What a commit promises: guards, all or nothing, order, the two moments, keys. */
import assert from 'node:assert/strict';
import type { OccurrenceRecord, TaskRecord } from '../../src/core/model.js';
import type { Unit } from '../../src/store/store.js';
import {
  attemptOf,
  bytes,
  completed,
  createOneOff,
  creating,
  ended,
  endOneOff,
  HOUR_MS,
  idOf,
  next,
  occurrenceOf,
  policies,
  START_MS,
  taskOf,
  writing,
} from './builders.js';
import { assertSame, type Check, type Trial } from './trial.js';

/** Every field has a value that is not its default. */
function fullTask(n: number): TaskRecord {
  return taskOf(n, {
    tenant: 'Büro 東京',
    handler: 'nightly/rollup',
    handlerVersion: 7,
    payload: bytes(300),
    schedule: {
      kind: 'cron',
      expression: '*/5 * * * *',
      timezone: 'Europe/Berlin',
      endAt: START_MS + 9 * HOUR_MS,
      limit: 12,
      jitterMs: 250,
    },
    policies: policies({ timeoutMs: 5, heartbeatTimeoutMs: 6, ttlMs: 7, backoffJitter: 0.25 }),
    priority: 9,
    state: 'paused',
    pausedAt: START_MS + 5,
    version: 3,
    generation: 2,
    revision: 11,
    idempotencyKey: 'nightly é 中 🙂',
    definition: '0123456789abcdef0123456789abcdef',
    endedAt: START_MS + 8,
    endReason: 'because of\nlines',
    anchorAt: START_MS - 1,
    cursorAt: START_MS + 60_000,
    taken: 4,
    extras: 2,
    lastEnd: 'missed',
  });
}

function fullOccurrence(task: TaskRecord): OccurrenceRecord {
  return occurrenceOf(task, {
    ordinal: START_MS + 60_000,
    nominalAt: START_MS + 60_000,
    dueAt: START_MS + 60_100,
    state: 'cancel-requested',
    revision: 8,
    handlerVersion: 7,
    attempt: 3,
    failures: 1,
    crashes: 1,
    displacements: 2,
    deaths: 1,
    alone: true,
    waiting: true,
    catchup: true,
    token: 5 * 2 ** 32 + 17,
    leaseUntil: START_MS + 70_000,
    workerId: 'worker-3',
    progress: bytes(5),
    result: bytes(0),
    error: bytes(2000),
    outcome: 'leaseExpired',
    reason: 'asked for',
    count: 3,
    untilAt: START_MS + 180_000,
    cancelRequestedAt: START_MS + 69_000,
    startedAt: START_MS + 61_000,
    endedAt: START_MS + 69_500,
    redriveOf: `${task.id}.1.${START_MS}`,
    redrivenAs: `${task.id}.2.r2`,
  });
}

const records: Check[] = [
  {
    of: '3',
    name: 'a visible commit is seen by every read called afterwards',
    async run(t) {
      const task = taskOf(1);
      await t.commit(createOneOff(1));
      await t.expectView(task, occurrenceOf(task));
    },
  },
  {
    of: 'records',
    name: 'every field of a record comes back, set or not',
    async run(t) {
      const task = fullTask(1);
      const occurrence = fullOccurrence(task);
      const attempts = [attemptOf(occurrence, 1), attemptOf(occurrence, 2)];
      await t.commit({ ...creating(task, occurrence), attempts });
      await t.expectView(task, occurrence);
      assertSame(await t.session.attempts(occurrence.id), attempts);
      const bare = taskOf(2, { handlerVersion: undefined, lastOccurrenceId: undefined });
      await t.commit(creating(bare));
      await t.expectView(bare);
    },
  },
  {
    of: 'records',
    name: 'a record can lose all that it had, and gain it again',
    async run(t) {
      const full = fullTask(1);
      const fullRun = fullOccurrence(full);
      await t.commit(creating(full, fullRun));
      const { idempotencyKey, tenant } = full;
      const bare = taskOf(1, { revision: 12, idempotencyKey, tenant });
      const { id, ordinal, generation } = fullRun;
      const bareRun = occurrenceOf(full, { id, ordinal, generation, revision: 9 });
      await t.commit(writing(bare, bareRun));
      await t.expectView(bare, bareRun);
      const again = { ...full, revision: 13 };
      const runAgain = { ...fullRun, revision: 10 };
      await t.commit(writing(again, runAgain));
      await t.expectView(again, runAgain);
    },
  },
  {
    of: 'records',
    name: 'bytes of every length come back, and times at both ends of the calendar',
    async run(t) {
      const lengths = [0, 1, 7, 8, 9, 64, 127, 128, 129, 256, 1000, 5000, 70_000, 300_000];
      const tasks = lengths.map((length, n) => taskOf(n, { payload: bytes(length, n) }));
      const far = taskOf(50, { schedule: { kind: 'once', at: 8.64e15 }, anchorAt: 8.64e15 });
      const early = taskOf(51, { schedule: { kind: 'once', at: -5 }, createdAt: -9, anchorAt: -5 });
      tasks.push(far, early);
      const last = (task: TaskRecord): TaskRecord => ({
        ...task,
        lastOccurrenceId: occurrenceOf(task).id,
      });
      const made = tasks.map(last);
      await t.commit(...made.map((task) => creating(task, occurrenceOf(task))));
      for (const task of made) await t.expectView(task, occurrenceOf(task));
    },
  },
  {
    of: '7',
    name: 'what was read stays as it was when the record changes',
    async run(t) {
      const task = taskOf(1);
      await t.commit(createOneOff(1));
      const before = await t.view(task.id);
      await t.commit(writing(next(task, { payload: bytes(20, 99) })));
      assertSame(before, { task, live: [occurrenceOf(task)] });
      await t.expectView(next(task, { payload: bytes(20, 99) }), occurrenceOf(task));
    },
  },
  {
    of: '7',
    name: 'records given are not touched, not even frozen ones',
    async run(t) {
      const task = Object.freeze(taskOf(1));
      const occurrence = Object.freeze(occurrenceOf(task));
      await t.commit(Object.freeze(creating(task, occurrence)));
      assertSame(task, taskOf(1));
      assertSame(occurrence, occurrenceOf(taskOf(1)));
    },
  },
];

const guards: Check[] = [
  {
    of: '1',
    name: 'a task is created once',
    async run(t) {
      await t.commit(createOneOff(1));
      assert.deepEqual(await t.refusals(createOneOff(1, { priority: 1 })), [
        { unit: 0, reason: 'revision' },
      ]);
      await t.expectView(taskOf(1), occurrenceOf(taskOf(1)));
    },
  },
  {
    of: '1',
    name: 'a task or occurrence changes only from the revision that was expected',
    async run(t) {
      const task = taskOf(1);
      const occurrence = occurrenceOf(task);
      const refused = [{ unit: 0, reason: 'revision' }];
      await t.commit(createOneOff(1));
      const unit: Unit = { taskId: task.id, task: { record: task, expected: 2 } };
      assert.deepEqual(await t.refusals(unit), refused);
      const ready = next(occurrence, { state: 'ready' });
      for (const expected of [0, 2, 7]) {
        const wrong = { taskId: task.id, occurrences: [{ record: ready, expected }] };
        assert.deepEqual(await t.refusals(wrong), refused);
      }
      await t.expectView(task, occurrence);
      await t.commit(writing(undefined, ready));
      assert.deepEqual(await t.refusals(writing(undefined, ready)), refused);
      await t.expectView(task, ready);
    },
  },
  {
    of: '1',
    name: 'nothing of a task that is not there is written',
    async run(t) {
      const task = taskOf(1);
      const refused = [{ unit: 0, reason: 'revision' }];
      const occurrence = occurrenceOf(task);
      const orphan = { taskId: task.id, occurrences: [{ record: occurrence, expected: 0 }] };
      assert.deepEqual(await t.refusals(orphan), refused);
      assert.deepEqual(await t.refusals(writing(next(task, {}))), refused);
      assert.deepEqual(await t.refusals({ taskId: task.id, remove: { revision: 1 } }), refused);
      assert.equal(await t.session.occurrence(occurrence.id), undefined);
      assert.equal(await t.view(task.id), undefined);
    },
  },
  {
    of: '1',
    name: 'a unit with one bad guard changes nothing at all',
    async run(t) {
      const task = taskOf(1);
      const first = occurrenceOf(task);
      await t.commit(createOneOff(1));
      const second = occurrenceOf(task, { kind: 'trigger', ordinal: 1 });
      const unit: Unit = {
        taskId: task.id,
        task: { record: next(task, { priority: 0 }), expected: 1 },
        occurrences: [
          { record: second, expected: 0 },
          { record: next(first, { state: 'ready' }), expected: 4 },
        ],
        attempts: [attemptOf(first, 1)],
        settings: [['tenant:acme', { paused: true }]],
      };
      assert.deepEqual(await t.refusals(unit), [{ unit: 0, reason: 'revision' }]);
      await t.expectView(task, first);
      assert.equal(await t.session.occurrence(second.id), undefined);
      assertSame(await t.session.attempts(first.id), []);
      assert.equal((await t.session.settings()).size, 0);
    },
  },
  {
    of: '2',
    name: 'a refused unit is reported by its place and does not spoil the others',
    async run(t) {
      await t.commit(createOneOff(2), createOneOff(4));
      const units = [1, 2, 3, 4, 5].map((n) => createOneOff(n));
      assert.deepEqual(await t.refusals(...units), [
        { unit: 1, reason: 'revision' },
        { unit: 3, reason: 'revision' },
      ]);
      const views = await t.session.views([1, 2, 3, 4, 5].map(idOf));
      assert.equal(views.filter((view) => view !== undefined).length, 5);
    },
  },
  {
    of: '2',
    name: 'all units of a large batch take effect',
    async run(t) {
      const numbers = Array.from({ length: 1500 }, (_, n) => n);
      await t.commit(...numbers.map((n) => createOneOff(n)));
      const views = await t.session.views(numbers.map(idOf));
      assert.deepEqual(
        views.map((view) => view?.task.id),
        numbers.map(idOf),
      );
    },
  },
  {
    of: '2',
    name: 'units of one batch build on each other, in their order',
    async run(t) {
      const task = taskOf(1);
      const ready = next(occurrenceOf(task), { state: 'ready' });
      const running = next(ready, { state: 'running', token: 2 ** 32 + 1, attempt: 1 });
      await t.commit(createOneOff(1), writing(undefined, ready), writing(undefined, running));
      await t.expectView(task, running);
      const rivals = [1, 2].map((priority) => writing(next(task, { priority })));
      assert.deepEqual(await t.refusals(...rivals), [{ unit: 1, reason: 'revision' }]);
      await t.expectView(next(task, { priority: 1 }), running);
    },
  },
  {
    of: '2',
    name: 'commits given without waiting build on each other, in their order',
    async run(t) {
      let task = taskOf(1);
      const commits = [t.session.commit([createOneOff(1)])];
      for (let i = 0; i < 20; i++) {
        task = next(task, { priority: i % 10 });
        commits.push(t.session.commit([writing(task)]));
      }
      for (const { visible } of commits) assert.deepEqual(await t.settle(visible), []);
      await t.expectView(task, occurrenceOf(taskOf(1)));
    },
  },
];

/** The order in which promises resolve. */
async function orderOf(t: Trial, named: Record<string, Promise<unknown>>): Promise<string[]> {
  const order: string[] = [];
  for (const [name, promise] of Object.entries(named)) promise.then(() => order.push(name));
  await t.settle(Promise.all(Object.values(named)));
  return order;
}

const moments: Check[] = [
  {
    of: '3',
    name: 'durable comes after visible, and in the order of the commits',
    async run(t) {
      const first = t.session.commit([createOneOff(1)]);
      const second = t.session.commit([createOneOff(2)]);
      const order = await orderOf(t, {
        durable2: second.durable,
        durable1: first.durable,
        visible2: second.visible,
        visible1: first.visible,
      });
      const at = (name: string): number => order.indexOf(name);
      assert(at('visible1') < at('visible2'), 'visible in order');
      assert(at('durable1') < at('durable2'), 'durable in order');
      assert(at('visible1') < at('durable1'), 'first visible, then durable');
      assert(at('visible2') < at('durable2'), 'first visible, then durable');
    },
  },
  {
    of: '3',
    name: 'an empty commit resolves, and not before an earlier one',
    async run(t) {
      const order = await orderOf(t, {
        first: t.session.commit([createOneOff(1)]).durable,
        empty: t.session.commit([]).durable,
      });
      assert.deepEqual(order, ['first', 'empty']);
    },
  },
  {
    of: 'unflushedBytes',
    name: 'bytes on their way are counted until they are durable',
    async run(t) {
      assert.equal(t.session.unflushedBytes, 0);
      const commit = t.session.commit([createOneOff(1, { payload: bytes(10_000) })]);
      assert(t.session.unflushedBytes >= 10_000, 'the payload is counted');
      await t.settle(commit.durable);
      assert.equal(t.session.unflushedBytes, 0);
      assert.equal(t.session.waitsForClock, false);
    },
  },
];

const keyed = (n: number, patch: Partial<TaskRecord> = {}): Unit =>
  createOneOff(n, { idempotencyKey: 'order-1', ...patch });

const keys: Check[] = [
  {
    of: 'keys',
    name: 'a key names one task of its tenant, and a second is refused with its holder',
    async run(t) {
      await t.commit(keyed(1));
      assert.deepEqual(await t.refusals(keyed(2), createOneOff(3), keyed(4, { tenant: 'zen' })), [
        { unit: 0, reason: 'key', holder: idOf(1) },
      ]);
      const nowMs = t.clock.now();
      assert.equal(await t.session.taskIdOfKey('acme', 'order-1', nowMs), idOf(1));
      assert.equal(await t.session.taskIdOfKey('zen', 'order-1', nowMs), idOf(4));
      assert.equal(await t.session.taskIdOfKey('acme', 'order-2', nowMs), undefined);
      assert.equal(await t.view(idOf(2)), undefined);
    },
  },
  {
    of: 'keys',
    name: 'of two with one key in a batch, and in two commits, the first has it',
    async run(t) {
      const first = t.session.commit([keyed(1), keyed(2)]);
      const second = t.session.commit([keyed(3)]);
      const refusal = { reason: 'key', holder: idOf(1) };
      assert.deepEqual(await t.settle(first.visible), [{ unit: 1, ...refusal }]);
      assert.deepEqual(await t.settle(second.visible), [{ unit: 0, ...refusal }]);
    },
  },
  {
    of: 'keys',
    name: 'a key is free when its time after the end of its task is over, and not a millisecond before',
    async run(t) {
      const task = taskOf(1, {
        idempotencyKey: 'order-1',
        policies: policies({ idempotencyTtlMs: 1000 }),
      });
      const occurrence = occurrenceOf(task);
      await t.commit(creating(task, occurrence));
      const endedAt = t.clock.now() + 10_000;
      await t.clock.advanceTo(endedAt);
      const run = ended(occurrence, 'succeeded', endedAt);
      await t.commit(writing(completed(task, 'succeeded', endedAt), run));
      const holder = (nowMs: number): Promise<string | undefined> =>
        t.session.taskIdOfKey('acme', 'order-1', nowMs);
      assert.equal(await holder(endedAt + 999), task.id);
      assert.equal(await holder(endedAt + 1000), undefined);
      await t.clock.advanceTo(endedAt + 900);
      assert.deepEqual(await t.refusals(keyed(2)), [{ unit: 0, reason: 'key', holder: task.id }]);
      await t.clock.advanceTo(endedAt + 1000);
      await t.commit(keyed(2));
      assert.equal(await holder(t.clock.now()), idOf(2));
      assert.equal((await t.view(task.id))?.task.idempotencyKey, 'order-1');
    },
  },
  {
    of: 'keys',
    name: 'a key is free when its task is removed, and is not freed by the task that had it before',
    async run(t) {
      await t.commit(keyed(1));
      await t.commit({ taskId: idOf(1), remove: { revision: 1 } });
      assert.equal(await t.session.taskIdOfKey('acme', 'order-1', t.clock.now()), undefined);
      const brief = policies({ idempotencyTtlMs: 0 });
      await t.commit(keyed(2, { policies: brief }));
      const old = taskOf(2, { idempotencyKey: 'order-1', policies: brief });
      await t.commit(writing(completed(old, 'dead', t.clock.now())));
      await t.clock.advance(1);
      await t.commit(keyed(3));
      await t.commit({ taskId: old.id, remove: { revision: 2 } });
      assert.equal(await t.session.taskIdOfKey('acme', 'order-1', t.clock.now()), idOf(3));
    },
  },
  {
    of: 'keys',
    name: 'keys that differ only a little are different keys',
    async run(t) {
      const names = ['a', 'A', 'a ', ' a', 'ａ', 'aé', 'aE', 'a'.repeat(400), 'a'.repeat(399)];
      await t.commit(...names.map((key, n) => createOneOff(n, { idempotencyKey: key })));
      for (const [n, key] of names.entries()) {
        assert.equal(await t.session.taskIdOfKey('acme', key, t.clock.now()), idOf(n));
      }
    },
  },
];

const removal: Check[] = [
  {
    of: 'remove',
    name: 'a task is removed with all of it, from the revision that was expected',
    async run(t) {
      const task = taskOf(1);
      const occurrence = occurrenceOf(task);
      await t.commit({ ...createOneOff(1), attempts: [attemptOf(occurrence, 1)] });
      const wrong = { taskId: task.id, remove: { revision: 2 } };
      assert.deepEqual(await t.refusals(wrong), [{ unit: 0, reason: 'revision' }]);
      await t.expectView(task, occurrence);
      await t.commit({ taskId: task.id, remove: { revision: 1 } });
      assert.equal(await t.view(task.id), undefined);
      assert.equal(await t.session.occurrence(occurrence.id), undefined);
      assertSame(await t.session.attempts(occurrence.id), []);
      assertSame(await t.session.listOccurrences(task.id, { limit: 9 }), { items: [] });
      assertSame((await t.session.listTasks({ limit: 9 })).items, []);
      await t.commit(createOneOff(1));
      await t.expectView(task, occurrence);
      assertSame(await t.session.attempts(occurrence.id), []);
    },
  },
  {
    of: 'remove',
    name: 'what takes a removed task’s place has nothing of it',
    async run(t) {
      const numbers = Array.from({ length: 50 }, (_, n) => n);
      for (let round = 0; round < 4; round++) {
        const made = numbers.map((n) => round * 100 + n);
        await t.commit(...made.map((n) => createOneOff(n, { idempotencyKey: `key-${n}` })));
        await t.commit(...made.map((n) => attemptsFor(n)));
        for (const n of made) {
          const task = taskOf(n, { idempotencyKey: `key-${n}` });
          await t.expectView(task, occurrenceOf(task));
          assert.equal((await t.session.attempts(occurrenceOf(task).id)).length, 2);
        }
        await t.commit(...made.map((n) => ({ taskId: idOf(n), remove: { revision: 1 } })));
      }
      assert.equal((await t.session.counts()).openTasks, 0);
    },
  },
  {
    of: 'settings',
    name: 'settings are set, replaced and removed',
    async run(t) {
      const limits = { weight: 2, maxPending: undefined, note: 'x', on: true, off: null };
      const set = (...settings: NonNullable<Unit['settings']>): Unit => ({ taskId: '', settings });
      await t.commit(set(['tenant:a', limits], ['handler:b', { paused: true }]));
      assertSame(
        await t.session.settings(),
        new Map(
          Object.entries({
            'tenant:a': limits,
            'handler:b': { paused: true },
          }),
        ),
      );
      await t.commit(set(['tenant:a', { weight: 3 }], ['handler:b', undefined]));
      assertSame(await t.session.settings(), new Map([['tenant:a', { weight: 3 }]]));
    },
  },
  {
    of: 'attempts',
    name: 'attempts are kept in the order in which they were appended',
    async run(t) {
      const task = taskOf(1);
      let occurrence = occurrenceOf(task);
      await t.commit(createOneOff(1));
      for (let attempt = 1; attempt <= 5; attempt++) {
        occurrence = next(occurrence, { attempt, failures: attempt, state: 'retry-wait' });
        const attempts = [attemptOf(occurrence, attempt)];
        await t.commit({ ...writing(undefined, occurrence), attempts });
      }
      assertSame(
        await t.session.attempts(occurrence.id),
        [1, 2, 3, 4, 5].map((attempt) => attemptOf(occurrence, attempt)),
      );
      await t.commit(endOneOffFrom(task, occurrence, t.clock.now()));
      assert.equal((await t.session.attempts(occurrence.id)).length, 5);
    },
  },
];

function attemptsFor(n: number): Unit {
  const occurrence = occurrenceOf(taskOf(n));
  return { taskId: idOf(n), attempts: [attemptOf(occurrence, 1), attemptOf(occurrence, 2)] };
}

function endOneOffFrom(task: TaskRecord, occurrence: OccurrenceRecord, atMs: number): Unit {
  return writing(completed(task, 'dead', atMs), ended(occurrence, 'dead', atMs));
}

const openings: Check[] = [
  {
    of: '5',
    name: 'everything durable is there after a restart, under a higher epoch',
    async run(t) {
      const task = fullTask(1);
      const occurrence = fullOccurrence(task);
      const attempts = [attemptOf(occurrence, 1)];
      const settings = [['tenant:x', { weight: 4 }]] as const;
      await t.commit({ ...creating(task, occurrence), attempts, settings });
      await t.commit(createOneOff(2), createOneOff(3, { idempotencyKey: 'k' }));
      await t.commit(endOneOff(2, 'dead', t.clock.now()));
      const epochs = [t.session.epoch];
      const before = await t.session.counts();
      for (let i = 0; i < 2; i++) {
        await t.reopen();
        epochs.push(t.session.epoch);
        await t.expectView(task, occurrence);
        assertSame(await t.session.attempts(occurrence.id), attempts);
        assertSame(await t.session.settings(), new Map(settings));
        assert.equal((await t.session.listDeadLetters({ limit: 9 })).items.length, 1);
        assert.equal(await t.session.taskIdOfKey('acme', 'k', t.clock.now()), idOf(3));
        assertSame({ ...(await t.session.counts()), bytes: 0 }, { ...before, bytes: 0 });
      }
      assert(epochs[0] >= 1 && epochs[0] < epochs[1] && epochs[1] < epochs[2], 'epochs grow');
    },
  },
  {
    of: 'open',
    name: 'a store that is not shared is opened once at a time',
    async run(t) {
      const { store } = t.subject;
      if (store.capabilities.shared) return;
      const options = { clock: t.clock, retention: { succeededMs: 1, failedMs: 1 } };
      await assert.rejects(store.open(options), { code: 'TICKWHEEL_STORE_LOCKED' });
      await t.commit(createOneOff(1));
      await t.reopen();
      await t.expectView(taskOf(1), occurrenceOf(taskOf(1)));
    },
  },
  {
    of: 'close',
    name: 'close waits for what was committed, is idempotent, and ends the session',
    async run(t) {
      const { durable } = t.session.commit([createOneOff(1)]);
      const session = t.session;
      const order = await orderOf(t, { durable, closed: session.close(), again: session.close() });
      assert.equal(order[0], 'durable');
      await assert.rejects(session.views([idOf(1)]), { code: 'TICKWHEEL_STORE_UNAVAILABLE' });
      const late = session.commit([createOneOff(2)]);
      await assert.rejects(late.visible, { code: 'TICKWHEEL_STORE_UNAVAILABLE' });
      await assert.rejects(late.durable, { code: 'TICKWHEEL_STORE_UNAVAILABLE' });
      await t.openAgain();
      await t.expectView(taskOf(1), occurrenceOf(taskOf(1)));
      assert.equal(await t.view(idOf(2)), undefined);
    },
  },
  {
    of: '3',
    name: 'what was durable survives a crash, at every point of the next commit',
    needs: 'crash',
    async run(t) {
      for (let point = 0; point < 4; point++) {
        const first = point * 10;
        await t.commitDurably(createOneOff(first), createOneOff(first + 1));
        const doomed = t.session.commit([
          endOneOff(first, 'succeeded', t.clock.now()),
          { taskId: idOf(first + 1), remove: { revision: 1 } },
          createOneOff(first + 2),
        ]);
        doomed.visible.catch(() => {});
        doomed.durable.catch(() => {});
        let durable = false;
        doomed.durable.then(
          () => {
            durable = true;
          },
          () => {},
        );
        if (point === 1) await t.settle(doomed.visible);
        if (point === 2) await t.settle(doomed.durable);
        if (point === 3 && t.session.waitsForClock) await t.clock.advance(1);
        const dead = t.session;
        const wasDurable = durable;
        await t.subject.crash?.();
        await assert.rejects(dead.views([idOf(first)]), { code: 'TICKWHEEL_STORE_UNAVAILABLE' });
        await dead.close();
        await t.openAgain();
        assert(t.session.epoch > dead.epoch, 'the epoch grows after a crash too');
        await expectAllOrNothing(t, first, wasDurable);
      }
    },
  },
];

/** The three units of the doomed commit are all there, or none; all when it had been durable. */
async function expectAllOrNothing(t: Trial, first: number, wasDurable: boolean): Promise<void> {
  const [ends, gone, made] = await t.session.views([first, first + 1, first + 2].map(idOf));
  const done = made !== undefined;
  assert(done || !wasDurable, 'a durable commit is not lost');
  assert.equal(ends?.task.state, done ? 'completed' : 'active');
  assert.equal(gone === undefined, done);
  if (!done) {
    await t.expectView(taskOf(first), occurrenceOf(taskOf(first)));
    await t.expectView(taskOf(first + 1), occurrenceOf(taskOf(first + 1)));
  }
  const recounted = await t.subject.recount?.();
  if (recounted !== undefined) {
    assertSame({ ...(await t.session.counts()), bytes: 0 }, { ...recounted, bytes: 0 });
  }
}

export const commitChecks: readonly Check[] = [
  ...records,
  ...guards,
  ...moments,
  ...keys,
  ...removal,
  ...openings,
];
