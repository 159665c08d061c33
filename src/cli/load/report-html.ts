/**
 * The report: one HTML file that needs nothing else, with the figures, three charts and their data.
 */
import {
  type Chart,
  escapeText,
  exactScale,
  legend,
  linearScale,
  lineChart,
  logScale,
} from './chart.js';
import { REPORT_STYLE } from './report-style.js';
import type { LoadResult } from './result.js';
import { type Rate, ratesOf, type Sample } from './series.js';
import { count, figureRows, ms, warnings } from './table.js';

export function reportHtml(result: LoadResult): string {
  const rates = ratesOf(result.samples, rateWindowSeconds(result.samples));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tickwheel load test</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<main>
<h1>tickwheel load test</h1>
<p class="under">${escapeText(subtitle(result))}</p>
${verdict(result)}
${tiles(result)}
${latenessSection(result)}
${throughputSection(rates, secondsOf(result.samples))}
${pendingSection(result.samples)}
<div class="tables">
<section><h2>Figures</h2>${table([...figureRows(result)])}</section>
<section><h2>Circumstances</h2>${table(result.about)}</section>
</div>
</main>
<script type="application/json" id="data">${embeddedJson({ ...result, rates })}</script>
</body>
</html>
`;
}

/**
 * Rates are averaged over a second at least, and a long run over 1/120 of it, so that lines stay
 * legible.
 */
function rateWindowSeconds(samples: readonly Sample[]): number {
  return Math.max(1, secondsOf(samples) / 120) - 0.01;
}

function secondsOf(samples: readonly Sample[]): number {
  return samples.at(-1)?.atSeconds ?? 0;
}

function subtitle(result: LoadResult): string {
  const facts = new Map(result.about);
  return [facts.get('load'), facts.get('began')].filter((fact) => fact !== undefined).join(' · ');
}

function verdict(result: LoadResult): string {
  const { accepted, lost, early, duplicated } = result.figures;
  const faults = [
    ...(lost > 0 ? [`${count(lost)} lost`] : []),
    ...(early > 0 ? [`${count(early)} early`] : []),
    ...(duplicated > 0 ? [`${count(duplicated)} duplicated`] : []),
    ...warnings(result).map(([label, text]) => `${label}: ${text}`),
  ];
  if (faults.length > 0) {
    const text = `✗ Of ${count(accepted)} accepted tasks: ${faults.join(', ')}`;
    return `<p class="verdict bad">${escapeText(text)}</p>`;
  }
  const text = `✓ ${count(accepted)} accepted tasks: none lost, none early, none duplicated`;
  return `<p class="verdict good">${text}</p>`;
}

function tiles({ figures }: LoadResult): string {
  const shown: (readonly [string, string])[] = [
    ['lateness, median', ms(figures.latenessMs.p50)],
    ['lateness, p99', ms(figures.latenessMs.p99)],
    ['lateness, p99.9', ms(figures.latenessMs.p999)],
    ['lateness, worst', ms(figures.latenessMs.max)],
    ['created /s', count(figures.createsPerSecond)],
    ['finished /s', count(figures.finishesPerSecond)],
  ];
  const items = shown.map(([label, text]) => `<li><b>${text}</b><span>${label}</span></li>`);
  return `<ul class="tiles">${items.join('')}</ul>`;
}

function latenessSection({ latenessCurve: curve, figures }: LoadResult): string {
  const points = curve.map(({ percent, ms: late }) => [nines(percent), late] as const);
  const lates = curve.map((point) => point.ms).filter((late) => late > 0);
  const last = points.at(-1)?.[0] ?? 1;
  const named = [
    { percent: 50, text: 'p50', ms: figures.latenessMs.p50 },
    { percent: 99, text: 'p99', ms: figures.latenessMs.p99 },
    { percent: 99.9, text: 'p99.9', ms: figures.latenessMs.p999 },
  ].filter(({ percent }) => curve.length > 0 && nines(percent) <= last);
  const chart: Chart = {
    summary: 'Lateness in milliseconds against percentile, both on logarithmic axes',
    x: percentScale(last),
    y:
      lates.length > 0
        ? logScale(Math.min(...lates), Math.max(...lates), plainNumber)
        : logScale(1, 10, plainNumber),
    xLabel: 'share of tasks that started at most this late',
    yLabel: 'lateness, ms (log scale)',
    lines: [{ name: 'lateness', points }],
    callouts: named.map((point) => ({
      x: nines(point.percent),
      y: point.ms,
      text: `${point.text} ${ms(point.ms)}`,
    })),
  };
  return section(
    'Lateness',
    'From due time to the first line of the handler. ' +
      'Each step to the right looks ten times closer at the worst.',
    lineChart(chart),
  );
}

function throughputSection(rates: readonly Rate[], seconds: number): string {
  const of = (value: (rate: Rate) => number) =>
    rates.map((rate) => [rate.atSeconds, value(rate)] as const);
  const lines = [
    { name: 'created', points: of((rate) => rate.createdPerSecond) },
    { name: 'started', points: of((rate) => rate.startedPerSecond) },
    { name: 'finished', points: of((rate) => rate.finishedPerSecond) },
  ];
  const chart: Chart = {
    summary: 'Tasks created, started and finished a second over time',
    x: exactScale(seconds, plainNumber),
    y: linearScale(greatest(lines.flatMap((line) => line.points)), shortNumber),
    xLabel: 'seconds since the load began',
    yLabel: 'tasks a second',
    lines,
  };
  return section(
    'Throughput',
    'Created: accepted by the scheduler. Started and finished: as the handlers saw it.',
    legend(lines) + lineChart(chart),
  );
}

function pendingSection(samples: readonly Sample[]): string {
  const points = samples.map((sample) => [sample.atSeconds, sample.pending] as const);
  const chart: Chart = {
    summary: 'Tasks accepted and not finished over time',
    x: exactScale(secondsOf(samples), plainNumber),
    y: linearScale(greatest(points), shortNumber),
    xLabel: 'seconds since the load began',
    yLabel: 'tasks',
    lines: [{ name: 'pending', points, filled: true }],
  };
  return section(
    'Pending',
    'Accepted and not finished: due later, or waiting to start.',
    lineChart(chart),
  );
}

function section(title: string, text: string, content: string): string {
  return `<section><h2>${title}</h2><p>${text}</p>${content}</section>`;
}

function table(rows: readonly (readonly [string, string])[]): string {
  const lines = rows.map(
    ([label, text]) =>
      `<tr><th scope="row">${escapeText(label)}</th><td>${escapeText(text)}</td></tr>`,
  );
  return `<table>${lines.join('')}</table>`;
}

/** 0 % at 0, 90 % at 1, 99 % at 2, 99.9 % at 3: equal steps come ten times closer to all. */
function nines(percent: number): number {
  return -Math.log10(Math.max(1 - percent / 100, Number.EPSILON));
}

function percentScale(lastNines: number) {
  const end = Math.max(1, lastNines);
  const percents = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999, 99.99999];
  const ticks = percents
    .map((percent) => ({ value: nines(percent), label: `${percent} %` }))
    .filter((tick) => tick.value <= end + 0.001);
  return { place: (value: number) => Math.min(value, end) / end, ticks };
}

function greatest(points: readonly (readonly [number, number])[]): number {
  return points.reduce((most, [, y]) => Math.max(most, y), 0);
}

function plainNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}

function shortNumber(value: number): string {
  if (value >= 1e6) return `${plainNumber(value / 1e6)}M`;
  return value >= 1e3 ? `${plainNumber(value / 1e3)}k` : plainNumber(value);
}

/** JSON inside a script element must not end it. */
function embeddedJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}
