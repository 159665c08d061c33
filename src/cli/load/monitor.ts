/** Watches a run: samples its counts for the charts, its memory, and tells its progress. */
import type { Audit } from './audit.js';
import type { Board } from './board.js';
import type { GeneratorClock } from './generator.js';
import { MemoryPeaks } from './memory.js';
import type { ProgressLine } from './progress.js';
import { percentileMs } from './result.js';
import { Series } from './series.js';
import { count, ms } from './table.js';

const SAMPLE_MS = 250;

/** Averages since the last beginning. */
export interface Pace {
  readonly createdPerSecond: number;
  readonly finishedPerSecond: number;
}

export class Monitor {
  readonly peaks = new MemoryPeaks();
  readonly series = new Series();
  readonly #parts: MonitorParts;
  #phase = 'starting';
  #begin: Totals;
  #sampling = false;
  #running = true;
  #watching: Promise<void> | undefined;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    this.#begin = this.#totals();
  }

  start(): void {
    this.#begin = this.#totals();
    this.#watching = this.#watch();
  }

  /** What the run is doing now, for the progress line. */
  enter(phase: string): void {
    this.#phase = phase;
  }

  /** Rates and charts count from here on, without what was stored before. */
  loadBegins(): void {
    this.#begin = this.#totals();
    this.#sampling = true;
    this.#sample();
  }

  soFar(): Pace {
    const now = this.#totals();
    const seconds = Math.max(now.atMs - this.#begin.atMs, 1) / 1000;
    return {
      createdPerSecond: (now.created - this.#begin.created) / seconds,
      finishedPerSecond: (now.finished - this.#begin.finished) / seconds,
    };
  }

  /** Ends the progress line; resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#watching;
    this.#parts.progress.end();
  }

  async #watch(): Promise<void> {
    const { clock } = this.#parts;
    while (this.#running) {
      await clock.sleep(SAMPLE_MS);
      if (this.#sampling) this.#sample();
      this.peaks.sample();
      this.#parts.progress.show(this.#line(), clock.monotonic());
    }
  }

  #sample(): void {
    const now = this.#totals();
    this.series.add({
      atSeconds: (now.atMs - this.#begin.atMs) / 1000,
      created: now.created - this.#begin.created,
      started: now.started - this.#begin.started,
      finished: now.finished - this.#begin.finished,
      pending: now.created - now.finished,
    });
  }

  #totals(): Totals {
    const { audit, board, clock } = this.#parts;
    return {
      atMs: clock.monotonic(),
      created: audit.accepted,
      started: board.total('started'),
      finished: board.total('finished'),
    };
  }

  #line(): string {
    const { board, audit } = this.#parts;
    const { created, finished } = this.#totals();
    return [
      this.#phase,
      `created ${count(created)}`,
      ...(audit.rejected > 0 ? [`rejected ${count(audit.rejected)}`] : []),
      `finished ${count(finished)}`,
      `pending ${count(Math.max(0, created - finished))}`,
      `p99 late ${ms(percentileMs(board.lateness, 99))}`,
    ].join(' · ');
  }
}

export interface MonitorParts {
  readonly board: Board;
  readonly audit: Audit;
  readonly clock: GeneratorClock;
  readonly progress: ProgressLine;
}

interface Totals {
  readonly atMs: number;
  /** Accepted by the scheduler. */
  readonly created: number;
  readonly started: number;
  readonly finished: number;
}
