/**
 * What the runs database holds, under its key 0: one small JSON value that is replaced as a whole, so that a crash
 * leaves either the old state or the new one.
 */
import { StoreCorruptError, StoreVersionError } from '../../../core/errors.js';

const VERSION = 1;

/** A sorted run, or one that is being written or removed. */
export interface RunMeta {
  readonly id: number;
  /** How often it was merged, about; runs grow fourfold a level. */
  readonly level: number;
  readonly count: number;
  readonly tombstones: number;
  /** Entries are kept by the highest `bits` of their hash: one value for each prefix that occurs. */
  readonly bits: number;
  /** Of its filter. */
  readonly blocks: number;
}

export interface Manifest {
  /** Log records below this are in runs. */
  readonly logFrom: number;
  readonly nextRunId: number;
  /** Newest first; levels never fall from one to the next. */
  readonly runs: readonly RunMeta[];
  /** Runs that are to be removed: merged into others, or not finished when the process ended. */
  readonly garbage: readonly RunMeta[];
}

export const EMPTY_MANIFEST: Manifest = { logFrom: 1, nextRunId: 1, runs: [], garbage: [] };

export function encodeManifest(manifest: Manifest): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: VERSION, ...manifest }));
}

/** @throws StoreCorruptError, StoreVersionError */
export function decodeManifest(bytes: Uint8Array): Manifest {
  const parsed = parse(bytes);
  if (typeof parsed.version === 'number' && parsed.version > VERSION) {
    throw new StoreVersionError(
      `the key index has format ${parsed.version}; this version knows formats up to ${VERSION}`,
    );
  }
  const { version, logFrom, nextRunId, runs, garbage } = parsed;
  const isWhole =
    version === VERSION &&
    isCount(logFrom) &&
    isCount(nextRunId) &&
    Array.isArray(runs) &&
    runs.every(isRunMeta) &&
    Array.isArray(garbage) &&
    garbage.every(isRunMeta);
  if (!isWhole) throw new StoreCorruptError('the manifest of the key index is damaged');
  return { logFrom, nextRunId, runs, garbage };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch (cause) {
    throw new StoreCorruptError('the manifest of the key index is damaged', { cause });
  }
  throw new StoreCorruptError('the manifest of the key index is damaged');
}

function isRunMeta(value: unknown): value is RunMeta {
  const meta = value as RunMeta | null;
  return (
    typeof meta === 'object' &&
    meta !== null &&
    [meta.id, meta.level, meta.count, meta.tombstones, meta.bits, meta.blocks].every(isCount) &&
    meta.bits <= 32
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
