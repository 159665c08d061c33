/**
 * A reporter that ends a run with `N passed, N failed` alone on a line, and fails a run in which no test ran.
 * It stands behind vitest's own on the command line of `npm test`.
 */
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

export interface Totals {
  readonly passed: number;
  /** Tests, test files that could not be run, and errors outside of any test. */
  readonly failed: number;
}

export function totalsOf(
  modules: readonly TestModule[],
  unhandled: readonly SerializedError[],
): Totals {
  let passed = 0;
  let failed = unhandled.length;
  for (const module of modules) {
    const before = failed;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed += 1;
      if (state === 'failed') failed += 1;
    }
    if (failed === before && module.state() === 'failed') failed += 1;
  }
  return { passed, failed };
}

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const { passed, failed } = totalsOf(modules, unhandled);
    process.stdout.write(`${passed} passed, ${failed} failed\n`);
    if (failed > 0 || passed === 0) process.exitCode = 1;
  }
}
