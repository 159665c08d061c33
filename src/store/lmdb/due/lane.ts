/**
 * Lanes of the due index: what is one tenant's, of one handler and version, and of one priority. Where a bucket holds many
 * of a lane they lie together, so that they can be read apart from all others.
 *
 *   key of a lane   tenant u32 · handler u32 (pool) · version + 1 u32, 0: none · priority u8
 */
import type { Lane } from '../../store.js';
import { readU32 } from '../keys.js';
import type { Pool } from '../pool.js';

export interface LaneOf extends Lane {
  readonly priority: number;
}

export const LANE_BYTES = 13;
/** Of chunks that hold entries of several lanes: before all others. */
export const MIXED: Uint8Array = new Uint8Array(LANE_BYTES);
const VERSION_MAX = 2 ** 32 - 2;

/** Undefined: it has none, for a name of it is not in the pool. */
export function laneKey(pool: Pool, lane: LaneOf): Uint8Array | undefined {
  const { tenant, handler, handlerVersion, priority } = lane;
  const numbers = [pool.numberOf(tenant), pool.numberOf(handler)];
  if (numbers.includes(0) || (handlerVersion ?? 0) > VERSION_MAX) return undefined;
  const key = Buffer.alloc(LANE_BYTES);
  key.writeUInt32BE(numbers[0], 0);
  key.writeUInt32BE(numbers[1], 4);
  key.writeUInt32BE(handlerVersion === undefined ? 0 : handlerVersion + 1, 8);
  key[12] = priority;
  return key;
}

/** @throws MalformedError */
export function laneOf(pool: Pool, key: Uint8Array): LaneOf {
  const version = readU32(key, 8);
  return {
    tenant: pool.name(readU32(key, 0)),
    handler: pool.name(readU32(key, 4)),
    handlerVersion: version === 0 ? undefined : version - 1,
    priority: key[12],
  };
}

export function isMixed(key: Uint8Array): boolean {
  return key.every((byte) => byte === 0);
}

export function isSameLane(a: Lane, b: Lane): boolean {
  return a.tenant === b.tenant && a.handler === b.handler && a.handlerVersion === b.handlerVersion;
}

/** Of all priorities. */
export function laneName({ tenant, handler, handlerVersion }: Lane): string {
  return `${tenant.length} ${tenant}${handler} ${handlerVersion}`;
}

export interface Sorted<T> {
  /** Undefined: mixed. */
  readonly lane: LaneOf | undefined;
  readonly items: T[];
}

/** Items of one lane together, where `isApart` says so of them; all others mixed. O(items). */
export function byLane<T>(
  items: T[],
  laneOfItem: (item: T) => LaneOf,
  isApart: (lane: LaneOf, count: number) => boolean,
): Sorted<T>[] {
  const lanes = new Map<string, { lane: LaneOf; items: T[] }>();
  let last: { lane: LaneOf; items: T[] } | undefined;
  for (const item of items) {
    const lane = laneOfItem(item);
    const isLast =
      last !== undefined && isSameLane(lane, last.lane) && lane.priority === last.lane.priority;
    if (!isLast) {
      const name = `${lane.priority} ${laneName(lane)}`;
      last = lanes.get(name);
      if (last === undefined) {
        last = { lane, items: [] };
        lanes.set(name, last);
      }
    }
    last?.items.push(item);
  }
  const sorted: Sorted<T>[] = [];
  const mixed: T[] = [];
  for (const found of lanes.values()) {
    if (isApart(found.lane, found.items.length)) sorted.push(found);
    else for (const item of found.items) mixed.push(item);
  }
  if (mixed.length > 0) sorted.push({ lane: undefined, items: mixed });
  return sorted;
}
