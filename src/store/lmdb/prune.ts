/**
 * What has outlived its retention. An ended task goes with all of it; an ended occurrence goes by itself while its task
 * lives on, unless it is the task's last. To be run when all that was committed is visible.
 */
import { isTerminal } from '../../core/model.js';
import type { Applier } from './apply.js';
import type { Writer } from './bytes.js';
import type { CommitContext } from './due/commit-context.js';
import type { KeyHolders } from './key-holders.js';
import type { Records } from './records.js';
import {
  CLASSES,
  type EndChunk,
  type EndHint,
  type Ends,
  FAILED,
  SUCCEEDED,
  UNTIL,
} from './retention.js';
import { hasEnded, hasLive, type Row } from './row.js';

export interface Pruned {
  readonly removed: number;
  readonly nextAtMs: number | undefined;
}

interface Round {
  readonly nowMs: number;
  readonly context: CommitContext;
  removed: number;
  readonly removedMax: number;
  /** Hints that come to nothing are work too. */
  looksLeft: number;
  nextAtMs: number;
}

export interface PrunerParts {
  readonly records: Records;
  readonly applier: Applier;
  readonly holders: KeyHolders;
  readonly ends: Ends;
  readonly writer: Writer;
}

export class Pruner {
  readonly #records: Records;
  readonly #applier: Applier;
  readonly #holders: KeyHolders;
  readonly #ends: Ends;
  readonly #writer: Writer;

  constructor({ records, applier, holders, ends, writer }: PrunerParts) {
    this.#records = records;
    this.#holders = holders;
    this.#applier = applier;
    this.#ends = ends;
    this.#writer = writer;
  }

  prune(nowMs: number, removedMax: number, context: CommitContext): Pruned {
    const round: Round = {
      nowMs,
      context,
      removed: 0,
      removedMax,
      looksLeft: removedMax * 2 + 16,
      nextAtMs: Number.POSITIVE_INFINITY,
    };
    const heads = this.#heads();
    for (;;) {
      const chunk = earliestOf(heads);
      const isDue = chunk !== undefined && chunk.dueAt <= nowMs;
      if (!isDue || round.removed >= removedMax || round.looksLeft <= 0) {
        const nextAtMs = Math.min(round.nextAtMs, chunk?.dueAt ?? Number.POSITIVE_INFINITY);
        return {
          removed: round.removed,
          nextAtMs: nextAtMs === Number.POSITIVE_INFINITY ? undefined : nextAtMs,
        };
      }
      this.#pruneChunk(chunk, round);
      heads[chunk.class] = this.#ends.first(chunk.class, chunk);
    }
  }

  /** When the first is due; until then no commit is needed. */
  peek(): number | undefined {
    return earliestOf(this.#heads())?.dueAt;
  }

  #heads(): (EndChunk | undefined)[] {
    return CLASSES.map((of) => this.#ends.first(of));
  }

  #pruneChunk(chunk: EndChunk, round: Round): void {
    const keptMs = this.#ends.keptMs(chunk.class);
    const left: EndHint[] = [];
    const hints = this.#ends.hintsOf(chunk);
    for (const hint of hints) {
      const dueAt = hint.at + keptMs;
      const stops = round.removed >= round.removedMax || round.looksLeft-- <= 0;
      if (stops || dueAt > round.nowMs || !this.#pruneHint(hint, round)) {
        left.push(hint);
        round.nextAtMs = Math.min(round.nextAtMs, dueAt);
      }
    }
    if (left.length < hints.length) this.#ends.rewrite(chunk, left, this.#writer);
  }

  /** False: not all of it could be removed. */
  #pruneHint({ taskId, serial }: EndHint, round: Round): boolean {
    const row = this.#records.row(taskId);
    if (row === undefined) return true;
    if (serial !== 0) {
      this.#pruneOccurrence(row, serial, round);
      return true;
    }
    return this.#pruneTask(row, round);
  }

  #pruneOccurrence(row: Row, serial: number, round: Round): void {
    if (hasEnded(row.task)) return;
    const stored =
      row.occurrences.find((other) => other.serial === serial) ??
      this.#records.historyAt(row.id, serial);
    if (stored === undefined) return;
    const { state, endedAt, id } = stored.record;
    if (!isTerminal(state) || endedAt === undefined || row.task.lastOccurrenceId === id) return;
    const keptMs = this.#ends.keptMs(state === 'succeeded' ? SUCCEEDED : FAILED);
    if (endedAt + keptMs > round.nowMs) return;
    this.#applier.removeOccurrence(row, stored, round.context);
    round.removed += 1;
  }

  #pruneTask(row: Row, round: Round): boolean {
    const { task } = row;
    if (!hasEnded(task) || task.endedAt === undefined || hasLive(row)) return true;
    const keptMs = this.#ends.keptMs(task.lastEnd === 'succeeded' ? SUCCEEDED : FAILED);
    if (task.endedAt + keptMs > round.nowMs) return true;
    const keyUntilMs = this.#holders.until(row);
    if (keyUntilMs > round.nowMs) {
      this.#ends.note(UNTIL, { at: keyUntilMs, taskId: row.id, serial: 0 });
      round.nextAtMs = Math.min(round.nextAtMs, keyUntilMs);
      return true;
    }
    // A long history goes first.
    const left = round.removedMax - round.removed - 1;
    if (row.history > 0) {
      const some = this.#records.scanHistory(row.id, 0, left);
      if (row.history > left) {
        for (const stored of some) this.#applier.removeOccurrence(row, stored, round.context);
        round.removed += some.length;
        return false;
      }
      round.removed += row.history;
    }
    this.#applier.removeTask(row, round.context);
    round.removed += 1;
    return true;
  }
}

function earliestOf(chunks: readonly (EndChunk | undefined)[]): EndChunk | undefined {
  let first: EndChunk | undefined;
  for (const chunk of chunks) {
    if (chunk !== undefined && (first === undefined || chunk.dueAt < first.dueAt)) first = chunk;
  }
  return first;
}
