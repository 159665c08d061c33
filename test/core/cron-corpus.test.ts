import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { newestCronMs, nextCronMs, validateCron } from '../../src/core/cron.js';
import { InvalidScheduleError } from '../../src/core/errors.js';

interface GoodCase {
  readonly expr: string;
  readonly tz: string;
  readonly from: string;
  readonly expect: readonly string[];
  readonly note: string;
}

interface BadCase {
  readonly expr: string;
  readonly reason: string;
  readonly kind: string;
}

const good = read<GoodCase>('corpus.public.json');
const bad = read<BadCase>('bad.public.json');

describe('the corpus of cron cases', () => {
  it('is complete', () => {
    expect([good.length, bad.length]).toEqual([306, 81]);
  });

  it.each(
    good.map((entry) => [`${entry.expr} ${entry.tz} ${entry.from}: ${entry.note}`, entry] as const),
  )('%s', (_title, entry) => {
    const rule = { expression: entry.expr, timezone: entry.tz };
    validateCron(rule);
    const fromMs = Date.parse(entry.from);
    const times: number[] = [];
    for (let afterMs = fromMs; times.length < entry.expect.length; afterMs = times.at(-1)!) {
      times.push(nextCronMs(rule, afterMs)!);
    }
    expect(times.map(iso)).toEqual(entry.expect);

    // Searching back meets the same times.
    const back = times.map((_, index) =>
      newestCronMs(rule, {
        afterMs: fromMs,
        untilMs: index === times.length - 1 ? times[index]! : times[index + 1]! - 1,
      }),
    );
    expect(back).toEqual(times);
    expect(newestCronMs(rule, { afterMs: fromMs, untilMs: times[0]! - 1 })).toBeUndefined();
  });
});

describe('the corpus of expressions to refuse', () => {
  it.each(
    bad.map(
      (entry) => [`${entry.kind}: ${entry.reason}: ${entry.expr.slice(0, 40)}`, entry] as const,
    ),
  )('%s', (_title, entry) => {
    const refuse = () => validateCron({ expression: entry.expr, timezone: 'UTC' });
    expect(refuse).toThrow(InvalidScheduleError);
    if (entry.kind === 'never') expect(refuse).toThrow(/can never fire/);
  });
});

function read<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(new URL(`../data/cron/${name}`, import.meta.url), 'utf8'));
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}
