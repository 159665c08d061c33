/**
 * Threads compile their code for themselves, each anew: without this, what is due in the first second after the start would
 * show V8's compiler, as users see it in a process that has just begun, and not the scheduler.
 */
import type { LoadPayload } from './handler.js';

/** The part of the scheduler that is needed. */
export interface WarmTarget {
  scheduleMany(
    items: { readonly handler: 'work'; readonly payload: LoadPayload }[],
  ): Promise<readonly ({ readonly id: string } | Error)[]>;
  on(type: 'succeeded', listener: () => void): () => void;
}

/** On no board: the handler counts it nowhere. */
export const UNCOUNTED_SEQ = -1;

const TASKS = 20_000;
const TASKS_A_CALL = 1000;
const CALLS_AHEAD = 3;

/** Runs tasks that nobody counts, as fast as they go, some 20,000; resolves when all have ended. */
export async function warmThreads(target: WarmTarget, payloadBytes: number): Promise<void> {
  const payload = { seq: UNCOUNTED_SEQ, dueAt: 0, pad: 'x'.repeat(payloadBytes) };
  let ended = 0;
  let wanted = 0;
  let tell = (): void => {};
  const off = target.on('succeeded', () => {
    ended += 1;
    if (ended >= wanted) tell();
  });
  const until = (count: number): Promise<void> =>
    new Promise((resolve) => {
      wanted = count;
      tell = resolve;
      if (ended >= count) resolve();
    });
  for (let sent = 0; sent < TASKS; ) {
    const items = Array.from(
      { length: TASKS_A_CALL },
      () => ({ handler: 'work', payload }) as const,
    );
    const answers = await target.scheduleMany(items);
    sent += TASKS_A_CALL;
    // What was refused will not end.
    for (const answer of answers) if (answer instanceof Error) ended += 1;
    await until(sent - CALLS_AHEAD * TASKS_A_CALL);
  }
  await until(TASKS);
  off();
}
