import { memoryStore } from '../../src/index.js';
import type { Commit, StoreOpenOptions, StoreSession, Unit } from '../../src/store/store.js';
import type { TestStore } from './stores.js';

/** Everybody sees what is committed at once, but the engine is told when it is let through. */
export class LateStore {
  readonly store: TestStore;
  /** How many tasks each commit was of, and how many commits before it were not told. */
  readonly commits: { tasks: number; ahead: number }[] = [];
  isHolding = false;
  #held: (() => void)[] = [];

  constructor() {
    const inner = memoryStore();
    this.store = Object.assign(Object.create(inner), {
      capabilities: inner.capabilities,
      open: async (options: StoreOpenOptions) => this.#wrap(await inner.open(options)),
      recount: () => inner.recount(),
      crash: () => inner.crash(),
    });
  }

  letThrough(): void {
    this.isHolding = false;
    for (const tell of this.#held.splice(0)) tell();
  }

  #wrap(session: StoreSession): StoreSession {
    const commit = (units: readonly Unit[]): Commit => {
      this.commits.push({ tasks: units.length, ahead: this.#held.length });
      const { visible, durable } = session.commit(units);
      if (!this.isHolding) return { visible, durable };
      const told = new Promise<void>((resolve) => {
        this.#held.push(resolve);
      });
      return { visible: told.then(() => visible), durable: told.then(() => durable) };
    };
    return new Proxy(session, {
      get: (target, name) => {
        if (name === 'commit') return commit;
        if (name === 'waitsForClock') return this.#held.length > 0 || target.waitsForClock;
        const member = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }
}
