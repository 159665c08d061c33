/** Which runs to merge next. */
import type { RunMeta } from './manifest.js';

/** Runs of one level are merged when there are this many; so a find meets at most three a level, but for a backlog. */
const FAN_IN = 4;
/** A backlog is merged at once, up to this many. */
const INPUTS_MAX = 8;
/** Merge everything when more than a third of all entries are tombstones: each stands for an entry that is gone. */
const TOMBSTONE_SHARE = 1 / 3;

export interface MergePlan {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly level: number;
}

/** `runs` newest first; `isBusy`: in a merge already. */
export function planMerge(
  runs: readonly RunMeta[],
  isBusy: (run: RunMeta) => boolean,
): MergePlan | undefined {
  const idle = runs.every((run) => !isBusy(run));
  if (idle && runs.length > 1 && tombstonesOf(runs) > countOf(runs) * TOMBSTONE_SHARE) {
    return { from: 0, to: runs.length, level: runs.at(-1)!.level };
  }
  let to = 0;
  for (let from = 0; from < runs.length; from = to) {
    const { level } = runs[from];
    to = from + 1;
    while (to < runs.length && runs[to].level === level) to++;
    const isMerged = runs.slice(from, to).some(isBusy);
    if (to - from >= FAN_IN && !isMerged) {
      return { from: Math.max(from, to - INPUTS_MAX), to, level: level + 1 };
    }
  }
  return undefined;
}

/**
 * For how many entries to size what a merge writes. With the oldest run among the inputs, each tombstone ends, and nearly
 * always takes an entry with it: between one and two entries fewer. A filter for too few only lets more pass.
 */
export function plannedCount(inputs: readonly RunMeta[], isOldest: boolean): number {
  const gone = isOldest ? Math.floor(tombstonesOf(inputs) * 1.5) : 0;
  return Math.max(1, countOf(inputs) - gone);
}

export function countOf(runs: readonly RunMeta[]): number {
  return runs.reduce((sum, run) => sum + run.count, 0);
}

export function tombstonesOf(runs: readonly RunMeta[]): number {
  return runs.reduce((sum, run) => sum + run.tombstones, 0);
}
