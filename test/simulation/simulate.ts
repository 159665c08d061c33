/** Runs one seed. */
import type { BrokenVariant } from './broken.js';
import { STORES } from './stores.js';
import { type SimResult, World } from './world.js';

export interface SimulateOptions {
  readonly seed: number;
  readonly steps: number;
  /** A name of stores.ts; default memory. */
  readonly store?: string;
  readonly broken?: BrokenVariant;
  readonly follow?: (line: string) => void;
}

export function simulate({ store = 'memory', ...options }: SimulateOptions): Promise<SimResult> {
  const makeStore = STORES[store];
  if (makeStore === undefined) {
    throw new Error(`there is no store '${store}'; allowed: ${Object.keys(STORES).join(', ')}`);
  }
  return new World({ ...options, makeStore }).run();
}
