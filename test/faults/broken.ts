/** A store that must not pass. */
import { join } from 'node:path';
import { open } from 'lmdb';
import { nextTurn } from '../../src/clock/turn.js';
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import type { Commit, Store, Unit } from '../../src/store/store.js';

/**
 * Says that a commit is durable as soon as a reader sees it. It looks for itself: lmdb-js 3.5 resolves the promise of a
 * put only when its transaction was flushed, so the store's own `visible` is never early enough to be wrong.
 */
export function hasty(path: string): Store {
  const store = lmdbStore({ path });
  return {
    capabilities: store.capabilities,
    open: async (options) => {
      const session = await store.open(options);
      const reader = readerOf(path);
      const commit = (units: readonly Unit[]): Commit => {
        const { visible, durable } = session.commit(units);
        durable.catch(() => {});
        const seen = isSeen(reader, units);
        return {
          visible: Promise.race([visible, seen.then(() => [])]),
          durable: Promise.race([durable, seen]),
        };
      };
      return new Proxy(session, {
        get(target, name) {
          if (name === 'commit') return commit;
          const member = Reflect.get(target, name, target);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    },
  };
}

/** Resolves when the first task that is made has been; never when none is. */
async function isSeen(reader: Reader, units: readonly Unit[]): Promise<void> {
  const made = units.find(({ task }) => task?.expected === 0);
  if (made === undefined) return new Promise(() => {});
  const key = Buffer.from(made.taskId.replaceAll('-', ''), 'hex');
  do {
    await nextTurn();
    reader.resetReadTxn();
  } while (reader.getBinary(key) === undefined);
}

/** Of the tasks by id, with snapshots of its own. */
interface Reader {
  resetReadTxn(): void;
  getBinary(key: Buffer): Buffer | undefined;
}

function readerOf(path: string): Reader {
  const options = { noSubdir: true, maxDbs: 20, overlappingSync: true, mapSize: 2 ** 40 };
  const root = open(join(path, 'data.mdb'), options as never);
  const encoded = { encoding: 'binary', keyEncoding: 'binary' };
  return root.openDB('tasks', encoded as never) as unknown as Reader;
}
