/** The report's style: readable in light and dark, on paper too; nothing is fetched. */
export const REPORT_STYLE = `
:root {
  color-scheme: light;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --faint: #667085; --rule: #e4e7ec;
  --c0: #2563c9; --c1: #d9730d; --c2: #17845a; --good: #17845a; --bad: #c62f2f;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    color-scheme: dark;
    --page: #12161d; --card: #1a2029; --ink: #e6eaf0; --faint: #98a2b3; --rule: #2c3440;
    --c0: #6ea8ff; --c1: #f5a45b; --c2: #55c795; --good: #55c795; --bad: #ff7b72;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 960px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0; }
h2 { font-size: 17px; margin: 0 0 2px; }
.under { color: var(--faint); margin: 4px 0 0; }
.verdict { font-weight: 600; margin: 16px 0 0; }
.verdict.good { color: var(--good); }
.verdict.bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(132px, 1fr)); gap: 12px;
  margin: 20px 0; padding: 0; list-style: none; }
.tiles li, section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tiles li { padding: 12px 14px; }
.tiles b { display: block; font-size: 21px; line-height: 1.25; font-weight: 650;
  white-space: nowrap; }
.tiles span { color: var(--faint); font-size: 13px; }
section { padding: 18px 20px 14px; margin: 0 0 16px; break-inside: avoid; }
section p { color: var(--faint); margin: 0 0 8px; font-size: 14px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-family: inherit; font-size: 12px; fill: var(--faint);
  font-variant-numeric: tabular-nums; }
svg .callout { fill: var(--ink); font-size: 12.5px; font-weight: 600;
  paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
.grid { stroke: var(--rule); }
.axis { stroke: var(--faint); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line0 { stroke: var(--c0); } .line1 { stroke: var(--c1); } .line2 { stroke: var(--c2); }
.line1 { stroke-dasharray: 7 4; } .line2 { stroke-dasharray: 2 4; }
.area { opacity: 0.14; stroke: none; } .area0 { fill: var(--c0); }
.point { fill: var(--c0); stroke: var(--card); stroke-width: 2; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 6px; padding: 0;
  list-style: none; font-size: 13px; }
.key { display: inline-block; width: 22px; border-top: 3px solid; margin-right: 7px;
  vertical-align: middle; }
.key0 { border-color: var(--c0); } .key1 { border-color: var(--c1); border-top-style: dashed; }
.key2 { border-color: var(--c2); border-top-style: dotted; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 16px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 5px 0; border-top: 1px solid var(--rule); }
tr:first-child th, tr:first-child td { border-top: 0; }
th { font-weight: 400; color: var(--faint); padding-right: 16px; white-space: nowrap; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  section { overflow-x: auto; }
  svg { min-width: 620px; }
  .tables { grid-template-columns: 1fr; }
}
@media print {
  body { background: none; font-size: 13px; } main { padding: 0; }
  .tables { grid-template-columns: 1fr 1fr; }
}
`;
