import { parseArgs } from 'node:util';

export interface BenchOptions {
  /** A second's smoke run: small, and only its checks mean anything. */
  readonly quick: boolean;
  readonly seed: number;
  /** The benchmark's own options that were given. */
  readonly own: Readonly<Record<string, string | boolean | undefined>>;
}

const SEED_DEFAULT = 1;

/** `--quick`, `--seed N` and the benchmark's own; anything else ends the process. */
export function benchOptions(
  own: Readonly<Record<string, { readonly type: 'boolean' | 'string' }>> = {},
): BenchOptions {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        seed: { type: 'string', default: String(SEED_DEFAULT) },
        ...own,
      },
    });
    const seed = Number(values.seed);
    if (!Number.isInteger(seed)) throw new Error(`--seed is ${values.seed}; allowed: an integer`);
    return { quick: values.quick === true, seed, own: values as BenchOptions['own'] };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(2);
  }
}
