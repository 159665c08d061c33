/** Runs calls of one key one after the other, and calls of different keys side by side. */
export class OneByOne {
  /** The last call of each key that has not ended. */
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, call: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const done = before === undefined ? call() : before.then(call, call);
    this.#last.set(key, done);
    const forget = (): void => {
      if (this.#last.get(key) === done) this.#last.delete(key);
    };
    done.then(forget, forget);
    return done;
  }
}
