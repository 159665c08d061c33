/**
 * What must run alone, once it has come up in its tenant's turn: it waits for a thread of its own, in no lane, so that
 * others of its lane pass it.
 */
import type { ReadyEntry, Tenant } from './lane.js';
import type { Turns } from './turns.js';

export class Aside {
  readonly #turns: Turns;
  readonly #isUsable: (entry: ReadyEntry) => boolean;
  readonly #tenants = new Set<Tenant>();

  /** @param isUsable whether its handler's version can start work */
  constructor(turns: Turns, isUsable: (entry: ReadyEntry) => boolean) {
    this.#turns = turns;
    this.#isUsable = isUsable;
  }

  put(tenant: Tenant, entry: ReadyEntry): void {
    if (tenant.aside.push(entry) > 1) return;
    this.#tenants.add(tenant);
    this.#turns.joinAlone(tenant);
  }

  /** False when it is not here. */
  remove(tenant: Tenant, entry: ReadyEntry): boolean {
    const index = tenant.aside.indexOf(entry);
    if (index < 0) return false;
    tenant.aside.splice(index, 1);
    if (tenant.aside.length === 0) this.#tenants.delete(tenant);
    return true;
  }

  /**
   * The first that may start, of the tenant that has waited longest for this. O(tenants with such, and of those what
   * cannot start).
   */
  next(): ReadyEntry | undefined {
    let next: ReadyEntry | undefined;
    let tag = Number.POSITIVE_INFINITY;
    for (const tenant of this.#tenants) {
      if (tenant.aloneTag >= tag || !tenant.open || !this.#turns.isAloneDue(tenant)) continue;
      const first = tenant.aside.find(this.#isUsable);
      if (first === undefined) continue;
      next = first;
      tag = tenant.aloneTag;
    }
    return next;
  }
}
