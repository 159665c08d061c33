/**
 * Turns planned tasks into `scheduleMany` calls, never waiting for one, and notes what became of
 * each task.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Audit } from './audit.js';
import { LATENESS_HISTOGRAM } from './board.js';
import type { LoadPayload } from './handler.js';
import { createRandom, type Random } from './random.js';
import type { PlanBatch, Workload } from './workload.js';

export interface LoadItem {
  readonly handler: 'work';
  readonly payload: LoadPayload;
  readonly options: {
    readonly runAt: number;
    readonly tenant: string;
    readonly idempotencyKey?: string;
  };
}

/** The part of the scheduler that is loaded. */
export interface LoadTarget {
  scheduleMany(items: LoadItem[]): Promise<readonly ({ readonly id: string } | Error)[]>;
}

export interface CreatorOptions {
  readonly target: LoadTarget;
  readonly audit: Audit;
  /** Milliseconds that only grow. */
  readonly monotonic: () => number;
  readonly payloadBytes: number;
  readonly keys: 'none' | 'random' | 'ordered';
  /** Told apart from other runs on the same store; part of every key. */
  readonly runName: string;
  readonly seed: number;
}

/** What msgpack takes for a payload without its padding: three names, a sequence number, a time. */
const PAYLOAD_BASE_BYTES = 32;
const KEY_STREAM = 0xffff_ffff;

export class Creator {
  /** Time from the call to its promise, in µs, once a task. */
  readonly acks: RecordableHistogram = createHistogram(LATENESS_HISTOGRAM);
  readonly #options: CreatorOptions;
  readonly #pad: string;
  readonly #keys: Random;
  #nextSeq = 0;
  #callsInFlight = 0;
  #answered: (() => void)[] = [];
  #refusal: unknown;

  constructor(options: CreatorOptions) {
    this.#options = options;
    this.#pad = 'x'.repeat(Math.max(0, options.payloadBytes - PAYLOAD_BASE_BYTES));
    this.#keys = createRandom(options.seed, KEY_STREAM);
  }

  /** Tasks handed to the scheduler, answered or not. */
  get issued(): number {
    return this.#nextSeq;
  }

  get callsInFlight(): number {
    return this.#callsInFlight;
  }

  /** The first error that refused a task, for people. */
  get firstRefusal(): unknown {
    return this.#refusal;
  }

  /** Issues the batch; `startMs` is the epoch time of the plan's start. */
  create(batch: PlanBatch, workload: Workload, startMs: number): void {
    const firstSeq = this.#nextSeq;
    this.#nextSeq += batch.size;
    // Round up: due times are whole milliseconds, and none may be wanted earlier than it was planned.
    const dueAts = Float64Array.from({ length: batch.size }, (_, at) =>
      Math.ceil(startMs + (batch.dueMs[at] as number)),
    );
    const items: LoadItem[] = new Array(batch.size);
    for (let at = 0; at < batch.size; at += 1) {
      const tenant = workload.tenantName(batch.tenant[at] as number);
      items[at] = this.#item(firstSeq + at, dueAts[at] as number, tenant);
    }
    this.#callsInFlight += 1;
    const calledAtMs = this.#options.monotonic();
    const answering = this.#options.target.scheduleMany(items);
    void this.#issue(answering, calledAtMs, firstSeq, dueAts);
  }

  /** Resolves when at most `calls` calls are unanswered. */
  async inFlightAtMost(calls: number): Promise<void> {
    while (this.#callsInFlight > calls) {
      await new Promise<void>((resolve) => this.#answered.push(resolve));
    }
  }

  #item(seq: number, dueAt: number, tenant: string): LoadItem {
    const payload = { seq, dueAt, pad: this.#pad };
    const key = this.#keyOf(seq);
    const options = { runAt: dueAt, tenant };
    return {
      handler: 'work',
      payload,
      options: key === undefined ? options : { ...options, idempotencyKey: key },
    };
  }

  #keyOf(seq: number): string | undefined {
    const { keys, runName } = this.#options;
    if (keys === 'none') return undefined;
    if (keys === 'ordered') return `${runName}-${String(seq).padStart(12, '0')}`;
    const high = this.#keys.uint32().toString(16).padStart(8, '0');
    const low = this.#keys.uint32().toString(16).padStart(8, '0');
    return `${high}${low}-${runName}`;
  }

  /** Keeps no hold on the items: tens of thousands may wait for their answer. */
  async #issue(
    answering: ReturnType<LoadTarget['scheduleMany']>,
    calledAtMs: number,
    firstSeq: number,
    dueAts: Float64Array,
  ): Promise<void> {
    const { audit, monotonic } = this.#options;
    try {
      const answers = await answering;
      this.#noteAck(monotonic() - calledAtMs, dueAts.length);
      dueAts.forEach((dueAt, at) => {
        const answer = answers[at];
        const seq = firstSeq + at;
        if (answer !== undefined && !(answer instanceof Error)) {
          audit.accept(seq, { id: answer.id, dueAt });
        } else {
          this.#refuse(seq, answer);
        }
      });
    } catch (error) {
      for (let at = 0; at < dueAts.length; at += 1) this.#refuse(firstSeq + at, error);
    } finally {
      this.#callsInFlight -= 1;
      for (const resolve of this.#answered.splice(0)) resolve();
    }
  }

  #noteAck(elapsedMs: number, tasks: number): void {
    const elapsedUs = Math.min(
      Math.max(1, Math.round(elapsedMs * 1000)),
      LATENESS_HISTOGRAM.highest,
    );
    for (let task = 0; task < tasks; task += 1) this.acks.record(elapsedUs);
  }

  #refuse(seq: number, error: unknown): void {
    this.#refusal ??= error;
    this.#options.audit.reject(seq);
  }
}
