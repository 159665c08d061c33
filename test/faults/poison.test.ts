/** A task that kills its process again and again is found, and those that ran beside it are not blamed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lmdbStore, Scheduler } from '../../src/index.js';
import { Child } from './process.js';

/** Two that charge nobody, then one for each crash that is allowed (`maxCrashes`). */
const DEATHS = 2 + 3;

it('quarantines the one that kills the process, and nobody else', async () => {
  const path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  try {
    let deaths = 0;
    while ((await new Child('./poison-child.ts', [path]).lineOrEnd()) !== 'over') {
      deaths++;
      expect(deaths).toBeLessThanOrEqual(DEATHS);
    }
    expect(deaths).toBe(DEATHS);
    const scheduler = await Scheduler.open({ store: lmdbStore({ path }) });
    const { items } = await scheduler.list();
    for (const task of items) {
      const [occurrence] = (await scheduler.occurrences(task.id)).items;
      const attempts = await scheduler.attempts(occurrence?.id as string);
      const outcomes = attempts.map(({ outcome }) => outcome);
      if (task.handler === 'poison') {
        expect(occurrence).toMatchObject({ status: 'quarantined', crashes: 3, failures: 0 });
        expect(outcomes).toEqual(Array(DEATHS).fill('crashed'));
      } else {
        expect(occurrence).toMatchObject({ status: 'succeeded', crashes: 0, failures: 0 });
        // The first deaths charge nobody; on a slow machine it had not been entered yet at one of them.
        expect(outcomes.at(-1)).toBe('succeeded');
        const deathsBefore = outcomes.slice(0, -1);
        expect(deathsBefore).toEqual(Array(deathsBefore.length).fill('crashed'));
        expect(deathsBefore.length).toBeLessThanOrEqual(2);
      }
    }
    expect(items.length).toBe(5);
    await scheduler.shutdown();
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
});
