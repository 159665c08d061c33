/**
 * What every store promises, as checks that a test file runs against its store, and that
 * conformance-proof.test.ts runs against broken ones.
 */
import { describe, it } from 'vitest';
import { commitChecks } from './checks-commit.js';
import { lifecycleChecks } from './checks-lifecycle.js';
import { readChecks } from './checks-read.js';
import { retentionChecks } from './checks-retention.js';
import { compareWithModel } from './model-check.js';
import { type Check, type MakeSubject, Trial } from './trial.js';

export const checks: readonly Check[] = [
  ...commitChecks,
  ...lifecycleChecks,
  ...readChecks,
  ...retentionChecks,
];

/** Runs one check on a store of its own; rejects when the store fails it. False: the subject can't be asked. */
export async function runCheck(check: Check, make: MakeSubject): Promise<boolean> {
  const trial = await Trial.open(make);
  try {
    if (check.needs !== undefined && trial.subject[check.needs] === undefined) return false;
    await check.run(trial);
    return true;
  } finally {
    await trial.dispose();
  }
}

export interface ConformanceOptions {
  /** Seeds of random histories that are compared with the model. */
  readonly seeds?: readonly number[];
  readonly steps?: number;
}

/** STORE_SEED=n replays one random history. */
export function testStore(name: string, make: MakeSubject, options: ConformanceOptions = {}): void {
  const given = process.env.STORE_SEED;
  const seeds = given === undefined ? (options.seeds ?? [1, 2, 3]) : [Number(given)];
  describe(`a store: ${name}`, () => {
    for (const check of checks) {
      it(`${check.of}: ${check.name}`, async (context) => {
        if (!(await runCheck(check, make))) context.skip(`this store offers no ${check.needs}`);
      });
    }
    for (const seed of seeds) {
      it(`does what the model does with a random history (STORE_SEED=${seed})`, async () => {
        await compareWithModel(make, seed, options.steps ?? 150);
      });
    }
  });
}
