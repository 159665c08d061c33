import { describe, expect, it } from 'vitest';
import type { SerializedError, TestModule } from 'vitest/node';
import { totalsOf } from './closing-line.js';

function moduleOf(state: string, results: readonly string[]): TestModule {
  const tests = results.map((result) => ({ result: () => ({ state: result }) }));
  return { state: () => state, children: { allTests: () => tests } } as unknown as TestModule;
}

const ERROR = { message: 'outside of any test' } as SerializedError;

describe('the closing line', () => {
  it('counts what passed and what failed, and not what was skipped', () => {
    const modules = [
      moduleOf('failed', ['passed', 'failed', 'skipped']),
      moduleOf('passed', ['passed', 'passed']),
    ];
    expect(totalsOf(modules, [])).toEqual({ passed: 3, failed: 1 });
  });

  it('counts a file that could not be run, and an error outside of any test, as failed', () => {
    expect(totalsOf([moduleOf('failed', [])], [])).toEqual({ passed: 0, failed: 1 });
    expect(totalsOf([moduleOf('passed', ['passed'])], [ERROR])).toEqual({ passed: 1, failed: 1 });
  });

  it('counts none when no test ran', () => {
    expect(totalsOf([moduleOf('skipped', ['skipped'])], [])).toEqual({ passed: 0, failed: 0 });
  });
});
