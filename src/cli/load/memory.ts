import { readFileSync } from 'node:fs';

/** The most memory that this process was seen to hold, in bytes. */
export class MemoryPeaks {
  rssBytes = 0;
  /**
   * Anonymous pages alone: the map of a file-backed store is not among them. `null` where unknown.
   */
  rssAnonBytes: number | null = null;

  sample(): void {
    this.rssBytes = Math.max(this.rssBytes, process.memoryUsage.rss());
    const anonBytes = readRssAnonBytes();
    if (anonBytes !== undefined) this.rssAnonBytes = Math.max(this.rssAnonBytes ?? 0, anonBytes);
  }
}

/** Linux only: `RssAnon` of proc(5). */
function readRssAnonBytes(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return parseRssAnonBytes(readFileSync('/proc/self/status', 'latin1'));
  } catch {
    return undefined; // No /proc in this container.
  }
}

export function parseRssAnonBytes(status: string): number | undefined {
  const match = /^RssAnon:\s+(\d+) kB$/m.exec(status);
  return match === null ? undefined : Number(match[1]) * 1024;
}
