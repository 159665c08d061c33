import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Writer } from '../../src/store/lmdb/bytes.js';
import { Environment } from '../../src/store/lmdb/environment.js';

const path = mkdtempSync(join(tmpdir(), 'tickwheel-'));
afterEach(() => rmSync(path, { recursive: true, force: true }));

describe('what lmdb-js tells of a transaction', () => {
  it('is heard when readers see it, before its own promise', async () => {
    const env = Environment.make(join(path, 'data.mdb'), {});
    let newest = 0;
    const hears = env.hearVisible(() => {
      env.renew();
      newest = env.newestCommit();
    });
    expect(hears, 'this version of lmdb-js has the place where it is heard').toBe(true);
    const writer = new Writer();
    writer.begin(1);
    writer.byte(1);
    const byte = writer.end();
    let early = 0;
    // Where a flush takes no time, both may come at once.
    for (let number = 1; number <= 50; number++) {
      const { visible, flushed } = env.commit(number - 1, number, byte);
      expect(await visible).toBe(true);
      if (newest === number) early++;
      await flushed;
    }
    expect(early).toBeGreaterThan(0);
    await env.close();
  });
});
