/** A directory for as long as a run lasts, and no longer than the process: Ctrl-C leaves nothing behind. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const OPTIONS = { recursive: true, force: true } as const;

export interface OwnDirectory {
  readonly path: string;
  remove(): Promise<void>;
}

export async function makeOwnDirectory(): Promise<OwnDirectory> {
  const path = await mkdtemp(join(tmpdir(), 'tickwheel-load-'));
  const onExit = (): void => rmSync(path, OPTIONS);
  const onSignal = (signal: NodeJS.Signals): void => {
    forget();
    onExit();
    // What the signal does where nobody listens: ending the process, with the right exit code.
    process.kill(process.pid, signal);
  };
  const forget = (): void => {
    process.off('exit', onExit);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  process.on('exit', onExit);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    path,
    async remove() {
      await rm(path, OPTIONS);
      forget();
    },
  };
}
