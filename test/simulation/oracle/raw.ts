/**
 * Records as they lie in a store, as far as the oracle looks at them. Written down here once more, so that the oracle
 * shares nothing with the code that it judges.
 */
export interface RawSchedule {
  readonly kind: 'once' | 'fixedRate' | 'fixedDelay' | 'cron';
  readonly everyMs?: number;
  readonly delayMs?: number;
  readonly limit?: number | undefined;
  readonly endAt?: number | undefined;
  readonly at?: number;
  readonly expression?: string;
}

export interface RawTask {
  readonly id: string;
  readonly tenant: string;
  readonly handler: string;
  readonly payload: Uint8Array;
  readonly schedule: RawSchedule;
  readonly policies: {
    readonly maxAttempts: number;
    readonly maxCrashes: number;
    readonly overlap: string;
    readonly idempotencyTtlMs: number;
  };
  readonly state: string;
  readonly generation: number;
  readonly revision: number;
  readonly idempotencyKey: string | undefined;
  readonly endedAt: number | undefined;
  readonly endReason: string | undefined;
  readonly anchorAt: number;
  readonly cursorAt: number | undefined;
  readonly taken: number;
}

export interface RawOccurrence {
  readonly id: string;
  readonly taskId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly generation: number;
  readonly kind: string;
  readonly ordinal: number;
  readonly nominalAt: number;
  readonly dueAt: number;
  readonly state: string;
  readonly revision: number;
  readonly handlerVersion: number | undefined;
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  readonly deaths: number;
  readonly alone: boolean;
  readonly waiting: boolean;
  readonly token: number;
  readonly leaseUntil: number | undefined;
  readonly result: Uint8Array | undefined;
  readonly outcome: string | undefined;
  readonly reason: string | undefined;
  readonly count: number | undefined;
  readonly untilAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly redrivenAs: string | undefined;
}

export interface RawAttempt {
  readonly occurrenceId: string;
  readonly attempt: number;
  readonly fencingToken: number;
  readonly outcome: string | undefined;
}

export interface RawUnit {
  readonly taskId: string;
  readonly task?: { readonly record: RawTask; readonly expected: number };
  readonly occurrences?: readonly { readonly record: RawOccurrence; readonly expected: number }[];
  readonly attempts?: readonly RawAttempt[];
  readonly remove?: unknown;
  readonly settings?: readonly (readonly [key: string, value: unknown])[];
}

export interface RawCounts {
  readonly pending: number;
  readonly ready: number;
  readonly running: number;
  readonly deadLetters: number;
}

/** What the oracle reads a store by. */
export interface RawReader {
  views(
    ids: readonly string[],
  ): Promise<readonly ({ task: RawTask; live: readonly RawOccurrence[] } | undefined)[]>;
  occurrence(id: string): Promise<RawOccurrence | undefined>;
  listTasks(query: {
    limit: number;
    cursor?: string | undefined;
  }): Promise<{ items: readonly { task: RawTask }[]; cursor?: string }>;
  listOccurrences(
    taskId: string,
    query: { limit: number; cursor?: string | undefined },
  ): Promise<{ items: readonly RawOccurrence[]; cursor?: string }>;
  settings(): Promise<ReadonlyMap<string, unknown>>;
  counts(): Promise<
    RawCounts & {
      openTasks: number;
      tenants: ReadonlyMap<string, RawCounts & { openTasks: number }>;
    }
  >;
}

const TERMINAL = new Set(['succeeded', 'dead', 'quarantined', 'cancelled', 'skipped', 'missed']);

export function isOver(state: string): boolean {
  return TERMINAL.has(state);
}

export function isRunning(state: string): boolean {
  return state === 'running' || state === 'cancel-requested';
}
