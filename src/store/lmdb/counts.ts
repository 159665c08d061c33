/** What is counted of each tenant, kept in memory and stored with each commit that changes it. */
import { unreachable } from '../../core/assert.js';
import type { OccurrenceRecord } from '../../core/model.js';
import type { StateCounts } from '../store.js';
import { Reader, type Writer } from './bytes.js';
import type { Db } from './environment.js';
import { Key } from './keys.js';

export type Place = 'pending' | 'ready' | 'running' | 'deadLetters' | 'openTasks';
export type TenantCounts = StateCounts & { readonly openTasks: number };

interface Tenant {
  readonly name: string;
  readonly counts: { -readonly [P in Place]: number };
  dirty: boolean;
}

const NONE: TenantCounts = { pending: 0, ready: 0, running: 0, deadLetters: 0, openTasks: 0 };
const PLACES: readonly Place[] = ['pending', 'ready', 'running', 'deadLetters', 'openTasks'];
/** Keys are longer than names by this byte, which also keeps them from being empty. */
const PREFIX = 1;

/** Where an occurrence is counted; undefined: nowhere, for it ended and nobody need look at it. */
export function countedAs({ state, redrivenAs }: OccurrenceRecord): Place | undefined {
  switch (state) {
    case 'scheduled':
    case 'retry-wait':
      return 'pending';
    case 'ready':
      return 'ready';
    case 'running':
    case 'cancel-requested':
      return 'running';
    case 'dead':
    case 'quarantined':
      return redrivenAs === undefined ? 'deadLetters' : undefined;
    case 'succeeded':
    case 'cancelled':
    case 'skipped':
    case 'missed':
      return undefined;
    default:
      return unreachable(state);
  }
}

export class Counts {
  readonly #db: Db;
  readonly #tenants = new Map<string, Tenant>();
  #dirty: Tenant[] = [];

  constructor(db: Db) {
    this.#db = db;
  }

  load(): void {
    this.#tenants.clear();
    this.#dirty = [];
    const start = new Key().byte(PREFIX);
    const end = new Key().byte(PREFIX + 1);
    for (const { value } of this.#db.getRange({ start, end })) {
      const reader = new Reader(value, 0, value.length);
      const { counts } = this.#obtain(reader.text());
      for (const place of PLACES) counts[place] = reader.varint();
    }
  }

  add(tenant: string, place: Place | undefined, by: number): void {
    if (place === undefined) return;
    const found = this.#obtain(tenant);
    found.counts[place] += by;
    if (found.dirty) return;
    found.dirty = true;
    this.#dirty.push(found);
  }

  #obtain(name: string): Tenant {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = { name, counts: { ...NONE }, dirty: false };
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  flush(writer: Writer): void {
    for (const tenant of this.#dirty) {
      tenant.dirty = false;
      const { name, counts } = tenant;
      const bytes = Buffer.from(name);
      const key = new Key(bytes.length + 1).byte(PREFIX).raw(bytes);
      if (PLACES.every((place) => counts[place] === 0)) {
        this.#tenants.delete(name);
        this.#db.remove(key);
        continue;
      }
      writer.begin(bytes.length + 64);
      writer.text(name);
      for (const place of PLACES) writer.varint(counts[place]);
      this.#db.put(key, writer.end());
    }
    this.#dirty = [];
  }

  all(): TenantCounts & { readonly tenants: ReadonlyMap<string, TenantCounts> } {
    const totals: { -readonly [P in Place]: number } = { ...NONE };
    const tenants = new Map<string, TenantCounts>();
    for (const { name, counts } of this.#tenants.values()) {
      if (PLACES.every((place) => counts[place] === 0)) continue;
      tenants.set(name, { ...counts });
      for (const place of PLACES) totals[place] += counts[place];
    }
    return { ...totals, tenants };
  }
}
