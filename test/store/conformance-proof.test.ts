/** That the conformance suite can fail: on stores broken on purpose, and that it passes on a right one. */
import { describe, expect, it } from 'vitest';
import { memoryStore } from '../../src/store/memory/memory-store.js';
import { BROKEN, brokenSubject } from './broken.js';
import { checks, runCheck } from './conformance.js';
import { compareWithModel } from './model-check.js';

describe('the conformance suite', () => {
  for (const broken of BROKEN) {
    it(`finds a store that ${broken.what}`, async () => {
      const finders = checks.filter(({ name }) => name.includes(broken.foundBy));
      expect(finders).toHaveLength(1);
      await expect(runCheck(finders[0], brokenSubject(broken))).rejects.toThrow();
    });
  }

  it('finds nothing wrong with the same store without a flaw', async () => {
    const make = brokenSubject({ what: 'is right', flaw: () => ({}), foundBy: '' });
    for (const check of checks) expect(await runCheck(check, make)).toBe(true);
  });

  it('tells its checks apart by name', () => {
    expect(new Set(checks.map(({ name }) => name)).size).toBe(checks.length);
  });

  it('skips what a store does not offer, rather than passing it', async () => {
    const crash = checks.find(({ needs }) => needs === 'crash');
    const make = async () => {
      const { crash: _, ...subject } = await brokenSubject(BROKEN[0])();
      return { ...subject, store: memoryStore() };
    };
    expect(crash && (await runCheck(crash, make))).toBe(false);
  });
});

describe('the comparison with the model', () => {
  it('finds a store that looks at no guard, and names the seed', async () => {
    await expect(compareWithModel(brokenSubject(BROKEN[0]), 1, 60)).rejects.toThrow('STORE_SEED=1');
  });
});
