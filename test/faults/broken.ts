/** A store that must not pass. */
import { lmdbStore } from '../../src/store/lmdb/lmdb-store.js';
import type { Commit, Store, Unit } from '../../src/store/store.js';

/** Says that a commit is durable as soon as readers see it. */
export function hasty(path: string): Store {
  const store = lmdbStore({ path });
  return {
    capabilities: store.capabilities,
    open: async (options) => {
      const session = await store.open(options);
      const commit = (units: readonly Unit[]): Commit => {
        const { visible, durable } = session.commit(units);
        durable.catch(() => {});
        return { visible, durable: visible.then(() => {}) };
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
