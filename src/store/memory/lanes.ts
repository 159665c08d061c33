/**
 * Lanes: the distinct (tenant, handler, version) of the rows, each kept once and named in a row by a u32; and
 * what is counted of each tenant. A tenant without rows is forgotten.
 */

import { unreachable } from '../../core/assert.js';
import type { OccurrenceRecord, OccurrenceState } from '../../core/model.js';

/** Places in the counts of a tenant. */
export const PENDING = 0;
export const READY = 1;
export const RUNNING = 2;
export const DEAD_LETTERS = 3;
export const OPEN_TASKS = 4;
/** An occurrence that is counted nowhere: it ended and nobody need look at it. */
export const UNCOUNTED = -1;

export interface Tenant {
  readonly name: string;
  readonly counts: number[];
  readonly handlers: Map<string, Lane[]>;
}

export interface Lane {
  readonly tenant: Tenant;
  readonly handler: string;
  readonly version: number | undefined;
  readonly index: number;
  refs: number;
}

/** Where an occurrence in this state is counted. */
export function countedAs(state: OccurrenceState, redriven: boolean): number {
  switch (state) {
    case 'scheduled':
    case 'retry-wait':
      return PENDING;
    case 'ready':
      return READY;
    case 'running':
    case 'cancel-requested':
      return RUNNING;
    case 'dead':
    case 'quarantined':
      return redriven ? UNCOUNTED : DEAD_LETTERS;
    case 'succeeded':
    case 'cancelled':
    case 'skipped':
    case 'missed':
      return UNCOUNTED;
    default:
      return unreachable(state);
  }
}

export class Lanes {
  readonly tenants = new Map<string, Tenant>();
  readonly totals = [0, 0, 0, 0, 0];
  readonly #lanes: (Lane | undefined)[] = [];
  readonly #free: number[] = [];
  #last: Lane | undefined;

  at(index: number): Lane {
    return this.#lanes[index] as Lane;
  }

  /** The index of the record's lane, with one reference more. */
  take(record: Pick<OccurrenceRecord, 'tenant' | 'handler' | 'handlerVersion'>): number {
    const { tenant, handler, handlerVersion } = record;
    let lane = this.#last;
    if (lane === undefined || !isLane(lane, tenant, handler, handlerVersion)) {
      lane = this.#find(tenant, handler, handlerVersion);
      this.#last = lane;
    }
    lane.refs += 1;
    return lane.index;
  }

  /** `take` for a row that is in lane `index` already. */
  swap(
    index: number,
    record: Pick<OccurrenceRecord, 'tenant' | 'handler' | 'handlerVersion'>,
  ): number {
    const lane = this.#lanes[index] as Lane;
    if (isLane(lane, record.tenant, record.handler, record.handlerVersion)) return index;
    const next = this.take(record);
    this.release(index);
    return next;
  }

  release(index: number): void {
    const lane = this.#lanes[index] as Lane;
    lane.refs -= 1;
    if (lane.refs > 0) return;
    this.#lanes[index] = undefined;
    this.#free.push(index);
    if (this.#last === lane) this.#last = undefined;
    const { tenant, handler } = lane;
    const others = (tenant.handlers.get(handler) as Lane[]).filter((other) => other !== lane);
    if (others.length > 0) tenant.handlers.set(handler, others);
    else tenant.handlers.delete(handler);
    if (tenant.handlers.size === 0) this.tenants.delete(tenant.name);
  }

  /** Adds `by` to one count of the lane's tenant and to the total. */
  count(index: number, place: number, by: number): void {
    if (place === UNCOUNTED) return;
    (this.#lanes[index] as Lane).tenant.counts[place] += by;
    this.totals[place] += by;
  }

  #find(tenantName: string, handler: string, version: number | undefined): Lane {
    let tenant = this.tenants.get(tenantName);
    if (tenant === undefined) {
      tenant = { name: tenantName, counts: [0, 0, 0, 0, 0], handlers: new Map() };
      this.tenants.set(tenantName, tenant);
    }
    let lanes = tenant.handlers.get(handler);
    if (lanes === undefined) {
      lanes = [];
      tenant.handlers.set(handler, lanes);
    }
    for (const lane of lanes) if (lane.version === version) return lane;
    const index = this.#free.pop() ?? this.#lanes.length;
    const lane: Lane = { tenant, handler, version, index, refs: 0 };
    this.#lanes[index] = lane;
    lanes.push(lane);
    return lane;
  }
}

function isLane(lane: Lane, tenant: string, handler: string, version: number | undefined): boolean {
  return lane.tenant.name === tenant && lane.handler === handler && lane.version === version;
}
