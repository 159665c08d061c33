/** Durable settings beyond single tasks: paused tenants and handlers, and tenants' limits. */
import type { ReadyQueue, TenantLaneLimits } from '../core/ready-queue.js';
import type { Setting } from '../store/store.js';

export type Scope = { readonly tenant: string } | { readonly handler: string };

/** All limits of a tenant; those of the ready queue and the quota of admission. */
export interface Limits extends TenantLaneLimits {
  readonly maxPending?: number | undefined;
}

type Queue = Pick<
  // biome-ignore lint/suspicious/noExplicitAny: any entry will do, only the lanes are used
  ReadyQueue<any>,
  'pauseTenant' | 'resumeTenant' | 'pauseHandler' | 'resumeHandler' | 'setTenantLimits'
>;

export class Scopes {
  readonly #queue: Queue;
  readonly #paused = new Set<string>();
  /** Wall clock time of the last resume: nominal times before it passed while paused. */
  readonly #resumedAt = new Map<string, number>();
  readonly #limits: Map<string, Limits>;

  constructor(queue: Queue, limits: Readonly<Record<string, Limits>>) {
    this.#queue = queue;
    this.#limits = new Map(Object.entries(limits));
    for (const [tenant, given] of this.#limits) queue.setTenantLimits(tenant, given);
  }

  /** Takes over what was stored; it overrides what `open` was given. */
  restore(settings: ReadonlyMap<string, Setting>): void {
    for (const [key, value] of settings) {
      if (key.startsWith(PAUSED)) this.#apply(key, true);
      else if (key.startsWith(LIMITS)) this.setLimits(key.slice(LIMITS.length), value as Limits);
    }
  }

  isPaused(tenant: string, handler: string): boolean {
    return (
      this.#paused.size > 0 &&
      (this.#paused.has(keyOf({ tenant })) || this.#paused.has(keyOf({ handler })))
    );
  }

  resumedAt(tenant: string, handler: string): number {
    if (this.#resumedAt.size === 0) return Number.NEGATIVE_INFINITY;
    return Math.max(
      this.#resumedAt.get(keyOf({ tenant })) ?? Number.NEGATIVE_INFINITY,
      this.#resumedAt.get(keyOf({ handler })) ?? Number.NEGATIVE_INFINITY,
    );
  }

  /** @returns what undoes it */
  pause(scope: Scope): () => void {
    const key = keyOf(scope);
    const wasPaused = this.#paused.has(key);
    this.#apply(key, true);
    return () => this.#apply(key, wasPaused);
  }

  /** @returns what undoes it */
  resume(scope: Scope, nowMs: number): () => void {
    const key = keyOf(scope);
    if (!this.#paused.has(key)) return () => {};
    this.#apply(key, false);
    // Strictly before the next millisecond: what came due in this very one passed while paused.
    this.#resumedAt.set(key, nowMs + 1);
    return () => this.#apply(key, true);
  }

  #apply(key: string, paused: boolean): void {
    const [, kind, name] = /^paused:(tenant|handler):(.*)$/s.exec(key) as RegExpExecArray;
    if (paused) this.#paused.add(key);
    else this.#paused.delete(key);
    if (kind === 'tenant') {
      if (paused) this.#queue.pauseTenant(name as string);
      else this.#queue.resumeTenant(name as string);
    } else if (paused) this.#queue.pauseHandler(name as string);
    else this.#queue.resumeHandler(name as string);
  }

  /** @returns what undoes it */
  setLimits(tenant: string, limits: Limits): () => void {
    const before = this.#limits.get(tenant);
    this.#limits.set(tenant, limits);
    this.#queue.setTenantLimits(tenant, limits);
    return () => {
      if (before === undefined) this.#limits.delete(tenant);
      else this.#limits.set(tenant, before);
      this.#queue.setTenantLimits(tenant, this.limitsOf(tenant));
    };
  }

  limitsOf(tenant: string): Limits {
    return this.#limits.get(tenant) ?? this.#limits.get('*') ?? {};
  }
}

const PAUSED = 'paused:';
const LIMITS = 'limits:';

function keyOf(scope: Scope): string {
  return 'tenant' in scope
    ? `${PAUSED}tenant:${scope.tenant}`
    : `${PAUSED}handler:${scope.handler}`;
}

/** What is stored for a pause, and taken away by a resume. */
export function pauseSetting(
  scope: Scope,
  nowMs: number | undefined,
): [string, Setting | undefined] {
  return [keyOf(scope), nowMs === undefined ? undefined : { pausedAt: nowMs }];
}

export function limitsSetting(tenant: string, limits: Limits): [string, Setting] {
  const { weight, maxConcurrency, maxRatePerSecond, maxPending } = limits;
  return [`${LIMITS}${tenant}`, { weight, maxConcurrency, maxRatePerSecond, maxPending }];
}
