import { createHistogram } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { Audit } from '../../../src/cli/load/audit.js';
import { Board, LATENESS_HISTOGRAM } from '../../../src/cli/load/board.js';
import { exactScale, linearScale, logScale } from '../../../src/cli/load/chart.js';
import { parseRssAnonBytes } from '../../../src/cli/load/memory.js';
import { progressLine } from '../../../src/cli/load/progress.js';
import { reportHtml } from '../../../src/cli/load/report-html.js';
import { curveOf, exitCodeOf, figuresOf, type LoadResult } from '../../../src/cli/load/result.js';
import { ratesOf, type Sample, Series } from '../../../src/cli/load/series.js';
import { bytes, formatTable, ms } from '../../../src/cli/load/table.js';

const FIGURE_KEYS = [
  'accepted',
  'rejected',
  'started',
  'finished',
  'lost',
  'duplicated',
  'early',
  'createsPerSecond',
  'finishesPerSecond',
  'ackMs',
  'latenessMs',
  'rssBytesPeak',
  'rssAnonBytesPeak',
  'storeBytes',
  'seed',
];

/** 10,000 tasks, each 10 µs later than the one before. */
function lateness() {
  const histogram = createHistogram(LATENESS_HISTOGRAM);
  for (let step = 1; step <= 10_000; step += 1) histogram.record(step * 10);
  return histogram;
}

function resultOf(faults: { lost?: number; early?: number; duplicated?: number } = {}): LoadResult {
  const { lost = 0, early = 0, duplicated = 0 } = faults;
  const audit = new Audit(Board.create({ tasks: 1, workMs: 0 }), 0);
  const histogram = lateness();
  const samples = Array.from({ length: 41 }, (_, index) => ({
    atSeconds: index / 4,
    created: index * 250,
    started: index * 200,
    finished: index * 200,
    pending: index * 50,
  }));
  return {
    figures: figuresOf({
      tally: { ...audit.tally(0), accepted: 10_000, lost, early, duplicated },
      createsPerSecond: 1000.4,
      finishesPerSecond: 800,
      acks: histogram,
      lateness: histogram,
      rssBytesPeak: 3 * 1024 * 1024,
      rssAnonBytesPeak: null,
      storeBytes: 2048,
      seed: 7,
    }),
    stray: 0,
    unanswered: 0,
    firstRefusal: undefined,
    firstError: undefined,
    latenessCurve: curveOf(histogram),
    samples,
    about: [
      ['load', 'synthetic <b>&'],
      ['command', 'tickwheel load-test --rate 1000'],
    ],
  };
}

describe('the figures', () => {
  it('have exactly the keys of the contract, in its order', () => {
    const { figures } = resultOf();
    expect(Object.keys(figures)).toEqual(FIGURE_KEYS);
    expect(Object.keys(figures.ackMs)).toEqual(['p50', 'p99']);
    expect(Object.keys(figures.latenessMs)).toEqual(['p50', 'p99', 'p999', 'max']);
    expect(JSON.parse(JSON.stringify(figures))).toEqual(figures);
  });

  it('give percentiles in milliseconds, and 0 when nothing was recorded', () => {
    const { latenessMs } = resultOf().figures;
    expect(latenessMs.p50).toBeCloseTo(50, 0);
    expect(latenessMs.p99).toBeCloseTo(99, 0);
    expect(latenessMs.max).toBeCloseTo(100, 0);
    expect(curveOf(createHistogram(LATENESS_HISTOGRAM))).toEqual([]);
  });

  it('end the command with 1 when anything was lost or early, and only then', () => {
    expect(exitCodeOf(resultOf().figures)).toBe(0);
    expect(exitCodeOf(resultOf({ lost: 1 }).figures)).toBe(1);
    expect(exitCodeOf(resultOf({ early: 1 }).figures)).toBe(1);
    expect(exitCodeOf(resultOf({ duplicated: 1 }).figures)).toBe(0);
  });
});

describe('the report', () => {
  it('is one file that asks for nothing else', () => {
    const html = reportHtml(resultOf());
    expect(html).not.toMatch(/https?:|src=|href=|@import|url\(/);
  });

  it('draws lateness, throughput and pending with axes, units and all points', () => {
    const html = reportHtml(resultOf());
    const charts = html.split('<svg').slice(1);
    expect(charts).toHaveLength(3);
    const [late, throughput, pending] = charts as [string, string, string];
    const points = (chart: string, line: number) =>
      (new RegExp(`line${line}" d="M([^"]*)"`).exec(chart)?.[1] ?? '').split('L').length;

    expect(late).toContain('lateness, ms');
    expect(late).toContain('99.9 %');
    expect(late).toContain('p99 99 ms');
    expect(points(late, 0)).toBe(resultOf().latenessCurve.length);
    expect(throughput).toContain('tasks a second');
    expect([0, 1, 2].map((line) => points(throughput, line))).toEqual([10, 10, 10]);
    expect(pending).toContain('seconds since the load began');
    expect(points(pending, 0)).toBe(41);
    expect(html).not.toContain('NaN');
  });

  it('carries its data', () => {
    const json = /<script type="application\/json" id="data">(.*)<\/script>/.exec(
      reportHtml(resultOf()),
    );
    const data = JSON.parse(json?.[1] ?? '') as LoadResult & { rates: unknown[] };
    expect(data.figures).toEqual(resultOf().figures);
    expect(data.samples).toEqual(resultOf().samples);
    expect(data.rates[0]).toMatchObject({ createdPerSecond: 1000, finishedPerSecond: 800 });
  });

  it('shows text as text', () => {
    const html = reportHtml(resultOf());
    expect(html).toContain('synthetic &lt;b&gt;&amp;');
    expect(html).not.toContain('<b>&');
  });

  it('opens with the verdict', () => {
    expect(reportHtml(resultOf())).toContain('none lost, none early, none duplicated');
    const faulty = reportHtml(resultOf({ lost: 2, duplicated: 1 }));
    expect(faulty).toContain('Of 10,000 accepted tasks: 2 lost, 1 duplicated');
  });

  it('can be made of a run in which nothing happened', () => {
    const empty = { ...resultOf(), latenessCurve: [], samples: [] };
    expect(reportHtml(empty)).not.toContain('NaN');
  });
});

describe('the table', () => {
  it('names every figure, and faults that have none', () => {
    const table = formatTable({ ...resultOf(), stray: 3, firstRefusal: 'OverloadedError: full' });
    expect(table).toMatch(/accepted +10,000/);
    expect(table).toMatch(/lateness +p50 50 ms · p99 99.* · max 100/);
    expect(table).toMatch(/stray +3 ran though refused/);
    expect(table).toMatch(/peak memory +3.0 MiB/);
  });

  it('writes times and sizes with their units', () => {
    expect([0.1234, 12.345, 1234.5].map(ms)).toEqual(['0.123 ms', '12.3 ms', '1,235 ms']);
    expect(ms(36_667)).toBe('36.7 s');
    expect([5, 2048, 3 * 1024 ** 3].map(bytes)).toEqual(['5 B', '2.0 KiB', '3.0 GiB']);
  });
});

describe('the series', () => {
  const sample = (index: number): Sample => ({
    atSeconds: index,
    created: index * 10,
    started: 0,
    finished: 0,
    pending: 0,
  });

  it('is thinned evenly when a run is long, from its first sample on', () => {
    const series = new Series();
    for (let index = 0; index < 10_000; index += 1) series.add(sample(index));
    const times = series.samples.map((kept) => kept.atSeconds);
    expect(times.length).toBeLessThan(2048);
    expect(times.length).toBeGreaterThan(1000);
    expect(new Set(times.slice(1).map((time, index) => time - times[index]!))).toEqual(
      new Set([8]),
    );
    expect(times[0]).toBe(0);
  });

  it('gives rates over windows', () => {
    const rates = ratesOf([0, 1, 2, 3, 4].map(sample), 2);
    expect(rates.map((rate) => [rate.atSeconds, rate.createdPerSecond])).toEqual([
      [1, 10],
      [3, 10],
    ]);
  });
});

describe('chart scales', () => {
  const text = (value: number) => String(value);

  it('end at round numbers, or exactly where time ends', () => {
    expect(linearScale(1234, text).ticks.map((tick) => tick.value)).toEqual([0, 500, 1000, 1500]);
    expect(linearScale(0, text).place(0)).toBe(0);
    expect(exactScale(62, text).place(62)).toBe(1);
    expect(exactScale(62, text).ticks.at(-1)?.value).toBe(60);
  });

  it('cover whole decades', () => {
    const scale = logScale(0.3, 700, text);
    expect(scale.ticks.map((tick) => tick.value)).toEqual([0.1, 1, 10, 100, 1000]);
    expect(scale.place(0.1)).toBe(0);
    expect(scale.place(1000)).toBeCloseTo(1);
    expect(scale.place(0)).toBe(0);
  });
});

describe('the progress line', () => {
  const written = (isTTY: boolean, times: readonly number[]) => {
    const out: string[] = [];
    const stream = { isTTY, columns: 10, write: (text: string) => out.push(text) };
    const line = progressLine(stream);
    for (const time of times) line.show(`at ${time} of a long run`, time);
    line.end();
    return out;
  };

  it('is rewritten in place on a terminal, cut to its width, and gone at the end', () => {
    const out = written(true, [0, 250]);
    expect(out).toEqual(['\r\u001b[2Kat 0 of a', '\r\u001b[2Kat 250 of', '\r\u001b[2K']);
  });

  it('is a new line every five seconds elsewhere', () => {
    const out = written(false, [0, 250, 4999, 5000, 9000, 10_000]);
    expect(out.map((line) => line.slice(0, 8).trim())).toEqual(['at 0 of', 'at 5000', 'at 10000']);
  });
});

describe('memory', () => {
  it('reads the anonymous part from what the kernel says', () => {
    expect(parseRssAnonBytes('VmRSS:\t  900 kB\nRssAnon:\t    700 kB\nRssFile:\t 1 kB\n')).toBe(
      716_800,
    );
    expect(parseRssAnonBytes('VmRSS:\t  900 kB\n')).toBeUndefined();
  });
});
