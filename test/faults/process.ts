/** A child process that its parent stops, lets go on, and kills. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/index.js';

/** It says nothing more, or does not stop, for so long: it hangs. On a busy machine a child takes half a minute to begin. */
const WATCHDOG_MS = 60_000;

export class Child {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #over: Promise<unknown>;
  #errors = '';

  constructor(module: string, args: readonly string[]) {
    const file = fileURLToPath(new URL(module, import.meta.url));
    this.#process = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#over = once(this.#process, 'exit');
    this.#process.stderr?.on('data', (bytes) => {
      this.#errors += bytes;
    });
    const lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** The next line that it says; undefined when it has ended. @throws when it hangs */
  async lineOrEnd(): Promise<string | undefined> {
    const over = new AbortController();
    const watchdog = systemClock()
      .sleep(WATCHDOG_MS, { signal: over.signal })
      .catch(() => {});
    const next = await Promise.race([this.#lines.next(), watchdog]);
    over.abort();
    if (next !== undefined) return next.done === true ? undefined : next.value;
    await this.kill();
    throw new Error(`the child hangs: ${this.#errors}`);
  }

  /** The next line that it says. @throws when it ends or hangs instead */
  async line(): Promise<string> {
    const line = await this.lineOrEnd();
    if (line !== undefined) return line;
    await this.#over;
    throw new Error(`the child ended: ${this.#errors}`);
  }

  /** Resolves once no thread of it runs any more. */
  async stop(): Promise<void> {
    this.#process.kill('SIGSTOP');
    const clock = systemClock();
    const untilMs = clock.now() + WATCHDOG_MS;
    while (!this.#isStopped()) {
      if (clock.now() > untilMs) throw new Error('the child does not stop');
      await clock.sleep(1);
    }
  }

  /** A thread that is in a flush stops when that has returned. */
  #isStopped(): boolean {
    const threads = `/proc/${this.#process.pid}/task`;
    return readdirSync(threads).every((thread) => {
      const stat = readFileSync(`${threads}/${thread}/stat`, 'latin1');
      return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
    });
  }

  goOn(): void {
    this.#process.kill('SIGCONT');
  }

  /** @throws when it had ended by itself */
  async kill(): Promise<void> {
    const { exitCode } = this.#process;
    if (exitCode !== null) throw new Error(`the child ended with ${exitCode}: ${this.#errors}`);
    this.#process.kill('SIGKILL');
    await this.#over;
  }
}
