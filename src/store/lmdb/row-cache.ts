/**
 * Tasks in memory: those of commits that are not visible yet, which must not be read from the disk, and some that were
 * touched lately, which need not.
 */
import { FlatMap, hashOfNumber } from '../../core/flat-map.js';
import { hashOfUuid } from '../../core/uuid.js';
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
  #young = new FlatMap<string, Row>(hashOfUuid);
  #old = new FlatMap<string, Row>(hashOfUuid);
  readonly #queuedHistory = new Map<string, QueuedHistory>();
  readonly #changed = new FlatMap<number, Changed>(hashOfNumber);
  /** All up to this commit are visible. */
  #visible = 0;
  /** Rows by their slots, for those who noted them (Placed); slots given back. */
  readonly #slots: (Row | undefined)[] = [undefined];
  readonly #free: number[] = [];

  /**
   * Null: it was removed. Undefined: the disk knows.
   * @param slot where it may be
   */
  row(id: string, slot = 0): Row | null | undefined {
    const placed = slot < this.#slots.length ? this.#slots[slot] : undefined;
    const row = placed?.id === id ? placed : this.#find(id);
    return row?.isRemoved ? null : row;
  }

  #find(id: string): Row | undefined {
    const young = this.#young.get(id);
    if (young !== undefined) return young;
    const old = this.#old.get(id);
    if (old !== undefined) this.#young.set(id, old);
    return old;
  }

  /** Changed by a commit that is not visible yet. */
  isQueued(id: string): boolean {
    const row = this.#young.get(id) ?? this.#old.get(id);
    return row !== undefined && row.commit > this.#visible;
  }

  history(occurrenceId: string): StoredOccurrence | null | undefined {
    const queued = this.#queuedHistory.get(occurrenceId);
    return queued === undefined ? undefined : (queued.value ?? null);
  }

  /** As read from the disk. */
  keep(row: Row): void {
    this.#enter(row);
    if (this.#young.size >= KEPT_MAX) this.#turn();
  }

  #enter(row: Row): void {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = row;
    row.slot = slot;
    this.#young.set(row.id, row);
  }

  #turn(): void {
    const passed = this.#old;
    this.#old = this.#young;
    this.#young = new FlatMap(hashOfUuid);
    for (const row of passed.values()) {
      if (this.#old.get(row.id) === row) continue;
      if (row.commit > this.#visible) this.#old.set(row.id, row);
      else this.#giveFree(row);
    }
  }

  #giveFree(row: Row): void {
    if (row.slot === 0) return;
    this.#slots[row.slot] = undefined;
    this.#free.push(row.slot);
    row.slot = 0;
  }

  /** The row is changed by a commit that begins its way. */
  setRow(row: Row): void {
    // One that is not here is new, or was made anew in the place of one that was removed.
    if (row.slot === 0) this.#replace(row);
  }

  #replace(row: Row): void {
    const before = this.#find(row.id);
    if (before !== undefined) this.#giveFree(before);
    this.#enter(row);
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
    this.#visible = commit;
    const changed = this.#changed.get(commit);
    if (changed === undefined) return;
    this.#changed.delete(commit);
    for (const row of changed.rows) {
      // A later commit changes it, too, or has made the task anew.
      if (row.commit !== commit || row.slot === 0) continue;
      if (!row.isRemoved && keeps(row)) own(row);
      else this.#forget(row);
    }
    if (this.#young.size >= KEPT_MAX) this.#turn();
    for (const id of changed.history) {
      if (this.#queuedHistory.get(id)?.commit === commit) this.#queuedHistory.delete(id);
    }
  }

  #forget(row: Row): void {
    this.#giveFree(row);
    this.#young.delete(row.id);
    this.#old.delete(row.id);
  }

  /** After a failed commit; `visible` is the newest that is. */
  clear(visible: number): void {
    this.#visible = visible;
    this.#young.clear();
    this.#old.clear();
    this.#queuedHistory.clear();
    this.#changed.clear();
    this.#slots.length = 1;
    this.#free.length = 0;
  }
}
