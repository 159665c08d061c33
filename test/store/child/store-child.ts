/**
 * A process of its own that has a store open, for tests that kill it.
 *
 *   store-child.ts hold PATH    opens, says so, waits
 *   store-child.ts write PATH   creates one-offs, 20 to a commit, and says how many are durable, until it is killed
 */
import { systemClock } from '../../../src/clock/system.js';
import { lmdbStore } from '../../../src/store/lmdb/lmdb-store.js';
import { createOneOff, endOneOff } from '../builders.js';

const [mode, path] = process.argv.slice(2) as [string, string];
const BATCH = 20;
const retention = { succeededMs: 1e9, failedMs: 1e9 };
const session = await lmdbStore({ path }).open({ clock: systemClock(), retention });
process.stdout.write('open\n');
// Keeps the process up until it is killed.
process.stdin.resume();

if (mode === 'write') {
  for (let n = 0; ; n += BATCH) {
    const numbers = Array.from({ length: BATCH }, (_, i) => n + i);
    await session.commit(numbers.map((i) => createOneOff(i))).visible;
    const { durable } = session.commit([endOneOff(n, 'succeeded', Date.UTC(2026, 0, 1))]);
    await durable;
    process.stdout.write(`${n + BATCH}\n`);
  }
}
