/** A Markdown table whose columns line up; the first is text, the others are figures. */
export function markdownTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = columns.map((column, at) =>
    Math.max(3, column.length, ...rows.map((row) => (row[at] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => pad(cells[at] ?? '', width, at)).join(' | ')} |`;
  const rule = widths.map((width, at) =>
    at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [line(columns), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

function pad(cell: string, width: number, at: number): string {
  return at === 0 ? cell.padEnd(width) : cell.padStart(width);
}
