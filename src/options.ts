/** The options of `Scheduler.open`: shapes, units, defaults, checks. */
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import {
  functionOf,
  integerOf,
  numberOf,
  optionsOf,
  positiveDurationMs,
  refuse,
  textOf,
} from './check.js';
import type { Clock } from './clock/clock.js';
import { systemClock } from './clock/system.js';
import { type Duration, parseDurationMs } from './core/units.js';
import type { Limits } from './engine/scopes.js';
import type { HandlerMap } from './execution/handler.js';
import { type Logger, silentLogger } from './observe/log.js';
import { lmdbStore } from './store/lmdb/lmdb-store.js';
import type { Retention, Store } from './store/store.js';

export interface TenantLimits {
  /** Share of the slots against other tenants, > 0; default 1. */
  weight?: number;
  /** Attempts running at once; default unlimited. */
  maxConcurrency?: number;
  /** Starts a second, retries included, burst one second; default unlimited. */
  maxRatePerSecond?: number;
  /** Tasks that have not ended; default unlimited. */
  maxPending?: number;
}

export interface HandlerLimits {
  maxConcurrency?: number;
  maxRatePerSecond?: number;
}

/** Encryption at rest: sees payloads, results, progress and errors before the store does. */
export interface StoredBytesCodec {
  readonly id: string;
  encode(bytes: Uint8Array): Uint8Array;
  decode(bytes: Uint8Array): Uint8Array;
}

export interface OpenOptions {
  /** Where tasks are kept; default `lmdbStore({ path: './tickwheel-data' })`. */
  store?: Store;
  workers?: {
    /** Worker threads for a handler module; default `os.availableParallelism()`. */
    threads?: number;
    /** Handlers entered at once: 16 a thread, or 64 in all for in-process handlers. */
    concurrency?: number;
  };
  /** Default `systemClock()`. */
  clock?: Clock;
  /** In [0, 1): jitter and ids; seed it in tests. Default `Math.random`. */
  random?: () => number;
  /** How long ended tasks and their history are kept; default 1 h for success, 30 d for all else. */
  retention?: { succeeded?: Duration; failed?: Duration };
  /** Limits by tenant; '*' is for each that has no entry of its own, which takes nothing from '*'. */
  tenants?: Record<string, TenantLimits>;
  handlerLimits?: Record<string, HandlerLimits>;
  limits?: {
    /** Bytes of an encoded payload, result or progress; default 256 KiB. */
    maxPayloadBytes?: number;
    /** Occurrences between due and start held in memory; default 16,384. */
    maxReady?: number;
    /** Bytes accepted and not yet flushed beyond which creates are refused; default 64 MiB. */
    maxUnflushedBytes?: number;
  };
  /** Default 10 s. */
  leaseDuration?: Duration;
  /** From the abort of a run's signal to its end by force; default 5 s. */
  timeoutGrace?: Duration;
  /** How long `shutdown` lets running handlers finish; default 25 s. */
  shutdownTimeout?: Duration;
  payloadCodec?: StoredBytesCodec;
  /** Pino-like; `console` will do. Default: silent. */
  logger?: Logger;
  /** Told what cannot be told to a caller; default: the logger, as an error; so without either nothing is printed. */
  onError?: (error: unknown, info: { source: string }) => void;
}

export interface ResolvedOptions {
  readonly handlers: HandlerMap | URL | undefined;
  readonly store: Store;
  readonly threads: number;
  readonly concurrency: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly retention: Retention;
  readonly tenants: Readonly<Record<string, Limits>>;
  readonly handlerLimits: Readonly<Record<string, HandlerLimits>>;
  readonly maxPayloadBytes: number;
  readonly maxReady: number;
  readonly maxUnflushedBytes: number;
  readonly leaseDurationMs: number;
  readonly timeoutGraceMs: number;
  readonly shutdownTimeoutMs: number;
  readonly payloadCodec: StoredBytesCodec | undefined;
  readonly logger: Logger;
  readonly onError: (error: unknown, info: { source: string }) => void;
}

const NAMES = new Set([
  'handlers',
  'store',
  'workers',
  'clock',
  'random',
  'retention',
  'tenants',
  'handlerLimits',
  'limits',
  'leaseDuration',
  'timeoutGrace',
  'shutdownTimeout',
  'payloadCodec',
  'logger',
  'onError',
] as const);
const WORKERS = new Set(['threads', 'concurrency'] as const);
const RETENTION = new Set(['succeeded', 'failed'] as const);
const LIMITS = new Set(['maxPayloadBytes', 'maxReady', 'maxUnflushedBytes'] as const);
const TENANT = new Set(['weight', 'maxConcurrency', 'maxRatePerSecond', 'maxPending'] as const);
const HANDLER = new Set(['maxConcurrency', 'maxRatePerSecond'] as const);

const KIB = 1024;
const COUNT_MAX = 100_000_000;
const CONCURRENCY = { aThread: 16, inProcess: 64 };

/** @throws InvalidArgumentError naming the option and what is allowed */
export function resolveOptions(given: unknown): ResolvedOptions {
  const options = optionsOf(given, 'options', NAMES);
  const { random = Math.random } = options;
  const { leaseDuration = '10s', timeoutGrace = '5s', shutdownTimeout = '25s' } = options;
  const { succeeded = '1h', failed = '30d' } = optionsOf(options.retention, 'retention', RETENTION);
  const limits = optionsOf(options.limits, 'limits', LIMITS);
  const { maxPayloadBytes = 256 * KIB, maxReady = 16_384 } = limits;
  const { maxUnflushedBytes = 64 * KIB * KIB } = limits;
  const handlers = handlersOf(options.handlers);
  const perThread = handlers instanceof URL ? CONCURRENCY.aThread : CONCURRENCY.inProcess;
  const workers = optionsOf(options.workers, 'workers', WORKERS);
  const { threads = availableParallelism(), concurrency = perThread } = workers;
  const logger = loggerOf(options.logger);
  return {
    handlers,
    store: storeOf(options.store),
    threads: integerOf(threads, 'workers.threads', 1, 1024),
    concurrency: integerOf(concurrency, 'workers.concurrency', 1, 65_536),
    clock: clockOf(options.clock),
    random: functionOf(random, 'random'),
    retention: {
      succeededMs: parseDurationMs(succeeded, 'retention.succeeded'),
      failedMs: parseDurationMs(failed, 'retention.failed'),
    },
    tenants: mapOf(options.tenants, 'tenants', tenantLimitsOf),
    handlerLimits: mapOf(options.handlerLimits, 'handlerLimits', handlerLimitsOf),
    maxPayloadBytes: integerOf(maxPayloadBytes, 'limits.maxPayloadBytes', 1, 64 * KIB * KIB),
    maxReady: integerOf(maxReady, 'limits.maxReady', 1, 1_000_000),
    maxUnflushedBytes: integerOf(
      maxUnflushedBytes,
      'limits.maxUnflushedBytes',
      1,
      Number.MAX_SAFE_INTEGER,
    ),
    leaseDurationMs: positiveDurationMs(leaseDuration, 'leaseDuration'),
    timeoutGraceMs: parseDurationMs(timeoutGrace, 'timeoutGrace'),
    shutdownTimeoutMs: parseDurationMs(shutdownTimeout, 'shutdownTimeout'),
    payloadCodec: codecOf(options.payloadCodec),
    logger,
    onError:
      options.onError === undefined
        ? (error, { source }) => logger.error({ source, err: error }, 'tickwheel: an error')
        : functionOf(options.onError, 'onError'),
  };
}

function handlersOf(value: unknown): HandlerMap | URL | undefined {
  if (value === undefined) return undefined;
  if (value instanceof URL) {
    if (value.protocol === 'file:') fileURLToPath(value);
    return value;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(
      'handlers',
      value,
      "an object of functions by name, or the URL of a module: new URL('./handlers.js', import.meta.url)",
    );
  }
  return value as HandlerMap;
}

const DEFAULT_PATH = './tickwheel-data';

function storeOf(value: unknown): Store {
  if (value === undefined) return lmdbStore({ path: DEFAULT_PATH });
  const store = value as Partial<Store> | null;
  if (typeof store !== 'object' || typeof store?.open !== 'function') {
    refuse('store', value, 'what lmdbStore() or memoryStore() returns');
  }
  return store as Store;
}

function clockOf(value: unknown): Clock {
  if (value === undefined) return systemClock();
  const clock = value as Partial<Clock> | null;
  const methods = ['now', 'monotonic', 'arm', 'sleep'] as const;
  if (typeof clock !== 'object' || !methods.every((m) => typeof clock?.[m] === 'function')) {
    refuse('clock', value, 'systemClock() or a VirtualClock');
  }
  return clock as Clock;
}

function loggerOf(value: unknown): Logger {
  if (value === undefined) return silentLogger;
  const logger = value as Partial<Logger> | null;
  const levels = ['debug', 'info', 'warn', 'error'] as const;
  if (typeof logger !== 'object' || !levels.every((l) => typeof logger?.[l] === 'function')) {
    refuse('logger', value, 'an object with debug, info, warn and error');
  }
  return logger as Logger;
}

function codecOf(value: unknown): StoredBytesCodec | undefined {
  if (value === undefined) return undefined;
  const codec = value as Partial<StoredBytesCodec> | null;
  const whole =
    typeof codec?.id === 'string' &&
    typeof codec.encode === 'function' &&
    typeof codec.decode === 'function';
  if (!whole) refuse('payloadCodec', value, '{ id, encode, decode }');
  return codec as StoredBytesCodec;
}

function mapOf<T>(
  value: unknown,
  what: string,
  each: (value: unknown, what: string) => T,
): Record<string, T> {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(what, value, 'an object by name');
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      textOf(name, `a name in ${what}`, 256),
      each(part, `${what}['${name}']`),
    ]),
  );
}

function handlerLimitsOf(value: unknown, what: string): HandlerLimits {
  const { maxConcurrency, maxRatePerSecond } = optionsOf(value, what, HANDLER);
  return {
    ...(maxConcurrency === undefined
      ? {}
      : { maxConcurrency: integerOf(maxConcurrency, `${what}.maxConcurrency`, 0, COUNT_MAX) }),
    ...(maxRatePerSecond === undefined
      ? {}
      : { maxRatePerSecond: numberOf(maxRatePerSecond, `${what}.maxRatePerSecond`, 1e-6, 1e9) }),
  };
}

/** @throws InvalidArgumentError */
export function tenantLimitsOf(value: unknown, what: string): TenantLimits {
  const { weight, maxPending, ...lanes } = optionsOf(value, what, TENANT);
  return {
    ...handlerLimitsOf(lanes, what),
    ...(weight === undefined ? {} : { weight: numberOf(weight, `${what}.weight`, 0.001, 1000) }),
    ...(maxPending === undefined
      ? {}
      : { maxPending: integerOf(maxPending, `${what}.maxPending`, 0, Number.MAX_SAFE_INTEGER) }),
  };
}
