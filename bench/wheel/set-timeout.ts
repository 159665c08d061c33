/** The platform's own timers, which are an object each. */

import { permutation } from '../lib/random.js';
import { must } from '../lib/report.js';
import type { Samples } from '../lib/samples.js';
import { CANCEL, HOUR_TICKS, INSERT } from './workloads.js';

/** Sets `count` timeouts within an hour, clears them in random order; bytes of heap that one takes. */
export function setAndClear(
  count: number,
  random: () => number,
  samples: Samples,
  prefix: string,
): number {
  const delays = Uint32Array.from({ length: count }, () => 1 + Math.floor(random() * HOUR_TICKS));
  const order = permutation(count, random);
  const timeouts: NodeJS.Timeout[] = new Array(count);
  let fired = 0;
  const fire = () => {
    fired += 1;
  };
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  samples.time(prefix + INSERT, count, () => {
    for (let i = 0; i < count; i++) timeouts[i] = setTimeout(fire, delays[i]);
  });
  globalThis.gc?.();
  const bytes = (process.memoryUsage().heapUsed - before) / count;
  samples.time(prefix + CANCEL, count, () => {
    for (let i = 0; i < count; i++) clearTimeout(timeouts[order[i]!]);
  });
  must(
    fired === 0 && !timeouts.some((timeout) => timeout.hasRef() && isLive(timeout)),
    'all cleared',
  );
  return bytes;
}

/** Node marks a cleared timeout. */
function isLive(timeout: NodeJS.Timeout): boolean {
  return (timeout as unknown as { _destroyed: boolean })._destroyed !== true;
}
