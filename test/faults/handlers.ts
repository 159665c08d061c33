/** The handlers of the fault tests: they note their entry before they do anything else. */
import type { Context, HandlerMap } from '../../src/index.js';
import type { Line } from './journal.js';

export interface Work {
  /** What its caller asked for, epoch ms; 0: any time. */
  readonly notBeforeMs: number;
  /** How long it takes. */
  readonly ms: number;
  /** It throws in its first attempts, so many of them. */
  readonly failing: number;
}

export function handlersOf(note: (line: Line) => void) {
  return {
    work: async (work: Work, ctx: Context): Promise<number> => {
      const { taskId, occurrenceId, attempt, fencingToken: token } = ctx;
      const at = ctx.clock.now();
      const { notBeforeMs } = work;
      const dueAt = ctx.dueAt.getTime();
      note({ kind: 'entered', taskId, occurrenceId, attempt, token, dueAt, notBeforeMs, at });
      if (work.ms > 0) await ctx.sleep(work.ms);
      const ok = attempt > work.failing;
      note({ kind: 'left', occurrenceId, token, ok });
      if (!ok) throw new Error(`attempt ${attempt} of ${work.failing} that fail`);
      return attempt;
    },
  } satisfies HandlerMap;
}
