/**
 * The due-work pump: every occurrence that waits for its time stands in the near table and in the wheel; the
 * wheel lets it go when it is due; it is admitted when its lane has room, and waits in the backlog until then.
 *
 * The wheel is a cache: what stands here follows from committed records and can be rebuilt from the store.
 */
import type { TimerWheel } from '../wheel/timer-wheel.js';
import type { Backlog, LaneTable } from './backlog.js';
import { type NearTable, SLOTS_MAX } from './near-table.js';

/** What timing must know of an occurrence. */
export interface Timed {
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number | undefined;
  readonly priority: number;
  readonly dueAt: number;
}

export type TimedLane = Pick<Timed, 'tenant' | 'handler' | 'handlerVersion'>;

/** A due occurrence whose lane has room. */
export interface Admitted {
  readonly taskId: string;
  readonly occurrenceId: string;
}

/** One that is due at once, and has not been committed. */
interface Offered extends Admitted {
  readonly lane: number;
  readonly handle: number;
  admitted: boolean;
}

/** References in the wheel from here on are those of offers; below they are slots of the near table. */
const OFFERS_FROM = SLOTS_MAX;

export interface TimingOptions {
  readonly makeWheel: (startTick: number) => Promise<TimerWheel>;
  readonly near: NearTable;
  readonly backlog: Backlog;
  readonly lanes: LaneTable;
  /** How many more occurrences this lane may have between due and start. */
  readonly roomOf: (tenant: string, handler: string, version: number | undefined) => number;
  /** Its work could start, were there a slot: it is not paused, and at no limit. */
  readonly isOpen: (tenant: string, handler: string, version: number | undefined) => boolean;
  /** From so many bytes on a wheel with few timers left is given up for a small one. */
  readonly shrinkFromBytes?: number;
}

/** Timers re-inserted at once when the wheel is rebuilt. */
const REBUILD_CHUNK = 4096;

/** A wheel that does not let go of what is due is asked again after this long. */
const STUCK_RETRY_MS = 30_000;

/** Expiries that one call of the wheel gives at most, and such calls a take. */
const EXPIRIES_A_CALL = 4096;
const DRAINS_A_TAKE = 16;

/** The memory of 3 million timers, and what counts as few. */
const SHRINK_FROM_BYTES = 64 * 2 ** 20;
const SHRINK_TO = 4096;

/** Where a slot of the near table stands. */
const IN_WHEEL = 1;
const IN_BACKLOG = 2;
const EARLY = 3;

/** The one place that turns due times into ticks: a tick is a millisecond, and rounding up is never early. */
function tickOf(dueAtMs: number): number {
  return Math.max(0, Math.ceil(dueAtMs));
}

export class Timing {
  readonly #options: TimingOptions;
  #wheel: TimerWheel;
  /** Slots that left the wheel before their time, because the wall clock went back a little; and when. */
  #early: { slot: number; stamp: number }[] = [];
  #earliestMs = Number.POSITIVE_INFINITY;
  #offers: Offered[] = [];
  /** Offers that are worth while: so many could start beside what is overdue. */
  offersMax = Number.POSITIVE_INFINITY;
  /** True when the last `take` left due work behind. */
  moreDue = false;
  /** Something went into the wheel that the last `take` cannot have seen. */
  #placedSinceTake = false;
  #takenUpToMs = Number.NEGATIVE_INFINITY;
  #latestTakeMs = Number.NEGATIVE_INFINITY;
  /** Overdue in lanes that were closed at the last `take`. */
  #parked = 0;
  readonly #laneRoom = new Map<number, number>();

  static async create(options: TimingOptions, nowMs: number): Promise<Timing> {
    return new Timing(options, await options.makeWheel(tickOf(nowMs)));
  }

  private constructor(options: TimingOptions, wheel: TimerWheel) {
    this.#options = options;
    this.#wheel = wheel;
  }

  /** Occurrences in the wheel or the backlog. */
  get size(): number {
    return this.#options.near.size;
  }

  /** Of one lane. */
  sizeOf({ tenant, handler, handlerVersion }: TimedLane): number {
    return this.#options.lanes.countOf(tenant, handler, handlerVersion);
  }

  get overdue(): number {
    return this.#options.backlog.size;
  }

  /** Of those overdue, what waits for a slot alone: not for a limit of its lane, or the end of a pause. As of the last `take`. */
  get behind(): number {
    return Math.max(0, this.overdue - this.#parked);
  }

  get memoryBytes(): number {
    return this.#wheel.memoryBytes + this.#options.near.bytes;
  }

  /** Wall clock time at which `take` must be called; Infinity when nothing waits for its time. */
  get nextWakeMs(): number {
    const wakeMs = this.#wheel.nextWake() ?? Number.POSITIVE_INFINITY;
    // A wheel that keeps what is due must not make the loop spin.
    const isStuck = wakeMs <= this.#takenUpToMs && !this.#placedSinceTake && !this.moreDue;
    return Math.min(isStuck ? this.#takenUpToMs + STUCK_RETRY_MS : wakeMs, this.#earliestMs);
  }

  /** True when something may be due that `take` has not been asked for: then no alarm need be waited for. */
  isDue(nowMs: number): boolean {
    return this.moreDue || (this.#placedSinceTake && this.nextWakeMs <= nowMs);
  }

  /** What was due later was never let go by `take`. */
  get latestTakeMs(): number {
    return this.#latestTakeMs;
  }

  /** The exact due time of the earliest timer. */
  get nextDueMs(): number | undefined {
    return this.#wheel.nextExpiry();
  }

  /**
   * One that the turn at hand creates and that is due by `nowMs`: `take` may let it go in this same turn, and it is
   * never timed otherwise. It need not be kept here: what `take` does not let go is forgotten.
   */
  offer(timed: Timed, taskId: string, nowMs: number): void {
    const { lanes } = this.#options;
    // Those that were due before it go first.
    if (timed.dueAt > nowMs || this.#offers.length >= this.offersMax || this.moreDue) return;
    const lane = lanes.intern(timed.tenant, timed.handler, timed.handlerVersion);
    const handle = this.#wheel.insert(tickOf(timed.dueAt), OFFERS_FROM + this.#offers.length);
    const { occurrenceId } = timed;
    this.#offers.push({ taskId, occurrenceId, lane, handle, admitted: false });
  }

  #forgetOffers(): void {
    for (const { lane, handle, admitted } of this.#offers) {
      // An expired one is no longer in the wheel, and this does nothing.
      if (!admitted) this.#wheel.cancel(handle);
      this.#options.lanes.release(lane);
    }
    this.#offers = [];
  }

  /** Puts the occurrence in, or moves it to its present due time and priority. O(1). */
  place(timed: Timed): void {
    const { near, lanes } = this.#options;
    const known = near.find(timed.occurrenceId);
    if (known >= 0) {
      const same = near.dueAt(known) === timed.dueAt && near.priority(known) === timed.priority;
      if (same) return;
      this.#drop(known);
    }
    const lane = lanes.intern(timed.tenant, timed.handler, timed.handlerVersion);
    const fields = {
      dueAt: timed.dueAt,
      handle: 0,
      lane,
      priority: timed.priority,
      flags: IN_WHEEL,
    };
    const id = timed.occurrenceId;
    const slot = known < 0 ? near.insertMissed(id, fields) : near.put(id, fields);
    near.setHandle(slot, this.#wheel.insert(tickOf(timed.dueAt), slot));
    this.#placedSinceTake = true;
  }

  /** In the wheel or the backlog. O(1). */
  has(occurrenceId: string): boolean {
    return this.#options.near.find(occurrenceId) >= 0;
  }

  /** Takes the occurrence out; nothing is left behind. O(1). */
  remove(occurrenceId: string): void {
    const slot = this.#options.near.find(occurrenceId);
    if (slot >= 0) this.#drop(slot);
  }

  /** Takes the occurrence out unless it is timed for just then. O(1). */
  removeUnless(occurrenceId: string, dueAt: number): void {
    const { near } = this.#options;
    const slot = near.find(occurrenceId);
    if (slot >= 0 && near.dueAt(slot) !== dueAt) this.#drop(slot);
  }

  #drop(slot: number): void {
    const { near, backlog, lanes } = this.#options;
    const lane = near.lane(slot);
    const where = near.flags(slot);
    if (where === IN_WHEEL) this.#wheel.cancel(near.handle(slot));
    near.remove(slot);
    // After the removal: only then does the backlog see that the entry is stale.
    if (where === IN_BACKLOG) backlog.dropped(lane);
    lanes.release(lane);
  }

  /** Due occurrences that may go on, `max` at most; they are no longer timed here. */
  take(nowMs: number, max: number): Admitted[] {
    this.#laneRoom.clear();
    const admitted: Admitted[] = [];
    this.#placedSinceTake = false;
    this.#takenUpToMs = nowMs;
    this.#latestTakeMs = Math.max(this.#latestTakeMs, nowMs);
    this.#takeEarly(nowMs);
    this.#takeBacklog(admitted, max);
    // What has no room goes to the backlog; a crowd goes there fast, so that others behind it come up.
    for (let calls = 0; calls < DRAINS_A_TAKE; calls++) {
      this.moreDue = this.#takeExpired(nowMs, admitted, max);
      if (!this.moreDue) break;
    }
    if (this.#offers.length > 0) this.#forgetOffers();
    return admitted;
  }

  /** True when the wheel has more that is due. */
  #takeExpired(nowMs: number, admitted: Admitted[], max: number): boolean {
    const { refs, more } = this.#wheel.advance(tickOf(nowMs), EXPIRIES_A_CALL);
    for (let i = 0; i < refs.length; i++) {
      const ref = refs[i] as number;
      if (ref >= OFFERS_FROM) this.#offerExpired(ref - OFFERS_FROM, admitted, max);
      else this.#expired(ref, nowMs, admitted, max);
    }
    return more;
  }

  #offerExpired(index: number, admitted: Admitted[], max: number): void {
    const offer = this.#offers[index] as Offered;
    if (admitted.length >= max || this.#roomOf(offer.lane) <= 0) return;
    offer.admitted = true;
    admitted.push(offer);
    this.#laneRoom.set(offer.lane, this.#roomOf(offer.lane) - 1);
  }

  #expired(slot: number, nowMs: number, admitted: Admitted[], max: number): void {
    const { near, backlog } = this.#options;
    const lane = near.lane(slot);
    if (near.dueAt(slot) > nowMs) {
      this.#early.push({ slot, stamp: near.stamp(slot) });
      this.#earliestMs = Math.min(this.#earliestMs, near.dueAt(slot));
      near.setFlags(slot, EARLY);
    } else if (admitted.length < max && this.#roomOf(lane) > 0) {
      this.#admit(slot, lane, admitted);
    } else {
      near.setFlags(slot, IN_BACKLOG);
      backlog.push(lane, slot, near.stamp(slot), near.priority(slot), near.dueAt(slot));
    }
  }

  #takeEarly(nowMs: number): void {
    if (this.#earliestMs > nowMs) return;
    const { near, backlog } = this.#options;
    const early = this.#early;
    this.#early = [];
    this.#earliestMs = Number.POSITIVE_INFINITY;
    for (const entry of early) {
      const { slot, stamp } = entry;
      if (near.stamp(slot) !== stamp) continue;
      if (near.dueAt(slot) > nowMs) {
        this.#early.push(entry);
        this.#earliestMs = Math.min(this.#earliestMs, near.dueAt(slot));
      } else {
        near.setFlags(slot, IN_BACKLOG);
        backlog.push(near.lane(slot), slot, stamp, near.priority(slot), near.dueAt(slot));
      }
    }
  }

  #takeBacklog(admitted: Admitted[], max: number): void {
    const { near, backlog } = this.#options;
    this.#parked = 0;
    if (backlog.size === 0) return;
    backlog.forEachLane((lane) => {
      while (admitted.length < max && this.#roomOf(lane) > 0) {
        const entry = backlog.take(lane);
        if (entry === undefined) break;
        if (near.stamp(entry.slot) === entry.stamp) this.#admit(entry.slot, lane, admitted);
      }
      const left = backlog.sizeOf(lane);
      if (left > 0 && !this.#isOpen(lane)) this.#parked += left;
      return admitted.length < max;
    });
  }

  #admit(slot: number, lane: number, admitted: Admitted[]): void {
    const { near, lanes } = this.#options;
    admitted.push({ taskId: near.taskIdOf(slot), occurrenceId: near.occurrenceIdOf(slot) });
    this.#laneRoom.set(lane, this.#roomOf(lane) - 1);
    near.remove(slot);
    lanes.release(lane);
  }

  #roomOf(lane: number): number {
    let room = this.#laneRoom.get(lane);
    if (room === undefined) {
      const { tenant, handler, version } = this.#options.lanes.name(lane);
      room = this.#options.roomOf(tenant, handler, version);
      this.#laneRoom.set(lane, room);
    }
    return room;
  }

  #isOpen(lane: number): boolean {
    const { tenant, handler, version } = this.#options.lanes.name(lane);
    return this.#options.isOpen(tenant, handler, version);
  }

  /** True when something is overdue whose lane has room now. */
  canAdmit(): boolean {
    const { backlog } = this.#options;
    if (backlog.size === 0) return false;
    this.#laneRoom.clear();
    let found = false;
    backlog.forEachLane((lane) => {
      found = this.#roomOf(lane) > 0;
      return !found;
    });
    return found;
  }

  /** A wheel that once held many keeps its memory, as WebAssembly does: when few are left, a small one takes its place. */
  async shrink(nowMs: number, pause: () => Promise<void>): Promise<void> {
    const { shrinkFromBytes = SHRINK_FROM_BYTES } = this.#options;
    if (this.#wheel.memoryBytes < shrinkFromBytes || this.size > SHRINK_TO) return;
    await this.rebuild(nowMs, pause);
  }

  /** A wheel that starts at the present tick, filled anew in bounded batches: the wall clock went back. */
  async rebuild(nowMs: number, pause: () => Promise<void>): Promise<void> {
    const { near } = this.#options;
    const wheel = await this.#options.makeWheel(tickOf(nowMs));
    let inChunk = 0;
    for (let slot = near.nextSlot(-1); slot >= 0; slot = near.nextSlot(slot)) {
      if (near.flags(slot) !== IN_WHEEL) continue;
      near.setHandle(slot, wheel.insert(tickOf(near.dueAt(slot)), slot));
      if (++inChunk % REBUILD_CHUNK === 0) await pause();
    }
    this.#wheel.close();
    this.#wheel = wheel;
    this.#placedSinceTake = true;
  }

  close(): void {
    this.#wheel.close();
  }
}
