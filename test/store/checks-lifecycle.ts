/** Keys, removal, and what outlives a session: restarts and crashes. */
import assert from 'node:assert/strict';
import type { OccurrenceRecord, TaskRecord } from '../../src/core/model.js';
import type { Unit } from '../../src/store/store.js';
import {
  attemptOf,
  completed,
  createOneOff,
  creating,
  ended,
  endOneOff,
  fullOccurrence,
  fullTask,
  idOf,
  next,
  occurrenceOf,
  policies,
  taskOf,
  writing,
} from './builders.js';
import { assertSame, type Check, orderOf, type Trial } from './trial.js';

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

export const lifecycleChecks: readonly Check[] = [...keys, ...removal, ...openings];
