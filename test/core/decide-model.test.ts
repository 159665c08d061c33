/**
 * Random lives of tasks against the invariants 2, 5, 7, 8, 10, 11, 12 and 16, which
 * decide-checks.ts holds after every decision. A failure prints its seed; replay it with
 * TICKWHEEL_SEED=<seed> npx vitest run test/core/decide-model.test.ts
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideOn, draftOf } from '../../src/core/decide.js';
import type { Draft } from '../../src/core/draft.js';
import type { Effect } from '../../src/core/effect.js';
import { TickwheelError } from '../../src/core/errors.js';
import type { CoreEvent, Facts } from '../../src/core/event.js';
import type { OccurrenceRecord, TaskView } from '../../src/core/model.js';
import { Trial } from './decide-trial.js';
import { commands, obey, settle, trialOptions } from './decide-walk.js';

const SEED = Number(process.env.TICKWHEEL_SEED ?? 20260308);

describe('any life of a task', () => {
  it('keeps the invariants, accounts for each nominal time once, and loses nothing', () => {
    fc.assert(
      fc.property(trialOptions, commands(120), (options, walk) => {
        const trial = new Trial(options);
        for (const command of walk) obey(trial, command);
        settle(trial);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  it('comes out the same when the events of one instant share a turn', () => {
    const turnSizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(trialOptions, commands(80), turnSizes, (options, walk, sizes) => {
        const trial = new Trial(options);
        for (const command of walk) obey(trial, command);
        const turns = new Turns();
        for (const [index, heard] of trial.heard.entries()) {
          turns.hear(heard.event, heard.facts, sizes[index % sizes.length] as number);
        }
        turns.end();
        expect(withoutRevision(turns.view?.task)).toBe(withoutRevision(trial.task));
        expect(turns.view?.live.map(({ id }) => id)).toEqual(trial.live.map(({ id }) => id));
        expect([...turns.records.values()].map(withoutRevision)).toEqual(
          [...trial.records.values()].map(withoutRevision),
        );
        const told = turns.effects.filter(({ kind }) => kind === 'tell');
        expect(told).toHaveLength(trial.told.length);
        expect(turns.attempts).toBe(trial.attempts.length);
      }),
      { seed: SEED, numRuns: 120 },
    );
  });
});

/** The engine's way: one draft for several events, whose records are changed once each. */
class Turns {
  view: TaskView | undefined;
  readonly records = new Map<string, OccurrenceRecord>();
  readonly effects: Effect[] = [];
  attempts = 0;
  #draft: Draft | undefined;
  #facts: Facts | undefined;
  #left = 0;

  /** Begins a turn of so many events when the one before is over, or its time is. */
  hear(event: CoreEvent, facts: Facts, size: number): void {
    if (this.#left === 0 || facts !== this.#facts) this.end();
    if (this.#draft === undefined) {
      this.#draft = draftOf(this.view, event, facts);
      this.#facts = facts;
      this.#left = size;
    }
    this.#left--;
    // A dead letter is told as it stands, also in this turn.
    const dead = event.kind === 'redrive' ? this.#recordOf(event.occurrence.id) : undefined;
    const told = dead === undefined ? event : ({ kind: 'redrive', occurrence: dead } as const);
    this.#decide(this.#draft, told);
  }

  #decide(draft: Draft, event: CoreEvent): void {
    const { moves } = draft;
    try {
      decideOn(draft, event);
    } catch (error) {
      if (!(error instanceof TickwheelError)) throw error;
      expect(draft.moves).toBe(moves);
    }
  }

  #recordOf(id: string): OccurrenceRecord | undefined {
    return this.#draft?.changed.find((record) => record.id === id) ?? this.records.get(id);
  }

  end(): void {
    const draft = this.#draft;
    if (draft === undefined) return;
    const decision = draft.decision();
    const before = this.view?.task.revision ?? 0;
    expect(decision.view.task.revision).toBe(before + (decision.taskChanged ? 1 : 0));
    for (const record of decision.changed) {
      expect(record.revision).toBe((this.records.get(record.id)?.revision ?? 0) + 1);
      this.records.set(record.id, record);
    }
    this.effects.push(...decision.effects);
    this.attempts += decision.attempts.length;
    this.view = decision.view;
    this.#draft = undefined;
  }
}

function withoutRevision(record: object | undefined): string {
  return JSON.stringify({ ...record, revision: 0 });
}
