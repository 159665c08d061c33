/**
 * Threads compile their code for themselves, each anew: without this, what is due in the first second after the start would
 * show V8's compiler, as users see it in a process that has just begun, and not the scheduler.
 */
import type { GeneratorClock } from './generator.js';
import type { LoadPayload } from './handler.js';

/** The part of the scheduler that is needed. */
export interface WarmTarget {
  scheduleMany(
    items: { readonly handler: 'work'; readonly payload: LoadPayload }[],
  ): Promise<readonly unknown[]>;
}

/** On no board: the handler counts it nowhere. */
export const UNCOUNTED_SEQ = -1;

const TASKS_A_CALL = 500;

/** Runs tasks that nobody counts, for about so long; some may still be on their way when it resolves. */
export async function warmThreads(
  target: WarmTarget,
  payloadBytes: number,
  clock: GeneratorClock,
  lengthMs: number,
): Promise<void> {
  const payload = { seq: UNCOUNTED_SEQ, dueAt: 0, pad: 'x'.repeat(payloadBytes) };
  const endMs = clock.monotonic() + lengthMs;
  while (clock.monotonic() < endMs) {
    // Answered when they are durable: by then most of the call before have run.
    await target.scheduleMany(
      Array.from({ length: TASKS_A_CALL }, () => ({ handler: 'work', payload }) as const),
    );
  }
}
