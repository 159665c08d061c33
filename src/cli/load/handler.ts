/** The load test's handlers: a module that the scheduler's threads load. */
import { Board, fineNowMs } from './board.js';

/** What the generator puts into each task. */
export interface LoadPayload {
  /** Names the task's place on the board; 0 upwards. */
  readonly seq: number;
  /** When the generator wanted it, epoch milliseconds. */
  readonly dueAt: number;
  /** Fills the payload up to `--payload` bytes. */
  readonly pad: string;
}

/** The part of a handler's context that is used here. */
export interface LoadContext {
  readonly taskId: string;
  readonly clock: { now(): number };
  sleep(duration: number): Promise<void>;
}

const board = Board.attach();

export function work(payload: LoadPayload, ctx: LoadContext): void | Promise<void> {
  const wallMs = ctx.clock.now();
  if (board === undefined) throw new Error('the load test did not publish its board');
  const { seq, dueAt } = payload;
  board.entered(seq, { taskId: ctx.taskId, dueAt, wallMs, fineMs: fineNowMs(wallMs) });
  if (board.memory.workMs > 0) return workThenLeave(board, seq, ctx);
  board.left(seq);
}

async function workThenLeave(on: Board, seq: number, ctx: LoadContext): Promise<void> {
  await ctx.sleep(on.memory.workMs);
  on.left(seq);
}

export default { work };
