/** Types that follow from a scheduler's handlers. */
import type { Handler } from './execution/handler.js';
import type { ScheduleOptions } from './request.js';

// biome-ignore-start lint/suspicious/noExplicitAny: inference needs to match any function
type AnyFunction = (...args: any[]) => any;

/** What a handler takes: of several versions, any of their payloads. */
export type PayloadOf<T> = T extends AnyFunction
  ? Parameters<T> extends []
    ? undefined
    : Parameters<T>[0]
  : T extends { [version: number]: Handler }
    ? PayloadOf<T[keyof T]>
    : never;
// biome-ignore-end lint/suspicious/noExplicitAny: as above

export type NameOf<H extends object> = keyof H & string;

/** The arguments of `schedule` after the name: the payload may be left out where it may be undefined. */
export type ScheduleArguments<T> =
  undefined extends PayloadOf<T>
    ? [payload?: PayloadOf<T>, options?: ScheduleOptions]
    : [payload: PayloadOf<T>, options?: ScheduleOptions];

/** One item of `scheduleMany`. */
export type ScheduleItem<H extends object> = {
  [N in NameOf<H>]: undefined extends PayloadOf<H[N]>
    ? { handler: N; payload?: PayloadOf<H[N]>; options?: ScheduleOptions }
    : { handler: N; payload: PayloadOf<H[N]>; options?: ScheduleOptions };
}[NameOf<H>];

/** A task id, or the idempotency key it was created under. */
export type TaskRef = string | { idempotencyKey: string; tenant?: string };

export type { HandlersOf } from './execution/handler.js';
