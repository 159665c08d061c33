/**
 * One thread of the pool, seen from main: what it was sent, what it told, and its end.
 *
 *   loading ─ hello ─→ serving ─→ dead (ended by us, or it died)
 *
 * 1. A run is in `#runs` from its sending to its one last report.
 * 2. Nothing is sent while the batch before has not been read (`isResponsive`).
 * 3. When a thread dies, what it told before is heard first; then every run left is reported.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { realNowMs } from '../../clock/real-time.js';
import { assert } from '../../core/assert.js';
import type { AbortReason, StoredError } from '../../core/errors.js';
import { FlatMap, hashOfNumber } from '../../core/flat-map.js';
import type { Report, Run } from '../executor.js';
import { threadWorkerId } from '../worker-id.js';
import { type HandlerCall, type Hearing, hear } from './hearing.js';
import { BatchWriter, type Control, type Hello, type ThreadStart } from './protocol.js';
import { ENDED_VOID, ENTERED, SENT, SharedSlots } from './slots.js';

/** A run that has not entered so long after its sending is taken back. */
export const ENTER_WITHIN_MS = 5;
/** Work that may wait on a thread beyond its free slots. */
const AHEAD_MS = 1;
/**
 * Runs that may wait on a thread beyond its slots, however short they are. With 256, which a thread is done with long before
 * main's next turn, a closed loop through the pool took 29 µs of main's time a task instead of 17: what could not be sent in the
 * turn that created it went the long way (docs/adr/0016).
 */
const AHEAD_MAX = 1024;
/** Handlers that take longer are not sent ahead: their slots are enough. */
const AHEAD_SERVICE_MAX_MS = 0.5;

export interface SentRecord {
  readonly run: Run;
  readonly slot: number;
  readonly use: number;
  readonly sentAtMs: number;
  entered: boolean;
  /** Sleeps on main's clock that it waits for. */
  sleeps: number;
  /** Nobody waits for it to settle any more. */
  uncounted: boolean;
}

/** Why a thread ends: whose fault it is, as far as known. */
export interface Death {
  readonly error: StoredError;
  /** `ended`: by `end()`. `crashed`: by itself. `closed`: with the pool. */
  readonly kind: 'ended' | 'crashed' | 'closed';
  /** The run at fault; undefined: unknown, null: none of those that run. */
  readonly runId: number | undefined | null;
}

/** What a thread needs of its pool. */
export interface ThreadOwner {
  readonly concurrency: number;
  readonly virtualTime: boolean;
  nowMs(): number;
  report(report: Report): void;
  /** Runs the long-lived task; resolves or rejects when the thread is gone. */
  launch(
    start: Omit<ThreadStart, 'moduleUrl' | 'maxPayloadBytes'>,
    signal: AbortSignal,
  ): Promise<void>;
  /** It serves from now on. */
  onHello(thread: PoolThread, hello: Hello): void;
  /** It is dead, and its runs have been reported. */
  onDeath(thread: PoolThread, death: Death): void;
  /** Something may be sent to it again. */
  onRoom(): void;
  /** Calls of handlers that reach beyond the pool. */
  onCall(thread: PoolThread, call: HandlerCall): void;
}

export class PoolThread {
  readonly workerId: string;
  state: 'loading' | 'serving' | 'dead' = 'loading';
  /** Its module was loaded. */
  hasServed = false;
  /** Sleeps on main's clock that its handlers wait for, by call; the pool keeps them. */
  readonly sleeps = new Map<number, AbortController>();
  readonly #owner: ThreadOwner;
  readonly #slots: SharedSlots;
  readonly #freeSlots: number[] = [];
  readonly #port: MessagePort;
  readonly #ending = new AbortController();
  readonly #runs = new FlatMap<number, SentRecord>(hashOfNumber);
  /** Runs that crashed without ending the thread, and whose handlers go on in their slots. */
  readonly #zombies = new Map<number, SentRecord>();
  #batch = 0;
  /** When the newest batch was sent, real time; undefined: it was heard of, or something in it has entered. */
  #unheardSinceMs: number | undefined;
  /** Runs that have not entered, as far as is known. */
  #awaited = 0;

  constructor(number: number, owner: ThreadOwner) {
    this.workerId = threadWorkerId(number);
    this.#owner = owner;
    this.#slots = SharedSlots.create(owner.concurrency + AHEAD_MAX);
    for (let slot = this.#slots.count - 1; slot >= 0; slot--) this.#freeSlots.push(slot);
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message: Uint8Array | Hello) => this.#hear(message));
    const start = {
      port: port2,
      memory: this.#slots.memory,
      concurrency: owner.concurrency,
      virtualTime: owner.virtualTime,
    };
    owner.launch(start, this.#ending.signal).then(
      () => this.#died(new Error('the thread ended')),
      (error) => this.#died(error),
    );
  }

  /** Runs that were sent and have not ended, and zombies. */
  get load(): number {
    return this.#runs.size + this.#zombies.size;
  }

  get zombies(): number {
    return this.#zombies.size;
  }

  get runs(): Pick<FlatMap<number, SentRecord>, 'get' | 'values'> {
    return this.#runs;
  }

  /** It has read all that it was sent. */
  get isResponsive(): boolean {
    return this.state === 'serving' && this.#slots.acknowledged === this.#batch;
  }

  /** It was sent something lately of which nothing was heard yet: it may tell of it soon. */
  isUnheard(nowMs: number, withinMs: number): boolean {
    if (this.state !== 'serving' || this.#unheardSinceMs === undefined) return false;
    return nowMs - this.#unheardSinceMs < withinMs;
  }

  /** Something that it was sent has not entered, as far as is known. */
  get isAwaited(): boolean {
    return this.#awaited > 0;
  }

  /** How many more runs it may be sent: its free slots and about a millisecond of work ahead. */
  get room(): number {
    const { serviceTimeMs } = this.#slots;
    const isShort = serviceTimeMs > 0 && serviceTimeMs <= AHEAD_SERVICE_MAX_MS;
    const ahead = isShort ? Math.min(AHEAD_MAX, Math.floor(AHEAD_MS / serviceTimeMs)) : 0;
    return Math.max(0, this.#owner.concurrency + ahead - this.load);
  }

  /** `room` runs at most, in one message. */
  send(runs: readonly Run[]): void {
    assert(this.isResponsive, 'a thread that has not read its last batch is sent no more');
    this.#batch = (this.#batch + 1) | 0;
    const writer = new BatchWriter(this.#batch, this.#owner.nowMs());
    const sentAtMs = realNowMs();
    for (const run of runs) {
      const slot = this.#freeSlots.pop();
      assert(slot !== undefined, 'a thread has a shared slot for each run it may be sent');
      const use = this.#slots.send(slot);
      writer.add(slot, use, run);
      const record = { run, slot, use, sentAtMs, entered: false, sleeps: 0, uncounted: false };
      this.#runs.set(run.runId, record);
    }
    this.#awaited += runs.length;
    this.#unheardSinceMs = sentAtMs;
    this.#port.postMessage(writer.pack());
  }

  #hear(message: Uint8Array | Hello): void {
    if (this.state === 'dead') return;
    if (!(message instanceof Uint8Array)) {
      if (message.kind === 'hello') {
        this.state = 'serving';
        this.hasServed = true;
      }
      this.#owner.onHello(this, message);
      return;
    }
    hear(message, this.#hearing);
    if (this.isResponsive) this.#unheardSinceMs = undefined;
    if (!this.#replaceIfHaunted()) this.#owner.onRoom();
  }

  /** Only zombies are left on it: a new thread is better. True when it was replaced. */
  #replaceIfHaunted(): boolean {
    if (this.state !== 'serving' || this.#zombies.size === 0 || this.#runs.size > 0) return false;
    this.die({
      kind: 'crashed',
      runId: null,
      error: { name: 'Error', message: 'the thread held handlers that had been given up' },
    });
    return true;
  }

  readonly #hearing: Hearing = {
    entered: (runId, atMs) => {
      const record = this.#runs.get(runId);
      if (record !== undefined) this.#entered(record, atMs);
    },
    succeeded: (runId, enteredAtMs, atMs, result) => {
      const record = this.#runs.get(runId);
      if (record === undefined) return;
      const entry = this.#entryOf(record, enteredAtMs ?? atMs);
      this.#forget(record);
      const { workerId } = this;
      this.#owner.report({
        kind: 'succeeded',
        runId,
        enteredAtMs: entry,
        workerId,
        atMs: this.#time(atMs),
        result,
      });
    },
    failed: (runId, enteredAtMs, atMs, failure) => {
      const record = this.#runs.get(runId);
      if (record === undefined) return;
      const entry = this.#entryOf(record, enteredAtMs ?? atMs);
      this.#forget(record);
      const { workerId } = this;
      this.#owner.report({
        kind: 'failed',
        runId,
        enteredAtMs: entry,
        workerId,
        atMs: this.#time(atMs),
        ...failure,
      });
    },
    progress: (runId, progress) => {
      if (this.#runs.has(runId)) this.#owner.report({ kind: 'progress', runId, progress });
    },
    crashed: (runId, replace, error) => this.#crashed(runId, replace, this.#withMemory(error)),
    settled: (runId) => {
      const record = this.#zombies.get(runId);
      if (record === undefined) return;
      this.#zombies.delete(runId);
      this.#freeSlots.push(record.slot);
    },
    call: (call) => this.#owner.onCall(this, call),
  };

  /** Times on threads are the machine's; where the clock is virtual, main's own count. */
  #time(atMs: number): number {
    return this.#owner.virtualTime ? this.#owner.nowMs() : atMs;
  }

  #entered(record: SentRecord, atMs: number): void {
    if (record.entered) return;
    record.entered = true;
    this.#awaited--;
    this.#unheardSinceMs = undefined;
    const { runId } = record.run;
    const { workerId } = this;
    this.#owner.report({ kind: 'entered', runId, atMs: this.#time(atMs), workerId });
  }

  /** When it entered, if that has not been reported: then it is reported with its end. */
  #entryOf(record: SentRecord, atMs: number): number | undefined {
    if (record.entered) return undefined;
    record.entered = true;
    this.#awaited--;
    return this.#time(atMs);
  }

  #forget(record: SentRecord): void {
    this.#runs.delete(record.run.runId);
    this.#freeSlots.push(record.slot);
  }

  #crashed(runId: number | undefined | null, replace: boolean, error: StoredError): void {
    if (replace) {
      this.die({ kind: 'crashed', runId, error });
      return;
    }
    const record = this.#runs.get(runId ?? 0);
    if (record === undefined) {
      this.#owner.onCall(this, { kind: 'stray', error });
      return;
    }
    this.#entered(record, this.#slots.enteredAt(record.slot));
    // Its slot stays its own: the handler may still be running.
    this.#runs.delete(record.run.runId);
    this.#zombies.set(record.run.runId, record);
    this.#lost(record, 'culprit', error);
  }

  #lost(
    record: SentRecord,
    blame: Extract<Report, { kind: 'lost' }>['blame'],
    error: StoredError,
  ): void {
    const { runId } = record.run;
    this.#owner.report({ kind: 'lost', runId, entered: true, blame, error });
  }

  abort(record: SentRecord, why: AbortReason, message: string): void {
    if (this.#withdraw(record)) return;
    this.#slots.abort(record.slot, record.use, why);
    this.say({ kind: 'abort', runId: record.run.runId, why, message });
  }

  say(message: Control): void {
    if (this.state === 'serving') this.#port.postMessage(message);
  }

  /** Takes the run back, unless it has entered; then it reports it `returned`. */
  #withdraw(record: SentRecord): boolean {
    if (record.entered || !this.#slots.withdraw(record.slot, record.use)) return false;
    this.#awaited--;
    this.#forget(record);
    this.#owner.report({ kind: 'returned', runId: record.run.runId });
    return true;
  }

  recall(): void {
    for (const record of [...this.#runs.values()]) this.#withdraw(record);
  }

  /**
   * Looks at shared memory for what the thread has not told, because one of its handlers does not yield: takes
   * back what should have entered by `nowMs`, reports what has entered. Returns when to look again, or Infinity.
   */
  sweep(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const record of [...this.#runs.values()]) {
      const state = this.#slots.state(record.slot);
      if (state === SENT) {
        const dueMs = record.sentAtMs + ENTER_WITHIN_MS;
        if (dueMs > nowMs) nextMs = Math.min(nextMs, dueMs);
        else if (!this.#withdraw(record)) nextMs = nowMs + 1;
      } else if (nowMs - record.sentAtMs >= ENTER_WITHIN_MS) {
        this.#tellFromMemory(record, state);
      } else if (!record.entered) {
        nextMs = Math.min(nextMs, record.sentAtMs + ENTER_WITHIN_MS);
      }
    }
    return nextMs;
  }

  #tellFromMemory(record: SentRecord, state: number): void {
    const { slot } = record;
    if (state === ENTERED) this.#entered(record, this.#slots.enteredAt(slot));
    else if (state === ENDED_VOID) {
      this.#entered(record, this.#slots.enteredAt(slot));
      this.#forget(record);
      const { runId } = record.run;
      const atMs = this.#time(this.#slots.endedAt(slot));
      this.#owner.report({ kind: 'succeeded', runId, atMs, result: undefined });
    }
  }

  /** Ends the thread because of a run, unless that has ended by now. */
  end(record: SentRecord): void {
    this.#drain();
    if (this.state === 'dead' || this.#runs.get(record.run.runId) !== record) return;
    if (this.#withdraw(record)) return;
    this.#tellFromMemory(record, this.#slots.state(record.slot));
    if (!this.#runs.has(record.run.runId)) return;
    const error = { name: 'Error', message: 'its grace was over: its thread was ended' };
    this.die({ kind: 'ended', runId: record.run.runId, error });
  }

  /** What the thread has told and nobody has heard yet. */
  #drain(): void {
    for (
      let left = receiveMessageOnPort(this.#port);
      left;
      left = receiveMessageOnPort(this.#port)
    ) {
      this.#hear(left.message as Uint8Array | Hello);
      if (this.state === 'dead') return;
    }
  }

  #died(error: unknown): void {
    if (this.state === 'dead') return;
    this.#drain();
    // What it told may have ended it already.
    if ((this.state as string) === 'dead') return;
    this.die({ kind: 'crashed', runId: undefined, error: this.#withMemory(evidenceOf(error)) });
  }

  /** Reports every run that is left, then tells the pool. */
  die(death: Death): void {
    if (this.state === 'dead') return;
    this.state = 'dead';
    this.recall();
    for (const record of this.#runs.values()) {
      this.#tellFromMemory(record, this.#slots.state(record.slot));
    }
    const culprit = this.#culpritOf(death);
    for (const record of this.#runs.values()) {
      this.#entered(record, this.#slots.enteredAt(record.slot));
      const isUnknown = culprit === undefined && this.#slots.state(record.slot) === ENTERED;
      if (record.run.runId === culprit) {
        this.#lost(record, death.kind === 'ended' ? 'ended' : 'culprit', death.error);
      } else this.#lost(record, isUnknown ? 'suspect' : 'displaced', death.error);
    }
    this.#runs.clear();
    this.#zombies.clear();
    for (const sleep of this.sleeps.values()) sleep.abort();
    this.sleeps.clear();
    this.#port.close();
    this.#ending.abort();
    this.#owner.onDeath(this, death);
  }

  /** A crash's evidence says how much memory there was, as far as the thread could tell. */
  #withMemory(error: StoredError): StoredError {
    const { used, limit } = this.#slots.heap;
    const heap =
      limit === 0 ? '' : `the thread's heap last held ${mib(used)} of at most ${mib(limit)} MiB, `;
    const all = `the process held ${mib(process.memoryUsage.rss())} MiB`;
    return { ...error, message: `${error.message} (${heap}${all})` };
  }

  /** A run that was on the thread by itself did it. */
  #culpritOf(death: Death): number | undefined | null {
    if (death.kind === 'closed') return null;
    if (death.runId !== undefined) return death.runId;
    const entered = [...this.#runs.values()].filter(
      (record) => this.#slots.state(record.slot) === ENTERED,
    );
    return entered.length === 1 && this.#zombies.size === 0 ? entered[0]?.run.runId : undefined;
  }
}

const MIB = 1024 * 1024;
const mib = (bytes: number): number => Math.round(bytes / MIB);

/** What is known of the death of a thread that did not tell: why, and by what code. */
function evidenceOf(error: unknown): StoredError {
  const { message, name } = error instanceof Error ? error : new Error(String(error));
  const { code } = error as { code?: unknown };
  return {
    name,
    message: `its thread died: ${message}`,
    ...(typeof code === 'string' ? { code } : {}),
  };
}
