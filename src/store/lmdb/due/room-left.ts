/** The room of lanes as it is used up in the course of one step. */
import type { Lane, NearRoom } from '../../store.js';
import { isSameLane, laneName } from './lane.js';

interface Left {
  readonly lane: Lane;
  count: number;
}

export class RoomLeft {
  readonly #room: NearRoom;
  readonly #lanes = new Map<string, Left>();
  /** Of the last that was asked for: the next one is of the same lane, as a rule. */
  #last: Left | undefined;
  #total: number;

  constructor(room: NearRoom) {
    this.#room = room;
    this.#total = room.total;
  }

  /** Takes the room for one entry of the lane. False: there is none. */
  take(lane: Lane): boolean {
    if (this.of(lane) <= 0) return false;
    this.use(lane, 1);
    return true;
  }

  /** May be less than nothing. */
  of(lane: Lane): number {
    return Math.min(this.#leftOf(lane).count, this.#total);
  }

  use(lane: Lane, count: number): void {
    this.#leftOf(lane).count -= count;
    this.#total -= count;
  }

  #leftOf(lane: Lane): Left {
    if (this.#last !== undefined && isSameLane(this.#last.lane, lane)) return this.#last;
    const name = laneName(lane);
    let left = this.#lanes.get(name);
    if (left === undefined) {
      left = { lane, count: this.#room.of(lane, this.#room.total - this.#total) };
      this.#lanes.set(name, left);
    }
    this.#last = left;
    return left;
  }
}
