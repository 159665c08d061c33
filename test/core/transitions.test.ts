/**
 * The table of legal moves against what `decide` really does: neither has a move that the other
 * lacks.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AssertionError } from '../../src/core/assert.js';
import { Draft } from '../../src/core/draft.js';
import type { OccurrenceState } from '../../src/core/model.js';
import { assertMove, isLegalMove, MOVES } from '../../src/core/transitions.js';
import { Trial } from './decide-trial.js';
import { type Command, DRAWN, obey, SCHEDULES, settle } from './decide-walk.js';

const SEED = Number(process.env.TICKWHEEL_SEED ?? 20260308);

const STATES: readonly OccurrenceState[] = [
  'scheduled',
  'ready',
  'running',
  'cancel-requested',
  'retry-wait',
  'succeeded',
  'dead',
  'quarantined',
  'cancelled',
  'skipped',
  'missed',
];
const LEGAL: ReadonlySet<string> = new Set(MOVES.map(({ from, to }) => `${from} → ${to}`));

/** Park and Miller, 1988. */
function randomOf(seed: number): (below: number) => number {
  let state = (seed % 2_147_483_646) + 1;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** Every move that is made from here on, as `from → to`. */
function watchMoves(): ReadonlySet<string> {
  const seen = new Set<string>();
  const move = Draft.prototype.move;
  const create = Draft.prototype.create;
  vi.spyOn(Draft.prototype, 'move').mockImplementation(function (this: Draft, from, to, patch) {
    // As it stands now: the record in the caller's hands may be older, or be changed in place.
    const { state } = this.newest(from);
    const next = move.call(this, from, to, patch);
    seen.add(`${state} → ${to}`);
    return next;
  });
  vi.spyOn(Draft.prototype, 'create').mockImplementation(function (this: Draft, made) {
    const record = create.call(this, made);
    seen.add(`none → ${record.state}`);
    return record;
  });
  return seen;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the table of moves', () => {
  it('holds each move once, with a guard and what it covers', () => {
    expect(LEGAL.size).toBe(MOVES.length);
    for (const { guard, covers } of MOVES) {
      expect(guard).toMatch(/^(absent|revision|due|token|token or lease)$/);
      expect(covers).not.toBe('');
    }
  });

  it('has no way out of a terminal state', () => {
    for (const from of STATES.slice(STATES.indexOf('succeeded'))) {
      const ways = MOVES.filter((move) => move.from === from && move.to !== from);
      expect(ways).toEqual([]);
    }
  });

  it('allows exactly its moves: every other is refused as a bug', () => {
    for (const from of ['none', ...STATES] as const) {
      for (const to of STATES) {
        const legal = LEGAL.has(`${from} → ${to}`);
        expect(isLegalMove(from, to)).toBe(legal);
        if (legal) assertMove(from, to);
        else expect(() => assertMove(from, to)).toThrow(AssertionError);
      }
    }
  });

  it('refuses a move from where the occurrence no longer is', () => {
    const trial = new Trial({ schedule: (SCHEDULES[0] as (nowMs: number) => never)(0) });
    const facts = { nowMs: 0, awayUntilMs: 0, latestVersion: () => 1 };
    const draft = new Draft(trial.task, trial.live, facts);
    const [scheduled] = trial.live;
    if (scheduled === undefined) throw new Error('nothing is scheduled');
    draft.move(scheduled, 'cancelled');
    expect(() => draft.move(scheduled, 'ready')).toThrow(/from cancelled to ready/);
  });

  it(`has none that real events never make (seed ${SEED})`, () => {
    const seen = watchMoves();
    const random = randomOf(SEED);
    for (let life = 0; life < 150; life++) {
      const makeSchedule = SCHEDULES[random(SCHEDULES.length)] as (typeof SCHEDULES)[number];
      const overlap = (['skip', 'bufferAll', 'cancelOther'] as const)[random(3)] as 'skip';
      const trial = new Trial({ schedule: makeSchedule(0), policies: { overlap, maxCrashes: 2 } });
      for (let step = 0; step < 80; step++) obey(trial, commandOf(random));
      settle(trial);
    }
    expect([...seen].sort()).toEqual([...LEGAL].sort());
  });
});

function commandOf(random: (below: number) => number): Command {
  const kind = DRAWN[random(DRAWN.length)] as Command['kind'];
  return { kind, pick: random(1_000), ms: [0, 500, 2_500, 11_000, 61_000][random(5)] as number };
}
