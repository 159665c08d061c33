import { readFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import type { LoadOptions } from './options.js';
import type { About } from './result.js';
import { bytes, count, ms } from './table.js';

/** What must be known to judge the figures, or to get them again. */
export function aboutRun(
  title: string,
  options: LoadOptions,
  startedAt: Date,
  command: string,
): About {
  const cores = availableParallelism();
  return [
    ['load', title],
    ['settings', settingsText(options)],
    ['seed', String(options.seed)],
    ['command', command],
    ['began', startedAt.toISOString()],
    ['machine', `${cores} × ${cpus()[0]?.model ?? 'unknown'}, ${bytes(totalmem())}`],
    ['system', `${platform()} ${release()} ${arch()}`],
    ['versions', `tickwheel ${packageVersion()}, Node.js ${process.version}`],
  ];
}

function settingsText(options: LoadOptions): string {
  const parts = [
    `${options.store} store`,
    `${options.threads} worker threads`,
    `due within ${ms(options.dueInMs)}`,
    `${options.payloadBytes} byte payloads`,
  ];
  if (options.pendingTasks > 0) parts.push(`${count(options.pendingTasks)} tasks stored first`);
  if (options.keys !== 'none') parts.push(`${options.keys} keys`);
  if (options.workMs > 0) parts.push(`handlers of ${ms(options.workMs)}`);
  return parts.join(', ');
}

/** From package.json, which lies two folders above this module's, in `src` and `dist` alike. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
