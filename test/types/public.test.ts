/**
 * What must and must not compile. `npm run typecheck` judges it; the functions are never called, only their
 * types are looked at. Each `@ts-expect-error` fails the check when its line compiles.
 */
import { describe, expectTypeOf, it } from 'vitest';
import {
  type Attempt,
  type Context,
  cron,
  type Event,
  type EventOf,
  fixedDelay,
  fixedRate,
  type HandlersOf,
  type Occurrence,
  type Page,
  type ScheduleItem,
  Scheduler,
  type StoredError,
  type Task,
  type TaskStatus,
  type TickwheelError,
} from '../../src/index.js';
import type { Mail } from './handlers.js';

const url = new URL('./handlers.js', import.meta.url);

const inProcess = () =>
  Scheduler.open({
    handlers: {
      'send-email': async (payload: Mail, _ctx: Context) => ({ sent: payload.to.length }),
      tick: () => {},
      note: (_payload: { text: string } | undefined) => {},
      resize: {
        1: (payload: { width: number }) => payload.width,
        2: (payload: { size: [number, number] }) => payload.size[0],
      },
    },
  });
const module = () => Scheduler.open<typeof import('./handlers.js')>({ handlers: url });
const byDefault = () => Scheduler.open<typeof import('./handlers-default.js')>({ handlers: url });
const untyped = () => Scheduler.open({ handlers: url });
const producer = () => Scheduler.open({});
const typedProducer = () => Scheduler.open<typeof import('./handlers.js')>({});

type Opened<T extends (...args: never[]) => unknown> = Awaited<ReturnType<T>>;

/** Compiled, never run. */
function compiled(_check: (...schedulers: never[]) => unknown): void {}

describe('schedule', () => {
  it('knows names and payloads of an object of handlers', () => {
    compiled(async (s: Opened<typeof inProcess>) => {
      await s.schedule('send-email', { to: 'a' });
      await s.schedule('send-email', { to: 'a', retries: 1 }, { delay: '1s' });
      await s.schedule('tick');
      await s.schedule('tick', undefined, { delay: 5 });
      await s.schedule('note');
      await s.schedule('note', { text: 'x' });
      await s.schedule('resize', { width: 1 });
      await s.schedule('resize', { size: [1, 2] }, { handlerVersion: 2 });
      // @ts-expect-error a wrong payload
      await s.schedule('send-email', { to: 5 });
      // @ts-expect-error a payload that lacks what is needed
      await s.schedule('send-email', {});
      // @ts-expect-error no payload at all
      await s.schedule('send-email');
      // @ts-expect-error an unknown property
      await s.schedule('send-email', { to: 'a', cc: 'b' });
      // @ts-expect-error an unknown name
      await s.schedule('send-mail', { to: 'a' });
      // @ts-expect-error the payload of no version
      await s.schedule('resize', { height: 1 });
      // @ts-expect-error a handler that takes none
      await s.schedule('tick', { to: 'a' });
    });
  });

  it('knows names and payloads of a module of handlers', () => {
    compiled(async (s: Opened<typeof module>, d: Opened<typeof byDefault>) => {
      await s.schedule('sendEmail', { to: 'a' });
      await s.schedule('tick');
      await d.schedule('send-email', { to: 'a' });
      await d.schedule('note');
      await d.schedule('resize', { width: 1 });
      // @ts-expect-error a wrong payload
      await s.schedule('sendEmail', { to: 5 });
      // @ts-expect-error an unknown name
      await s.schedule('send-email', { to: 'a' });
      // @ts-expect-error exported, and no handler
      await s.schedule('LIMIT', 1);
      // @ts-expect-error a wrong payload
      await d.schedule('send-email', { to: 5 });
      // @ts-expect-error an unknown name
      await d.schedule('sendEmail', { to: 'a' });
      // @ts-expect-error the default export is not itself a handler
      await d.schedule('default', { to: 'a' });
    });
  });

  it('takes any name and payload where the handlers are not known', () => {
    compiled(
      async (
        s: Opened<typeof untyped>,
        p: Opened<typeof producer>,
        t: Opened<typeof typedProducer>,
      ) => {
        await s.schedule('anything', { at: 'all' });
        await p.schedule('anything');
        await t.schedule('sendEmail', { to: 'a' });
        // @ts-expect-error a wrong payload
        await t.schedule('sendEmail', { to: 5 });
        // @ts-expect-error names are text
        await s.schedule(5);
      },
    );
    type TheModule = typeof import('./handlers.js');
    expectTypeOf<keyof HandlersOf<TheModule>>().toEqualTypeOf<'sendEmail' | 'tick'>();
  });

  it('takes at most one of runAt, delay and schedule', () => {
    compiled(async (s: Opened<typeof inProcess>) => {
      await s.schedule('tick', undefined, { runAt: new Date() });
      await s.schedule('tick', undefined, { delay: '1s', tenant: 'a', priority: 'high' });
      await s.schedule('tick', undefined, { schedule: cron('* * * * *'), overlap: 'bufferAll' });
      await s.schedule('tick', undefined, { schedule: fixedDelay({ delay: 1 }) });
      await s.schedule('tick', undefined, { priority: 9 });
      // @ts-expect-error two of them
      await s.schedule('tick', undefined, { runAt: new Date(), delay: '1s' });
      // @ts-expect-error two of them
      await s.schedule('tick', undefined, { delay: 1, schedule: fixedRate({ every: 1 }) });
      // @ts-expect-error two of them
      await s.schedule('tick', undefined, { runAt: 1, schedule: fixedRate({ every: 1 }) });
      // @ts-expect-error an unknown option
      await s.schedule('tick', undefined, { dealy: 1 });
      // @ts-expect-error an expression is no schedule
      await s.schedule('tick', undefined, { schedule: '* * * * *' });
      // @ts-expect-error an unknown policy
      await s.schedule('tick', undefined, { overlap: 'drop' });
      // @ts-expect-error an unknown name of a priority
      await s.schedule('tick', undefined, { priority: 'urgent' });
      // @ts-expect-error not two in an update either
      await s.update('id', { runAt: 1, delay: 1 });
      await s.update('id', { delay: 1, payload: 1, retry: { maxAttempts: 1 } }, { version: 1 });
      // @ts-expect-error no task changes hands
      await s.update('id', { tenant: 'b' });
    });
  });

  it('gives a task of that payload', () => {
    compiled(async (s: Opened<typeof inProcess>) => {
      const task = await s.schedule('send-email', { to: 'a' });
      expectTypeOf(task).toEqualTypeOf<Task<Mail> & { created: boolean }>();
      expectTypeOf(task.payload).toEqualTypeOf<Mail>();
      expectTypeOf(task.status).toEqualTypeOf<TaskStatus>();
      expectTypeOf(task.nextRunAt).toEqualTypeOf<Date | undefined>();
      // @ts-expect-error results are read only
      task.priority = 3;
    });
  });
});

describe('scheduleMany', () => {
  it('has typed items', () => {
    compiled(async (s: Opened<typeof inProcess>) => {
      const results = await s.scheduleMany([
        { handler: 'send-email', payload: { to: 'a' } },
        { handler: 'tick' },
        { handler: 'note', payload: { text: 'x' }, options: { delay: 1 } },
      ]);
      expectTypeOf(results).toEqualTypeOf<((Task & { created: boolean }) | TickwheelError)[]>();
      // @ts-expect-error a wrong payload
      await s.scheduleMany([{ handler: 'send-email', payload: { to: 5 } }]);
      // @ts-expect-error the payload of another handler
      await s.scheduleMany([{ handler: 'send-email', payload: { text: 'x' } }]);
      // @ts-expect-error no payload
      await s.scheduleMany([{ handler: 'send-email' }]);
      // @ts-expect-error an unknown name
      await s.scheduleMany([{ handler: 'nobody', payload: 1 }]);
      // @ts-expect-error two times
      await s.scheduleMany([{ handler: 'tick', options: { runAt: 1, delay: 1 } }]);
    });
    compiled(async (s: Opened<typeof module>) => {
      await s.scheduleMany([{ handler: 'sendEmail', payload: { to: 'a' } }]);
      // @ts-expect-error a wrong payload
      await s.scheduleMany([{ handler: 'sendEmail', payload: 5 }]);
    });
    type Item = ScheduleItem<{ a: (n: number) => void; b: () => void }>;
    expectTypeOf<Item['handler']>().toEqualTypeOf<'a' | 'b'>();
  });
});

describe('events', () => {
  it('have the details of their type', () => {
    compiled((s: Opened<typeof inProcess>) => {
      const off = s.on('started', (event) => {
        expectTypeOf(event).toEqualTypeOf<EventOf<'started'>>();
        expectTypeOf(event.latenessMs).toEqualTypeOf<number>();
        expectTypeOf(event.workerId).toEqualTypeOf<string>();
        // @ts-expect-error of another type
        event.result;
      });
      expectTypeOf(off).toEqualTypeOf<() => void>();
      s.on('retrying', (event) => {
        expectTypeOf(event.retryAt).toEqualTypeOf<Date>();
        expectTypeOf(event.error).toEqualTypeOf<StoredError>();
      });
      s.on('missed', ({ count, from, to, reason }) => {
        expectTypeOf({ count, from, to, reason }).toEqualTypeOf<{
          count: number;
          from: Date;
          to: Date;
          reason: string;
        }>();
      });
      s.on('*', (event) => {
        expectTypeOf(event).toEqualTypeOf<Event>();
        if (event.type === 'succeeded') expectTypeOf(event.durationMs).toEqualTypeOf<number>();
        // @ts-expect-error only of some
        event.durationMs;
      });
      s.on('succeeded', async () => {}, { signal: new AbortController().signal });
      // @ts-expect-error an unknown type
      s.on('done', () => {});
    });
  });
});

describe('results', () => {
  it('are typed', () => {
    compiled(async (s: Opened<typeof inProcess>) => {
      expectTypeOf(await s.get('id')).toEqualTypeOf<Task | undefined>();
      expectTypeOf(await s.wait({ idempotencyKey: 'k' })).toEqualTypeOf<Occurrence>();
      expectTypeOf(await s.list({ status: 'failed' })).toEqualTypeOf<Page<Task>>();
      expectTypeOf(await s.occurrences('id')).toEqualTypeOf<Page<Occurrence>>();
      expectTypeOf(await s.occurrence('id')).toEqualTypeOf<Occurrence | undefined>();
      expectTypeOf(await s.attempts('id')).toEqualTypeOf<Attempt[]>();
      expectTypeOf(await s.cancel('id', { reason: 'x' })).toEqualTypeOf<boolean>();
      expectTypeOf(await s.redrive('id')).toEqualTypeOf<Occurrence>();
      expectTypeOf(await s.delete('id')).toEqualTypeOf<boolean>();
      expectTypeOf((await s.stats()).nextDueAt).toEqualTypeOf<Date | undefined>();
      expectTypeOf(s.state).toEqualTypeOf<'open' | 'running' | 'draining' | 'closed'>();
      expectTypeOf(await s.shutdown({ drain: false, timeout: '1s' })).toEqualTypeOf<{
        readonly finished: number;
        readonly released: number;
        readonly aborted: number;
      }>();
      // @ts-expect-error no such status
      await s.list({ status: 'done' });
      // @ts-expect-error a reference needs its key
      await s.get({ tenant: 'a' });
      await s.pause({ tenant: 'a' });
      await s.pause({ handler: 'tick' });
      await s.resume('id');
    });
  });

  it('handlers and contexts are typed', () => {
    compiled((ctx: Context) => {
      expectTypeOf(ctx.attempt).toEqualTypeOf<number>();
      expectTypeOf(ctx.nominalAt).toEqualTypeOf<Date>();
      expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(ctx.progress).toEqualTypeOf<unknown>();
      // @ts-expect-error read only
      ctx.attempt = 2;
    });
    compiled(() =>
      Scheduler.open({
        // @ts-expect-error a handler is a function
        handlers: { a: 5 },
      }),
    );
    compiled(() =>
      Scheduler.open({
        handlers: {},
        // @ts-expect-error an unknown option
        thraeds: 4,
      }),
    );
  });
});
