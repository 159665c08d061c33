/** What a commit promises: guards, all or nothing, order, the two moments, keys. */
import assert from 'node:assert/strict';
import type { TaskRecord } from '../../src/core/model.js';
import type { Unit } from '../../src/store/store.js';
import {
  attemptOf,
  bytes,
  createOneOff,
  creating,
  fullOccurrence,
  fullTask,
  idOf,
  next,
  occurrenceOf,
  taskOf,
  writing,
} from './builders.js';
import { assertSame, type Check, orderOf } from './trial.js';

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

export const commitChecks: readonly Check[] = [...records, ...guards, ...moments];
