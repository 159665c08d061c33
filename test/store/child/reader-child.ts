/** reader-child.ts PATH OPENINGS: opens the store to read so many times, then says `over`. */
import { lmdbStore, systemClock } from '../../../src/index.js';

const [path, openings] = process.argv.slice(2) as [string, string];
const store = lmdbStore({ path, readOnly: true });
const retention = { succeededMs: 0, failedMs: 0 };
for (let n = 0; n < Number(openings); n++) {
  const session = await store.open({ clock: systemClock(), retention });
  await session.counts();
  await session.close();
}
process.stdout.write('over\n');
