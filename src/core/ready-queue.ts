/**
 * Between due and start: picks what starts next when slots come free. Pure: time comes as an
 * argument.
 *
 * 1. Fair: of the slots that come free, a tenant with work that may start gets its weighted share
 *    within one round (a slot for each unit of weight of all such tenants). Priority never outranks
 *    another tenant.
 * 2. Within a tenant the order is priority and age (one level every 10 s), then due time, then
 *    arrival.
 * 3. A lane that cannot start (tenant or handler paused or at a limit, no worker for the version)
 *    holds up nothing else, neither other tenants nor its own tenant's other handlers.
 * 4. Limits are never exceeded: `running` ≤ maxConcurrency at a pick; picks in t seconds ≤ burst +
 *    rate × t.
 * 5. What it remembers of a tenant is gone once nothing of it waits or runs and its token bucket is
 *    full.
 */
import { Aside } from './aside.js';
import { assert } from './assert.js';
import {
  type Gate,
  GatesByToken,
  Handler,
  Lane,
  type ReadyEntry,
  Tenant,
  TenantsByIdleEnd,
  Version,
} from './lane.js';
import { TokenBucket } from './token-bucket.js';
import { Turns } from './turns.js';

export type { ReadyEntry } from './lane.js';

export interface LaneLimits {
  /** Attempts that may run at once, ≥ 0; none: unlimited. */
  readonly maxConcurrency?: number | undefined;
  /** Starts a second, > 0, fractions allowed, with a burst of one second; none: unlimited. */
  readonly maxRatePerSecond?: number | undefined;
}

export interface TenantLaneLimits extends LaneLimits {
  /** Share against other tenants; default 1, taken as within 0.001 to 1,000. */
  readonly weight?: number | undefined;
}

/** A tenant or handler of which something waits or runs, and its bounds. */
export interface GateStats {
  readonly name: string;
  readonly waiting: number;
  readonly running: number;
  readonly maxConcurrency: number | undefined;
  readonly maxRatePerSecond: number | undefined;
  /** Starts that count against the rate now. */
  readonly recentStarts: number;
  readonly paused: boolean;
}

export interface ReadyQueueOptions {
  /** Entries that lanes that can start share in memory; default 16,384. */
  readonly maxReady?: number;
}

const MAX_READY = 16_384;
/** Entries that a lane may always hold, and all that one may hold which cannot start. */
const LANE_MIN = 64;
/** The least of any lane that can start, and how often the aim is exceeded rather than go below 64. */
const LANE_FEW = 4;
const LANES_SPARE = 4;
const WEIGHT_MIN = 0.001;
const WEIGHT_MAX = 1000;
const IDLE_DROPS_A_TAKE = 256;
const SPARE_MAX = 4096;
/** Turns that a tenant may be owed, so that it cannot hold up others for long when it has them. */
const OWED_MAX = 16;

type Head = Pick<ReadyEntry, 'tenant' | 'handler'>;

export class ReadyQueue<T extends ReadyEntry> {
  readonly maxReady: number;
  /**
   * What lanes that can start share now, `maxReady` at most. Entries are objects on the heap; the caller keeps so many
   * as can start soon, and leaves the rest where it costs less.
   */
  aim = Number.POSITIVE_INFINITY;
  readonly #laneMin: number;
  readonly #tenants = new Map<string, Tenant>();
  readonly #handlers = new Map<string, Handler>();
  readonly #turns = new Turns();
  readonly #tokens = new GatesByToken();
  /**
   * Tenants to be used again: making one for each task of many tenants would cost more than all
   * else here.
   */
  readonly #spare: Tenant[] = [];
  readonly #idle = new TenantsByIdleEnd();
  readonly #limitsOf = new Map<string, TenantLaneLimits>();
  #limitsOfOthers: TenantLaneLimits = {};
  readonly #paused = new Set<string>();
  #isRunnable: (handler: string, version: number | undefined) => boolean = () => true;
  /** Taken by `takeAlone`, and neither finished nor undone. */
  #alone: Head | undefined;
  /** `takeAlone` takes them. */
  readonly #aside = new Aside(
    this.#turns,
    ({ handler, handlerVersion }) => this.#versionOf(handler, handlerVersion).usable,
  );
  #size = 0;
  #arrivals = 0;
  /** Arrivals before the last `take`. */
  #arrivalsSeen = 0;
  #monotonicMs = Number.NEGATIVE_INFINITY;

  constructor(options: ReadyQueueOptions = {}) {
    this.maxReady = options.maxReady ?? MAX_READY;
    assert(this.maxReady >= 1, `maxReady is ${this.maxReady}`);
    this.#laneMin = Math.min(LANE_MIN, this.maxReady);
  }

  /** Entries waiting. */
  get size(): number {
    return this.#size;
  }

  /** True when `take` may find something without the passing of time. */
  get canStart(): boolean {
    return this.#turns.lanesOpen > 0;
  }

  sizeOf(tenant: string): number {
    return this.#tenants.get(tenant)?.waiting ?? 0;
  }

  running(tenant: string): number {
    return this.#tenants.get(tenant)?.running ?? 0;
  }

  runningOfHandler(handler: string): number {
    return this.#handlers.get(handler)?.running ?? 0;
  }

  /** Tenants of which anything is remembered here. */
  get tenantsKept(): number {
    return this.#tenants.size;
  }

  // --- entries
  // -----------------------------------------------------------------------------------------

  /**
   * How many more entries this lane may hold. Lanes that can start share `maxReady` evenly, with 64
   * each at least; one that cannot holds at most 64. What lanes filled before they closed counts up
   * to another `maxReady`, then 64 a lane is all: the queue never holds more than 2 × maxReady + 64
   * a lane. O(1).
   */
  room(tenant: string, handler: string, version: number | undefined): number {
    const min = this.#laneMin;
    const known = this.#tenants.get(tenant);
    const toRun = this.#handlers.get(handler)?.versions.get(version);
    const lane = known !== undefined && toRun !== undefined ? known.lanes.get(toRun) : undefined;
    const held = lane?.size ?? 0;
    if (!this.isOpen(tenant, handler, version)) return Math.max(0, min - held);
    const lanes = this.#turns.lanesOpen + (held === 0 ? 1 : 0);
    const target = Math.min(this.aim, this.maxReady);
    // Of very many lanes each holds less, as far as the aim allows it.
    const floor = Math.min(min, Math.max(LANE_FEW, Math.floor((LANES_SPARE * target) / lanes)));
    const share = Math.max(floor, Math.floor(target / lanes));
    const free = Math.max(2 * this.maxReady - this.#size, floor - held);
    return Math.max(0, Math.min(share - held, free));
  }

  /** What waits in this lane could start, were there a slot. O(1). */
  isOpen(tenant: string, handler: string, version: number | undefined): boolean {
    const toRun = this.#handlers.get(handler)?.versions.get(version);
    const usable = toRun?.usable ?? this.#usableIfMade(handler, version);
    return usable && (this.#tenants.get(tenant)?.open ?? this.#openIfMade(tenant));
  }

  #usableIfMade(handler: string, version: number | undefined): boolean {
    return (this.#handlers.get(handler)?.open ?? true) && this.#isRunnable(handler, version);
  }

  #openIfMade(tenant: string): boolean {
    return !this.#paused.has(tenant) && this.#limitsFor(tenant).maxConcurrency !== 0;
  }

  /** The caller has asked `room` before. O(log n). */
  push(entry: T): void {
    const tenant = this.#tenants.get(entry.tenant) ?? this.#addTenant(entry.tenant);
    const version = this.#versionOf(entry.handler, entry.handlerVersion);
    let lane = tenant.lanes.get(version);
    if (lane === undefined) {
      lane = new Lane(tenant, version);
      tenant.lanes.set(version, lane);
    }
    entry.throttled = false;
    // Without work it had no timer, so its token may have come unnoticed.
    if (tenant.dry) this.#settle(tenant, this.#arrivalsSeen);
    if (version.handler.dry) this.#settle(version.handler, this.#arrivalsSeen);
    if (tenant.heads.top === undefined) this.#turns.assign(tenant);
    lane.push(entry, ++this.#arrivals);
    this.#count(tenant, version, 1);
    if (lane.size === 1) {
      tenant.heads.push(lane);
      if (tenant.open) this.#turns.join(lane);
    } else if (entry.laneIndex === 0) tenant.heads.update(lane);
  }

  /** Takes a waiting entry out; false when it is not here. O(log n). */
  remove(entry: T): boolean {
    const version = this.#handlers.get(entry.handler)?.versions.get(entry.handlerVersion);
    const tenant = this.#tenants.get(entry.tenant);
    if (version === undefined || tenant === undefined) return false;
    if (entry.alone && this.#pullAside(tenant, entry)) {
      this.#dropIfIdle(tenant);
      return true;
    }
    const lane = tenant.lanes.get(version);
    if (lane === undefined || lane.entries[entry.laneIndex] !== entry) return false;
    this.#pull(lane, entry.laneIndex);
    this.#dropIfIdle(tenant);
    return true;
  }

  /**
   * Picks up to `max` entries that may start now, fairly, and appends them to `out`. Each counts as
   * running and has cost its tokens until `finished` or `undo`. O(log n) each.
   */
  take(monotonicMs: number, max: number, out: T[] = []): T[] {
    this.#monotonicMs = Math.max(this.#monotonicMs, monotonicMs);
    this.#openAtTokens();
    this.#dropIdle(Math.max(IDLE_DROPS_A_TAKE, 2 * max));
    for (let picked = 0; picked < max; ) {
      const tenant = this.#turns.first();
      if (tenant === undefined) break;
      const lane = tenant.heads.firstUsable();
      assert(lane !== undefined, 'a tenant has its turn and nothing that can start');
      // What must run alone is no start yet: the tenant has its turn still.
      if (lane.entries[0].alone) this.#putAside(lane);
      else {
        const entry = this.#pullFirst(lane) as T;
        this.#spendOn(tenant, lane.version.handler);
        out.push(entry);
        picked++;
      }
    }
    this.#arrivalsSeen = this.#arrivals;
    return out;
  }

  /** True when `takeAlone` finds something: then a thread should be emptied for it. */
  get wantsAlone(): boolean {
    return this.#alone === undefined && this.#aside.next() !== undefined;
  }

  /**
   * The next entry that must run alone and may start now: of each tenant one a round, as long as others could start instead.
   * One at a time, so that of a process that dies only one can have run alone. It counts as taken, as by `take`.
   */
  takeAlone(monotonicMs: number): T | undefined {
    this.#monotonicMs = Math.max(this.#monotonicMs, monotonicMs);
    if (this.#alone !== undefined) return undefined;
    this.#openAtTokens();
    const entry = this.#aside.next();
    if (entry === undefined) return undefined;
    const tenant = this.#tenants.get(entry.tenant) as Tenant;
    this.#pullAside(tenant, entry);
    this.#alone = entry;
    this.#turns.hadAlone(tenant);
    this.#setBackTurns();
    this.#spendOn(tenant, this.#handlerOf(entry.handler));
    return entry as T;
  }

  #putAside(lane: Lane): void {
    const { tenant, version } = lane;
    this.#aside.put(tenant, this.#pullHead(lane));
    // It waits still, though for a thread.
    this.#count(tenant, version, 1);
  }

  #pullAside(tenant: Tenant, entry: ReadyEntry): boolean {
    if (!this.#aside.remove(tenant, entry)) return false;
    this.#count(tenant, this.#versionOf(entry.handler, entry.handlerVersion), -1);
    return true;
  }

  /** The attempt has ended: its slot is free again. */
  finished(entry: Head): void {
    this.#end(entry, false);
  }

  /**
   * The entry was picked and did not start: as if it had not been picked, also for its tenant's share. It is not put
   * back.
   */
  undo(entry: Head): void {
    this.#end(entry, true);
  }

  /**
   * Monotonic time at which the next token lets work start that waits only for it; Infinity when
   * none. O(1).
   */
  nextTokenAt(monotonicMs: number): number {
    const first = this.#tokens.top;
    return first === undefined ? Number.POSITIVE_INFINITY : Math.max(monotonicMs, first.wakeAtMs);
  }

  /** The entry whose turn it is. */
  #pullFirst(lane: Lane): ReadyEntry {
    this.#turns.had(lane.tenant);
    const entry = this.#pullHead(lane);
    if (lane.turnIndex >= 0) this.#turns.catchUp(lane);
    this.#setBackTurns();
    return entry;
  }

  #pullHead(lane: Lane): ReadyEntry {
    const arrival = lane.headArrival;
    const entry = this.#pull(lane, 0);
    const { tenant, version } = lane;
    entry.throttled = arrival <= tenant.limitedThrough || arrival <= version.handler.limitedThrough;
    return entry;
  }

  #setBackTurns(): void {
    if (this.#turns.mustSetBack) this.#turns.setBack(this.#tenants.values());
  }

  #spendOn(tenant: Tenant, handler: Handler): void {
    this.#spend(tenant);
    this.#spend(handler);
  }

  #spend(gate: Gate): void {
    gate.running++;
    gate.bucket?.spend(this.#monotonicMs);
    this.#settle(gate);
  }

  #end(entry: Head, refund: boolean): void {
    const tenant = this.#tenants.get(entry.tenant);
    const handler = this.#handlers.get(entry.handler);
    assert(tenant !== undefined && tenant.running > 0, 'more ends than starts of a tenant');
    assert(handler !== undefined && handler.running > 0, 'more ends than starts of a handler');
    tenant.running--;
    handler.running--;
    if (refund) {
      tenant.owed = Math.min(OWED_MAX, tenant.owed + 1);
      tenant.bucket?.refund();
      handler.bucket?.refund();
    }
    this.#settle(tenant);
    this.#settle(handler);
    this.#dropIfIdle(tenant);
    if (entry === this.#alone) this.#alone = undefined;
  }

  /** Takes the entry out of its lane, and the lane out of the heaps when that was its last. */
  #pull(lane: Lane, index: number): ReadyEntry {
    const { heads } = lane.tenant;
    const entry = lane.entries[index];
    if (lane.size === 1) {
      heads.remove(lane);
      if (lane.turnIndex >= 0) this.#turns.leave(lane);
    }
    lane.removeAt(index);
    if (index === 0 && lane.size > 0) heads.update(lane);
    this.#count(lane.tenant, lane.version, -1);
    return entry;
  }

  #count(tenant: Tenant, version: Version, change: 1 | -1): void {
    this.#size += change;
    version.waiting += change;
    tenant.waiting += change;
    version.handler.waiting += change;
    if (tenant.dry) this.#syncToken(tenant);
    if (version.handler.dry) this.#syncToken(version.handler);
  }

  // --- gates
  // -------------------------------------------------------------------------------------------

  /** Looks at the gate again after anything of it has changed; opens or closes its lanes. */
  #settle(gate: Gate, arrivals = this.#arrivals): void {
    const { bucket } = gate;
    gate.dry = bucket !== undefined && bucket.readyAtMs > this.#monotonicMs;
    if (bucket !== undefined) this.#syncToken(gate);
    const limited = gate.atLimit;
    if (gate.limited && !limited) gate.limitedThrough = arrivals;
    gate.limited = limited;
    const open = !limited && !gate.paused;
    if (open === gate.open) return;
    gate.open = open;
    if (gate instanceof Tenant) this.#openTenant(gate);
    else this.#openHandler(gate as Handler);
  }

  #openTenant(tenant: Tenant): void {
    for (const lane of tenant.heads.items) {
      if (tenant.open) this.#turns.join(lane);
      else this.#turns.leave(lane);
    }
  }

  #openHandler(handler: Handler): void {
    for (const version of handler.versions.values()) this.#settleVersion(version);
  }

  #settleVersion(version: Version): void {
    const usable = version.runnable && version.handler.open;
    if (usable === version.usable) return;
    this.#turns.setUsable(version, usable);
  }

  #syncToken(gate: Gate): void {
    const queued = gate.timerIndex >= 0;
    if (!gate.waitsForToken) {
      if (queued) this.#tokens.remove(gate);
      return;
    }
    const wakeAtMs = (gate.bucket as TokenBucket).readyAtMs;
    if (queued && gate.wakeAtMs === wakeAtMs) return;
    gate.wakeAtMs = wakeAtMs;
    if (queued) this.#tokens.update(gate);
    else this.#tokens.push(gate);
  }

  #openAtTokens(): void {
    for (;;) {
      const gate = this.#tokens.top;
      if (gate === undefined || gate.wakeAtMs > this.#monotonicMs) return;
      // Entries that came since the last look came with the token, most likely: they have not
      // waited for it.
      this.#settle(gate, this.#arrivalsSeen);
      assert(gate.timerIndex < 0, 'a gate waits for a token that is there');
    }
  }

  // --- tenants and handlers
  // ----------------------------------------------------------------------------

  #addTenant(name: string): Tenant {
    const tenant = this.#spare.pop() ?? new Tenant(name);
    tenant.reset(name);
    this.#tenants.set(name, tenant);
    tenant.paused = this.#paused.has(name);
    this.#applyTo(tenant);
    return tenant;
  }

  #versionOf(name: string, number: number | undefined): Version {
    const handler = this.#handlerOf(name);
    let version = handler.versions.get(number);
    if (version === undefined) {
      version = new Version(handler, number);
      version.runnable = this.#isRunnable(name, number);
      version.usable = version.runnable && handler.open;
      handler.versions.set(number, version);
    }
    return version;
  }

  /** Handlers are kept: there are only as many as the program has. */
  #handlerOf(name: string): Handler {
    let handler = this.#handlers.get(name);
    if (handler === undefined) {
      handler = new Handler(name);
      this.#handlers.set(name, handler);
    }
    return handler;
  }

  #dropIfIdle(tenant: Tenant): void {
    if (tenant.waiting > 0 || tenant.running > 0) return;
    const fullAtMs = tenant.bucket?.fullAtMs ?? Number.NEGATIVE_INFINITY;
    tenant.idleUntilMs = fullAtMs;
    if (fullAtMs <= this.#monotonicMs) this.#drop(tenant);
    else if (tenant.idleIndex >= 0) this.#idle.update(tenant);
    else this.#idle.push(tenant);
  }

  #drop(tenant: Tenant): void {
    if (tenant.idleIndex >= 0) this.#idle.remove(tenant);
    this.#tenants.delete(tenant.name);
    tenant.name = '';
    if (this.#spare.length < SPARE_MAX) this.#spare.push(tenant);
  }

  #dropIdle(max: number): void {
    for (let looked = 0; looked < max; looked++) {
      const tenant = this.#idle.top;
      if (tenant === undefined || tenant.idleUntilMs > this.#monotonicMs) return;
      this.#idle.remove(tenant);
      this.#dropIfIdle(tenant);
    }
  }

  // --- limits, pauses, workers
  // -------------------------------------------------------------------------

  /**
   * Limits of one tenant, in the place of those of `'*'`, the default of all others; `{}` lifts
   * them.
   */
  setTenantLimits(tenant: string, limits: TenantLaneLimits): void {
    if (tenant !== '*') {
      this.#limitsOf.set(tenant, limits);
      const known = this.#tenants.get(tenant);
      if (known !== undefined) this.#applyTo(known);
      return;
    }
    this.#limitsOfOthers = limits;
    for (const known of [...this.#tenants.values()]) {
      if (!this.#limitsOf.has(known.name)) this.#applyTo(known);
    }
  }

  setHandlerLimits(handler: string, limits: LaneLimits): void {
    const gate = this.#handlerOf(handler);
    this.#setLimits(gate, limits);
    this.#settle(gate);
  }

  /** The tenant or the handler has a limit of concurrency or rate. */
  isLimited(tenant: string, handler: string): boolean {
    const { maxConcurrency, maxRatePerSecond } = this.#limitsFor(tenant);
    const gate = this.#handlers.get(handler);
    return (
      maxConcurrency !== undefined ||
      maxRatePerSecond !== undefined ||
      (gate !== undefined && (gate.bucket !== undefined || Number.isFinite(gate.maxConcurrency)))
    );
  }

  #limitsFor(tenant: string): TenantLaneLimits {
    return this.#limitsOf.get(tenant) ?? this.#limitsOfOthers;
  }

  #applyTo(tenant: Tenant): void {
    const limits = this.#limitsFor(tenant.name);
    this.#setLimits(tenant, limits);
    const weight = Math.min(WEIGHT_MAX, Math.max(WEIGHT_MIN, limits.weight ?? 1));
    assert(!Number.isNaN(weight), `the weight of ${tenant.name} is not a number`);
    if (weight !== tenant.weight) {
      tenant.weight = weight;
      this.#takeNewTurn(tenant);
    }
    this.#settle(tenant);
    if (tenant.idleIndex >= 0) this.#dropIfIdle(tenant);
  }

  /**
   * A tag may only grow while the tenant's lanes are ranked by it, so they are taken out for the
   * change.
   */
  #takeNewTurn(tenant: Tenant): void {
    const { open } = tenant;
    tenant.open = false;
    if (open) this.#openTenant(tenant);
    this.#turns.reweigh(tenant);
    tenant.open = open;
    if (open) this.#openTenant(tenant);
  }

  #setLimits(gate: Gate, limits: LaneLimits): void {
    const rate = limits.maxRatePerSecond;
    gate.maxConcurrency = limits.maxConcurrency ?? Number.POSITIVE_INFINITY;
    gate.maxRatePerSecond = rate;
    if (rate === undefined || rate === Number.POSITIVE_INFINITY) {
      gate.bucket = undefined;
      if (gate.timerIndex >= 0) this.#tokens.remove(gate);
    } else if (gate.bucket === undefined) gate.bucket = new TokenBucket(rate);
    else gate.bucket.setRate(rate, this.#monotonicMs);
  }

  /** Nothing of the tenant is picked until it is resumed; its entries stay. */
  pauseTenant(tenant: string): void {
    this.#paused.add(tenant);
    this.#setPaused(this.#tenants.get(tenant), true);
  }

  resumeTenant(tenant: string): void {
    this.#paused.delete(tenant);
    this.#setPaused(this.#tenants.get(tenant), false);
  }

  /** Nothing of the handler is picked until it is resumed; its entries stay. */
  pauseHandler(handler: string): void {
    this.#setPaused(this.#handlerOf(handler), true);
  }

  resumeHandler(handler: string): void {
    this.#setPaused(this.#handlers.get(handler), false);
  }

  #setPaused(gate: Gate | undefined, paused: boolean): void {
    if (gate === undefined) return;
    gate.paused = paused;
    this.#settle(gate);
  }

  /**
   * Which versions some worker here can run; asked once for each version, and again at
   * `refreshRunnable`.
   */
  setRunnable(isRunnable: (handler: string, version: number | undefined) => boolean): void {
    this.#isRunnable = isRunnable;
    this.refreshRunnable();
  }

  /** To be called when the answers of `setRunnable`'s function have changed. O(versions). */
  refreshRunnable(): void {
    for (const handler of this.#handlers.values()) {
      for (const version of handler.versions.values()) {
        version.runnable = this.#isRunnable(handler.name, version.version);
        this.#settleVersion(version);
      }
    }
  }

  /** `handler@version` (`handler@*` when any will do) → entries that no worker here can run. */
  waitingVersions(): Map<string, number> {
    const waiting = new Map<string, number>();
    for (const handler of this.#handlers.values()) {
      for (const { version, runnable, waiting: count } of handler.versions.values()) {
        if (!runnable && count > 0) waiting.set(`${handler.name}@${version ?? '*'}`, count);
      }
    }
    return waiting;
  }

  /** Current and limit of each tenant and handler known here. O(tenants + handlers). */
  bounds(): { tenants: GateStats[]; handlers: GateStats[] } {
    const of = (gate: Gate) => statsOf(gate, this.#monotonicMs);
    return {
      tenants: Array.from(this.#tenants.values(), of),
      handlers: Array.from(this.#handlers.values(), of),
    };
  }
}

function statsOf(gate: Gate, monotonicMs: number): GateStats {
  const { name, waiting, running, maxRatePerSecond, paused } = gate;
  const maxConcurrency = Number.isFinite(gate.maxConcurrency) ? gate.maxConcurrency : undefined;
  const recentStarts = gate.bucket?.missingAt(monotonicMs) ?? 0;
  return { name, waiting, running, maxConcurrency, maxRatePerSecond, recentStarts, paused };
}
