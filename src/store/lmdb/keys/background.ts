/**
 * What the key index does beside finds and adds: full tables become runs, runs are merged, filters loaded, leftovers
 * removed; all in bounded pieces. It owns the manifest, and the runs and full tables that finds ask.
 */
import { blocksFor } from './filter.js';
import { FlushJob, type Job, MergeJob } from './job.js';
import type { KeyLog } from './log.js';
import {
  decodeManifest,
  EMPTY_MANIFEST,
  encodeManifest,
  type Manifest,
  type RunMeta,
} from './manifest.js';
import type { Memtable } from './memtable.js';
import { planMerge, plannedCount } from './policy.js';
import { ChunkReader, chunkBitsFor, Run } from './run.js';
import { RunWriter } from './run-writer.js';
import { Sweeper } from './sweeper.js';
import { type KeyDatabase, Writes } from './writes.js';

/** A queued removal, or a piece of a filter loaded, in units. */
const WRITE_WORK = 4;
/** Pieces wait when so many writes of the index are not committed: they must not pile up. */
const OUTSTANDING_MAX = 16_384;
const MANIFEST_KEY = 0;

/** A table that takes no more entries. */
export interface FullTable {
  readonly table: Memtable;
  /** The log record after its last. */
  readonly logEnd: number;
}

export class Background {
  readonly writes = new Writes(() => this.#abandon());
  /** Newest first, as all that follow. */
  full: readonly FullTable[] = [];
  runs: readonly Run[];
  flushes = 0;
  merges = 0;
  /** The most units of work that a piece did. */
  workMax = 0;
  /** For the next table; was emptied. */
  spare: Memtable | undefined;
  readonly reader: ChunkReader;
  readonly #database: KeyDatabase;
  readonly #sweeper: Sweeper;
  /** Of one piece: units of work, and removals or loads of pieces. */
  readonly #workMax: number;
  readonly #writesMax: number;
  /** As it is visible. */
  #manifest: Manifest;
  #flush: Job | undefined;
  /** Under way, lowest level first: small ones must not wait for large ones. */
  #merging: readonly MergeJob[] = [];
  /** A new manifest is on its way to visible. */
  #changing = false;
  /** A commit failed, and nothing was added since. */
  #resting = false;
  #closed = false;

  /** @throws StoreCorruptError, StoreVersionError */
  constructor(database: KeyDatabase, workMax: number) {
    this.#database = database;
    this.#workMax = workMax;
    this.#writesMax = Math.max(1, Math.floor(workMax / WRITE_WORK));
    const manifest = database.getBinary(MANIFEST_KEY);
    this.#manifest = manifest === undefined ? EMPTY_MANIFEST : decodeManifest(manifest);
    this.reader = new ChunkReader(database);
    this.runs = this.#manifest.runs.map((meta) => new Run(meta, this.reader));
    this.#sweeper = new Sweeper(database, this.writes);
  }

  get logFrom(): number {
    return this.#manifest.logFrom;
  }

  /** Nothing can be done until something is committed. */
  get waits(): boolean {
    return !this.#resting && (this.#changing || this.writes.outstanding > OUTSTANDING_MAX);
  }

  setAside(full: FullTable): void {
    this.full = [full, ...this.full];
  }

  /** After a failed commit: try again. */
  resume(): void {
    this.#resting = false;
  }

  close(): void {
    this.#closed = true;
  }

  /** One piece of work. Returns how many units it was; 0: there is none, or it waits. */
  work(log: KeyLog): number {
    if (this.#closed || this.#resting || this.waits) return 0;
    const work =
      this.#loadFilters() || this.#workOnFlush() || this.#sweep(log) || this.#workOnMerges();
    this.workMax = Math.max(this.workMax, work);
    return work;
  }

  #loadFilters(): number {
    const run = this.runs.find(({ filter }) => !filter.isLoaded);
    return run === undefined ? 0 : run.loadFilter(this.#writesMax) * WRITE_WORK;
  }

  // --- flushes -------------------------------------------------------------------------------------------

  #workOnFlush(): number {
    const oldest = this.full.at(-1);
    if (oldest === undefined) return 0;
    if (this.#flush === undefined) return this.#beginFlush(oldest);
    const work = this.#flush.step(this.#workMax);
    if (this.#flush.isDone) this.#endFlush(this.#flush, oldest);
    return work;
  }

  #beginFlush({ table }: FullTable): number {
    const planned = this.#plan(table.count, 0);
    const isOldest = this.#manifest.runs.length === 0;
    return this.#begin(planned, () => {
      this.#flush = new FlushJob(table, this.#writer(planned), isOldest);
    });
  }

  #endFlush(job: Job, { table, logEnd }: FullTable): void {
    const edit = (manifest: Manifest): Manifest => ({
      ...withoutGarbage(manifest, job.meta, job.meta.count > 0),
      runs: [...ifAny(job.meta), ...manifest.runs],
      logFrom: logEnd,
    });
    const isCurrent = () => this.#flush === job;
    this.#change(edit, isCurrent, () => {
      this.full = this.full.slice(0, -1);
      this.#flush = undefined;
      this.flushes++;
      table.clear();
      this.spare = table;
    });
  }

  // --- merges --------------------------------------------------------------------------------------------

  #workOnMerges(): number {
    const begun = this.#beginMerge();
    if (begun > 0) return begun;
    const job = this.#merging[0];
    if (job === undefined) return 0;
    const work = job.step(this.#workMax);
    if (job.isDone) this.#endMerge(job);
    return work;
  }

  #beginMerge(): number {
    const { runs } = this.#manifest;
    const busy = new Set(this.#merging.flatMap(({ inputs }) => inputs.map(({ meta }) => meta.id)));
    const plan = planMerge(runs, ({ id }) => busy.has(id));
    if (plan === undefined) return 0;
    const inputs = this.runs.slice(plan.from, plan.to);
    const isOldest = plan.to === runs.length;
    const count = plannedCount(runs.slice(plan.from, plan.to), isOldest);
    const planned = this.#plan(count, plan.level);
    return this.#begin(planned, () => {
      const job = new MergeJob(inputs, this.reader, this.#writer(planned), isOldest);
      this.#merging = [...this.#merging, job].sort((a, b) => a.meta.level - b.meta.level);
    });
  }

  #endMerge(job: MergeJob): void {
    const inputs = job.inputs.map(({ meta }) => meta);
    const edit = (manifest: Manifest): Manifest => {
      const at = manifest.runs.findIndex(({ id }) => id === inputs[0].id);
      const { garbage, ...others } = withoutGarbage(manifest, job.meta, job.meta.count > 0);
      return {
        ...others,
        runs: manifest.runs.toSpliced(at, inputs.length, ...ifAny(job.meta)),
        garbage: [...garbage, ...inputs],
      };
    };
    const isCurrent = () => this.#merging.includes(job);
    this.#change(edit, isCurrent, () => {
      this.#merging = this.#merging.filter((each) => each !== job);
      this.merges++;
    });
  }

  // --- leftovers -----------------------------------------------------------------------------------------

  #sweep(log: KeyLog): number {
    const max = this.#writesMax;
    const trimmed = log.trim(this.#manifest.logFrom, max);
    if (trimmed > 0) return trimmed * WRITE_WORK;
    const written = new Set(this.#merging.map(({ meta }) => meta.id));
    if (this.#flush !== undefined) written.add(this.#flush.meta.id);
    const garbage = this.#manifest.garbage.find(({ id }) => !written.has(id));
    if (garbage === undefined) return 0;
    const swept = this.#sweeper.sweep(garbage, max);
    if (swept < max) {
      this.#change(
        (manifest) => withoutGarbage(manifest, garbage, true),
        () => this.#sweeper.isAtEndOf(garbage),
        () => {},
      );
    }
    return swept * WRITE_WORK + 1;
  }

  // --- the manifest --------------------------------------------------------------------------------------

  #plan(count: number, level: number): RunMeta {
    const id = this.#manifest.nextRunId;
    const bits = chunkBitsFor(count);
    return { id, level, count, tombstones: 0, bits, blocks: blocksFor(count) };
  }

  #writer(planned: RunMeta): RunWriter {
    return new RunWriter(this.#database, this.writes, planned);
  }

  /** The run is garbage until it is whole. */
  #begin(planned: RunMeta, start: () => void): number {
    const edit = (manifest: Manifest): Manifest => ({
      ...manifest,
      nextRunId: planned.id + 1,
      garbage: [...manifest.garbage, planned],
    });
    this.#change(edit, () => true, start);
    return 1;
  }

  #change(
    edit: (manifest: Manifest) => Manifest,
    isCurrent: () => boolean,
    then: () => void,
  ): void {
    this.#changing = true;
    void this.#commitChange(edit, isCurrent, then);
  }

  /** First what it speaks of must be visible: of two commits the earlier one may fail alone, when the disk is full. */
  async #commitChange(
    edit: (manifest: Manifest) => Manifest,
    isCurrent: () => boolean,
    then: () => void,
  ): Promise<void> {
    const wasWritten = await this.writes.settle();
    if (this.#closed) return;
    if (wasWritten && isCurrent()) {
      const next = edit(this.#manifest);
      this.writes.putBytes(this.#database, MANIFEST_KEY, encodeManifest(next));
      if (await this.writes.settle()) {
        this.#manifest = next;
        const known = new Map(this.runs.map((run) => [run.meta.id, run]));
        this.runs = next.runs.map((meta) => known.get(meta.id) ?? new Run(meta, this.reader));
        then();
      }
    }
    this.#changing = false;
  }

  /** What was being written may have gaps: it stays garbage, and is written anew. */
  #abandon(): void {
    this.#flush = undefined;
    this.#merging = [];
    this.#sweeper.restart();
    this.#resting = true;
  }
}

/** A run of which nothing was left is not one. */
function ifAny(meta: RunMeta): readonly RunMeta[] {
  return meta.count > 0 ? [meta] : [];
}

function withoutGarbage(manifest: Manifest, meta: RunMeta, isWithout: boolean): Manifest {
  if (!isWithout) return manifest;
  return { ...manifest, garbage: manifest.garbage.filter(({ id }) => id !== meta.id) };
}
