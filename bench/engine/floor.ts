/**
 * What callers, handlers and listeners are given for each task, made without an engine: no store, no timer, no lane, no state. The
 * payload is encoded as the scheduler does it, objects are made as directly as can be; what a task takes on top is the engine's.
 */

import { createIdSource } from '../../src/core/id.js';
import { occurrenceId } from '../../src/core/model.js';
import type { Created } from '../../src/creation.js';
import { createPayloadCodec } from '../../src/execution/payload.js';
import type { EventOf } from '../../src/present.js';
import { must } from '../lib/report.js';
import { CHUNK, type Item, items } from './load.js';

/** Of the type that callers get, so that it has what that has. Policies are shared. */
type Answer = Omit<Created, 'options'> & { readonly options: object };
type Ended = EventOf<'succeeded'>;

interface Waiting {
  readonly task: Answer;
  readonly occurrence: string;
  readonly bytes: Uint8Array;
}

const codec = createPayloadCodec({ maxPayloadBytes: 2 ** 18 });
const ids = createIdSource({ random: Math.random, nowMs: Date.now });
const handler = (_payload: unknown, _ctx: object): undefined => undefined;
const POLICIES = Object.freeze({});

/** Tasks a second, the first third not counted. */
export async function floorOfCallers(total: number): Promise<number> {
  const warm = Math.ceil(total / 3 / CHUNK) * CHUNK;
  let heard = 0;
  const listener = (event: Ended): void => {
    if (event.type === 'succeeded') heard++;
  };
  let startedMs = performance.now();
  for (let done = 0; done < total; done += CHUNK) {
    if (done === warm) startedMs = performance.now();
    const created = await Promise.resolve(items(CHUNK).map(create));
    for (const { bytes, task, occurrence } of created) {
      const ctx = contextOf(task.id, occurrence);
      const result = handler(codec.decode(bytes), ctx);
      listener(eventOf(task.id, occurrence, result));
    }
  }
  const perSecond = ((total - warm) / (performance.now() - startedMs)) * 1000;
  must(heard >= total, 'each task was told');
  return perSecond;
}

/** As `scheduleMany` reads an item and answers it. */
function create({ handler: name, payload }: Item): Waiting {
  const nowMs = Date.now();
  const bytes = codec.encode(payload, 'payload');
  const id = ids.next();
  const occurrence = occurrenceId(id, 1, 'nominal', nowMs);
  const task: Answer = {
    id,
    tenant: 'default',
    handler: name,
    handlerVersion: 1,
    payload: codec.copy(payload, bytes),
    schedule: { kind: 'once', at: nowMs },
    options: POLICIES,
    priority: 4,
    status: 'scheduled',
    version: 1,
    generation: 1,
    nextRunAt: new Date(nowMs),
    lastOccurrenceId: occurrence,
    idempotencyKey: undefined,
    createdAt: new Date(nowMs),
    endedAt: undefined,
    endReason: undefined,
    created: true,
  };
  return { task, occurrence, bytes };
}

/** As a handler is told what it runs, when it asks for no Date. */
function contextOf(taskId: string, occurrence: string): object {
  return { taskId, occurrenceId: occurrence, tenant: 'default', attempt: 1, fencingToken: 1 };
}

/** As a listener hears of an end. */
function eventOf(taskId: string, occurrence: string, result: unknown): Ended {
  return Object.freeze({
    type: 'succeeded',
    at: new Date(),
    taskId,
    tenant: 'default',
    handler: 'noop',
    occurrenceId: occurrence,
    attempt: 1,
    result,
    durationMs: 0,
  });
}
