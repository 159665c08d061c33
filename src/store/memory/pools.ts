/** What the tables share: bytes, and the values that repeat. */
import type { Policies } from '../../core/model.js';
import type { Schedule } from '../../core/schedule.js';
import { Blobs } from './blobs.js';
import { Interned, POLICIES, SCHEDULE, TEXT } from './interned.js';
import { Lanes } from './lanes.js';

export class Pools {
  readonly blobs = new Blobs();
  readonly lanes = new Lanes();
  readonly policies = new Interned<Policies>(this.blobs, POLICIES);
  readonly schedules = new Interned<Schedule>(this.blobs, SCHEDULE);
  /** Reasons and workers' names: few, but callers can make them many. */
  readonly texts = new Interned<string>(this.blobs, TEXT);
}
