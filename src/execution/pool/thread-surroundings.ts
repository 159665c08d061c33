/** What contexts on a thread reach main for: time when it is virtual, other tasks, the log. */
import { inspect } from 'node:util';
import type { Clock } from '../../clock/clock.js';
import { systemClock } from '../../clock/system.js';
import type { AbortedError } from '../../core/errors.js';
import { type Duration, parseDurationMs } from '../../core/units.js';
import type { Logger } from '../../observe/log.js';
import type { RunContext, Surroundings } from '../context.js';
import type { PayloadCodec } from '../executor.js';
import { type Control, TOLD } from './protocol.js';
import type { SharedSlots } from './slots.js';
import type { ThreadRuns } from './thread-runs.js';

interface Options {
  readonly runs: ThreadRuns;
  readonly slots: SharedSlots;
  readonly codec: PayloadCodec;
  readonly virtualTime: boolean;
}

interface Call {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class ThreadSurroundings implements Surroundings {
  readonly log: Logger;
  readonly #options: Options;
  readonly #calls = new Map<number, Call>();
  #lastCallId = 0;
  /** Main's wall clock when it last said something; it stands still while a handler runs. */
  #nowMs = 0;

  constructor(options: Options) {
    this.#options = options;
    this.log = this.#logger({});
  }

  setNow(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  decode(bytes: Uint8Array): unknown {
    return this.#options.codec.decode(bytes);
  }

  clockOf(ctx: RunContext): Pick<Clock, 'now' | 'sleep'> {
    if (!this.#options.virtualTime) return systemClock();
    return {
      now: () => this.#nowMs,
      sleep: (duration, options) => this.#sleepOnMain(ctx, duration, options?.signal),
    };
  }

  sleep(ctx: RunContext, duration: Duration): Promise<void> {
    const { signal } = ctx;
    return this.clockOf(ctx).sleep(duration, { signal });
  }

  async #sleepOnMain(
    ctx: RunContext,
    duration: Duration,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const ms = parseDurationMs(duration, 'sleep duration');
    if (signal?.aborted) throw signal.reason;
    const { runs } = this.#options;
    const { runId } = ctx.run;
    const { callId, answer } = this.#call();
    const onAbort = (): void => {
      runs.tell(TOLD.wake, runId, callId);
      this.#calls.get(callId)?.reject(signal?.reason);
      this.#calls.delete(callId);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    runs.tell(TOLD.sleep, runId, callId, ms);
    try {
      await answer;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #call(): { callId: number; answer: Promise<unknown> } {
    const callId = ++this.#lastCallId;
    const answer = new Promise((resolve, reject) => {
      this.#calls.set(callId, { resolve, reject });
    });
    return { callId, answer };
  }

  answered(message: Extract<Control, { kind: 'answer' }>): void {
    const call = this.#calls.get(message.callId);
    if (call === undefined) return;
    this.#calls.delete(message.callId);
    const value = message.bytes === undefined ? undefined : this.decode(message.bytes);
    if (message.ok) call.resolve(value);
    else call.reject(value);
  }

  heartbeat(ctx: RunContext, progress: unknown): void {
    const { codec, runs } = this.#options;
    const bytes = progress === undefined ? undefined : codec.encode(progress, 'progress');
    runs.tellProgress(ctx.run.runId, bytes);
  }

  async schedule(
    ctx: RunContext,
    handler: string,
    payload: unknown,
    options: object | undefined,
  ): Promise<unknown> {
    const { codec, runs } = this.#options;
    const payloadBytes = codec.encode(payload, 'payload');
    const optionBytes = codec.encode(options, 'options');
    const { callId, answer } = this.#call();
    runs.tell(TOLD.schedule, ctx.run.runId, callId, handler, payloadBytes, optionBytes);
    return await answer;
  }

  #logger(bindings: object): Logger {
    const at = (level: string) => (fields: object | string, message?: string) => {
      const { current } = this.#options.runs;
      // Its end is not read from memory before this is heard.
      if (current !== undefined) current.hasTold = true;
      const runId = current?.sent.facts.runId ?? 0;
      this.#options.runs.tell(TOLD.log, runId, level, this.#logged(bindings, fields, message));
    };
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (more) => this.#logger({ ...bindings, ...more }),
    };
  }

  #logged(bindings: object, fields: object | string, message: string | undefined): Uint8Array {
    const { codec } = this.#options;
    const own = typeof fields === 'string' ? {} : fields;
    const text = typeof fields === 'string' ? fields : message;
    try {
      return codec.encode([{ ...bindings, ...own }, text], 'log');
    } catch {
      // A log must not fail for what it is given.
      const shown = inspect(own, { depth: 2 }).slice(0, 10_000);
      return codec.encode([{ ...bindings, fields: shown }, String(text).slice(0, 10_000)], 'log');
    }
  }

  /** The flag in shared memory reaches also a loop that never lets a message in. */
  makeSignal(ctx: RunContext, controller: AbortController): AbortSignal {
    const { signal } = controller;
    const entered = this.#options.runs.entered(ctx);
    if (entered === undefined) return signal;
    const { slot, use } = entered.sent;
    const look = (): boolean => {
      const why = this.#options.slots.abortReason(slot, use);
      if (why !== undefined && !nativeAborted(signal)) {
        ctx.abort(why, `the attempt was aborted: ${why}`);
      }
      return nativeAborted(signal);
    };
    Object.defineProperties(signal, {
      aborted: { get: look, configurable: true },
      reason: { get: () => (look() ? nativeReason(signal) : undefined), configurable: true },
      throwIfAborted: {
        value: () => {
          if (look()) throw signal.reason;
        },
        configurable: true,
      },
    });
    return signal;
  }
}

const nativeAborted = getter<boolean>('aborted');
const nativeReason = getter<AbortedError>('reason');

function getter<T>(name: string): (signal: AbortSignal) => T {
  const { get } = Object.getOwnPropertyDescriptor(AbortSignal.prototype, name) ?? {};
  return (signal) => get?.call(signal) as T;
}
