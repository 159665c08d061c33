/** What a handler of the world will do with one attempt, by its payload's mood and by chance. */
import type { Dice } from './dice.js';

export const MOODS = [
  'quick',
  'slow',
  'flaky',
  'fatal',
  'patient',
  'stubborn',
  'poison',
  'crowd',
  'parent',
  'beats',
  'silent',
  'late',
  'twice',
] as const;
export type Mood = (typeof MOODS)[number];

/** What callers hand over. */
export interface SimPayload {
  readonly mood: Mood;
  /** Which call gave it. */
  readonly call: number;
}

export type Ending =
  | 'succeed'
  | 'fail'
  | 'unrecoverable'
  | 'retryAfter'
  /** Never ends by itself. */
  | 'hang'
  /** Kills its thread, and is known to have done so. */
  | 'culprit'
  /** Kills its thread, and nobody knows who did. */
  | 'unknown';

export interface Plan {
  readonly ending: Ending;
  readonly afterMs: number;
  /** What it does when its signal is aborted. */
  readonly onAbort: 'fail' | 'succeed' | 'ignore';
  readonly abortLagMs: number;
  /** Beats with progress this often; 0: never. */
  readonly beatMs: number;
  /** Reports its end a second time, this much later. */
  readonly againMs: number | undefined;
  /** Its worker is not heard of from here on, and its end arrives long after its lease. */
  readonly muteAfterMs: number | undefined;
  readonly child: boolean;
}

const CALM: Plan = {
  ending: 'succeed',
  afterMs: 1,
  onAbort: 'fail',
  abortLagMs: 0,
  beatMs: 0,
  againMs: undefined,
  muteAfterMs: undefined,
  child: false,
};

export function calmPlan(): Plan {
  return CALM;
}

export function planOf(mood: Mood, dice: Dice): Plan {
  const afterMs = dice.below(400);
  const plan: Plan = {
    ...CALM,
    afterMs,
    onAbort: dice.pick(['fail', 'fail', 'succeed', 'ignore'] as const),
    abortLagMs: dice.pick([0, 0, 5, 300]),
  };
  switch (mood) {
    case 'quick':
      return { ...plan, afterMs: dice.pick([0, 0, 1, 3]) };
    case 'slow':
      return { ...plan, afterMs: 200 + dice.below(6000) };
    case 'flaky':
      return { ...plan, ending: dice.pick(['fail', 'fail', 'retryAfter', 'succeed'] as const) };
    case 'fatal':
      return { ...plan, ending: dice.pick(['unrecoverable', 'fail'] as const) };
    case 'patient':
      return { ...plan, ending: 'hang', onAbort: dice.pick(['fail', 'succeed'] as const) };
    case 'stubborn':
      // It would come to an end by itself some day, long after it was given up.
      return { ...plan, afterMs: 20_000 + dice.below(40_000), onAbort: 'ignore' };
    case 'poison':
      return { ...plan, ending: dice.chance(0.85) ? 'culprit' : 'succeed' };
    case 'crowd':
      return { ...plan, ending: dice.chance(0.6) ? 'unknown' : 'succeed' };
    case 'parent':
      return { ...plan, child: true };
    case 'beats':
      return { ...plan, afterMs: 500 + dice.below(5000), beatMs: 100 + dice.below(900) };
    case 'silent':
      return dice.chance(0.5)
        ? { ...plan, muteAfterMs: afterMs >> 1 }
        : { ...plan, afterMs: 500 + dice.below(9000) };
    case 'late':
      return { ...plan, ending: 'hang', onAbort: 'ignore', againMs: 100 + dice.below(20_000) };
    case 'twice':
      return {
        ...plan,
        ending: dice.pick(['succeed', 'fail'] as const),
        againMs: dice.pick([0, 1, 50, 2000]),
      };
    default:
      return mood satisfies never;
  }
}
