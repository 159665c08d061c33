/**
 * The legal moves of an occurrence, as data (design: "States"). `decide` makes no other; a test
 * walks every pair of states, and `assertMove` holds it in production.
 *
 *   (none) → scheduled → ready → running → succeeded | dead | quarantined
 *                 ↑         ↖──────┤  ↓
 *                 │                │ cancel-requested → cancelled | succeeded
 *            (created)         retry-wait → ready
 *   dead, quarantined → (a new, linked occurrence)
 */
import { assert } from './assert.js';
import type { OccurrenceState } from './model.js';

/** What guards a move: the record's revision, or the fencing token of the running attempt. */
export type Guard = 'absent' | 'revision' | 'due' | 'token' | 'token or lease';

export interface Move {
  readonly from: OccurrenceState | 'none';
  readonly to: OccurrenceState;
  readonly guard: Guard;
  /** What goes wrong without the guard. */
  readonly covers: string;
}

export const MOVES: readonly Move[] = [
  { from: 'none', to: 'scheduled', guard: 'absent', covers: 'crash between create and advance' },
  { from: 'scheduled', to: 'scheduled', guard: 'revision', covers: 'held back by overlap; moved' },
  { from: 'scheduled', to: 'ready', guard: 'due', covers: 'early fire' },
  { from: 'scheduled', to: 'skipped', guard: 'revision', covers: 'silent loss' },
  { from: 'scheduled', to: 'missed', guard: 'revision', covers: 'silent loss' },
  { from: 'scheduled', to: 'cancelled', guard: 'revision', covers: 'cancel against claim' },
  { from: 'ready', to: 'skipped', guard: 'revision', covers: 'silent loss' },
  { from: 'ready', to: 'missed', guard: 'revision', covers: 'silent loss' },
  { from: 'ready', to: 'cancelled', guard: 'revision', covers: 'cancel against claim' },
  { from: 'ready', to: 'ready', guard: 'revision', covers: 'another version pinned' },
  { from: 'ready', to: 'running', guard: 'token', covers: 'double claim' },
  { from: 'retry-wait', to: 'cancelled', guard: 'revision', covers: 'cancel against claim' },
  { from: 'retry-wait', to: 'ready', guard: 'due', covers: 'early retry' },
  { from: 'retry-wait', to: 'retry-wait', guard: 'revision', covers: 'another version pinned' },
  { from: 'running', to: 'ready', guard: 'token', covers: 'drain, thread loss' },
  { from: 'running', to: 'running', guard: 'token', covers: 'heartbeat, entry, progress' },
  { from: 'running', to: 'cancel-requested', guard: 'revision', covers: 'cooperative cancel' },
  { from: 'running', to: 'succeeded', guard: 'token', covers: 'late completion' },
  { from: 'running', to: 'retry-wait', guard: 'token or lease', covers: 'retry; worker crash' },
  { from: 'running', to: 'dead', guard: 'token', covers: 'exhaustion' },
  { from: 'running', to: 'quarantined', guard: 'token or lease', covers: 'poison' },
  { from: 'cancel-requested', to: 'cancel-requested', guard: 'token', covers: 'heartbeat' },
  { from: 'cancel-requested', to: 'succeeded', guard: 'token', covers: 'finish first wins' },
  { from: 'cancel-requested', to: 'cancelled', guard: 'token or lease', covers: 'dead worker' },
  { from: 'dead', to: 'dead', guard: 'revision', covers: 'redriven once' },
  { from: 'quarantined', to: 'quarantined', guard: 'revision', covers: 'redriven once' },
];

const LEGAL = new Map<string, Set<string>>();
for (const { from, to } of MOVES) LEGAL.set(from, (LEGAL.get(from) ?? new Set()).add(to));

export function isLegalMove(from: OccurrenceState | 'none', to: OccurrenceState): boolean {
  return LEGAL.get(from)?.has(to) === true;
}

export function assertMove(from: OccurrenceState | 'none', to: OccurrenceState): void {
  // The message is only made when it is needed: this runs for every move.
  if (!isLegalMove(from, to)) assert(false, `an occurrence may not go from ${from} to ${to}`);
}
