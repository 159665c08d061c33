/**
 * Tasks in memory: those of commits that are not visible yet, which must not be read from the disk, and some that were
 * touched lately, which need not.
 */
import type { Row, StoredOccurrence } from './row.js';

/** Of each of the two generations: when the young one is full it becomes the old one, and what was old is forgotten. */
const KEPT_MAX = 32_768;

interface Queued<T> {
  /** Undefined: removed. */
  readonly value: T | undefined;
  readonly commit: number;
}

export class RowCache {
  #young = new Map<string, Row>();
  #old = new Map<string, Row>();
  readonly #queuedRows = new Map<string, Queued<Row>>();
  /** What each commit on its way has changed. */
  readonly #lists = new Map<number, { rows: string[]; history: string[] }>();
  readonly #queuedHistory = new Map<string, Queued<StoredOccurrence>>();

  /** Null: it was removed. Undefined: the disk knows. */
  row(id: string): Row | null | undefined {
    const queued = this.#queuedRows.get(id);
    if (queued !== undefined) return queued.value ?? null;
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

  setRow(id: string, row: Row | undefined, commit: number): void {
    this.#queuedRows.set(id, { value: row, commit });
    this.#listOf(commit).rows.push(id);
    if (row === undefined) this.#forget(id);
  }

  setHistory(id: string, stored: StoredOccurrence | undefined, commit: number): void {
    this.#queuedHistory.set(id, { value: stored, commit });
    this.#listOf(commit).history.push(id);
  }

  #listOf(commit: number): { rows: string[]; history: string[] } {
    let list = this.#lists.get(commit);
    if (list === undefined) {
      list = { rows: [], history: [] };
      this.#lists.set(commit, list);
    }
    return list;
  }

  /** What this commit changed can be read from the disk. `keeps`: the row is likely to be needed again soon. */
  visible(commit: number, keeps: (row: Row) => boolean): void {
    const list = this.#lists.get(commit);
    if (list === undefined) return;
    this.#lists.delete(commit);
    for (const id of list.rows) {
      const queued = this.#queuedRows.get(id);
      if (queued?.commit !== commit) continue;
      this.#queuedRows.delete(id);
      if (queued.value === undefined) continue;
      if (keeps(queued.value)) this.keep(queued.value);
      else this.#forget(id);
    }
    for (const id of list.history) {
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
    this.#lists.clear();
  }
}
