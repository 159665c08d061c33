/**
 * The due index is a timing wheel on disk: buckets of time, coarse ones far ahead and finer ones near, and in each of
 * them chunks of entries as they came in.
 *
 *   level   0: 1 s   1: 1 min   2: 1 h   3: 1 day   4: 64 days   5: 65,536 days       7: what runs (runs.ts)
 *
 * A place says where an entry was put: the number of its commit, and the level. With the due time that names the chunk,
 * also after its bucket was split: the entries of 16 commits are then together, of 256 after the second split.
 */
const SECOND = 1000;
const DAY = 86_400_000;

export const WIDTHS_MS: readonly number[] = [
  SECOND,
  60 * SECOND,
  3600 * SECOND,
  DAY,
  64 * DAY,
  65_536 * DAY,
];
/** Up to how far ahead a level is used, by level. */
const REACH_MS: readonly number[] = [
  120 * SECOND,
  120 * 60 * SECOND,
  2 * DAY,
  128 * DAY,
  65_536 * DAY,
  Number.POSITIVE_INFINITY,
];
/** The level of what runs: it is due no more. */
export const RUNNING_LEVEL = 7;
/** Commits whose entries a split puts together. */
export const GROUP = 16;

export function levelFor(dueAt: number, nowMs: number): number {
  const aheadMs = dueAt - nowMs;
  let level = 0;
  while (aheadMs >= REACH_MS[level]) level++;
  return level;
}

export function startOf(level: number, dueAt: number): number {
  return Math.floor(dueAt / WIDTHS_MS[level]) * WIDTHS_MS[level];
}

export function placeOf(commit: number, level: number): number {
  return commit * 8 + level;
}

export function levelOf(place: number): number {
  return place % 8;
}

export function commitOf(place: number): number {
  return Math.floor(place / 8);
}
