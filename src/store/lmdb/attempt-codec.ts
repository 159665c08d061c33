/** Attempts that have ended, as bytes. */
import type { AttemptRecord } from '../../core/model.js';
import { bytesMax, MalformedError, type Reader, textMax, type Writer } from './bytes.js';
import { OUTCOMES } from './formats.js';

const FORM = 1;

export function writeAttempt(writer: Writer, record: AttemptRecord): void {
  writer.begin(64 + textMax(record.workerId) + bytesMax(record.progress) + bytesMax(record.error));
  writer.byte(FORM);
  const { startedAt, endedAt, progress, outcome, error, workerId } = record;
  writer.byte(
    (workerId === undefined ? 0 : 1) |
      (startedAt === undefined ? 0 : 2) |
      (endedAt === undefined ? 0 : 4) |
      (progress === undefined ? 0 : 8) |
      (outcome === undefined ? 0 : 16) |
      (error === undefined ? 0 : 32),
  );
  writer.varint(record.attempt);
  writer.number(record.fencingToken);
  if (workerId !== undefined) writer.text(workerId);
  if (startedAt !== undefined) writer.number(startedAt);
  if (endedAt !== undefined) writer.number(endedAt);
  if (progress !== undefined) writer.bytes(progress);
  if (outcome !== undefined) writer.byte(OUTCOMES.code(outcome));
  if (error !== undefined) writer.bytes(error);
}

export function readAttempt(reader: Reader, occurrenceId: string): AttemptRecord {
  if (reader.byte() !== FORM) throw new MalformedError('an attempt has an unknown form');
  const flags = reader.byte();
  const has = (flag: number): boolean => (flags & flag) !== 0;
  return {
    occurrenceId,
    attempt: reader.varint(),
    fencingToken: reader.number(),
    workerId: has(1) ? reader.text() : undefined,
    startedAt: has(2) ? reader.number() : undefined,
    endedAt: has(4) ? reader.number() : undefined,
    progress: has(8) ? reader.bytes() : undefined,
    outcome: has(16) ? OUTCOMES.word(reader.byte()) : undefined,
    error: has(32) ? reader.bytes() : undefined,
  };
}
