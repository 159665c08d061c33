import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ReadyEntry, ReadyQueue } from '../../src/core/ready-queue.js';
import { ReadyModel } from './ready-model.js';

interface Entry extends ReadyEntry {
  readonly name: string;
}

let made = 0;

function entry(tenant: string, fields: Partial<Entry> = {}): Entry {
  return {
    name: `${tenant}${++made}`,
    tenant,
    handler: 'mail',
    handlerVersion: 1,
    priority: 5,
    readyAtMs: 0,
    dueAt: 0,
    alone: false,
    laneIndex: -1,
    throttled: false,
    ...fields,
  };
}

function pushed(queue: ReadyQueue<Entry>, tenant: string, count: number, fields = {}): Entry[] {
  const entries = Array.from({ length: count }, () => entry(tenant, fields));
  for (const one of entries) queue.push(one);
  return entries;
}

const tenantsOf = (entries: Entry[]): string => entries.map(({ tenant }) => tenant).join('');

describe('entries that must run alone', () => {
  it('are taken apart, one at a time, once they have come up; others pass them', () => {
    const queue = new ReadyQueue<Entry>();
    const alone = pushed(queue, 'a', 3, { alone: true });
    const [mate] = pushed(queue, 'a', 1);
    const [other] = pushed(queue, 'b', 1);
    expect(queue.wantsAlone).toBe(false);
    expect(queue.takeAlone(0)).toBeUndefined();
    expect(queue.take(0, 9)).toEqual([mate, other]);
    expect(queue.size).toBe(3);
    expect(queue.sizeOf('a')).toBe(3);
    expect(queue.wantsAlone).toBe(true);
    expect(queue.takeAlone(0)).toBe(alone[0]);
    expect(queue.running('a')).toBe(2);
    expect(queue.wantsAlone).toBe(false);
    expect(queue.takeAlone(0)).toBeUndefined();
    // One that was set aside can be taken out like any other.
    expect(queue.remove(alone[1] as Entry)).toBe(true);
    expect(queue.remove(alone[1] as Entry)).toBe(false);
    queue.finished(alone[0] as Entry);
    expect(queue.size).toBe(1);
    expect(queue.takeAlone(0)).toBe(alone[2]);
    queue.undo(alone[2] as Entry);
    for (const each of [mate, other]) queue.finished(each as Entry);
    expect(queue.size).toBe(0);
    expect(queue.tenantsKept).toBe(0);
  });

  it('cost nothing until they are taken, and obey limits and pauses then', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxConcurrency: 1, maxRatePerSecond: 1 });
    const [alone] = pushed(queue, 'a', 1, { alone: true });
    const [other] = pushed(queue, 'a', 1);
    expect(queue.take(0, 9)).toEqual([other]);
    expect(queue.wantsAlone).toBe(false);
    queue.finished(other as Entry);
    // Its token comes with time alone.
    expect(queue.takeAlone(0)).toBeUndefined();
    expect(queue.nextTokenAt(0)).toBeCloseTo(1000, 5);
    queue.pauseTenant('a');
    expect(queue.takeAlone(2000)).toBeUndefined();
    queue.resumeTenant('a');
    queue.pauseHandler('mail');
    expect(queue.takeAlone(2000)).toBeUndefined();
    queue.resumeHandler('mail');
    expect(queue.wantsAlone).toBe(true);
    expect(queue.takeAlone(2000)).toBe(alone);
    expect(queue.nextTokenAt(2000)).toBe(Number.POSITIVE_INFINITY);
  });

  it('do not save up turns for their tenant while they wait', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 1, { alone: true });
    pushed(queue, 'b', 100);
    const first = queue.take(0, 50);
    expect(tenantsOf(first)).toBe('b'.repeat(50));
    pushed(queue, 'a', 20);
    expect(tenantsOf(queue.take(0, 6)).replace(/[^a]/g, '')).toBe('aaa');
  });

  it('leave their tenant its share while they wait', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 3, { alone: true });
    pushed(queue, 'a', 9);
    pushed(queue, 'b', 9);
    expect(tenantsOf(queue.take(0, 6))).toBe('ababab');
  });

  it('cost their tenant its turn when they start', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 1, { alone: true });
    pushed(queue, 'a', 9);
    pushed(queue, 'b', 9);
    expect(tenantsOf(queue.take(0, 2))).toBe('ab');
    expect(queue.takeAlone(0)?.tenant).toBe('a');
    expect(tenantsOf(queue.take(0, 6))).toBe('bababa');
  });
});

describe('the slot of a single thread', () => {
  /** Who has it next, and next, when each leaves it before another starts. */
  function turnsOf(queue: ReadyQueue<Entry>, count: number): string {
    let seen = '';
    while (seen.length < count) {
      // What must run alone comes up when others are taken: then it is asked for again.
      const next = queue.takeAlone(0) ?? queue.take(0, 1)[0] ?? (queue.takeAlone(0) as Entry);
      seen += next.alone ? next.tenant.toUpperCase() : next.tenant;
      queue.finished(next);
    }
    return seen;
  }

  it('is shared fairly with those who run alone on it', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 20);
    pushed(queue, 'b', 20, { alone: true });
    expect(turnsOf(queue, 12)).toBe('aaBaBaBaBaBa');
  });

  it('goes around among tenants of which each run must have it alone, by weight', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('b', { weight: 2 });
    pushed(queue, 'a', 9, { alone: true });
    pushed(queue, 'b', 9, { alone: true });
    expect(turnsOf(queue, 9)).toBe('BABBABBAB');
  });

  it('is not had twice as often by a tenant with work of both kinds', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 9, { alone: true });
    pushed(queue, 'a', 9);
    pushed(queue, 'b', 20);
    expect(turnsOf(queue, 20)).toBe('aAbbAbAbAbAbAbAbAbAb');
  });
});

describe('the order within a tenant', () => {
  it('is priority, then due time, then arrival', () => {
    const queue = new ReadyQueue<Entry>();
    const late = entry('a', { dueAt: 9 });
    const first = entry('a', { dueAt: 3 });
    const second = entry('a', { dueAt: 3 });
    const low = entry('a', { priority: 6 });
    const urgent = entry('a', { priority: 0, dueAt: 99 });
    for (const one of [late, first, low, second, urgent]) queue.push(one);
    expect(queue.take(0, 9)).toEqual([urgent, first, second, late, low]);
  });

  it('lets a waiting entry rise one level every ten seconds', () => {
    const queue = new ReadyQueue<Entry>();
    const old = entry('a', { priority: 6, readyAtMs: 0, dueAt: 0 });
    const young = entry('a', { priority: 5, readyAtMs: 9_999, dueAt: 9_999 });
    const younger = entry('a', { priority: 5, readyAtMs: 10_001, dueAt: 10_001 });
    for (const one of [younger, old, young]) queue.push(one);
    expect(queue.take(0, 3)).toEqual([young, old, younger]);
  });

  it('holds across its handlers and versions', () => {
    const queue = new ReadyQueue<Entry>();
    const low = entry('a', { handler: 'mail', priority: 7 });
    const high = entry('a', { handler: 'bill', priority: 2 });
    const middle = entry('a', { handler: 'mail', handlerVersion: 2, priority: 3 });
    for (const one of [low, high, middle]) queue.push(one);
    expect(queue.take(0, 3)).toEqual([high, middle, low]);
  });
});

describe('fairness between tenants', () => {
  it('takes turns, however much one has waiting and however urgent it is', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 100, { priority: 0 });
    pushed(queue, 'b', 3, { priority: 9 });
    expect(tenantsOf(queue.take(0, 8))).toBe('abababaa');
  });

  it('gives weights their share, mixed and not in bursts', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { weight: 3 });
    queue.setTenantLimits('b', { weight: 0.5 });
    for (const tenant of ['a', 'b', 'c']) pushed(queue, tenant, 100);
    const order = tenantsOf(queue.take(0, 90));
    expect(order.split('a').length - 1).toBe(60);
    expect(order.split('b').length - 1).toBe(10);
    expect(order).not.toContain('aaaaa');
  });

  it('gives each tenant its weighted share within any round (invariant 14)', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 8 });
    const batches = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 10, maxLength: 40 });
    fc.assert(
      fc.property(weights, batches, (weightOf, batchSizes) => {
        const queue = new ReadyQueue<Entry>();
        const round = weightOf.reduce((sum, weight) => sum + weight, 0);
        weightOf.forEach((weight, i) => {
          queue.setTenantLimits(`${i}`, { weight });
          pushed(queue, `${i}`, 50);
        });
        const picks: number[] = [];
        for (let at = 0; picks.length < 6 * round; at++) {
          for (const one of queue.take(0, batchSizes[at % batchSizes.length])) {
            picks.push(Number(one.tenant));
            queue.finished(one);
            queue.push(entry(one.tenant));
          }
        }
        for (let from = 0; from + round <= picks.length; from++) {
          const window = picks.slice(from, from + round);
          weightOf.forEach((weight, tenant) => {
            const got = window.filter((pick) => pick === tenant).length;
            // A window that is not aligned with the rounds may cut one turn off at an end.
            expect(Math.abs(got - weight)).toBeLessThanOrEqual(1);
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it('counts a tenant once, however many handlers its work is for', () => {
    const queue = new ReadyQueue<Entry>();
    for (const handler of ['h', 'i', 'j']) {
      pushed(queue, 'a', 20, { handler });
      pushed(queue, 'b', 20, { handler, handlerVersion: 2 });
    }
    pushed(queue, 'c', 60, { handler: 'k' });
    for (let round = 0; round < 20; round++) {
      expect(tenantsOf(queue.take(0, 3)).split('').sort().join('')).toBe('abc');
    }
  });

  it('does not repay one for turns that it had no work for', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'b', 1);
    pushed(queue, 'a', 100);
    // It still runs, so it is still known here.
    expect(tenantsOf(queue.take(0, 50))).toMatch(/b/);
    pushed(queue, 'b', 40);
    expect(tenantsOf(queue.take(0, 20)).split('b').length - 1).toBe(10);
  });

  it('serves a newcomer within one round of those who wait', () => {
    const queue = new ReadyQueue<Entry>();
    for (let i = 0; i < 50; i++) pushed(queue, `t${i}`, 20);
    queue.take(0, 500);
    pushed(queue, 'new', 1);
    expect(queue.take(0, 51).filter(({ tenant }) => tenant === 'new')).toHaveLength(1);
  });

  it('does not let one that comes back after each turn take more than its share', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'patient', 100);
    let order = '';
    for (let i = 0; i < 40; i++) {
      if (queue.sizeOf('eager') === 0) pushed(queue, 'eager', 1);
      const picked = queue.take(0, 1);
      for (const one of picked) queue.finished(one);
      order += picked[0].tenant === 'eager' ? 'e' : 'p';
    }
    expect(order.split('e').length - 1).toBe(20);
  });

  it('does not let a stream of new tenants starve one that waits', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('heavy', { weight: 0.25 });
    pushed(queue, 'heavy', 10);
    for (let i = 0; i < 4; i++) pushed(queue, `m${i}`, 1);
    let heavy = 0;
    for (let i = 0; i < 200; i++) {
      pushed(queue, `n${i}`, 1);
      if (queue.take(0, 1)[0].tenant === 'heavy') heavy++;
    }
    // Each turn of its makes one more of the others wait, so the rounds grow from 20 picks on.
    expect(heavy).toBeGreaterThanOrEqual(5);
  });

  it('gives one whose handler was closed a turn at once, and no more than that', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 100);
    pushed(queue, 'b', 100, { handler: 'bill' });
    queue.pauseHandler('bill');
    expect(tenantsOf(queue.take(0, 50))).toBe('a'.repeat(50));
    queue.resumeHandler('bill');
    expect(tenantsOf(queue.take(0, 6))).toMatch(/^b(ab|ba){2}/);
  });

  it('stays fair over more turns than virtual time has room for', () => {
    const queue = new ReadyQueue<Entry>();
    for (const tenant of ['a', 'b']) queue.setTenantLimits(tenant, { weight: 0.001 });
    pushed(queue, 'a', 2);
    pushed(queue, 'b', 2, { handler: 'bill' });
    pushed(queue, 'c', 1, { handler: 'none' });
    queue.pauseHandler('none');
    let last = '';
    const out: Entry[] = [];
    // 100,000 turns of 500 each pass 2²⁴ twice.
    for (let i = 0; i < 100_000; i++) {
      out.length = 0;
      const [one] = queue.take(0, 1, out);
      if (one.tenant === last) expect.fail(`turn ${i} was ${last}'s again`);
      last = one.tenant;
      queue.finished(one);
      queue.push(one);
    }
    queue.resumeHandler('none');
    expect(tenantsOf(queue.take(0, 3)).split('').sort().join('')).toBe('abc');
  });

  it('follows a weight that changes while entries wait', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { weight: 0.001 });
    pushed(queue, 'a', 100);
    pushed(queue, 'b', 100);
    expect(tenantsOf(queue.take(0, 20))).toBe('b'.repeat(20));
    queue.setTenantLimits('a', { weight: 1 });
    expect(tenantsOf(queue.take(0, 20)).split('a').length - 1).toBe(10);
  });
});

describe('lanes that cannot start', () => {
  it('do not hold up other tenants or the other handlers of their tenant', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'a', 5, { handler: 'paused', priority: 0 });
    pushed(queue, 'a', 5, { handler: 'limited', priority: 0 });
    pushed(queue, 'a', 5, { handler: 'gone', priority: 0 });
    pushed(queue, 'a', 2, { handler: 'mail' });
    pushed(queue, 'b', 2, { handler: 'mail' });
    pushed(queue, 'c', 2);
    queue.pauseHandler('paused');
    queue.setHandlerLimits('limited', { maxConcurrency: 0 });
    queue.setRunnable((handler) => handler !== 'gone');
    queue.pauseTenant('c');
    expect(tenantsOf(queue.take(0, 99))).toBe('abab');
    expect(queue.canStart).toBe(false);
    expect(queue.size).toBe(17);
    expect(queue.sizeOf('c')).toBe(2);
  });

  it('go on with what they held once they can', () => {
    const queue = new ReadyQueue<Entry>();
    queue.pauseTenant('a');
    const entries = pushed(queue, 'a', 3);
    expect(queue.take(0, 9)).toEqual([]);
    queue.resumeTenant('a');
    expect(queue.take(0, 9)).toEqual(entries);
  });

  it('are counted by version while no worker can run them', () => {
    const queue = new ReadyQueue<Entry>();
    const versions = new Set([1]);
    queue.setRunnable((_, version) => version !== undefined && versions.has(version));
    pushed(queue, 'a', 2, { handlerVersion: 2 });
    pushed(queue, 'b', 1, { handlerVersion: 2 });
    pushed(queue, 'b', 1, { handlerVersion: undefined });
    pushed(queue, 'b', 1, { handlerVersion: 1 });
    expect(tenantsOf(queue.take(0, 9))).toBe('b');
    expect([...queue.waitingVersions()]).toEqual([
      ['mail@2', 3],
      ['mail@*', 1],
    ]);
    versions.add(2);
    queue.refreshRunnable();
    expect([...queue.waitingVersions()]).toEqual([['mail@*', 1]]);
    expect(tenantsOf(queue.take(0, 9))).toBe('aba');
  });
});

describe('limits', () => {
  it('hold a tenant and a handler to their concurrency, until an attempt ends', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('*', { maxConcurrency: 2 });
    queue.setTenantLimits('a', { maxConcurrency: 1 });
    queue.setHandlerLimits('bill', { maxConcurrency: 1 });
    for (const tenant of ['a', 'b']) pushed(queue, tenant, 5);
    pushed(queue, 'c', 5, { handler: 'bill' });
    const picked = queue.take(0, 99);
    expect(tenantsOf(picked).split('').sort().join('')).toBe('abbc');
    expect([queue.running('b'), queue.runningOfHandler('bill')]).toEqual([2, 1]);
    queue.finished(picked.find(({ tenant }) => tenant === 'c') as Entry);
    expect(tenantsOf(queue.take(0, 99))).toBe('c');
    queue.setTenantLimits('a', {});
    expect(tenantsOf(queue.take(0, 99))).toBe('aaaa');
    queue.setTenantLimits('b', { maxConcurrency: 1 });
    for (const one of picked.filter(({ tenant }) => tenant === 'b')) {
      expect(queue.take(0, 99)).toEqual([]);
      queue.finished(one);
    }
    expect(tenantsOf(queue.take(0, 99))).toBe('b');
  });

  it('let a burst of one second pass, then keep the rate exactly', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxRatePerSecond: 4 });
    pushed(queue, 'a', 30);
    expect(queue.take(1000, 99)).toHaveLength(4);
    expect(queue.nextTokenAt(1000)).toBeCloseTo(1250, 5);
    expect(queue.take(1249.99, 99)).toHaveLength(0);
    expect(queue.take(1250, 99)).toHaveLength(1);
    expect(queue.take(2000, 99)).toHaveLength(3);
    expect(queue.take(9000, 99)).toHaveLength(4);
  });

  it('take fractional rates, and wake at the time that they name', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setHandlerLimits('mail', { maxRatePerSecond: 0.3 });
    pushed(queue, 'a', 40);
    let now = 123_456_789.125;
    expect(queue.take(now, 99)).toHaveLength(1);
    for (let i = 1; i <= 30; i++) {
      now = queue.nextTokenAt(now);
      expect(queue.take(now, 99)).toHaveLength(1);
    }
    expect(now).toBeCloseTo(123_456_789.125 + 100_000, 3);
  });

  it('have no next token when nothing waits for one alone', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxRatePerSecond: 1, maxConcurrency: 1 });
    expect(queue.nextTokenAt(0)).toBe(Number.POSITIVE_INFINITY);
    pushed(queue, 'a', 2);
    const [first] = queue.take(0, 9);
    expect(queue.nextTokenAt(0)).toBe(Number.POSITIVE_INFINITY);
    queue.finished(first);
    expect(queue.nextTokenAt(0)).toBeCloseTo(1000, 5);
    queue.pauseTenant('a');
    expect(queue.nextTokenAt(0)).toBe(Number.POSITIVE_INFINITY);
    queue.resumeTenant('a');
    expect(queue.nextTokenAt(0)).toBeCloseTo(1000, 5);
    queue.setTenantLimits('a', {});
    expect(queue.nextTokenAt(0)).toBe(Number.POSITIVE_INFINITY);
    expect(queue.take(0, 9)).toHaveLength(1);
  });

  it('give a token and a slot back when a pick is undone', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxRatePerSecond: 1, maxConcurrency: 1 });
    pushed(queue, 'a', 2);
    const [first] = queue.take(0, 9);
    queue.undo(first);
    expect(queue.running('a')).toBe(0);
    expect(queue.take(0, 9)).toHaveLength(1);
    expect(queue.size).toBe(0);
  });

  it('remember what an idle tenant has spent, and nothing longer than needed', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('*', { maxRatePerSecond: 2 });
    const [one] = pushed(queue, 'a', 1);
    expect(queue.take(0, 9)).toEqual([one]);
    queue.finished(one);
    pushed(queue, 'a', 5);
    expect(queue.take(0, 9)).toHaveLength(1);
    expect(queue.take(500, 9)).toHaveLength(1);
  });

  it('mark the entries that waited at one, and no others', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxConcurrency: 1 });
    const [first, second] = pushed(queue, 'a', 2);
    const [other] = pushed(queue, 'b', 1);
    queue.take(0, 1);
    queue.take(0, 9);
    queue.finished(first);
    const [third] = pushed(queue, 'a', 1);
    expect(queue.take(0, 9)).toEqual([second]);
    queue.finished(second);
    queue.take(0, 9);
    expect([first, second, other, third].map(({ throttled }) => throttled)).toEqual([
      false,
      true,
      false,
      true,
    ]);
  });

  it('do not mark an entry that came when the token was there already', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setHandlerLimits('mail', { maxRatePerSecond: 1 });
    const [first, second] = pushed(queue, 'a', 2);
    queue.take(0, 9);
    queue.take(1000, 9);
    const [third] = pushed(queue, 'a', 1);
    queue.take(60_000, 9);
    expect([first, second, third].map(({ throttled }) => throttled)).toEqual([false, true, false]);
  });
});

describe('room', () => {
  const room = (queue: ReadyQueue<Entry>, tenant: string, handler = 'mail'): number =>
    queue.room(tenant, handler, 1);

  it('is shared among the lanes that can start', () => {
    const queue = new ReadyQueue<Entry>({ maxReady: 1000 });
    expect(room(queue, 'a')).toBe(1000);
    pushed(queue, 'a', 300);
    expect(room(queue, 'a')).toBe(700);
    expect(room(queue, 'b')).toBe(500);
    pushed(queue, 'b', 1);
    expect([room(queue, 'a'), room(queue, 'b'), room(queue, 'c')]).toEqual([200, 499, 333]);
    for (let i = 0; i < 30; i++) pushed(queue, `t${i}`, 1);
    expect([room(queue, 'a'), room(queue, 'b'), room(queue, 'new')]).toEqual([0, 63, 64]);
  });

  it('is 64 for a lane that cannot start, which takes nothing from the others', () => {
    const queue = new ReadyQueue<Entry>({ maxReady: 1000 });
    queue.pauseTenant('a');
    queue.pauseHandler('bill');
    queue.setTenantLimits('full', { maxConcurrency: 1 });
    queue.setTenantLimits('never', { maxConcurrency: 0 });
    queue.setRunnable((handler) => handler !== 'gone');
    expect([room(queue, 'a'), room(queue, 'b', 'bill'), room(queue, 'b', 'gone')]).toEqual([
      64, 64, 64,
    ]);
    expect(room(queue, 'never')).toBe(64);
    pushed(queue, 'a', 60);
    pushed(queue, 'b', 64, { handler: 'gone' });
    pushed(queue, 'full', 2);
    expect(queue.take(0, 9)).toHaveLength(1);
    expect([room(queue, 'a'), room(queue, 'b', 'gone'), room(queue, 'full')]).toEqual([4, 0, 63]);
    expect(room(queue, 'b')).toBe(1000);
  });

  it('never lets the queue grow past its bound, whatever opens and closes', () => {
    const queue = new ReadyQueue<Entry>({ maxReady: 1000 });
    for (let i = 0; i < 100; i++) {
      pushed(queue, `t${i}`, room(queue, `t${i}`));
      queue.pauseTenant(`t${i}`);
    }
    expect(queue.size).toBeLessThanOrEqual(2 * 1000 + 64 * 100);
    expect(room(queue, 'next')).toBeGreaterThanOrEqual(64);
  });

  it('keeps within a bound smaller than 64', () => {
    const queue = new ReadyQueue<Entry>({ maxReady: 10 });
    expect(room(queue, 'a')).toBe(10);
  });
});

describe('bookkeeping', () => {
  it('is dropped when tenants are gone', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('*', { maxRatePerSecond: 10 });
    for (let i = 0; i < 10_000; i++) {
      const [one] = pushed(queue, `t${i}`, 1);
      queue.take(i / 10, 1);
      queue.finished(one);
    }
    for (let i = 0; i < 100; i++) queue.take(5000, 0);
    expect(queue.tenantsKept).toBe(0);
    expect(queue.bounds().tenants).toEqual([]);
  });

  it('shows current and limit of each tenant and handler', () => {
    const queue = new ReadyQueue<Entry>();
    queue.setTenantLimits('a', { maxConcurrency: 3, maxRatePerSecond: 2 });
    queue.pauseHandler('bill');
    pushed(queue, 'a', 2);
    queue.take(0, 1);
    const none = { maxConcurrency: undefined, maxRatePerSecond: undefined };
    const common = { ...none, recentStarts: 0, paused: false };
    expect(queue.bounds()).toEqual({
      tenants: [
        {
          ...common,
          name: 'a',
          waiting: 1,
          running: 1,
          maxConcurrency: 3,
          maxRatePerSecond: 2,
          recentStarts: 1,
        },
      ],
      handlers: [
        { ...common, name: 'bill', waiting: 0, running: 0, paused: true },
        { ...common, name: 'mail', waiting: 1, running: 1 },
      ],
    });
  });

  it('removes an entry once, wherever it stands', () => {
    const queue = new ReadyQueue<Entry>();
    const entries = Array.from({ length: 50 }, (_, i) => entry('a', { dueAt: (i * 37) % 50 }));
    for (const one of entries) queue.push(one);
    for (const one of entries.filter((_, i) => i % 3 === 0)) {
      expect(queue.remove(one)).toBe(true);
      expect(queue.remove(one)).toBe(false);
    }
    const left = entries.filter((_, i) => i % 3 !== 0).sort((a, b) => a.dueAt - b.dueAt);
    expect(queue.take(0, 99)).toEqual(left);
    expect(queue.remove(left[0])).toBe(false);
  });

  it('treats more ends than starts as a bug', () => {
    const queue = new ReadyQueue<Entry>();
    const [one] = pushed(queue, 'a', 1);
    expect(() => queue.finished(one)).toThrow('more ends');
  });
});

describe('against a model that looks at everything', () => {
  it('picks what may start, in order, keeps every limit, and counts right', () => {
    const tenant = fc.constantFrom('a', 'b', 'c', 'd');
    const handler = fc.constantFrom('h', 'i', 'j');
    const limits = fc.record(
      {
        maxConcurrency: fc.nat(4),
        maxRatePerSecond: fc.constantFrom(0.5, 1, 3, 2.5, 50),
        weight: fc.constantFrom(0.1, 1, 3),
      },
      { requiredKeys: [] },
    );
    const pushCommand = fc.record({
      kind: fc.constant('push' as const),
      tenant,
      handler,
      version: fc.constantFrom(1, 2, undefined),
      priority: fc.nat(9),
      readyAtMs: fc.nat(30_000),
      dueAt: fc.nat(3),
    });
    const command = fc.oneof(
      { weight: 6, arbitrary: pushCommand },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('take' as const), max: fc.nat(6) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constantFrom('finish' as const, 'undo' as const, 'remove' as const),
          pick: fc.nat(),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(700) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('wake' as const) }) },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('pauseTenant' as const),
          tenant,
          on: fc.boolean(),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('pauseHandler' as const),
          handler,
          on: fc.boolean(),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('tenantLimits' as const),
          tenant: fc.oneof(tenant, fc.constant('*')),
          limits,
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('handlerLimits' as const), handler, limits }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('workers' as const),
          version: fc.constantFrom(1, 2, undefined),
          on: fc.boolean(),
        }),
      },
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 250, size: 'max' }), (commands) => {
        const model = new ReadyModel();
        for (const one of commands) {
          model.run(one);
          model.check();
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('a turn of which nothing came', () => {
  it('is had once more, so that what cannot start costs its tenant no share', () => {
    const queue = new ReadyQueue<Entry>();
    pushed(queue, 'dud', 20);
    pushed(queue, 'busy', 20);
    const started: string[] = [];
    let duds = 0;
    while (started.length < 12) {
      const [one] = queue.take(0, 1) as [Entry];
      // Every other entry of the one tenant turns out to be too late.
      if (one.tenant === 'dud' && duds++ % 2 === 0) queue.undo(one);
      else started.push(one.tenant);
    }
    const share = started.filter((tenant) => tenant === 'dud').length;
    expect(share).toBeGreaterThanOrEqual(5);
  });
});
