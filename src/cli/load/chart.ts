/**
 * Line charts as SVG text: scales, round ticks, axes with units. No script, no style: classes name
 * the parts.
 */
export interface Scale {
  /** 0 at the axis' start, 1 at its end. */
  place(value: number): number;
  readonly ticks: readonly Tick[];
}

export interface Tick {
  readonly value: number;
  readonly label: string;
}

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Fill the area below. */
  readonly filled?: boolean;
}

/** A point worth naming on a line. */
export interface Callout {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

export interface Chart {
  /** For those who can't see it. */
  readonly summary: string;
  readonly x: Scale;
  readonly y: Scale;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly lines: readonly Line[];
  readonly callouts?: readonly Callout[];
}

const WIDTH = 880;
const HEIGHT = 320;
const PLOT = { left: 64, right: 16, top: 30, bottom: 46 } as const;
const PLOT_WIDTH = WIDTH - PLOT.left - PLOT.right;
const PLOT_HEIGHT = HEIGHT - PLOT.top - PLOT.bottom;
/** About as many ticks as read well along an axis. */
const TICKS = 6;

/** From 0 to a round number at or above `max`; to 1 when there is nothing. */
export function linearScale(max: number, label: (value: number) => string): Scale {
  const step = roundStep((max > 0 ? max : 1) / TICKS);
  const end = Math.max(step, Math.ceil(max / step) * step);
  const ticks: Tick[] = [];
  for (let index = 0; index * step <= end * 1.0001; index += 1) {
    ticks.push({ value: index * step, label: label(index * step) });
  }
  return { place: (value) => value / end, ticks };
}

/** From 0 to exactly `max`: for time, where a rounded end would leave a gap. */
export function exactScale(max: number, label: (value: number) => string): Scale {
  const end = max > 0 ? max : 1;
  const { ticks } = linearScale(end, label);
  return {
    place: (value) => value / end,
    ticks: ticks.filter((tick) => tick.value <= end),
  };
}

/**
 * Whole decades around `min` and `max`; both must be above 0. A tick at each 1, 2 and 5 when there
 * is room.
 */
export function logScale(min: number, max: number, label: (value: number) => string): Scale {
  const low = Math.floor(Math.log10(min));
  const high = Math.max(low + 1, Math.ceil(Math.log10(max)));
  const steps = high - low <= 2 ? [1, 2, 5] : [1];
  const ticks: Tick[] = [];
  for (let decade = low; decade <= high; decade += 1) {
    for (const step of steps) {
      const value = step * 10 ** decade;
      if (value <= 10 ** high) ticks.push({ value, label: label(value) });
    }
  }
  return {
    place: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low),
    ticks,
  };
}

/** 1, 2 or 5 times a power of ten, at or above `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= least * 0.9999) ?? 10;
  return factor * power;
}

export function lineChart(chart: Chart): string {
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeText(chart.summary)}">`,
    ...chart.y.ticks.map((tick) => yTick(chart, tick)),
    ...chart.x.ticks.map((tick) => xTick(chart, tick)),
    axisLabel(PLOT.left, PLOT.top - 14, 'start', chart.yLabel),
    axisLabel(PLOT.left + PLOT_WIDTH, HEIGHT - 6, 'end', chart.xLabel),
    ...chart.lines.map((line, index) => path(chart, line, index)),
    ...(chart.callouts ?? []).map((callout) => calloutOf(chart, callout)),
    '</svg>',
  ].join('\n');
}

/** The names of the lines, to stand above the chart; a single line needs none. */
export function legend(lines: readonly Line[]): string {
  const entries = lines.map(
    (line, index) => `<li><span class="key key${index}"></span>${escapeText(line.name)}</li>`,
  );
  return `<ul class="legend">${entries.join('')}</ul>`;
}

function xOf(chart: Chart, value: number): string {
  return (PLOT.left + chart.x.place(value) * PLOT_WIDTH).toFixed(1);
}

function yOf(chart: Chart, value: number): string {
  return (PLOT.top + (1 - chart.y.place(value)) * PLOT_HEIGHT).toFixed(1);
}

function yTick(chart: Chart, tick: Tick): string {
  const y = yOf(chart, tick.value);
  const end = PLOT.left + PLOT_WIDTH;
  return (
    `<line class="grid" x1="${PLOT.left}" x2="${end}" y1="${y}" y2="${y}"/>` +
    `<text class="tick" x="${PLOT.left - 8}" y="${y}" dy="0.32em" text-anchor="end">` +
    `${escapeText(tick.label)}</text>`
  );
}

function xTick(chart: Chart, tick: Tick): string {
  const x = xOf(chart, tick.value);
  const base = PLOT.top + PLOT_HEIGHT;
  return (
    `<line class="axis" x1="${x}" x2="${x}" y1="${base}" y2="${base + 5}"/>` +
    `<text class="tick" x="${x}" y="${base + 18}" text-anchor="middle">` +
    `${escapeText(tick.label)}</text>`
  );
}

function axisLabel(x: number, y: number, anchor: string, text: string): string {
  return `<text class="label" x="${x}" y="${y}" text-anchor="${anchor}">${escapeText(text)}</text>`;
}

function path(chart: Chart, line: Line, index: number): string {
  if (line.points.length === 0) return '';
  const points = line.points.map(([x, y]) => `${xOf(chart, x)},${yOf(chart, y)}`);
  const stroke = `<path class="line line${index}" d="M${points.join('L')}"/>`;
  if (!line.filled) return stroke;
  const base = (PLOT.top + PLOT_HEIGHT).toFixed(1);
  const firstX = xOf(chart, (line.points[0] as readonly [number, number])[0]);
  const lastX = xOf(chart, (line.points.at(-1) as readonly [number, number])[0]);
  const area = `M${firstX},${base}L${points.join('L')}L${lastX},${base}Z`;
  return `<path class="area area${index}" d="${area}"/>${stroke}`;
}

function calloutOf(chart: Chart, callout: Callout): string {
  const x = xOf(chart, callout.x);
  const y = yOf(chart, callout.y);
  // Where a rising line leaves room: left of and above its point, or at the far left right of and
  // below it.
  const isFarLeft = chart.x.place(callout.x) < 0.1;
  const [anchor, dx, dy] = isFarLeft ? ['start', 4, 18] : ['end', -4, -9];
  return (
    `<circle class="point" cx="${x}" cy="${y}" r="4"/>` +
    `<text class="callout" x="${x}" y="${y}" dx="${dx}" dy="${dy}" text-anchor="${anchor}">` +
    `${escapeText(callout.text)}</text>`
  );
}

export function escapeText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
