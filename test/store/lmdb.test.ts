/** The LMDB store: the conformance suite, and what is its own: files, the lock, damage, reopening. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VirtualClock } from '../../src/clock/virtual.js';
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import { START_MS } from './builders.js';
import { testStore } from './conformance.js';
import { recounting } from './recount.js';
import type { MakeSubject } from './trial.js';

const subject: MakeSubject = () => {
  const path = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
  const store = recounting(lmdbStore({ path }));
  return {
    store,
    recount: () => store.recount(),
    clock: new VirtualClock(START_MS),
    dispose: () => rmSync(path, { recursive: true }),
  };
};

testStore('lmdb', subject, { seeds: [31, 32, 33, 34] });
