/** What happened, as a hash: two runs of a seed must give the same. The newest lines are kept to be looked at. */
const KEPT = 400;

export class Trace {
  readonly #lines: string[] = [];
  #a = 0x811c_9dc5;
  #b = 0x1b87_3593;
  #count = 0;
  /** Told each line, to follow a run. */
  follow: ((line: string) => void) | undefined;

  add(line: string): void {
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      this.#a = Math.imul(this.#a ^ code, 0x0100_0193);
      this.#b = Math.imul(this.#b ^ code, 0x85eb_ca6b);
    }
    this.#count++;
    this.follow?.(line);
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines.splice(0, KEPT);
  }

  get tail(): readonly string[] {
    return this.#lines.slice(-KEPT);
  }

  get hash(): string {
    const hex = (word: number) => (word >>> 0).toString(16).padStart(8, '0');
    return `${hex(this.#a)}${hex(this.#b)}-${this.#count}`;
  }
}
