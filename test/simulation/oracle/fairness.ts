/**
 * Invariant 14: of the slots that come free, a tenant with work that may start gets its weighted share within one round.
 * Judged at each commit, for tenants without limits: how many starts others had while this one had work and none.
 */
import { isRunning, type RawOccurrence, type RawTask } from './raw.js';
import type { Records } from './shadow.js';

interface Waiting {
  readonly taskId: string;
  readonly handler: string;
  readonly dueAt: number;
}

export class Fairness {
  readonly #slots: number;
  readonly #fault: (text: string) => void;
  /** Tenants that are judged, and the weight of each. */
  readonly weights = new Map<string, number>();
  /** Whether work of the handler may start. */
  isOpen: (tenant: string, handler: string) => boolean = () => true;
  readonly #ready = new Map<string, Map<string, Waiting>>();
  /** Starts of others since this tenant's last one, by tenant. */
  readonly #starved = new Map<string, Map<string, number>>();
  #before = new Map<string, ReadonlySet<string>>();
  #claims = new Map<string, number>();
  /** The most that any tenant has waited, as a share of what it may. */
  worst = 0;

  readonly #wallMs: () => number;

  constructor(slots: number, wallMs: () => number, fault: (text: string) => void) {
    this.#slots = slots;
    this.#wallMs = wallMs;
    this.#fault = fault;
  }

  reopened(visible: Records): void {
    this.#ready.clear();
    this.#starved.clear();
    for (const { task, occurrences } of visible.values()) {
      for (const record of occurrences.values()) this.#note(task, record);
    }
  }

  #note({ id: taskId, tenant, handler, schedule }: RawTask, record: RawOccurrence): void {
    const ready = this.#ready.get(tenant) ?? new Map<string, Waiting>();
    this.#ready.set(tenant, ready);
    // Of other tasks it depends on their other runs whether this one may start.
    const counts = record.state === 'ready' && schedule.kind === 'once' && !record.alone;
    if (counts) ready.set(record.id, { taskId, handler, dueAt: record.dueAt });
    else ready.delete(record.id);
  }

  before(): void {
    this.#claims = new Map();
    this.#before = new Map();
    for (const tenant of this.weights.keys()) {
      const ready = this.#ready.get(tenant);
      if (ready !== undefined && ready.size > 0) this.#before.set(tenant, new Set(ready.keys()));
    }
  }

  moved(task: RawTask, before: RawOccurrence | undefined, record: RawOccurrence): void {
    const claimed = isRunning(record.state) && record.token !== before?.token;
    if (claimed) this.#claims.set(task.tenant, (this.#claims.get(task.tenant) ?? 0) + 1);
    this.#note(task, record);
  }

  after(visible: Records): void {
    if (this.#claims.size === 0) return;
    for (const [tenant, weight] of this.weights) {
      const had = this.#before.get(tenant);
      const waiting =
        this.#claims.has(tenant) || had === undefined
          ? undefined
          : this.#mayStart(tenant, had, visible);
      if (waiting === undefined) {
        this.#starved.delete(tenant);
        continue;
      }
      const others = this.#starved.get(tenant) ?? new Map<string, number>();
      this.#starved.set(tenant, others);
      for (const [other, count] of this.#claims)
        others.set(other, (others.get(other) ?? 0) + count);
      this.#judge(tenant, weight, others, waiting);
    }
  }

  /** Something of it could have been claimed, and can be still. */
  #mayStart(tenant: string, had: ReadonlySet<string>, visible: Records): string | undefined {
    for (const [id, { taskId, handler, dueAt }] of this.#ready.get(tenant) ?? []) {
      // The clock may have gone back since.
      if (dueAt > this.#wallMs() || !had.has(id) || !this.isOpen(tenant, handler)) continue;
      const known = visible.get(taskId);
      if (known?.task.state !== 'active') continue;
      if ([...known.occurrences.values()].some(({ state }) => isRunning(state))) continue;
      return id;
    }
    return undefined;
  }

  #judge(
    tenant: string,
    weight: number,
    others: ReadonlyMap<string, number>,
    waiting: string,
  ): void {
    let allowed = 2 * this.#slots;
    let starts = 0;
    for (const [other, count] of others) {
      allowed += Math.ceil((this.weights.get(other) ?? 1) / weight) + 1;
      starts += count;
    }
    this.worst = Math.max(this.worst, starts / allowed);
    if (starts > allowed) {
      this.#fault(
        `14 tenant ${tenant} saw ${starts} starts of others while ${waiting} waited, allowed ${allowed}`,
      );
    }
  }
}
