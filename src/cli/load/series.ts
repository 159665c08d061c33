/**
 * Counts over time, taken at even intervals; a long run is thinned to twice the interval, again and
 * again.
 */
export interface Sample {
  /** Seconds since the load's start. */
  readonly atSeconds: number;
  /** Totals so far. */
  readonly created: number;
  readonly started: number;
  readonly finished: number;
  /** Accepted and not finished. */
  readonly pending: number;
}

const SAMPLES_MAX = 2048;

export class Series {
  readonly samples: Sample[] = [];
  #keepEvery = 1;
  #offered = 0;

  add(sample: Sample): void {
    if (this.#offered % this.#keepEvery === 0) this.samples.push(sample);
    this.#offered += 1;
    if (this.samples.length < SAMPLES_MAX) return;
    const kept = this.samples.filter((_, index) => index % 2 === 0);
    this.samples.splice(0, this.samples.length, ...kept);
    this.#keepEvery *= 2;
  }
}

export interface Rate {
  readonly atSeconds: number;
  readonly createdPerSecond: number;
  readonly startedPerSecond: number;
  readonly finishedPerSecond: number;
}

/** Rates between samples that lie at least `windowSeconds` apart. */
export function ratesOf(samples: readonly Sample[], windowSeconds: number): Rate[] {
  const rates: Rate[] = [];
  let from = samples[0];
  for (const to of samples) {
    if (from === undefined || to.atSeconds - from.atSeconds < windowSeconds) continue;
    const seconds = to.atSeconds - from.atSeconds;
    rates.push({
      atSeconds: (from.atSeconds + to.atSeconds) / 2,
      createdPerSecond: (to.created - from.created) / seconds,
      startedPerSecond: (to.started - from.started) / seconds,
      finishedPerSecond: (to.finished - from.finished) / seconds,
    });
    from = to;
  }
  return rates;
}
