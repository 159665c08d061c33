/** Raw samples under a name, and what is told of them: minimum, median, maximum. */

export interface Summary {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export class Samples {
  readonly #byName = new Map<string, number[]>();

  add(name: string, value: number): void {
    const values = this.#byName.get(name);
    if (values === undefined) this.#byName.set(name, [value]);
    else values.push(value);
  }

  /** Runs `act` and adds the nanoseconds that each of its `operations` took. */
  time<T>(name: string, operations: number, act: () => T): T {
    const startNs = process.hrtime.bigint();
    const result = act();
    this.add(name, Number(process.hrtime.bigint() - startNs) / operations);
    return result;
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  summary(name: string): Summary {
    return summaryOf(this.#valuesOf(name));
  }

  median(name: string): number {
    return this.summary(name).median;
  }

  toJSON(): Record<string, number[]> {
    return Object.fromEntries(this.#byName);
  }

  #valuesOf(name: string): number[] {
    const values = this.#byName.get(name);
    if (values === undefined) throw new Error(`no sample of "${name}" was taken`);
    return values;
  }
}

export function summaryOf(values: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(values).sort();
  return { min: sorted[0]!, median: quantileOf(sorted, 0.5), max: sorted[sorted.length - 1]! };
}

/** `sorted` ascends and is not empty; between two samples it is interpolated. */
export function quantileOf(sorted: Float64Array, part: number): number {
  const at = part * (sorted.length - 1);
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}
