/**
 * What the ready queue is made of.
 *
 *   Tenant ──< Lane >── Version >── Handler
 *
 * A lane holds the ready entries of one tenant for one version of one handler, in the order in
 * which they start. A tenant and a handler each are a gate: closed while paused or at a limit.
 */
import { assert } from './assert.js';
import { IndexedHeap } from './indexed-heap.js';
import type { TokenBucket } from './token-bucket.js';

/** A ready occurrence, as far as its turn depends on it. The three last fields are the queue's. */
export interface ReadyEntry {
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number | undefined;
  /** 0 (most urgent) to 9. */
  readonly priority: number;
  /** Wall clock ms; a waiting entry rises one priority every 10 s from here. */
  readonly readyAtMs: number;
  readonly dueAt: number;
  /** Must run with its thread for itself: see `takeAlone`. */
  readonly alone: boolean;
  /** Position in its lane; −1 outside the queue. Written by the queue alone. */
  laneIndex: number;
  /** Set when taken: it waited while its tenant or handler was at a limit. */
  throttled: boolean;
}

/** A waiting entry rises one priority in this time. */
export const AGING_MS = 10_000;

/** Something that may stop its lanes from starting: a tenant or a handler. */
export class Gate {
  name: string;
  maxConcurrency = Number.POSITIVE_INFINITY;
  maxRatePerSecond: number | undefined;
  bucket: TokenBucket | undefined;
  paused = false;
  /** Picked and neither finished nor undone. */
  running = 0;
  /** Entries in its lanes. */
  waiting = 0;
  /** No token was left when last looked at; so until `wakeAtMs`. */
  dry = false;
  wakeAtMs = 0;
  timerIndex = -1;
  /** Was at a limit when last looked at. */
  limited = false;
  /** Entries that arrived up to here have waited at a limit of this gate. */
  limitedThrough = 0;
  open = true;

  constructor(name: string) {
    this.name = name;
  }

  get atLimit(): boolean {
    return this.dry || this.running >= this.maxConcurrency;
  }

  /** Only the next token is missing for its work to start. */
  get waitsForToken(): boolean {
    return this.dry && !this.paused && this.running < this.maxConcurrency && this.waiting > 0;
  }
}

/** Gates that wait for their next token, the earliest on top. */
export class GatesByToken extends IndexedHeap<Gate> {
  protected before(a: Gate, b: Gate): boolean {
    return a.wakeAtMs < b.wakeAtMs;
  }
  protected indexOf(gate: Gate): number {
    return gate.timerIndex;
  }
  protected setIndex(gate: Gate, index: number): void {
    gate.timerIndex = index;
  }
}

export class Tenant extends Gate {
  weight = 1;
  /** Virtual time of its next turn, and a serial number of that turn, to order equal ones. */
  tag = 0;
  turn = 0;
  /** Those of its entries that came up and must run alone, in that order; in no lane. */
  readonly aside: ReadyEntry[] = [];
  /** Virtual time from which the next of them may start. */
  aloneTag = 0;
  /** Turns that it had and nothing came of: it has them once more. */
  owed = 0;
  readonly lanes = new Map<Version, Lane>();
  /** Its lanes that hold entries, by their heads. */
  readonly heads = new LanesByHead();
  idleIndex = -1;
  idleUntilMs = 0;

  /**
   * As new, for another name; its empty lanes stay, which are most of what a tenant costs to make.
   */
  reset(name: string): void {
    this.name = name;
    this.bucket = undefined;
    this.dry = false;
    this.limited = false;
    this.limitedThrough = 0;
    this.weight = 1;
    this.owed = 0;
    this.aloneTag = 0;
  }
}

/** Tenants without work whose token bucket must be remembered for a while. */
export class TenantsByIdleEnd extends IndexedHeap<Tenant> {
  protected before(a: Tenant, b: Tenant): boolean {
    return a.idleUntilMs < b.idleUntilMs;
  }
  protected indexOf(tenant: Tenant): number {
    return tenant.idleIndex;
  }
  protected setIndex(tenant: Tenant, index: number): void {
    tenant.idleIndex = index;
  }
}

export class Handler extends Gate {
  readonly versions = new Map<number | undefined, Version>();
}

/** One version of a handler, with the lanes that wait for it. */
export class Version {
  readonly handler: Handler;
  readonly version: number | undefined;
  /** Some worker here can run it. */
  runnable = true;
  /** Runnable, and its handler's gate is open. */
  usable = true;
  waiting = 0;
  /** Lanes with entries whose tenant's gate is open, by their tenant's turn. */
  readonly lanes = new LanesByTurn();
  /** Those of the first lane. */
  tag = 0;
  turn = 0;
  index = -1;

  constructor(handler: Handler, version: number | undefined) {
    this.handler = handler;
    this.version = version;
  }
}

/** Versions with a lane that can start, by the turn of the first. */
export class VersionsByTurn extends IndexedHeap<Version> {
  protected before(a: Version, b: Version): boolean {
    return a.tag < b.tag || (a.tag === b.tag && a.turn < b.turn);
  }
  protected indexOf(version: Version): number {
    return version.index;
  }
  protected setIndex(version: Version, index: number): void {
    version.index = index;
  }
}

/** A binary heap of entries by priority and age, then due time, then arrival. */
export class Lane {
  readonly tenant: Tenant;
  readonly version: Version;
  readonly entries: ReadyEntry[] = [];
  // Keys beside the entries, for the comparisons: unboxed, and the entries stay untouched.
  readonly #orders: number[] = [];
  readonly #arrivals: number[] = [];
  /**
   * The tenant's when it last was looked at; the tenant may have had turns with other lanes since.
   */
  tag = 0;
  turn = 0;
  turnIndex = -1;
  headIndex = -1;

  constructor(tenant: Tenant, version: Version) {
    this.tenant = tenant;
    this.version = version;
  }

  get size(): number {
    return this.entries.length;
  }

  get headArrival(): number {
    return this.#arrivals[0];
  }

  /** Whether its head starts before the other lane's. */
  headBefore(other: Lane): boolean {
    const order = this.#orders[0];
    const otherOrder = other.#orders[0];
    if (order !== otherOrder) return order < otherOrder;
    const due = this.entries[0].dueAt;
    const otherDue = other.entries[0].dueAt;
    if (due !== otherDue) return due < otherDue;
    return this.#arrivals[0] < other.#arrivals[0];
  }

  /** O(log n). */
  push(entry: ReadyEntry, arrival: number): void {
    const index = this.entries.length;
    const order = entry.priority * AGING_MS + entry.readyAtMs;
    this.entries.push(entry);
    this.#orders.push(order);
    this.#arrivals.push(arrival);
    this.#up(index, entry, order, arrival);
  }

  /** O(log n). */
  removeAt(index: number): ReadyEntry {
    const entry = this.entries[index];
    assert(entry.laneIndex === index, 'a ready entry is not where its lane put it');
    entry.laneIndex = -1;
    const last = this.entries.pop() as ReadyEntry;
    const order = this.#orders.pop() as number;
    const arrival = this.#arrivals.pop() as number;
    if (last === entry) return entry;
    if (index > 0 && this.#isBefore(order, last, arrival, (index - 1) >> 1)) {
      this.#up(index, last, order, arrival);
    } else this.#down(index, last, order, arrival);
    return entry;
  }

  #isBefore(order: number, entry: ReadyEntry, arrival: number, other: number): boolean {
    const otherOrder = this.#orders[other];
    if (order !== otherOrder) return order < otherOrder;
    const otherDue = this.entries[other].dueAt;
    if (entry.dueAt !== otherDue) return entry.dueAt < otherDue;
    return arrival < this.#arrivals[other];
  }

  #move(from: number, to: number): void {
    const entry = this.entries[from];
    this.entries[to] = entry;
    this.#orders[to] = this.#orders[from];
    this.#arrivals[to] = this.#arrivals[from];
    entry.laneIndex = to;
  }

  #put(index: number, entry: ReadyEntry, order: number, arrival: number): void {
    this.entries[index] = entry;
    this.#orders[index] = order;
    this.#arrivals[index] = arrival;
    entry.laneIndex = index;
  }

  #up(from: number, entry: ReadyEntry, order: number, arrival: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(order, entry, arrival, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, entry, order, arrival);
  }

  #down(from: number, entry: ReadyEntry, order: number, arrival: number): void {
    const { length } = this.entries;
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length) {
        const orders = this.#orders;
        const right = child + 1;
        if (this.#isBefore(orders[right], this.entries[right], this.#arrivals[right], child))
          child++;
      }
      if (this.#isBefore(order, entry, arrival, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#put(index, entry, order, arrival);
  }
}

export class LanesByTurn extends IndexedHeap<Lane> {
  protected before(a: Lane, b: Lane): boolean {
    return a.tag < b.tag || (a.tag === b.tag && a.turn < b.turn);
  }
  protected indexOf(lane: Lane): number {
    return lane.turnIndex;
  }
  protected setIndex(lane: Lane, index: number): void {
    lane.turnIndex = index;
  }
}

export class LanesByHead extends IndexedHeap<Lane> {
  protected before(a: Lane, b: Lane): boolean {
    return a.headBefore(b);
  }
  protected indexOf(lane: Lane): number {
    return lane.headIndex;
  }
  protected setIndex(lane: Lane, index: number): void {
    lane.headIndex = index;
  }

  /**
   * The lane with the earliest head among those whose version is usable. Below a usable lane
   * nothing is earlier, so only the lanes that are passed over cost a step.
   */
  firstUsable(at = 0): Lane | undefined {
    const lane = this.items[at];
    if (lane === undefined || lane.version.usable) return lane;
    const left = this.firstUsable(2 * at + 1);
    const right = this.firstUsable(2 * at + 2);
    if (left === undefined) return right;
    return right === undefined || left.headBefore(right) ? left : right;
  }
}
