import { parseArgs } from 'node:util';

export interface BenchOptions {
  /** A second's smoke run: small, and only its checks mean anything. */
  readonly quick: boolean;
  readonly seed: number;
  /** The benchmark's own options that were given. */
  readonly own: Readonly<Record<string, string | boolean | undefined>>;
}

const SEED_DEFAULT = 1;

interface OwnOption {
  readonly type: 'boolean' | 'string';
  /** All values that it may have. */
  readonly allowed?: readonly string[];
}

/** `--quick`, `--seed N` and the benchmark's own; anything else ends the process. */
export function benchOptions(own: Readonly<Record<string, OwnOption>> = {}): BenchOptions {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        seed: { type: 'string', default: String(SEED_DEFAULT) },
        ...Object.fromEntries(Object.entries(own).map(([name, { type }]) => [name, { type }])),
      },
    });
    const seed = Number(values.seed);
    if (!Number.isInteger(seed)) throw new Error(`--seed is ${values.seed}; allowed: an integer`);
    for (const [name, { allowed }] of Object.entries(own)) {
      const given = (values as BenchOptions['own'])[name];
      if (given === undefined || allowed === undefined || allowed.includes(String(given))) continue;
      throw new Error(`--${name} is ${given}; allowed: ${allowed.join(', ')}`);
    }
    return { quick: values.quick === true, seed, own: values as BenchOptions['own'] };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(2);
  }
}
