/** Random changes of the kind that an engine makes, and some that guards must refuse. */
import type { OccurrenceRecord, TaskRecord } from '../../src/core/model.js';
import type { Unit } from '../../src/store/store.js';
import {
  attemptOf,
  bytes,
  creating,
  HOUR_MS,
  idOf,
  next,
  occurrenceOf,
  policies,
  taskOf,
  writing,
} from './builders.js';
import type { Model } from './model.js';

const LIVE = ['scheduled', 'ready', 'running', 'cancel-requested', 'retry-wait'] as const;
const ENDS = ['succeeded', 'dead', 'quarantined', 'cancelled', 'skipped', 'missed'] as const;

/** mulberry32: small, seeded, the same everywhere. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

export class RandomUnits {
  readonly #random: Random;
  #model: Model;
  #made = 0;

  constructor(random: Random, model: Model) {
    this.#random = random;
    this.#model = model;
  }

  /** Goes on from another state. */
  follow(model: Model): void {
    this.#model = model;
  }

  /** A unit that fits the model as it stands, or fails a guard, on purpose or because the model has moved on. */
  next(nowMs: number): Unit {
    const random = this.#random;
    const known = [...this.#model.tasks.values()];
    if (known.length < 5 || random.chance(25)) return this.#create(nowMs);
    const task = random.pick(known);
    const { record } = task;
    const occurrences = [...task.occurrences.values()];
    const unit = this.#change(record, occurrences, nowMs);
    return random.chance(8) ? spoil(unit, random) : unit;
  }

  #create(nowMs: number): Unit {
    const random = this.#random;
    // Now and then an id that is there already.
    const n = random.chance(5) ? random.below(this.#made + 1) : this.#made++;
    const key = random.chance(40) ? `key-${random.below(12)}` : undefined;
    const recurring = random.chance(40);
    const made = taskOf(n, {
      tenant: `tenant-${random.below(4)}`,
      handler: `handler-${random.below(3)}`,
      handlerVersion: random.chance(20) ? undefined : random.below(3) + 1,
      payload: bytes(random.pick([0, 10, 64, 100, 400, 3000]), n),
      idempotencyKey: key,
      definition: random.pick([undefined, 'not hex', '00ff00ff00ff00ff00ff00ff00ff00ff']),
      policies: policies({ idempotencyTtlMs: random.pick([0, HOUR_MS, 20 * HOUR_MS]) }),
      createdAt: nowMs,
      ...(recurring
        ? { schedule: { kind: 'fixedRate', everyMs: 1000 + random.below(5), jitterMs: 0 } }
        : {}),
    });
    const occurrence = occurrenceOf(made, { dueAt: nowMs + random.below(HOUR_MS) });
    const task = { ...made, lastOccurrenceId: occurrence.id };
    return random.chance(5) ? creating(task) : creating(task, occurrence);
  }

  #change(task: TaskRecord, occurrences: readonly OccurrenceRecord[], nowMs: number): Unit {
    const random = this.#random;
    const live = occurrences.filter(({ state }) => LIVE.some((other) => other === state));
    const roll = random.below(100);
    if (roll < 6) return { taskId: task.id, remove: { revision: task.revision } };
    if (roll < 10) return this.#setting(task.id);
    if (roll < 30) return this.#addRun(task, nowMs);
    if (roll < 40) return this.#redrive(task, occurrences, nowMs) ?? this.#addRun(task, nowMs);
    if (roll < 50) return writing(next(task, this.#taskPatch(task, nowMs)));
    if (live.length === 0) return this.#endTask(task, [], nowMs);
    const victim = random.pick(live);
    if (roll < 75) return this.#move(victim, nowMs);
    const end = this.#end(victim, nowMs);
    return random.chance(40) ? this.#endTask(task, [end], nowMs) : writing(undefined, end);
  }

  #setting(taskId: string): Unit {
    const random = this.#random;
    const value = random.chance(30) ? undefined : { weight: random.below(9), note: 'x' };
    return { taskId, settings: [[`tenant:${random.below(5)}`, value]] };
  }

  #taskPatch(task: TaskRecord, nowMs: number): Partial<TaskRecord> {
    const random = this.#random;
    const isOpen = task.state === 'active' || task.state === 'paused';
    const pause = isOpen && random.chance(50);
    return {
      priority: random.below(10),
      payload: bytes(random.below(200), nowMs % 97),
      version: task.version + 1,
      ...(pause ? { state: 'paused', pausedAt: nowMs } : {}),
      ...(isOpen && !pause ? { state: 'active', pausedAt: undefined } : {}),
      ...(random.chance(20) ? { handler: `handler-${random.below(3)}` } : {}),
      ...(random.chance(20) ? { policies: policies({ ttlMs: random.below(4) }) } : {}),
    };
  }

  #addRun(task: TaskRecord, nowMs: number): Unit {
    const random = this.#random;
    const extras = task.extras + 1;
    const run = occurrenceOf(task, {
      kind: 'trigger',
      ordinal: extras,
      nominalAt: nowMs,
      dueAt: nowMs,
      state: random.pick(['scheduled', 'ready']),
      waiting: random.chance(20),
      catchup: random.chance(20),
    });
    return writing(next(task, { extras, lastOccurrenceId: run.id }), run);
  }

  #redrive(
    task: TaskRecord,
    occurrences: readonly OccurrenceRecord[],
    nowMs: number,
  ): Unit | undefined {
    const dead = occurrences.filter(
      ({ state, redrivenAs }) =>
        (state === 'dead' || state === 'quarantined') && redrivenAs === undefined,
    );
    if (dead.length === 0) return undefined;
    const of = this.#random.pick(dead);
    const extras = task.extras + 1;
    const run = occurrenceOf(task, {
      kind: 'redrive',
      ordinal: extras,
      nominalAt: nowMs,
      dueAt: nowMs,
      redriveOf: of.id,
    });
    const revived = next(task, {
      extras,
      state: 'active',
      endedAt: undefined,
      endReason: undefined,
      lastOccurrenceId: run.id,
    });
    return writing(revived, next(of, { redrivenAs: run.id }), run);
  }

  #move(occurrence: OccurrenceRecord, nowMs: number): Unit {
    const random = this.#random;
    const attempt = occurrence.attempt + 1;
    const moved = next(occurrence, {
      state: random.pick(LIVE),
      attempt,
      token: occurrence.token + 1,
      dueAt: nowMs + random.below(5000),
      waiting: random.chance(10),
      workerId: random.pick([undefined, 'w1', 'w2', `once-${nowMs}-${random.below(1000)}`]),
      leaseUntil: random.pick([undefined, nowMs]),
      progress: random.pick([undefined, bytes(random.below(50))]),
      error: random.pick([undefined, bytes(random.below(500))]),
      outcome: random.pick([undefined, 'failed', 'released']),
      alone: random.chance(10),
      deaths: random.below(3),
    });
    const unit = writing(undefined, moved);
    return random.chance(40) ? { ...unit, attempts: [attemptOf(moved, attempt)] } : unit;
  }

  #end(occurrence: OccurrenceRecord, nowMs: number): OccurrenceRecord {
    const random = this.#random;
    return next(occurrence, {
      state: random.pick(ENDS),
      endedAt: nowMs,
      waiting: false,
      leaseUntil: undefined,
      reason: random.pick([undefined, 'overlap', `because ${nowMs}`]),
      count: random.pick([undefined, 3]),
      result: random.pick([undefined, bytes(random.below(100))]),
    });
  }

  #endTask(task: TaskRecord, ended: readonly OccurrenceRecord[], nowMs: number): Unit {
    const random = this.#random;
    const over = next(task, {
      state: random.pick(['completed', 'cancelled']),
      endedAt: nowMs,
      endReason: random.pick([undefined, 'succeeded', 'scheduleEnded']),
      pausedAt: undefined,
      lastEnd: random.pick([undefined, ...ENDS]),
    });
    return writing(over, ...ended);
  }
}

/** The unit with one of its guards off by some. */
function spoil(unit: Unit, random: Random): Unit {
  const off = 1 + random.below(3);
  if (unit.remove !== undefined) {
    return { ...unit, remove: { revision: unit.remove.revision + off } };
  }
  if (unit.task !== undefined && random.chance(50)) {
    return { ...unit, task: { ...unit.task, expected: unit.task.expected + off } };
  }
  const [first, ...rest] = unit.occurrences ?? [];
  if (first === undefined) return { ...unit, taskId: idOf(999_999) };
  return { ...unit, occurrences: [...rest, { ...first, expected: first.expected + off }] };
}
