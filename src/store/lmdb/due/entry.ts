/**
 * Entries of the due index: what timing must know of an occurrence, so that reading a bucket reads no task.
 *
 *   id 16 · kind 2 bits, flags · priority · due f64 · [ordinal f64] · [generation] · tenant, handler (pool) · [version]
 */
import { type OccurrenceRecord, occurrenceId, type TaskRecord } from '../../../core/model.js';
import type { LiveEntry } from '../../store.js';
import { type Reader, textMax, type Writer } from '../bytes.js';
import { KINDS } from '../formats.js';
import { ID_BYTES, idText, readId } from '../keys.js';
import type { Pool } from '../pool.js';

const ORDINAL_IS_DUE = 4;
const FIRST_GENERATION = 8;
const VERSION = 16;
const FIXED = 64;
/** What an entry is taken for; what it is, its record says. */
const AS_PENDING: LiveEntry['state'] = 'scheduled';
const id = new Uint8Array(ID_BYTES);

export interface Entry {
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly tenant: string;
  readonly handler: string;
  readonly handlerVersion: number | undefined;
  readonly priority: number;
  readonly dueAt: number;
  /** Of the stored entry, for one who copies it. */
  readonly from: number;
  readonly to: number;
}

export function entryMax(record: OccurrenceRecord): number {
  return FIXED + textMax(record.tenant) + textMax(record.handler);
}

export function writeEntry(
  writer: Writer,
  pool: Pool,
  record: OccurrenceRecord,
  task: TaskRecord,
): void {
  const { ordinal, dueAt, generation, handlerVersion } = record;
  readId(task.id, id, 0);
  writer.raw(id, ID_BYTES);
  writer.byte(
    KINDS.code(record.kind) |
      (ordinal === dueAt ? ORDINAL_IS_DUE : 0) |
      (generation === 1 ? FIRST_GENERATION : 0) |
      (handlerVersion === undefined ? 0 : VERSION),
  );
  writer.byte(task.priority);
  writer.number(dueAt);
  if (ordinal !== dueAt) writer.number(ordinal);
  if (generation !== 1) writer.varint(generation);
  pool.write(writer, record.tenant);
  pool.write(writer, record.handler);
  if (handlerVersion !== undefined) writer.varint(handlerVersion);
}

export function readEntry(reader: Reader, pool: Pool): Entry {
  const from = reader.at;
  reader.into(id, ID_BYTES);
  const taskId = idText(id);
  const flags = reader.byte();
  const priority = reader.byte();
  const dueAt = reader.number();
  const ordinal = (flags & ORDINAL_IS_DUE) !== 0 ? dueAt : reader.number();
  const generation = (flags & FIRST_GENERATION) !== 0 ? 1 : reader.varint();
  const tenant = pool.read(reader);
  const handler = pool.read(reader);
  const handlerVersion = (flags & VERSION) !== 0 ? reader.varint() : undefined;
  return {
    taskId,
    occurrenceId: occurrenceId(taskId, generation, KINDS.word(flags & 3), ordinal),
    tenant,
    handler,
    handlerVersion,
    priority,
    dueAt,
    from,
    to: reader.at,
  };
}

/** Stored entries are of what waits for its time; whether it still does, its record says. */
export function liveEntryOf(entry: Entry): LiveEntry {
  const { taskId, occurrenceId, tenant, handler, handlerVersion, priority, dueAt } = entry;
  return {
    taskId,
    occurrenceId,
    tenant,
    handler,
    handlerVersion,
    priority,
    dueAt,
    state: AS_PENDING,
    held: false,
  };
}
