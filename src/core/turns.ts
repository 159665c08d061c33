/**
 * Whose turn it is.
 *
 * Fairness is weighted round robin in its virtual-time form (self-clocked fair queueing, Golestani
 * 1994): a tenant's next turn is at tag = now + 1 / weight of virtual time, "now" being the tag of
 * the turn taken last, and the least tag is next. Against deficit round robin it needs no walk
 * around a ring past tenants whose only work waits for a closed handler, takes fractional weights
 * as they are, and mixes turns more finely. Tags live in a heap of lanes for each handler version,
 * versions in one heap by their first lane; so closing a handler is one step, however many tenants
 * wait for it. Tags only grow, hence a lane's copy of its tenant's tag may lag behind and is put
 * right when it comes up.
 */
import type { Lane, Tenant, Version } from './lane.js';
import { VersionsByTurn } from './lane.js';

/** Virtual time is set back to 0 before the steps of heavy tenants would be lost in rounding. */
const VIRTUAL_MAX = 2 ** 24;

export class Turns {
  readonly #versions = new VersionsByTurn();
  #virtual = 0;
  #assigned = 0;
  /** Lanes that can start. */
  lanesOpen = 0;

  /**
   * The tenant whose turn is next among those with work that can start. O(1), and O(log n) a
   * lagging lane.
   */
  first(): Tenant | undefined {
    for (;;) {
      const version = this.#versions.top;
      if (version === undefined) return undefined;
      const lane = version.lanes.top as Lane;
      if (lane.turn === lane.tenant.turn) return lane.tenant;
      this.catchUp(lane);
    }
  }

  /** Gives the tenant its next turn. While its lanes are joined its tag may only grow. */
  assign(tenant: Tenant): void {
    tenant.tag = this.#virtual + 1 / tenant.weight;
    tenant.turn = ++this.#assigned;
  }

  /** The tenant has another weight. Its lanes are not joined meanwhile: its turns may come sooner than they would have. */
  reweigh(tenant: Tenant): void {
    this.assign(tenant);
    tenant.aloneTag = Math.min(tenant.aloneTag, this.#virtual + 1 / tenant.weight);
  }

  /** The tenant has had its turn; one that is owed another has it at once. */
  had(tenant: Tenant): void {
    this.#virtual = Math.max(this.#virtual, tenant.tag);
    if (tenant.owed > 0) tenant.owed--;
    else this.assign(tenant);
  }

  // What must run alone starts out of turn, when a thread has been emptied for it. Each tenant has turns of its own for
  // that, as many as it has others. Each costs it the next of those: else work of both kinds would have two shares.

  /** Of the tenant something was set aside, and nothing else waits so. */
  joinAlone(tenant: Tenant): void {
    tenant.aloneTag = Math.max(tenant.aloneTag, this.#virtual);
  }

  /** It may start, as far as others are concerned. */
  isAloneDue(tenant: Tenant): boolean {
    return tenant.aloneTag <= this.#virtual || this.lanesOpen === 0;
  }

  /** It starts. */
  hadAlone(tenant: Tenant): void {
    this.#virtual = Math.max(this.#virtual, tenant.aloneTag);
    tenant.aloneTag = this.#virtual + 1 / tenant.weight;
    if (tenant.owed > 0) tenant.owed--;
    else {
      tenant.tag += 1 / tenant.weight;
      tenant.turn = ++this.#assigned;
    }
  }

  /** The joined lane's tenant may have had turns since the lane was ranked. O(log n). */
  catchUp(lane: Lane): void {
    lane.tag = lane.tenant.tag;
    lane.turn = lane.tenant.turn;
    lane.version.lanes.update(lane);
    this.#rank(lane.version);
  }

  /** The lane has entries and its tenant may start. O(log n). */
  join(lane: Lane): void {
    const { version } = lane;
    lane.tag = lane.tenant.tag;
    lane.turn = lane.tenant.turn;
    version.lanes.push(lane);
    if (version.usable) this.lanesOpen++;
    this.#rank(version);
  }

  leave(lane: Lane): void {
    const { version } = lane;
    version.lanes.remove(lane);
    if (version.usable) this.lanesOpen--;
    this.#rank(version);
  }

  /** Opens or closes all lanes of the version. O(log versions). */
  setUsable(version: Version, usable: boolean): void {
    version.usable = usable;
    this.lanesOpen += usable ? version.lanes.size : -version.lanes.size;
    this.#rank(version);
  }

  #rank(version: Version): void {
    const ranked = this.#versions.has(version);
    const first = version.usable ? version.lanes.top : undefined;
    if (first === undefined) {
      if (ranked) this.#versions.remove(version);
      return;
    }
    if (ranked && first.turn === version.turn) return;
    version.tag = first.tag;
    version.turn = first.turn;
    if (ranked) this.#versions.update(version);
    else this.#versions.push(version);
  }

  get mustSetBack(): boolean {
    return this.#virtual > VIRTUAL_MAX;
  }

  /** Sets virtual time back to 0 for all. O(lanes), once in 16,000 turns at most. */
  setBack(tenants: Iterable<Tenant>): void {
    for (const tenant of tenants) {
      tenant.tag -= this.#virtual;
      tenant.aloneTag -= this.#virtual;
      for (const lane of tenant.heads.items) lane.tag -= this.#virtual;
    }
    for (const version of this.#versions.items) version.tag -= this.#virtual;
    this.#virtual = 0;
  }
}
