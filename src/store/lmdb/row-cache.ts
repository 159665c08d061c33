/**
 * Tasks in memory: those of commits that are not visible yet, which must not be read from the disk, and some that were
 * touched lately, which need not.
 */
import { own, type Row, type StoredOccurrence } from './row.js';

/** Of each of the two generations: when the young one is full it becomes the old one, and what was old is forgotten. */
const KEPT_MAX = 32_768;

interface QueuedHistory {
  /** Undefined: removed. */
  readonly value: StoredOccurrence | undefined;
  readonly commit: number;
}

/** What a commit on its way has changed. */
interface Changed {
  rows: readonly Row[];
  readonly history: string[];
}

export class RowCache {
  #young = new Map<string, Row>();
  #old = new Map<string, Row>();
  readonly #queuedRows = new Map<string, Row>();
  readonly #queuedHistory = new Map<string, QueuedHistory>();
  readonly #changed = new Map<number, Changed>();

  /** Null: it was removed. Undefined: the disk knows. */
  row(id: string): Row | null | undefined {
    const queued = this.#queuedRows.get(id);
    if (queued !== undefined) return queued.isRemoved ? null : queued;
    const young = this.#young.get(id);
    if (young !== undefined) return young;
    const old = this.#old.get(id);
    if (old !== undefined) this.keep(old);
    return old;
  }

  /** Changed by a commit that is not visible yet. */
  isQueued(id: string): boolean {
    return this.#queuedRows.has(id);
  }

  history(occurrenceId: string): StoredOccurrence | null | undefined {
    const queued = this.#queuedHistory.get(occurrenceId);
    return queued === undefined ? undefined : (queued.value ?? null);
  }

  keep(row: Row): void {
    this.#young.set(row.id, row);
    if (this.#young.size < KEPT_MAX) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  /** The row is changed by a commit that begins its way. */
  setRow(row: Row): void {
    this.#queuedRows.set(row.id, row);
  }

  /** All rows that the commit has changed. */
  give(commit: number, rows: readonly Row[]): void {
    this.#changedBy(commit).rows = rows;
  }

  setHistory(id: string, stored: StoredOccurrence | undefined, commit: number): void {
    this.#queuedHistory.set(id, { value: stored, commit });
    this.#changedBy(commit).history.push(id);
  }

  #changedBy(commit: number): Changed {
    let changed = this.#changed.get(commit);
    if (changed === undefined) {
      changed = { rows: [], history: [] };
      this.#changed.set(commit, changed);
    }
    return changed;
  }

  /** What this commit changed can be read from the disk. `keeps`: the row is likely to be needed again soon. */
  visible(commit: number, keeps: (row: Row) => boolean): void {
    const changed = this.#changed.get(commit);
    if (changed === undefined) return;
    this.#changed.delete(commit);
    for (const row of changed.rows) {
      // A later commit changes it, too, or has made the task anew.
      if (row.commit !== commit || this.#queuedRows.get(row.id) !== row) continue;
      this.#queuedRows.delete(row.id);
      if (!row.isRemoved && keeps(row)) {
        own(row);
        this.keep(row);
      } else this.#forget(row.id);
    }
    for (const id of changed.history) {
      if (this.#queuedHistory.get(id)?.commit === commit) this.#queuedHistory.delete(id);
    }
  }

  #forget(id: string): void {
    this.#young.delete(id);
    this.#old.delete(id);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
    this.#queuedRows.clear();
    this.#queuedHistory.clear();
    this.#changed.clear();
  }
}
