import { describe, expect, it } from 'vitest';
import type { AttemptEvent } from '../../src/core/event.js';
import { Leases } from '../../src/engine/leases.js';
import { type ActiveRun, Runs } from '../../src/engine/runs.js';
import type { Executor } from '../../src/execution/executor.js';

const LEASE_MS = 9000;
/** Of a round of renewals. */
const THIRD_MS = 3000;

function bed(isShared = true) {
  const silent = new Set<number>();
  const executor = { vouchesFor: (runId: number) => !silent.has(runId) } as unknown as Executor;
  const runs = new Runs();
  const leases = new Leases({ durationMs: LEASE_MS, isShared }, runs, executor);
  const run = (runId: number): ActiveRun => {
    const active = { runs: [], draft: { task: { policies: { heartbeatTimeoutMs: 500 } } } };
    const fields = { runId, occurrenceId: `o${runId}`, fencingToken: runId, active };
    const made = { ...fields, given: true, entered: true, ended: false, silentAtMs: 500 };
    const granted = made as unknown as ActiveRun;
    leases.grant(granted, 0, 0);
    runs.add(granted);
    return granted;
  };
  /** A turn of the loop at this time: what came of each lease. */
  const turn = (atMs: number, wallMs = atMs): [number, string][] => {
    leases.noticeAway(atMs);
    const expire = (lost: ActiveRun): AttemptEvent => {
      runs.remove(lost);
      return { kind: 'crashed' } as AttemptEvent;
    };
    // They come in no order.
    const came = leases.events(wallMs, atMs, expire);
    return came
      .map(([{ runId }, { kind }]): [number, string] => [runId, kind])
      .sort(([a], [b]) => a - b);
  };
  return { silent, runs, leases, run, turn };
}

describe('leases', () => {
  it('are renewed in rounds of a third, all at once, while their workers are heard of', () => {
    const { leases, run, turn } = bed();
    const [one] = [run(1), run(2)];
    leases.arm(0);
    expect(turn(THIRD_MS - 1)).toEqual([]);
    expect(turn(THIRD_MS)).toEqual([
      [1, 'renew'],
      [2, 'renew'],
    ]);
    expect(one.leaseUntil).toBe(THIRD_MS + LEASE_MS);
    expect(leases.nextMs).toBe(2 * THIRD_MS);
  });

  it('run out exactly when their worker was not heard of for a whole one', () => {
    const { silent, leases, run, turn } = bed();
    run(1);
    run(2);
    leases.arm(0);
    silent.add(2);
    for (const atMs of [3000, 6000]) expect(turn(atMs)).toEqual([[1, 'renew']]);
    expect(turn(LEASE_MS - 1)).toEqual([]);
    expect(leases.nextMs).toBe(LEASE_MS);
    expect(turn(LEASE_MS)).toEqual([
      [1, 'renew'],
      [2, 'crashed'],
    ]);
  });

  it('are renewed also while the wall clock is behind: a worker has a whole one from when it was heard of', () => {
    const { silent, leases, run, turn } = bed();
    run(1);
    leases.arm(0);
    const BEHIND_MS = 60_000;
    for (let atMs = THIRD_MS; atMs <= 2 * LEASE_MS; atMs += THIRD_MS) {
      expect(turn(atMs, atMs - BEHIND_MS)).toEqual([[1, 'renew']]);
    }
    silent.add(1);
    for (const atMs of [21_000, 24_000, 3 * LEASE_MS - 1]) {
      expect(turn(atMs, atMs - BEHIND_MS)).toEqual([]);
    }
    expect(turn(3 * LEASE_MS, 3 * LEASE_MS - BEHIND_MS)).toEqual([[1, 'crashed']]);
  });

  it('are renewed, not judged, by a loop that was itself away; silence is forgiven', () => {
    const { silent, leases, run, turn } = bed();
    const one = run(1);
    leases.arm(0);
    silent.add(1);
    const backMs = 60_000;
    expect(turn(backMs)).toEqual([[1, 'renew']]);
    expect(one.silentAtMs).toBe(backMs + 500);
    // It is judged by what is heard from then on.
    for (let atMs = backMs + THIRD_MS; atMs < backMs + LEASE_MS; atMs += THIRD_MS) {
      expect(turn(atMs)).toEqual([]);
    }
    expect(turn(backMs + LEASE_MS)).toEqual([[1, 'crashed']]);
  });

  it('are renewed without a write where the store is ours alone, and run out all the same', () => {
    const { silent, leases, run, turn } = bed(false);
    const one = run(1);
    run(2);
    leases.arm(0);
    for (const atMs of [3000, 6000]) expect(turn(atMs)).toEqual([]);
    expect(one.leaseUntil).toBe(6000 + LEASE_MS);
    silent.add(2);
    for (const atMs of [9000, 12_000]) expect(turn(atMs)).toEqual([]);
    expect(leases.nextMs).toBe(15_000);
    expect(turn(15_000)).toEqual([[2, 'crashed']]);
  });

  it('wake nobody while nothing runs', () => {
    const { runs, leases, run, turn } = bed();
    const one = run(1);
    leases.arm(0);
    runs.remove(one);
    turn(THIRD_MS);
    expect(leases.nextMs).toBe(Number.POSITIVE_INFINITY);
  });
});
