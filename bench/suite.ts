/** A benchmark: one file, one question. */
export interface BenchFile {
  readonly name: string;
  readonly file: string;
  /** Sets of its own options that do something else, for the smoke test to run as well. */
  readonly variants?: readonly (readonly string[])[];
}

/** The suite, in the order of RESULTS.md. `test/bench.test.ts` runs each with `--quick`. */
export const BENCHES: readonly BenchFile[] = [
  { name: 'wheel', file: 'bench/wheel.ts', variants: [['--huge']] },
  { name: 'engine', file: 'bench/engine.ts' },
];
