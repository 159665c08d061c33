import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';

afterEach(() => {
  vi.doUnmock('node:crypto');
  vi.resetModules();
});

const TEXTS = ['', 'a', '["tenant","key"]', 'é漢🙂'];

describe('a digest', () => {
  it.each(['as it is', 'without crypto.hash, as before Node 20.12'])(
    'is the same %s',
    async (how) => {
      if (how !== 'as it is') {
        vi.doMock('node:crypto', async (original) => ({
          ...(await original<object>()),
          hash: undefined,
        }));
      }
      const { digest } = await import('../../src/core/digest.js');
      for (const text of TEXTS) {
        expect(digest('sha256', text, 'hex')).toBe(createHash('sha256').update(text).digest('hex'));
        expect(digest('sha1', text, 'binary')).toBe(
          createHash('sha1').update(text).digest('binary'),
        );
      }
    },
  );
});
