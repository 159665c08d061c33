/** What a store forgets, and when. */
import assert from 'node:assert/strict';
import {
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
import { assertSame, type Check, RETENTION, type Trial } from './trial.js';

const { succeededMs, failedMs } = RETENTION;

async function kept(t: Trial, ...numbers: number[]): Promise<number[]> {
  const views = await t.session.views(numbers.map(idOf));
  return numbers.filter((_, index) => views[index] !== undefined);
}

export const retentionChecks: readonly Check[] = [
  {
    of: 'prune',
    name: 'an ended task is kept for as long as its end asks for, and not a millisecond longer',
    async run(t) {
      const ends = ['succeeded', 'dead', 'cancelled', 'missed', 'quarantined', 'skipped'] as const;
      for (const [n, end] of ends.entries()) {
        await t.commit(createOneOff(n));
        await t.commit(endOneOff(n, end, START_MS + 5));
      }
      await t.commit(createOneOff(9));
      const all = [...ends.keys(), 9];
      const step = await t.session.prune(START_MS + 4 + succeededMs, 100);
      assert.deepEqual(step, { removed: 0, nextAtMs: START_MS + 5 + succeededMs });
      assert.deepEqual(await kept(t, ...all), all);
      assert.equal(await t.prune(START_MS + 5 + succeededMs), 1);
      assert.deepEqual(await kept(t, ...all), all.slice(1));
      assert.equal(await t.prune(START_MS + 4 + failedMs), 0);
      assert.equal(await t.prune(START_MS + 5 + failedMs), 5);
      assert.deepEqual(await kept(t, ...all), [9]);
      const last = await t.session.prune(START_MS + 1000 * failedMs, 100);
      assert.deepEqual(last, { removed: 0, nextAtMs: undefined });
      assertSame((await t.session.listDeadLetters({ limit: 9 })).items, []);
    },
  },
  {
    of: 'prune',
    name: 'it removes no more than asked for, and says at once when there is more',
    async run(t) {
      const numbers = Array.from({ length: 30 }, (_, n) => n);
      await t.commit(...numbers.map((n) => createOneOff(n)));
      for (const n of numbers) await t.commit(endOneOff(n, 'succeeded', START_MS + n));
      const nowMs = START_MS + succeededMs + 19;
      const removed: number[] = [];
      for (;;) {
        const step = await t.session.prune(nowMs, 7);
        removed.push(step.removed);
        if (step.nextAtMs === undefined || step.nextAtMs > nowMs) break;
      }
      assert.deepEqual(
        removed.filter((count) => count > 0),
        [7, 7, 6],
      );
      assert.equal((await kept(t, ...numbers)).length, 10);
    },
  },
  {
    of: 'prune',
    name: 'a task stays while its idempotency key holds',
    async run(t) {
      const patch = {
        idempotencyKey: 'k',
        policies: policies({ idempotencyTtlMs: 3 * HOUR_MS }),
      };
      const task = taskOf(1, patch);
      const occurrence = occurrenceOf(task);
      await t.commit(createOneOff(1, patch));
      const run = ended(occurrence, 'succeeded', START_MS);
      await t.commit(writing(completed(task, 'succeeded', START_MS), run));
      const free = START_MS + 3 * HOUR_MS;
      assert.equal(await t.prune(free - 1), 0);
      assert.equal(await t.session.taskIdOfKey('acme', 'k', free - 1), task.id);
      assert.equal(await t.prune(free), 1);
      assert.deepEqual(await kept(t, 1), []);
      assert.equal(await t.session.taskIdOfKey('acme', 'k', START_MS), undefined);
    },
  },
  {
    of: 'prune',
    name: 'ended occurrences of a living task go by themselves, but never its last',
    async run(t) {
      const states = ['succeeded', 'dead', 'succeeded', 'skipped', 'succeeded'] as const;
      const base = taskOf(1, { schedule: { kind: 'fixedRate', everyMs: 60_000, jitterMs: 0 } });
      const all = states.map((_, n) => occurrenceOf(base, { ordinal: START_MS + n * 60_000 }));
      const task = { ...base, lastOccurrenceId: all[4].id };
      await t.commit(creating(task, ...all));
      const done = all.map((record, n) => ended(record, states[n], START_MS));
      await t.commit(writing(undefined, ...done));
      assert.equal(await t.prune(START_MS + succeededMs), 2);
      const list = async () => (await t.session.listOccurrences(task.id, { limit: 9 })).items;
      assertSame(await list(), [done[4], done[3], done[1]]);
      assert.equal(await t.prune(START_MS + failedMs), 2);
      assertSame(await list(), [done[4]]);
      assert.equal((await t.session.counts()).deadLetters, 0);
      const more = occurrenceOf(base, { kind: 'trigger', ordinal: 1 });
      await t.commit(writing(next(task, { lastOccurrenceId: more.id, extras: 1 }), more));
      assert.equal(await t.prune(START_MS + failedMs), 1);
      assertSame(await list(), [more]);
    },
  },
  {
    of: 'prune',
    name: 'a task that a redrive revived stays, and goes after its next end',
    async run(t) {
      const task = taskOf(1);
      const dead = ended(occurrenceOf(task), 'dead', START_MS);
      const over = completed(task, 'dead', START_MS);
      await t.commit(createOneOff(1));
      await t.commit(writing(over, dead));
      const again = occurrenceOf(task, { kind: 'redrive', ordinal: 1, redriveOf: dead.id });
      const alive = next(over, {
        state: 'active',
        endedAt: undefined,
        endReason: undefined,
        lastOccurrenceId: again.id,
      });
      await t.commit(writing(alive, next(dead, { redrivenAs: again.id }), again));
      assert.equal(await t.prune(START_MS + failedMs), 1);
      await t.expectView(alive, again);
      assert.equal(await t.session.occurrence(dead.id), undefined);
      const endedAt = START_MS + failedMs;
      const done = ended(again, 'succeeded', endedAt);
      await t.commit(writing(completed(alive, 'succeeded', endedAt), done));
      assert.equal(await t.prune(endedAt + succeededMs - 1), 0);
      assert.equal(await t.prune(endedAt + succeededMs), 1);
      assert.deepEqual(await kept(t, 1), []);
    },
  },
  {
    of: 'prune',
    name: 'an ended task with a run that has not ended stays until that has',
    async run(t) {
      const task = taskOf(1);
      const running = next(occurrenceOf(task), { state: 'running', token: 1, attempt: 1 });
      await t.commit(createOneOff(1));
      const asked = next(running, { state: 'cancel-requested' });
      const cancelled = next(task, { state: 'cancelled', endedAt: START_MS, endReason: 'x' });
      await t.commit(writing(undefined, running), writing(cancelled, asked));
      assert.equal(await t.prune(START_MS + 2 * failedMs), 0);
      await t.expectView(cancelled, asked);
      const done = ended(asked, 'cancelled', START_MS + 9);
      await t.commit(writing(next(cancelled, { lastEnd: 'cancelled' }), done));
      assert.equal(await t.prune(START_MS + failedMs), 1);
    },
  },
  {
    of: 'prune',
    name: 'what was ended before a restart is forgotten after it',
    async run(t) {
      await t.commit(createOneOff(1), createOneOff(2));
      await t.commit(endOneOff(1, 'succeeded', START_MS), endOneOff(2, 'dead', START_MS));
      await t.reopen();
      assert.equal(await t.prune(START_MS + succeededMs), 1);
      await t.reopen();
      assert.equal(await t.prune(START_MS + failedMs), 1);
      assert.deepEqual(await kept(t, 1, 2), []);
    },
  },
];
