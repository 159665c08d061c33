/**
 * Looks at every page, if nobody writes (page-check.ts), recounts every counter and compares every index with the
 * records, both ways. It only reads, and works beside a process that writes: what belongs together is read from one snapshot, and a newer one is taken after each piece. Counts need all
 * of it from one: they are compared if nothing was committed meanwhile, or else counted again in one go, if that is
 * short enough; for as long, pages that the writer frees are not used again.
 */
import { nextTurn } from '../../../clock/turn.js';
import { MalformedError } from '../bytes.js';
import { idText } from '../keys.js';
import { openReader } from '../read-only-session.js';
import type { StoreReader } from '../reader.js';
import { hasEnded } from '../row.js';
import { translated } from '../translated.js';
import { IndexesCheck } from './check-indexes.js';
import { RecordsCheck } from './check-records.js';
import { checkRowLog, checkSeals } from './check-seals.js';
import { Findings, Recount } from './findings.js';
import { nextPairs } from './pieces.js';

/** For so long a snapshot is held at most. */
const HOLD_MAX_MS = 5000;

export interface VerifyOptions {
  readonly path: string;
  readonly nowMs: () => number;
}

/** What `verify` found. */
export interface Verification {
  readonly tasks: number;
  /** History included. */
  readonly occurrences: number;
  readonly attempts: number;
  /** In the due index. */
  readonly dueEntries: number;
  /** What does not agree, in words: the first 1000. */
  readonly disagreements: readonly string[];
  readonly disagreementCount: number;
  /** What could not be compared, as the store changed all the while. */
  readonly notCompared: readonly string[];
}

/** @throws StoreCorruptError, StoreVersionError, StoreUnavailableError when there is no store */
export async function verifyStore({ path, nowMs }: VerifyOptions): Promise<Verification> {
  const reader = await openReader(path, Number.POSITIVE_INFINITY);
  try {
    return await verify(reader, nowMs);
  } catch (error) {
    throw translated(error, reader.env.file);
  } finally {
    await reader.close();
  }
}

async function verify(reader: StoreReader, nowMs: () => number): Promise<Verification> {
  const findings = new Findings();
  const notCompared: string[] = [];
  /** Goes on with the next when a record of one can't be read. */
  const each = async (what: string, pieces: Iterable<void>): Promise<boolean> => {
    try {
      await inTurns(pieces, reader);
      return true;
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      findings.add(`${what} can't all be read: ${error.message}`);
      return false;
    }
  };
  reader.refresh();
  await each('the checksums', checkSeals(reader.env, findings));
  await each('the log of tasks', checkRowLog(reader, findings));
  const { commit } = reader;
  const records = new RecordsCheck(reader, findings, nowMs());
  if (await each('the tasks', records.run())) {
    if (commit === reader.commit) records.recount.compare(reader.counts, findings);
    else if (!recountAtOnce(reader, findings, nowMs)) {
      notCompared.push(`counts of tenants: the store changed while they were recounted`);
    }
  } else notCompared.push('counts of tenants: not all of it can be read');
  const indexes = new IndexesCheck(reader, findings);
  for (const [what, pieces] of indexes.parts()) await each(what, pieces);
  if (indexes.bucketsLeft > 0) {
    notCompared.push(`counts of ${indexes.bucketsLeft} buckets: the store changed meanwhile`);
  }
  return {
    ...records.looked,
    dueEntries: indexes.entries,
    disagreements: findings.texts,
    disagreementCount: findings.count,
    notCompared,
  };
}

async function inTurns(pieces: Iterable<void>, reader: StoreReader): Promise<void> {
  for (const _ of pieces) {
    await nextTurn();
    reader.refresh();
  }
}

/** All of one snapshot. False: it took too long. */
function recountAtOnce(reader: StoreReader, findings: Findings, nowMs: () => number): boolean {
  const { records, counts, env } = reader;
  const recount = new Recount();
  const untilMs = nowMs() + HOLD_MAX_MS;
  reader.refresh();
  for (let after: Uint8Array | undefined; ; ) {
    const pairs = nextPairs(env.db.tasks, after);
    if (pairs.length === 0) break;
    for (const { key, value } of pairs) {
      const row = records.rowOfTree(idText(key), value);
      if (row === undefined) continue;
      const { task, occurrences } = row;
      if (!hasEnded(task)) recount.add(task.tenant, 'openTasks');
      for (const { record } of occurrences) recount.addOccurrence(record);
    }
    after = pairs.at(-1)?.key;
    if (nowMs() > untilMs) return false;
  }
  for (let after: Uint8Array | undefined; ; ) {
    const pairs = nextPairs(env.db.history, after);
    if (pairs.length === 0) break;
    for (const { key, value } of pairs) {
      recount.addOccurrence(records.decodeAlone(idText(key), value).record);
    }
    after = pairs.at(-1)?.key;
    if (nowMs() > untilMs) return false;
  }
  recount.compare(counts, findings);
  return true;
}
