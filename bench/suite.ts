/** The suite: one file a question. `test/bench.test.ts` runs each with `--quick`. */
export const BENCHES: readonly { readonly name: string; readonly file: string }[] = [
  { name: 'wheel', file: 'bench/wheel.ts' },
];
