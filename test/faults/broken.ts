/** A store that must not pass. */
import type { Store, StoreSession } from '../../src/store/store.js';

/** Says that a commit is durable as soon as it is visible. */
export function hasty(store: Store): Store {
  return {
    capabilities: store.capabilities,
    open: async (options) => {
      const session = await store.open(options);
      const commit: StoreSession['commit'] = (units) => {
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
