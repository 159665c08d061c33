/** Those who wait for the end of a task's latest occurrence. */

import type { Clock } from './clock/clock.js';
import { sleepOn } from './clock/system.js';
import { SUPERSEDED } from './core/ending.js';
import { TaskNotFoundError, WaitTimeoutError } from './core/errors.js';
import { isTerminal, type OccurrenceRecord, type TaskView } from './core/model.js';
import type { StoreSession } from './store/store.js';

interface Waiter {
  readonly look: () => void;
  readonly fail: (error: unknown) => void;
}

export class Waiters {
  readonly #session: StoreSession;
  readonly #clock: Clock;
  readonly #byTask = new Map<string, Set<Waiter>>();

  constructor(session: StoreSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  /** A task was changed, and the change is durable. */
  heard(taskId: string): void {
    if (this.#byTask.size === 0) return;
    for (const waiter of this.#byTask.get(taskId) ?? []) waiter.look();
  }

  /** Nobody will be heard any more. */
  failAll(error: unknown): void {
    for (const waiters of [...this.#byTask.values()]) {
      for (const waiter of [...waiters]) waiter.fail(error);
    }
  }

  /**
   * @throws TaskNotFoundError, WaitTimeoutError, or the signal's reason
   */
  wait(
    taskId: string,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<OccurrenceRecord> {
    return new Promise((resolve, reject) => {
      const timer = new AbortController();
      const waiters = this.#byTask.get(taskId) ?? new Set();
      const finish = (settle: () => void): void => {
        waiters.delete(waiter);
        if (waiters.size === 0) this.#byTask.delete(taskId);
        signal?.removeEventListener('abort', onAbort);
        timer.abort();
        settle();
      };
      const fail = (error: unknown): void => finish(() => reject(error));
      const onAbort = (): void => fail(signal?.reason);
      // Of a recurring task the next one is made before this one ends: keep to the one first seen.
      let awaited: string | undefined;
      const look = (): void => {
        this.#latest(taskId, awaited).then((latest) => {
          awaited = latest.id;
          if (isTerminal(latest.state)) finish(() => resolve(latest));
        }, fail);
      };
      const waiter = { look, fail };
      // Known before the first look, so that no end falls between the two.
      this.#byTask.set(taskId, waiters.add(waiter));
      if (signal?.aborted) {
        onAbort();
        return;
      }
      signal?.addEventListener('abort', onAbort, { once: true });
      if (timeoutMs !== undefined) {
        sleepOn(this.#clock, timeoutMs, timer.signal).then(
          () => fail(new WaitTimeoutError(`wait: task ${taskId} did not end in ${timeoutMs} ms`)),
          () => {},
        );
      }
      look();
    });
  }

  /** The one awaited, unless an update has put another in its place; else the task's newest. */
  async #latest(taskId: string, awaited: string | undefined): Promise<OccurrenceRecord> {
    const [view] = await this.#session.views([taskId]);
    const known = awaited === undefined ? undefined : await this.#read(view, awaited);
    const isReplaced = known?.state === 'cancelled' && known.reason === SUPERSEDED;
    if (known !== undefined && !isReplaced) return known;
    const id = view?.task.lastOccurrenceId;
    const latest = id === undefined ? undefined : await this.#read(view, id);
    if (latest === undefined) throw new TaskNotFoundError(`wait: no task ${taskId}`);
    return latest;
  }

  async #read(view: TaskView | undefined, id: string): Promise<OccurrenceRecord | undefined> {
    return (
      view?.live.find((occurrence) => occurrence.id === id) ?? (await this.#session.occurrence(id))
    );
  }
}
