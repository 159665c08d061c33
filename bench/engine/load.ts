/** A scheduler on the memory store under a closed loop, and what it took. */
import { memoryStore, OverloadedError, Scheduler, TickwheelError } from '../../src/index.js';
import { must } from '../lib/report.js';

export type Place = 'in-process' | 'pool';

/** About 64 bytes encoded, as the targets say. */
export const PAD = 'x'.repeat(44);
export const CHUNK = 1000;

export interface Bed {
  readonly scheduler: Scheduler;
  /** Ends heard by the one listener. */
  ended(): number;
  /** Resolves when so many ends were heard. */
  untilEnded(count: number): Promise<void>;
  close(): Promise<void>;
}

/** One listener is on, history is kept. */
export async function openBed(
  place: Place,
  threads = 1,
  options: { retention?: { succeeded: string; failed: string } } = {},
): Promise<Bed> {
  const scheduler = await Scheduler.open({
    ...options,
    store: memoryStore(),
    handlers:
      place === 'pool' ? new URL('./handlers.mjs', import.meta.url) : { noop: () => undefined },
    ...(place === 'pool' ? { workers: { threads } } : {}),
  } as Parameters<typeof Scheduler.open>[0]);
  let ended = 0;
  let awaited = Number.POSITIVE_INFINITY;
  let tell = (): void => {};
  scheduler.on('succeeded', () => {
    if (++ended >= awaited) tell();
  });
  await scheduler.start();
  return {
    scheduler: scheduler as unknown as Scheduler,
    ended: () => ended,
    untilEnded: (count) =>
      new Promise((resolve) => {
        if (ended >= count) resolve();
        awaited = count;
        tell = () => {
          awaited = Number.POSITIVE_INFINITY;
          resolve();
        };
      }),
    close: async () => {
      await scheduler.shutdown();
    },
  };
}

export interface Item {
  readonly handler: string;
  readonly payload: unknown;
  readonly options?: { readonly runAt?: number; readonly tenant?: string } | undefined;
}

export function items(count: number, options?: (index: number) => Item['options']): Item[] {
  return Array.from({ length: count }, (_, seq) => ({
    handler: 'noop',
    payload: { seq, pad: PAD },
    options: options?.(seq),
  }));
}

/** Every item must have been taken. */
export async function createAll(bed: Bed, some: readonly Item[]): Promise<void> {
  must((await createSome(bed, some)) === some.length, 'all created, none refused');
}

/** How many were taken; the others were refused because there is too much to do. */
export async function createSome({ scheduler }: Bed, some: readonly Item[]): Promise<number> {
  const results = await scheduler.scheduleMany(some as never);
  must(results.length === some.length, 'a result for each item');
  let taken = 0;
  for (const result of results) {
    if (!(result instanceof TickwheelError)) taken++;
    else must(result instanceof OverloadedError, `created, or overloaded: ${String(result)}`);
  }
  return taken;
}
