/** What handlers on threads ask of main: sleep on its clock, schedule, log. */
import { AbortedError } from '../../core/errors.js';
import type { ExecutorHost } from '../executor.js';
import { createPayloadCodec } from '../payload.js';
import type { HandlerCall } from './hearing.js';
import type { PoolThread } from './thread.js';

/** Answers are tasks, which hold payloads and more; they never come near this. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export class HandlerCalls {
  readonly #host: ExecutorHost;
  readonly #codec = createPayloadCodec({ maxPayloadBytes: ANSWER_BYTES_MAX });

  constructor(host: ExecutorHost) {
    this.#host = host;
  }

  handle(thread: PoolThread, call: HandlerCall): void {
    switch (call.kind) {
      case 'sleep':
        void this.#sleep(thread, call);
        return;
      case 'wake':
        thread.sleeps.get(call.callId)?.abort();
        return;
      case 'schedule':
        void this.#schedule(thread, call);
        return;
      case 'log':
        this.#log(call.level, call.entry);
        return;
      case 'stray':
        this.#host.log.error(
          { error: call.error, workerId: thread.workerId },
          'an error was thrown outside of any handler that runs',
        );
        return;
      default:
        call satisfies never;
    }
  }

  async #sleep(thread: PoolThread, call: Extract<HandlerCall, { kind: 'sleep' }>): Promise<void> {
    const record = thread.runs.get(call.runId);
    const controller = new AbortController();
    thread.sleeps.set(call.callId, controller);
    if (record !== undefined) record.sleeps++;
    try {
      await this.#host.clock.sleep(call.ms, { signal: controller.signal });
      this.#answer(thread, call.callId, true, undefined);
    } catch {
      // Given up: nobody waits for the answer.
    } finally {
      thread.sleeps.delete(call.callId);
      if (record !== undefined) record.sleeps--;
    }
  }

  async #schedule(
    thread: PoolThread,
    call: Extract<HandlerCall, { kind: 'schedule' }>,
  ): Promise<void> {
    const { callId, handler } = call;
    try {
      const run = thread.runs.get(call.runId)?.run;
      if (run === undefined) {
        throw new AbortedError('the attempt has ended: it schedules no more', { why: 'leaseLost' });
      }
      const result = await this.#host.schedule({
        taskId: run.taskId,
        tenant: run.tenant,
        handler,
        payload: this.#codec.decode(call.payload),
        options: this.#codec.decode(call.options),
      });
      this.#answer(thread, callId, true, this.#codec.encode(result, 'task'));
    } catch (error) {
      this.#answer(thread, callId, false, this.#encodeError(error));
    }
  }

  #encodeError(error: unknown): Uint8Array {
    try {
      return this.#codec.encode(error, 'error');
    } catch {
      return this.#codec.encode(new Error(String(error)), 'error');
    }
  }

  #answer(thread: PoolThread, callId: number, ok: boolean, bytes: Uint8Array | undefined): void {
    const nowMs = this.#host.clock.now();
    thread.say({ kind: 'answer', callId, ok, bytes: bytes?.slice(), nowMs });
  }

  #log(level: string, entry: Uint8Array): void {
    const known = LEVELS.find((each) => each === level) ?? 'info';
    const [fields, message] = this.#codec.decode(entry) as [object, string | undefined];
    this.#host.log[known](fields, message);
  }
}
