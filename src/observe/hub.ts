/**
 * Tells listeners what happened, after its commit, in order, at most once. Each listener has a queue of its
 * own: a slow one loses its oldest place in line (counted), never holds up the others or the loop. One that
 * blocks the thread blocks everything on it; nothing in JavaScript can isolate that.
 */
import { inNextTurn } from '../clock/turn.js';
import type { TaskEvent, TaskEventType } from '../core/effect.js';

/** Events a listener may be behind; more are dropped for it and counted. */
export const LISTENER_QUEUE_MAX = 10_000;
/** Events told to one listener in one turn of the event loop. */
const TOLD_IN_A_TURN_MAX = 2_000;

export interface HubOptions<E> {
  /** The event as listeners see it; made once, and only when somebody listens. */
  readonly present: (event: TaskEvent) => E;
  readonly onError: (error: unknown, source: string) => void;
}

class Listener<E> {
  readonly type: TaskEventType | '*';
  readonly call: (event: E) => unknown;
  readonly queue: E[] = [];
  head = 0;
  removed = false;

  constructor(type: TaskEventType | '*', call: (event: E) => unknown) {
    this.type = type;
    this.call = call;
  }

  get waiting(): number {
    return this.queue.length - this.head;
  }

  next(): E {
    const event = this.queue[this.head++] as E;
    if (this.head === this.queue.length) {
      this.queue.length = 0;
      this.head = 0;
    } else if (this.head >= LISTENER_QUEUE_MAX) {
      this.queue.splice(0, this.head);
      this.head = 0;
    }
    return event;
  }
}

export class Hub<E = unknown> {
  readonly #options: HubOptions<E>;
  readonly #listeners = new Set<Listener<E>>();
  /** Called at once for every changed task: for the library itself, must not throw. */
  #tap: ((taskId: string) => void) | undefined;
  /** Listeners by type, so that nobody builds an event that nobody would hear. */
  readonly #wanted = new Map<TaskEventType | '*', number>();
  #draining = false;
  /** Events dropped because a listener's queue was full. */
  drops = 0;

  constructor(options: HubOptions<E>) {
    this.#options = options;
  }

  /** True while a listener has not been told all. */
  get busy(): boolean {
    return this.#draining;
  }

  tap(call: (taskId: string) => void): void {
    this.#tap = call;
  }

  /** A task was changed, and the change is durable. */
  changed(taskId: string): void {
    this.#tap?.(taskId);
  }

  /** Whether a listener would be told events of this type. */
  wants = (type: TaskEventType): boolean =>
    (this.#wanted.get('*') ?? 0) > 0 || (this.#wanted.get(type) ?? 0) > 0;

  on(type: TaskEventType | '*', call: (event: E) => unknown): () => void {
    const listener = new Listener(type, call);
    this.#listeners.add(listener);
    this.#wanted.set(type, (this.#wanted.get(type) ?? 0) + 1);
    return () => {
      if (listener.removed) return;
      listener.removed = true;
      this.#wanted.set(type, (this.#wanted.get(type) ?? 0) - 1);
      this.#listeners.delete(listener);
    };
  }

  tell(event: TaskEvent): void {
    if (this.#listeners.size === 0) return;
    let presented: E | undefined;
    for (const listener of this.#listeners) {
      if (listener.type !== '*' && listener.type !== event.type) continue;
      if (listener.waiting >= LISTENER_QUEUE_MAX) {
        this.drops++;
        continue;
      }
      presented ??= this.#options.present(event);
      listener.queue.push(presented);
      if (!this.#draining) {
        this.#draining = true;
        inNextTurn(() => this.#drain());
      }
    }
  }

  #drain(): void {
    let left = false;
    for (const listener of this.#listeners) {
      let told = 0;
      while (listener.waiting > 0 && !listener.removed && told < TOLD_IN_A_TURN_MAX) {
        this.#call(listener, listener.next());
        told++;
      }
      left ||= listener.waiting > 0 && !listener.removed;
    }
    this.#draining = left;
    if (left) inNextTurn(() => this.#drain());
  }

  #call(listener: Listener<E>, event: E): void {
    try {
      const returned = listener.call(event);
      if (returned instanceof Promise) {
        returned.catch((error) => this.#options.onError(error, 'listener'));
      }
    } catch (error) {
      this.#options.onError(error, 'listener');
    }
  }
}
