/** The load test's handlers: a module that the scheduler's threads load. */
import { Board, fineNowMs } from './board.js';
import { UNCOUNTED_SEQ } from './warm-threads.js';

/** What the generator puts into each task. */
export interface LoadPayload {
  /** Names the task's place on the board; 0 upwards, UNCOUNTED_SEQ for none. */
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
/** Of what nobody counts: its handler does the same, elsewhere. */
const scratch = Board.create({ tasks: 1, workMs: 0 });

export function work(payload: LoadPayload, ctx: LoadContext): void | Promise<void> {
  const wallMs = ctx.clock.now();
  if (board === undefined) throw new Error('the load test did not publish its board');
  const { seq, dueAt } = payload;
  if (seq === UNCOUNTED_SEQ) {
    scratch.entered(0, { taskId: ctx.taskId, dueAt, wallMs, fineMs: fineNowMs(wallMs) });
    scratch.left(0);
    return;
  }
  board.entered(seq, { taskId: ctx.taskId, dueAt, wallMs, fineMs: fineNowMs(wallMs) });
  if (board.memory.workMs > 0) return workThenLeave(board, seq, ctx);
  board.left(seq);
}

async function workThenLeave(on: Board, seq: number, ctx: LoadContext): Promise<void> {
  await ctx.sleep(on.memory.workMs);
  on.left(seq);
}

export default { work };
