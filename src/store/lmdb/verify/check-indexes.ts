/** From the indexes to the records: whatever an index names is there, and what is counted of it is right. */
import { Reader } from '../bytes.js';
import { type Bucket, Buckets } from '../due/buckets.js';
import { type Chunk, Chunks, groupOf } from '../due/chunks.js';
import type { Entry } from '../due/entry.js';
import { isMixed, laneKey } from '../due/lane.js';
import { commitOf, levelOf, placeOf, RUNNING_LEVEL } from '../due/levels.js';
import { type Begun, nextRunning } from '../due/running.js';
import type { Pair } from '../environment.js';
import { KINDS } from '../formats.js';
import { keyHash } from '../keys/hash.js';
import { ID_BYTES, idText, Key, readI64, readU32, readU64 } from '../keys.js';
import type { StoreReader } from '../reader.js';
import type { Row, StoredOccurrence } from '../row.js';
import type { Findings } from './findings.js';
import { inPieces } from './pieces.js';

const CHUNKS_A_PIECE = 128;
/** Buckets of more are counted in pieces, and only where nothing was committed meanwhile. */
const AT_ONCE_MAX = 50_000;
const BUCKET_KEY_BYTES = 9;

interface Tally {
  live: number;
  physical: number;
}

export class IndexesCheck {
  /** Buckets whose counts could not be compared, as there were commits meanwhile. */
  bucketsLeft = 0;
  entries = 0;
  readonly #reader: StoreReader;
  readonly #findings: Findings;
  readonly #chunks: Chunks;
  readonly #buckets: Buckets;
  #bucketsCommit = -1;

  constructor(reader: StoreReader, findings: Findings) {
    this.#reader = reader;
    this.#findings = findings;
    this.#chunks = new Chunks(reader.env.db.due, reader.pool);
    this.#buckets = new Buckets(reader.env.db.buckets);
  }

  /** Each part by itself. */
  parts(): [string, Iterable<void>][] {
    const { db } = this.#reader.env;
    const history = inPieces(db.history, ({ key }) => {
      if (this.#rowOf(key) !== undefined) return;
      this.#findings.add(
        `the history holds an occurrence of task ${idText(key)}, which is not there`,
      );
    });
    return [
      ['the due index', this.#checkBuckets()],
      ['the log of what runs', this.#checkRunning()],
      ['the dead letters', inPieces(db.dead, (pair) => this.#checkDead(pair))],
      ['the names in the history', inPieces(db.names, (pair) => this.#checkName(pair))],
      ['the history', history],
      ['the attempts', inPieces(db.attempts, ({ key }) => this.#checkAttempt(key))],
      ['the idempotency keys', this.#checkKeys()],
    ];
  }

  #rowOf(key: Uint8Array, at = 0): Row | undefined {
    return this.#reader.records.row(idText(key, at));
  }

  #at(row: Row, serial: number): StoredOccurrence | undefined {
    return (
      row.occurrences.find((stored) => stored.serial === serial) ??
      this.#reader.records.visibleAt(row.id, serial)
    );
  }

  // --- the due index -----------------------------------------------------------------------------------

  *#checkBuckets(): Generator<void> {
    for (let after: Uint8Array | undefined; ; ) {
      this.#loadBuckets();
      const next = this.#nextBucket(after);
      if (next === undefined) break;
      after = next;
      const bucket = this.#buckets.find(next[0], readI64(next, 1));
      if (bucket === undefined) {
        this.#findings.add(
          `the due index has entries in bucket ${nameOf(next)}, which is not listed`,
        );
      } else yield* this.#checkBucket(bucket);
      yield;
    }
    this.#loadBuckets();
    for (const bucket of this.#buckets.all()) {
      if (this.#hasChunks(bucket) || bucket.live + bucket.physical === 0) continue;
      this.#findings.add(`${describe(bucket)} counts ${bucket.live} entries, there are none`);
    }
  }

  #loadBuckets(): void {
    if (this.#bucketsCommit === this.#reader.commit) return;
    this.#bucketsCommit = this.#reader.commit;
    this.#buckets.load();
  }

  #hasChunks(bucket: Bucket): boolean {
    return this.#chunks.keys(bucket, 1).length > 0;
  }

  /** Level and start of the first bucket behind that one that has chunks. */
  #nextBucket(after: Uint8Array | undefined): Uint8Array | undefined {
    const start = new Key();
    if (after === undefined) start.byte(0);
    else start.raw(after, BUCKET_KEY_BYTES).byte(255).byte(255);
    const end = new Key().byte(RUNNING_LEVEL);
    for (const key of this.#reader.env.db.due.getKeys({ start, end, limit: 1 })) return key;
    return undefined;
  }

  *#checkBucket(bucket: Bucket): Generator<void> {
    const { commit } = this.#reader;
    const tally: Tally = { live: 0, physical: 0 };
    let pieces = 0;
    for (let after: Key | undefined; ; ) {
      const chunks = this.#chunks.read(bucket, after, CHUNKS_A_PIECE);
      for (const chunk of chunks) this.#tally(bucket, chunk, tally);
      if (chunks.length < CHUNKS_A_PIECE) break;
      after = chunks.at(-1)?.key;
      pieces += 1;
      if (bucket.physical > AT_ONCE_MAX) yield;
    }
    this.entries += tally.physical;
    if (pieces > 0 && commit !== this.#reader.commit) this.bucketsLeft += 1;
    else this.#compare(bucket, tally);
  }

  #tally({ level }: Bucket, chunk: Chunk, tally: Tally): void {
    for (const entry of this.#chunks.entries(chunk.bytes)) {
      tally.physical += 1;
      if (!isMixed(chunk.lane) && !this.#isOfLane(chunk.lane, entry)) {
        this.#findings.add(
          `an entry of occurrence ${entry.occurrenceId} is in the lane of another in the due index`,
        );
      } else if (this.#isPlaced(level, chunk, entry)) tally.live += 1;
    }
  }

  #isOfLane(lane: Uint8Array, entry: Entry): boolean {
    return laneKey(this.#reader.pool, entry)?.every((byte, i) => byte === lane[i]) === true;
  }

  #isPlaced(level: number, { splits, group }: Chunk, entry: Entry): boolean {
    const row = this.#reader.records.row(entry.taskId);
    const stored = row?.occurrences.find(({ record }) => record.id === entry.occurrenceId);
    if (stored === undefined || stored.record.dueAt !== entry.dueAt) return false;
    const { place } = stored;
    return (
      place !== 0 && levelOf(place) - splits === level && groupOf(commitOf(place), splits) === group
    );
  }

  #compare(bucket: Bucket, { live, physical }: Tally): void {
    // What was taken out of one that is being split is counted when it is found.
    const isLive = bucket.stage === 'splitting' ? bucket.live >= live : bucket.live === live;
    if (!isLive) {
      this.#findings.add(`${describe(bucket)} counts ${bucket.live} pending, there are ${live}`);
    }
    if (bucket.physical !== physical) {
      this.#findings.add(
        `${describe(bucket)} counts ${bucket.physical} entries, there are ${physical}`,
      );
    }
  }

  /** What is logged of a commit goes when nothing runs any more that began with it. */
  *#checkRunning(): Generator<void> {
    for (let commit: number | undefined = 0; commit !== undefined; ) {
      const logged = nextRunning(this.#reader.env.db.due, commit);
      if (logged === undefined) return;
      const { number, begun } = logged;
      const runs = ({ taskId, serial }: Begun): boolean => {
        const place = placeOf(number, RUNNING_LEVEL);
        const row = this.#reader.records.row(taskId);
        return row?.occurrences.some((o) => o.serial === serial && o.place === place) === true;
      };
      if (!begun.some(runs)) {
        this.#findings.add(`commit ${number} is in the log of what runs, and nothing of it does`);
      }
      commit = number + 1;
      yield;
    }
  }

  // --- the others --------------------------------------------------------------------------------------

  #checkDead({ key, value }: Pair): void {
    const number = readU64(key, 0);
    const row = this.#rowOf(value);
    const serial = new Reader(value, ID_BYTES, value.length).varint();
    if (row !== undefined && this.#at(row, serial)?.dead === number) return;
    this.#findings.add(`dead letter ${number} names task ${idText(value)}, which has no such one`);
  }

  #checkName({ key, value }: Pair): void {
    const serial = new Reader(value, 0, value.length).varint();
    const record = this.#reader.records.visibleAt(idText(key), serial)?.record;
    const isIt =
      record !== undefined &&
      record.generation === readU32(key, ID_BYTES) &&
      KINDS.code(record.kind) === key[ID_BYTES + 4] &&
      record.ordinal === readI64(key, ID_BYTES + 5);
    if (isIt) return;
    this.#findings.add(`a name in the history of task ${idText(key)} leads to no occurrence`);
  }

  #checkAttempt(key: Uint8Array): void {
    const row = this.#rowOf(key);
    const stored = row && this.#at(row, readU32(key, ID_BYTES));
    if (stored !== undefined && readU32(key, ID_BYTES + 4) < stored.attempts) return;
    this.#findings.add(`an attempt of task ${idText(key)} belongs to no occurrence`);
  }

  *#checkKeys(): Generator<void> {
    for (let cursor: number | undefined = 0; cursor !== undefined; ) {
      const page = this.#reader.keysOfLate.entries(cursor, CHUNKS_A_PIECE);
      for (const { hash, id } of page.found) this.#checkKey(hash, id);
      cursor = page.next;
      yield;
    }
  }

  #checkKey(hash: Uint8Array, id: Uint8Array): void {
    const isNewest = (found: Uint8Array | undefined): boolean =>
      found?.every((byte, i) => byte === id[i]) === true;
    const isHolder = (): boolean => {
      const task = this.#rowOf(id)?.task;
      if (task?.idempotencyKey === undefined) return false;
      return keyHash(task.tenant, task.idempotencyKey).every((byte, i) => byte === hash[i]);
    };
    if (isHolder() || !isNewest(this.#reader.keysOfLate.find(hash))) return;
    // It may have gone since the index was read.
    if (!isNewest(this.#reader.keys.find(hash))) return;
    this.#findings.add(`an idempotency key leads to task ${idText(id)}, which does not have it`);
  }
}

function describe({ level, start }: Bucket): string {
  return `bucket ${level}/${start} of the due index`;
}

function nameOf(key: Uint8Array): string {
  return `${key[0]}/${readI64(key, 1)}`;
}
