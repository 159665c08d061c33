/**
 * What a load test found, as plain data: the table, the JSON file and the report are made from it.
 */
import type { Histogram } from 'node:perf_hooks';
import type { Tally } from './audit.js';
import type { Sample } from './series.js';

/** The keys of `--json`, fixed by the documentation. Absent values are null, times milliseconds. */
export interface LoadFigures {
  readonly accepted: number;
  readonly rejected: number;
  readonly started: number;
  readonly finished: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly early: number;
  readonly createsPerSecond: number;
  readonly finishesPerSecond: number;
  readonly ackMs: { readonly p50: number; readonly p99: number };
  readonly latenessMs: {
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
    readonly max: number;
  };
  readonly rssBytesPeak: number;
  readonly rssAnonBytesPeak: number | null;
  readonly storeBytes: number | null;
  readonly seed: number;
}

export interface LoadResult {
  readonly figures: LoadFigures;
  /**
   * Tasks that ran though refused, or under another task's id; a fault like a loss, not in the
   * JSON.
   */
  readonly stray: number;
  /** Tasks whose `scheduleMany` call never answered. */
  readonly unanswered: number;
  /** Why the first refused task was refused. */
  readonly firstRefusal: string | undefined;
  /** The first fault that the scheduler told its `onError`. */
  readonly firstError: string | undefined;
  readonly latenessCurve: readonly CurvePoint[];
  readonly samples: readonly Sample[];
  readonly about: About;
}

/** `percent` of the tasks were at most `ms` late. */
export interface CurvePoint {
  readonly percent: number;
  readonly ms: number;
}

/** The circumstances: label and text, in order. */
export type About = readonly (readonly [label: string, text: string])[];

export function figuresOf(parts: {
  readonly tally: Tally;
  readonly createsPerSecond: number;
  readonly finishesPerSecond: number;
  readonly acks: Histogram;
  readonly lateness: Histogram;
  readonly rssBytesPeak: number;
  readonly rssAnonBytesPeak: number | null;
  readonly storeBytes: number | null;
  readonly seed: number;
}): LoadFigures {
  const { tally, acks, lateness } = parts;
  return {
    accepted: tally.accepted,
    rejected: tally.rejected,
    started: tally.started,
    finished: tally.finished,
    lost: tally.lost,
    duplicated: tally.duplicated,
    early: tally.early,
    createsPerSecond: Math.round(parts.createsPerSecond),
    finishesPerSecond: Math.round(parts.finishesPerSecond),
    ackMs: { p50: percentileMs(acks, 50), p99: percentileMs(acks, 99) },
    latenessMs: {
      p50: percentileMs(lateness, 50),
      p99: percentileMs(lateness, 99),
      p999: percentileMs(lateness, 99.9),
      max: percentileMs(lateness, 100),
    },
    rssBytesPeak: parts.rssBytesPeak,
    rssAnonBytesPeak: parts.rssAnonBytesPeak,
    storeBytes: parts.storeBytes,
    seed: parts.seed,
  };
}

/** Of a histogram in microseconds; 0 when it is empty. */
export function percentileMs(histogram: Histogram, percent: number): number {
  return histogram.count === 0 ? 0 : histogram.percentile(percent) / 1000;
}

const CURVE_POINTS_PER_DECADE = 24;

/**
 * The distribution at percents that come closer and closer to 100: even steps of log 1 / (1 − p).
 */
export function curveOf(histogram: Histogram): CurvePoint[] {
  if (histogram.count === 0) return [];
  const curve: CurvePoint[] = [];
  const decades = Math.log10(Math.max(10, histogram.count));
  for (let step = 0; step <= decades * CURVE_POINTS_PER_DECADE; step += 1) {
    const percent = Math.max(100 * (1 - 10 ** (-step / CURVE_POINTS_PER_DECADE)), 0.01);
    curve.push({ percent, ms: percentileMs(histogram, percent) });
  }
  return curve;
}

/** 1 when anything was lost or early, else 0. */
export function exitCodeOf(figures: LoadFigures): 0 | 1 {
  return figures.lost > 0 || figures.early > 0 ? 1 : 0;
}
