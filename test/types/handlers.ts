/** A module of handlers, for the types only: `Scheduler.open<typeof import('./handlers.js')>`. */
import type { Context } from '../../src/index.js';

export interface Mail {
  to: string;
  retries?: number;
}

export async function sendEmail(payload: Mail, ctx: Context): Promise<{ sent: number }> {
  await ctx.sleep(1);
  return { sent: payload.to.length };
}

export function tick(): void {}

export const resize = {
  1: (payload: { width: number }) => payload.width,
  2: (payload: { size: [number, number] }) => payload.size[0],
};

/** Exported, and no handler. */
export const LIMIT = 7;
