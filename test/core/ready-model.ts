/** The ready queue, told slowly: lists, and a look at everything for every question. */
import { expect } from 'vitest';
import { type ReadyEntry, ReadyQueue, type TenantLaneLimits } from '../../src/core/ready-queue.js';

export type Command =
  | {
      kind: 'push';
      tenant: string;
      handler: string;
      version: number | undefined;
      priority: number;
      readyAtMs: number;
      dueAt: number;
    }
  | { kind: 'take'; max: number }
  | { kind: 'finish' | 'undo' | 'remove'; pick: number }
  | { kind: 'pass'; ms: number }
  | { kind: 'wake' }
  | { kind: 'pauseTenant'; tenant: string; on: boolean }
  | { kind: 'pauseHandler'; handler: string; on: boolean }
  | { kind: 'tenantLimits'; tenant: string; limits: TenantLaneLimits }
  | { kind: 'handlerLimits'; handler: string; limits: TenantLaneLimits }
  | { kind: 'workers'; version: number | undefined; on: boolean };

/** Rounding of a level that is topped up, against the queue's exact times. */
const EPSILON = 1e-9;

class ModelGate {
  limits: TenantLaneLimits = {};
  paused = false;
  #tokens = 0;
  #atMs = 0;

  setLimits(limits: TenantLaneLimits, nowMs: number): void {
    const before = this.limits.maxRatePerSecond;
    const left = this.tokens(nowMs);
    this.limits = limits;
    const rate = limits.maxRatePerSecond;
    if (rate === undefined) return;
    const capacity = Math.max(1, rate);
    if (before === undefined) this.#tokens = capacity;
    // What was spent stays spent, as far as the new capacity knows it.
    else this.#tokens = Math.max(0, capacity - (Math.max(1, before) - left));
    this.#atMs = nowMs;
  }

  tokens(nowMs: number): number {
    const rate = this.limits.maxRatePerSecond;
    if (rate === undefined) return Number.POSITIVE_INFINITY;
    return Math.min(Math.max(1, rate), this.#tokens + ((nowMs - this.#atMs) * rate) / 1000);
  }

  spend(count: 1 | -1, nowMs: number): void {
    this.#tokens = this.tokens(nowMs) - count;
    this.#atMs = nowMs;
    if (this.#tokens < -EPSILON) expect.fail('more starts than tokens');
  }
}

export class ReadyModel {
  readonly queue = new ReadyQueue<ReadyEntry>();
  /** In order of arrival. */
  readonly waiting: ReadyEntry[] = [];
  readonly running: ReadyEntry[] = [];
  readonly #tenants = new Map<string, ModelGate>();
  readonly #own = new Set<string>();
  #others: TenantLaneLimits = {};
  readonly #handlers = new Map<string, ModelGate>();
  readonly #versions = new Set<number | undefined>([1, 2, undefined]);
  #nowMs = 0;

  constructor() {
    for (const tenant of ['a', 'b', 'c', 'd']) this.#tenants.set(tenant, new ModelGate());
    for (const handler of ['h', 'i', 'j']) this.#handlers.set(handler, new ModelGate());
    this.queue.setRunnable((_, version) => this.#versions.has(version));
    this.#take(0);
  }

  run(command: Command): void {
    switch (command.kind) {
      case 'push':
        this.#push(command);
        break;
      case 'take':
        this.#take(command.max);
        break;
      case 'finish':
      case 'undo':
        this.#end(command.kind, command.pick);
        break;
      case 'remove':
        this.#remove(command.pick);
        break;
      case 'pass':
        this.#nowMs += command.ms;
        this.#take(0);
        break;
      case 'wake':
        this.#wake();
        break;
      case 'pauseTenant':
        this.#tenant(command.tenant).paused = command.on;
        if (command.on) this.queue.pauseTenant(command.tenant);
        else this.queue.resumeTenant(command.tenant);
        break;
      case 'pauseHandler':
        this.#handler(command.handler).paused = command.on;
        if (command.on) this.queue.pauseHandler(command.handler);
        else this.queue.resumeHandler(command.handler);
        break;
      case 'tenantLimits':
        this.#tenantLimits(command.tenant, command.limits);
        break;
      case 'handlerLimits':
        this.#handler(command.handler).setLimits(command.limits, this.#nowMs);
        this.queue.setHandlerLimits(command.handler, command.limits);
        break;
      case 'workers':
        if (command.on) this.#versions.add(command.version);
        else this.#versions.delete(command.version);
        this.queue.refreshRunnable();
        break;
    }
  }

  #tenant(name: string): ModelGate {
    return this.#tenants.get(name) as ModelGate;
  }

  #handler(name: string): ModelGate {
    return this.#handlers.get(name) as ModelGate;
  }

  #push(command: Extract<Command, { kind: 'push' }>): void {
    const { tenant, handler, version, priority, readyAtMs, dueAt } = command;
    const entry: ReadyEntry = {
      tenant,
      handler,
      handlerVersion: version,
      priority,
      readyAtMs,
      dueAt,
      alone: false,
      laneIndex: -1,
      throttled: false,
    };
    this.queue.push(entry);
    this.waiting.push(entry);
  }

  #take(max: number): void {
    const taken = this.queue.take(this.#nowMs, max);
    expect(taken.length).toBeLessThanOrEqual(max);
    for (const entry of taken) {
      expect(this.waiting).toContain(entry);
      if (!this.#mayStart(entry)) expect.fail(`${JSON.stringify(entry)} may not start`);
      const best = this.waiting
        .filter(({ tenant }) => tenant === entry.tenant)
        .filter((other) => this.#mayStart(other))
        .reduce((first, other) => (isBefore(other, first) ? other : first));
      expect(entry).toBe(best);
      this.waiting.splice(this.waiting.indexOf(entry), 1);
      this.running.push(entry);
      this.#tenant(entry.tenant).spend(1, this.#nowMs);
      this.#handler(entry.handler).spend(1, this.#nowMs);
    }
    if (taken.length < max) expect(this.waiting.filter((one) => this.#mayStart(one))).toEqual([]);
  }

  #mayStart(entry: ReadyEntry): boolean {
    return this.#versions.has(entry.handlerVersion) && this.#gatesOf(entry).every(this.#isOpen);
  }

  #gatesOf(entry: ReadyEntry): [ModelGate, number][] {
    const ofTenant = this.running.filter(({ tenant }) => tenant === entry.tenant).length;
    const ofHandler = this.running.filter(({ handler }) => handler === entry.handler).length;
    return [
      [this.#tenant(entry.tenant), ofTenant],
      [this.#handler(entry.handler), ofHandler],
    ];
  }

  readonly #isOpen = ([gate, running]: [ModelGate, number]): boolean =>
    !gate.paused &&
    running < (gate.limits.maxConcurrency ?? Number.POSITIVE_INFINITY) &&
    gate.tokens(this.#nowMs) >= 1 - EPSILON;

  #end(kind: 'finish' | 'undo', pick: number): void {
    if (this.running.length === 0) return;
    const [entry] = this.running.splice(pick % this.running.length, 1);
    if (kind === 'finish') {
      this.queue.finished(entry);
      return;
    }
    this.queue.undo(entry);
    this.#tenant(entry.tenant).spend(-1, this.#nowMs);
    this.#handler(entry.handler).spend(-1, this.#nowMs);
  }

  #remove(pick: number): void {
    if (this.waiting.length === 0) return;
    const [entry] = this.waiting.splice(pick % this.waiting.length, 1);
    expect(this.queue.remove(entry)).toBe(true);
    expect(this.queue.remove(entry)).toBe(false);
  }

  /** Sleeps until the time that the queue names: then a gate that was dry is not. */
  #wake(): void {
    const atMs = this.queue.nextTokenAt(this.#nowMs);
    if (atMs === Number.POSITIVE_INFINITY) return;
    const before = this.#waitingForTokens();
    // On a grid, so that no time lies within the rounding of a token's without being it.
    this.#nowMs = Math.ceil(atMs * 1000) / 1000;
    expect(this.#waitingForTokens()).toBeLessThan(before);
    this.#take(0);
  }

  /** Gates with work for which only a token is missing. */
  #waitingForTokens(): number {
    const gates = new Set<ModelGate>();
    for (const entry of this.waiting) {
      for (const [gate, running] of this.#gatesOf(entry)) {
        const { maxConcurrency } = gate.limits;
        const blocked = gate.paused || running >= (maxConcurrency ?? Number.POSITIVE_INFINITY);
        if (!blocked && gate.tokens(this.#nowMs) < 1 - EPSILON) gates.add(gate);
      }
    }
    return gates.size;
  }

  #tenantLimits(tenant: string, limits: TenantLaneLimits): void {
    this.queue.setTenantLimits(tenant, limits);
    if (tenant !== '*') this.#own.add(tenant);
    else this.#others = limits;
    for (const [name, gate] of this.#tenants) {
      if (name === tenant) gate.setLimits(limits, this.#nowMs);
      else if (tenant === '*' && !this.#own.has(name)) gate.setLimits(this.#others, this.#nowMs);
    }
  }

  check(): void {
    const { queue, waiting, running } = this;
    expect(queue.size).toBe(waiting.length);
    for (const tenant of this.#tenants.keys()) {
      expect(queue.sizeOf(tenant)).toBe(count(waiting, (one) => one.tenant === tenant));
      expect(queue.running(tenant)).toBe(count(running, (one) => one.tenant === tenant));
    }
    for (const handler of this.#handlers.keys()) {
      expect(queue.runningOfHandler(handler)).toBe(
        count(running, (one) => one.handler === handler),
      );
    }
    expect(queue.canStart).toBe(waiting.some((one) => this.#mayStart(one)));
    const dry = this.#waitingForTokens() > 0;
    expect(Number.isFinite(queue.nextTokenAt(this.#nowMs))).toBe(dry);
    for (const [key, entries] of queue.waitingVersions()) {
      const isOfKey = (one: ReadyEntry): boolean =>
        `${one.handler}@${one.handlerVersion ?? '*'}` === key;
      expect(entries).toBe(count(waiting, isOfKey));
    }
  }
}

function count(entries: ReadyEntry[], isMeant: (entry: ReadyEntry) => boolean): number {
  return entries.filter(isMeant).length;
}

/** Whether `a` starts before `b`, which arrived earlier or is `a`. */
function isBefore(a: ReadyEntry, b: ReadyEntry): boolean {
  const order = a.priority * 10_000 + a.readyAtMs - (b.priority * 10_000 + b.readyAtMs);
  return order < 0 || (order === 0 && a.dueAt < b.dueAt);
}
