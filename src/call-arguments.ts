/** What callers give to the scheduler's calls besides work: what is allowed, and how it is read. */
import { integerOf, optionsOf, refuse, textOf } from './check.js';
import { InvalidArgumentError } from './core/errors.js';
import type { Scope } from './engine/scopes.js';
import type { EventType } from './present.js';

/** A page of a list; `cursor` is there when there may be more. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}

export interface PageOptions {
  /** 1 to 1000; default 100. */
  limit?: number;
  cursor?: string;
}

const PAGE = { default: 100, max: 1000 };
export const EVENT_TYPES: readonly (EventType | '*')[] = [
  'scheduled',
  'started',
  'progress',
  'succeeded',
  'retrying',
  'deadLettered',
  'quarantined',
  'cancelled',
  'skipped',
  'missed',
  'leaseExpired',
  'paused',
  'resumed',
  'repaired',
  '*',
];

export const ID_MAX = 128;
export const SHUTDOWN = new Set(['drain', 'timeout'] as const);
export const WAIT = new Set(['timeout', 'signal'] as const);
export const PAGING = new Set(['limit', 'cursor'] as const);
export const LIST = new Set(['limit', 'cursor', 'tenant', 'status', 'handler'] as const);
export const DEAD_LETTERS = new Set(['limit', 'cursor', 'tenant', 'handler'] as const);
export const ON = new Set(['signal'] as const);
export const VERSION = new Set(['version'] as const);
const REASON = new Set(['reason'] as const);
export const REF = new Set(['idempotencyKey', 'tenant'] as const);

export function scopeOf(target: unknown): Scope | undefined {
  if (typeof target !== 'object' || target === null || 'idempotencyKey' in target) return undefined;
  const { tenant, handler } = target as { tenant?: unknown; handler?: unknown };
  if ((tenant === undefined) === (handler === undefined) || Object.keys(target).length !== 1) {
    throw new InvalidArgumentError(
      `the target has ${Object.keys(target).join(', ') || 'nothing'}; ` +
        'allowed: a task id, { idempotencyKey, tenant? }, { tenant } or { handler }',
    );
  }
  return tenant === undefined
    ? { handler: textOf(handler, 'handler', 256) }
    : { tenant: textOf(tenant, 'tenant', 256) };
}

export function reasonOf(options: unknown): string | undefined {
  const { reason } = optionsOf(options, 'options', REASON);
  return reason === undefined ? undefined : textOf(reason, 'reason', 1024);
}

/** Cursors begin with the list they are of, so that one of another list is refused. */
export const CURSOR = { tasks: 't:', occurrences: 'o:', deadLetters: 'd:' };
/** Behind it is what stores count or name places by: numbers, or the id of a task. */
const PLACE = /^(?:\d+(?:\.\d+)?|[\da-f-]{36})$/;

export function pageOf(
  given: { limit?: unknown; cursor?: unknown },
  prefix: string,
): { limit: number; cursor?: string } {
  const { limit: size = PAGE.default } = given;
  const limit = integerOf(size, 'limit', 1, PAGE.max);
  if (given.cursor === undefined) return { limit };
  const cursor = textOf(given.cursor, 'cursor', 256);
  const place = cursor.slice(prefix.length);
  if (!cursor.startsWith(prefix) || !PLACE.test(place)) {
    refuse('cursor', cursor, 'what a page of this same list held');
  }
  return { limit, cursor: place };
}

export function filterOf(given: { tenant?: unknown; handler?: unknown }): {
  tenant?: string;
  handler?: string;
} {
  return {
    ...(given.tenant === undefined ? {} : { tenant: textOf(given.tenant, 'tenant', 256) }),
    ...(given.handler === undefined ? {} : { handler: textOf(given.handler, 'handler', 256) }),
  };
}

export function pageWith<T>(items: T[], prefix: string, cursor: string | undefined): Page<T> {
  return cursor === undefined ? { items } : { items, cursor: prefix + cursor };
}
