/** How late no-ops start, at a rate, beside many that are far off; and beside a herd of another tenant. */
import { must } from '../lib/report.js';
import { CHUNK, createAll, createSome, items, openBed } from './load.js';

export interface Lateness {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Created so long before they are due. */
const AHEAD_MS = 2000;
const SLICE_MS = 10;
/** A herd is due when it can have been created. */
const CREATES_A_MS = 12;

/** An open loop: what the engine can't take is refused, and told. */
export async function latenessAt(
  rate: number,
  seconds: number,
  pending: number,
): Promise<Lateness & { refused: number }> {
  const bed = await openBed('in-process');
  try {
    const farMs = Date.now() + 86_400_000;
    for (let done = 0; done < pending; done += 10 * CHUNK) {
      const count = Math.min(10 * CHUNK, pending - done);
      await createAll(
        bed,
        items(count, (seq) => ({ runAt: farMs + done + seq })),
      );
    }
    const total = rate * seconds;
    const startMs = Date.now();
    const calls: Promise<number>[] = [];
    for (let sent = 0; sent < total; ) {
      const due = Math.min(total, Math.floor(((Date.now() - startMs) * rate) / 1000));
      const from = sent;
      if (due > from) {
        const at = (seq: number) => ({
          runAt: startMs + AHEAD_MS + Math.floor(((from + seq) * 1000) / rate),
        });
        calls.push(createSome(bed, items(due - from, at)));
        sent = due;
      }
      await new Promise((resolve) => setTimeout(resolve, SLICE_MS));
    }
    let accepted = 0;
    for (const made of await Promise.all(calls)) accepted += made;
    await bed.untilEnded(accepted);
    must(bed.ended() === accepted, 'each accepted task ended once');
    const { latenessMs } = await bed.scheduler.stats();
    must(latenessMs.count === accepted, 'the lateness of each start was noted');
    return { ...latenessMs, refused: total - accepted };
  } finally {
    await bed.close();
  }
}

/** A herd of one tenant due within `spanMs`, and another tenant's hundred a second while it is worked off. */
export async function besideHerd(herd: number, spanMs: number, seconds: number): Promise<Lateness> {
  const bed = await openBed('in-process');
  const late: number[] = [];
  bed.scheduler.on('started', (event) => {
    if (event.tenant === 'other') late.push(event.latenessMs);
  });
  try {
    const atMs = Date.now() + 1000 + herd / CREATES_A_MS;
    for (let done = 0; done < herd; done += 10 * CHUNK) {
      const count = Math.min(10 * CHUNK, herd - done);
      await createAll(
        bed,
        items(count, (seq) => ({
          runAt: atMs + Math.floor(((done + seq) / herd) * spanMs),
          tenant: 'herd',
        })),
      );
    }
    must(Date.now() < atMs, 'the herd was created before it was due');
    const others = seconds * 100;
    await createAll(
      bed,
      items(others, (seq) => ({ runAt: atMs + seq * 10, tenant: 'other' })),
    );
    await bed.untilEnded(herd + others);
    must(late.length === others, 'each of the other tenant started');
    late.sort((a, b) => a - b);
    const at = (share: number): number =>
      late[Math.min(late.length - 1, Math.floor(share * late.length))] as number;
    return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
  } finally {
    await bed.close();
  }
}
