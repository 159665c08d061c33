/** The judge of the kill test is judged: it passes what is right, and sees each thing that is not. */
import { describe, expect, it } from 'vitest';
import { fixedRate, memoryStore, Scheduler, VirtualClock } from '../../src/index.js';
import { seeded } from '../scheduler/helpers.js';
import { audit } from './audit.js';
import type { FaultsHandlers } from './callers.js';
import { handlersOf } from './handlers.js';
import type { Entered, Line } from './journal.js';

const START_MS = Date.UTC(2026, 0, 1);

interface Scene {
  readonly scheduler: Scheduler<FaultsHandlers>;
  readonly lines: readonly Line[];
  readonly ids: readonly string[];
  readonly end: () => Promise<unknown>;
}

/** A one-off, one that fails once, a keyed one, a recurring one, a cancelled one; all over. */
async function play(): Promise<Scene> {
  const clock = new VirtualClock(START_MS, { settleTimeout: 20 });
  const lines: Line[] = [];
  const scheduler = await Scheduler.open({
    clock,
    random: seeded(7),
    store: memoryStore(),
    handlers: handlersOf((line) => lines.push(line)),
  });
  await scheduler.start();
  const work = { notBeforeMs: START_MS, ms: 5, failing: 0 };
  const tasks = [
    await scheduler.schedule('work', work),
    await scheduler.schedule('work', { ...work, failing: 1 }),
    await scheduler.schedule('work', work, { idempotencyKey: 'key' }),
    await scheduler.schedule('work', work, { schedule: fixedRate({ every: 100, limit: 3 }) }),
    await scheduler.schedule('work', work, { delay: '1h' }),
  ];
  const ids = tasks.map(({ id }) => id);
  lines.push({
    kind: 'told',
    tasks: tasks.map(({ id, created, idempotencyKey: key }) => ({ id, created, key })),
  });
  await scheduler.cancel(ids[4] as string);
  lines.push({ kind: 'cancelled', taskId: ids[4] as string });
  await clock.advance('1m');
  return { scheduler, lines, ids, end: () => scheduler.shutdown({ drain: false }) };
}

const judge = async ({ scheduler }: Scene, lines: readonly Line[], killed = false) =>
  (await audit(scheduler, [{ lines, epochs: [1, 1], killed }])).faults.join('\n');

const isEntered = (line: Line): line is Entered => line.kind === 'entered';

/** The journal with the first line for which `change` gives another. */
function changed(lines: readonly Line[], change: (line: Line) => Line[] | undefined): Line[] {
  let done = false;
  return lines.flatMap((line) => {
    const other = done ? undefined : change(line);
    if (other === undefined) return [line];
    done = true;
    return other;
  });
}

const LIES: readonly [string, (scene: Scene) => Line[], string][] = [
  [
    'an acknowledged task that is not there',
    ({ lines }) => [...lines, { kind: 'told', tasks: [{ id: 'gone', created: true }] }],
    'gone: was acknowledged and is gone',
  ],
  [
    'a key that was given to two tasks',
    ({ lines, ids }) => [
      ...lines,
      { kind: 'told', tasks: [{ id: ids[0] as string, key: 'key', created: true }] },
    ],
    'key key: was given to',
  ],
  [
    'an early entry',
    ({ lines }) => changed(lines, (l) => (isEntered(l) ? [{ ...l, at: l.dueAt - 1 }] : undefined)),
    'was entered 1 ms early',
  ],
  [
    'an entry before the time that its caller named',
    ({ lines }) =>
      changed(lines, (l) => (isEntered(l) ? [{ ...l, notBeforeMs: l.at + 7 }] : undefined)),
    'was entered 7 ms early',
  ],
  [
    'an attempt that was entered twice',
    ({ lines }) => changed(lines, (l) => (isEntered(l) ? [l, l] : undefined)),
    'was entered twice',
  ],
  [
    'an entry of which the store knows nothing',
    ({ lines }) =>
      changed(lines, (l) => (isEntered(l) ? [l, { ...l, token: l.token + 1e6 }] : undefined)),
    'of which the store knows nothing',
  ],
  [
    'a token of another process',
    ({ lines }) =>
      changed(lines, (l) => (isEntered(l) ? [{ ...l, token: l.token + 2 ** 32 }] : undefined)),
    "is not of its process's epoch",
  ],
  [
    'a success without an entry',
    ({ lines }) => changed(lines, (l) => (isEntered(l) ? [] : undefined)),
    'succeeded, and was never entered',
  ],
  [
    'a handler that ended otherwise',
    ({ lines }) => changed(lines, (l) => (l.kind === 'left' ? [{ ...l, ok: !l.ok }] : undefined)),
    'its handler: false',
  ],
  [
    'an entry after a cancellation',
    ({ lines, ids }) => [{ kind: 'cancelled', taskId: ids[0] as string }, ...lines],
    'entered after its cancellation',
  ],
];

describe('the audit', () => {
  it('finds nothing where all is well, and sees each lie', async () => {
    const scene = await play();
    expect(await judge(scene, scene.lines)).toBe('');
    for (const [what, lie, fault] of LIES) {
      expect(await judge(scene, lie(scene)), what).toContain(fault);
    }
    await scene.end();
  });

  it('sees what has not ended', async () => {
    const scene = await play();
    const late = { notBeforeMs: 0, ms: 0, failing: 0 };
    const { id } = await scene.scheduler.schedule('work', late, { delay: '1h' });
    expect(await judge(scene, scene.lines)).toContain(`${id}: has not ended`);
    await scene.end();
  });
});
