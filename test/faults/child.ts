/**
 * A process that accepts and runs tasks until it is killed.
 *
 *   child.ts PATH JOURNAL SEED inline|threads|hasty [SHARE]
 *
 * SHARE of what its callers are told, it stops itself at once: an acknowledgement that came too early is seen best then.
 * hasty: on a deliberately broken store, which acknowledges what is visible and not durable yet.
 *
 * Says `loaded` before it opens the store, and `running` when its scheduler runs.
 */
import { lmdbStore, Scheduler, systemClock } from '../../src/index.js';
import { Dice } from '../simulation/dice.js';
import { hasty } from './broken.js';
import { callForEver, type FaultsHandlers } from './callers.js';
import { handlersOf } from './handlers.js';
import { Journal, type Line } from './journal.js';

const [path, file, seed, mode, share] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string?,
];
const dice = new Dice(Number(seed));
const stops = dice.fork();
const journal = new Journal(file);
const note = (line: Line): void => {
  journal.note(line);
  if (line.kind === 'told' && stops.chance(Number(share ?? 0)))
    process.kill(process.pid, 'SIGSTOP');
};
process.env.FAULTS_JOURNAL = file;
const clock = systemClock();
const store = mode === 'hasty' ? hasty(path) : lmdbStore({ path });
process.stdout.write('loaded\n');
const inThreads = { handlers: new URL('./handlers-module.mjs', import.meta.url) };
const scheduler =
  mode === 'threads'
    ? await Scheduler.open<{ default: FaultsHandlers }>({
        ...inThreads,
        store,
        workers: { threads: 2 },
      })
    : await Scheduler.open({ handlers: handlersOf(note), store });
await scheduler.start();
process.stdout.write('running\n');
await callForEver({ scheduler: scheduler as Scheduler<FaultsHandlers>, clock, note }, dice);
