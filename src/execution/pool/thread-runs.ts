/** The runs of one thread, seen from the thread: queued, entered, told. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { getHeapStatistics } from 'node:v8';
import { realNowMs } from '../../clock/real-time.js';
import { systemClock } from '../../clock/system.js';
import { inNextTurn } from '../../clock/turn.js';
import { LeaseLostError, toStoredError, UnknownHandlerError } from '../../core/errors.js';
import { FlatMap, hashOfNumber } from '../../core/flat-map.js';
import { RunContext } from '../context.js';
import type { PayloadCodec } from '../executor.js';
import { failureOf } from '../failure.js';
import type { HandlerTable } from '../handler.js';
import { createPayloadCodec } from '../payload.js';
import {
  type Control,
  ENDED_RUN,
  readBatch,
  type SentRun,
  TellingWriter,
  type ThreadStart,
  TOLD,
  UNKNOWN_RUN,
} from './protocol.js';
import { ENDED, ENDED_VOID, type SharedSlots } from './slots.js';
import { ThreadSurroundings } from './thread-surroundings.js';

/** What has ended is told at the latest after so long, also while more is entered without a pause. */
const TELL_AFTER_MS = 0.3;
/** The thread's heap is looked at when a batch comes, at most so often. */
const HEAP_EVERY_MS = 100;
/** Weight of the newest service time in its average. */
const SERVICE_WEIGHT = 1 / 16;

export class EnteredRun {
  readonly sent: SentRun;
  readonly ctx: RunContext;
  readonly enteredAtMs: number;
  /** Real time, for the service time. */
  readonly sinceMs: number;
  /** `entered` has been told, or goes with the next message. */
  enteredTold = false;
  /** Main was told that it crashed: nothing more is told but its end. */
  isGivenUp = false;
  hasEnded = false;
  /** It told progress, which main must hear before its end. */
  hasTold = false;

  constructor(sent: SentRun, ctx: RunContext, enteredAtMs: number, sinceMs: number) {
    this.sent = sent;
    this.ctx = ctx;
    this.enteredAtMs = enteredAtMs;
    this.sinceMs = sinceMs;
  }
}

export class ThreadRuns {
  readonly #start: ThreadStart;
  readonly #slots: SharedSlots;
  readonly #codec: PayloadCodec;
  readonly #surroundings: ThreadSurroundings;
  readonly #current = new AsyncLocalStorage<EnteredRun>();
  #table: HandlerTable | undefined;
  #queue: SentRun[] = [];
  #queueHead = 0;
  readonly #entered = new FlatMap<number, EnteredRun>(hashOfNumber);
  /** Entered since the last telling, and perhaps ended meanwhile: then both travel together. */
  #justEntered: EnteredRun[] = [];
  readonly #telling = new TellingWriter();
  #tellQueued = false;
  #lastToldMs = 0;
  #heapNotedMs = Number.NEGATIVE_INFINITY;
  #isEntering = false;
  /** The thread is about to be replaced. */
  #isStopped = false;

  constructor(start: ThreadStart, slots: SharedSlots) {
    this.#start = start;
    this.#slots = slots;
    this.#codec = createPayloadCodec({ maxPayloadBytes: start.maxPayloadBytes });
    this.#surroundings = new ThreadSurroundings({
      runs: this,
      slots,
      codec: this.#codec,
      virtualTime: start.virtualTime,
    });
  }

  /** The handlers are loaded: main may send. */
  open(table: HandlerTable): void {
    this.#table = table;
    this.#start.port.on('message', (message: Uint8Array | Control) => {
      if (message instanceof Uint8Array) this.#receive(message);
      else this.#control(message);
    });
  }

  #receive(bytes: Uint8Array): void {
    const { batch, nowMs, runs } = readBatch(bytes);
    this.#slots.acknowledge(batch);
    this.#noteHeap(HEAP_EVERY_MS);
    this.#surroundings.setNow(nowMs);
    for (const run of runs) this.#queue.push(run);
    const enteredBefore = this.#justEntered.length;
    this.#enterQueued();
    // Each batch is answered, so that main hears of the acknowledgement.
    if (this.#telling.isEmpty && this.#justEntered.length === enteredBefore) {
      this.tell(TOLD.nothing, 0);
    }
  }

  /** For whoever asks of what the thread died: then it cannot be asked any more. */
  #noteHeap(everyMs: number): void {
    const nowMs = realNowMs();
    if (nowMs - this.#heapNotedMs < everyMs) return;
    this.#heapNotedMs = nowMs;
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    this.#slots.setHeap(used, limit);
  }

  #control(message: Control): void {
    if (message.kind === 'answer') {
      this.#surroundings.setNow(message.nowMs);
      this.#surroundings.answered(message);
      return;
    }
    this.#entered.get(message.runId)?.ctx.abort(message.why, message.message);
  }

  #enterQueued(): void {
    // A handler that ends at once comes back here: the loop below goes on for it.
    if (this.#isEntering) return;
    this.#isEntering = true;
    while (
      this.#queueHead < this.#queue.length &&
      this.#entered.size < this.#start.concurrency &&
      !this.#isStopped
    ) {
      const sent = this.#queue[this.#queueHead++] as SentRun;
      const nowMs = realNowMs();
      if (!this.#telling.isEmpty && nowMs - this.#lastToldMs > TELL_AFTER_MS) this.#post(nowMs);
      this.#enter(sent, nowMs);
    }
    if (this.#queueHead === this.#queue.length) {
      this.#queue = [];
      this.#queueHead = 0;
    }
    this.#isEntering = false;
  }

  #enter(sent: SentRun, sinceMs: number): void {
    const atMs = systemClock().now();
    if (!this.#slots.enter(sent.slot, sent.use, atMs)) return;
    const ctx = new RunContext(sent.facts, this.#surroundings);
    const entered = new EnteredRun(sent, ctx, atMs, sinceMs);
    this.#entered.set(sent.facts.runId, entered);
    this.#justEntered.push(entered);
    this.#queueTelling();
    this.#current.run(entered, () => this.#invoke(entered));
  }

  #invoke(entered: EnteredRun): void {
    const { facts, payload } = entered.sent;
    try {
      const handler = this.#table?.get(facts.handler, facts.handlerVersion);
      if (handler === undefined) {
        throw new UnknownHandlerError(
          `handler '${facts.handler}' version ${facts.handlerVersion} is not in the handlers' module`,
        );
      }
      const result: unknown = handler(this.#codec.decode(payload), entered.ctx);
      if (isThenable(result)) {
        Promise.resolve(result).then(
          (value) => this.#succeed(entered, value),
          (error) => this.#fail(entered, error),
        );
      } else {
        this.#succeed(entered, result);
      }
    } catch (error) {
      this.#fail(entered, error);
    }
  }

  #succeed(entered: EnteredRun, value: unknown): void {
    let result: Uint8Array | undefined;
    try {
      if (value !== undefined) result = this.#codec.encode(value, 'result');
    } catch (error) {
      this.#fail(entered, error);
      return;
    }
    const atMs = systemClock().now();
    // Main may read an end from memory before it hears what was told: only when nothing was.
    const isVoid = result === undefined && !entered.hasTold;
    if (!this.#settle(entered, isVoid, atMs)) return;
    this.tell(TOLD.succeeded, entered.sent.facts.runId, enteredAtOf(entered), atMs, result);
    this.#enterQueued();
  }

  #fail(entered: EnteredRun, thrown: unknown): void {
    const atMs = systemClock().now();
    if (!this.#settle(entered, false, atMs)) return;
    const { error, unrecoverable, retryAfterMs } = failureOf(thrown);
    const { runId } = entered.sent.facts;
    const enteredAtMs = enteredAtOf(entered);
    this.tell(TOLD.failed, runId, enteredAtMs, atMs, error, unrecoverable, retryAfterMs);
    this.#enterQueued();
  }

  /** The handler has ended; false when main has given it up before. */
  #settle(entered: EnteredRun, isVoid: boolean, atMs: number): boolean {
    const { facts, slot, use } = entered.sent;
    entered.hasEnded = true;
    this.#entered.delete(facts.runId);
    if (entered.isGivenUp) {
      this.tell(TOLD.settled, facts.runId);
      this.#enterQueued();
      return false;
    }
    this.#slots.end(slot, use, isVoid ? ENDED_VOID : ENDED, atMs);
    const serviceMs = realNowMs() - entered.sinceMs;
    const averageMs = this.#slots.serviceTimeMs || serviceMs;
    this.#slots.serviceTimeMs = averageMs + (serviceMs - averageMs) * SERVICE_WEIGHT;
    return true;
  }

  /** Nothing when the run has ended. */
  tellProgress(runId: number, progress: Uint8Array | undefined): void {
    const entered = this.#entered.get(runId);
    if (entered === undefined || entered.isGivenUp) {
      throw new LeaseLostError('heartbeat: the attempt has ended');
    }
    entered.hasTold = true;
    this.tell(TOLD.progress, runId, progress);
  }

  /** Adds to what main is told at the end of this turn. */
  tell(kind: number, ...fields: readonly unknown[]): void {
    this.#tellEntered();
    this.#telling.add(kind, ...fields);
    this.#queueTelling();
  }

  /** Entries come before all else that is told of a run; of those that have ended, the end tells both. */
  #tellEntered(): void {
    if (this.#justEntered.length === 0) return;
    for (const entered of this.#justEntered) {
      if (entered.hasEnded || entered.enteredTold) continue;
      entered.enteredTold = true;
      this.#telling.add(TOLD.entered, entered.sent.facts.runId, entered.enteredAtMs);
    }
    this.#justEntered = [];
  }

  #queueTelling(): void {
    if (this.#tellQueued) return;
    this.#tellQueued = true;
    inNextTurn(() => {
      this.#tellQueued = false;
      this.#post(realNowMs());
    });
  }

  #post(nowMs: number): void {
    this.#tellEntered();
    if (this.#telling.isEmpty) return;
    this.#lastToldMs = nowMs;
    this.#start.port.postMessage(this.#telling.take());
  }

  /** The run that the code now running descends from, while it is entered. */
  get current(): EnteredRun | undefined {
    return this.#current.getStore();
  }

  entered(ctx: RunContext): EnteredRun | undefined {
    return this.#entered.get(ctx.run.runId);
  }

  /**
   * Something failed outside of any handler's promise. `fatal`: the thread must be replaced whoever did it.
   * A run that has ended is charged no more, and one entered alone did it.
   */
  crashed(thrown: unknown, fatal: boolean): void {
    const current = this.current;
    const culprit = current ?? this.#onlyEntered();
    const isLive = culprit !== undefined && !culprit.hasEnded && !culprit.isGivenUp;
    const error = toStoredError(thrown);
    // A rejection of nobody's, or of one that has ended, harms no other run.
    const replace = fatal || (culprit === undefined && this.#entered.size > 0);
    const guilty = culprit === undefined ? UNKNOWN_RUN : ENDED_RUN;
    this.#noteHeap(0);
    this.tell(TOLD.crashed, isLive ? culprit.sent.facts.runId : guilty, replace, error);
    if (replace) this.#isStopped = true;
    else if (isLive) {
      culprit.isGivenUp = true;
      culprit.ctx.abort('leaseLost', `the attempt was given up: ${error.message}`);
    }
    this.#post(realNowMs());
  }

  #onlyEntered(): EnteredRun | undefined {
    if (this.#entered.size !== 1) return undefined;
    return this.#entered.values().next().value;
  }
}

/** What `entered` would have told, when the end comes before it was told. */
function enteredAtOf(entered: EnteredRun): number | undefined {
  if (entered.enteredTold) return undefined;
  entered.enteredTold = true;
  return entered.enteredAtMs;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (typeof value !== 'object' && typeof value !== 'function') return false;
  return value !== null && typeof (value as { then?: unknown }).then === 'function';
}
