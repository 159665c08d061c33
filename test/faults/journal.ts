/**
 * What a process tells of itself while it may be killed at any instant: one line for each thing, appended by a write of
 * its own, so that the kernel has it before the next thing happens. It survives the process, not the machine.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';

export type Line =
  /** A call was about to be made. */
  | { readonly kind: 'asking'; readonly key?: string }
  /** A caller's promise resolved: it is durable. */
  | { readonly kind: 'told'; readonly tasks: readonly Told[] }
  /** `cancel` resolved with true. */
  | { readonly kind: 'cancelled'; readonly taskId: string }
  | Entered
  | {
      readonly kind: 'left';
      readonly occurrenceId: string;
      readonly token: number;
      readonly ok: boolean;
    };

export interface Told {
  readonly id: string;
  readonly key?: string | undefined;
  readonly created: boolean;
}

export interface Entered {
  readonly kind: 'entered';
  readonly taskId: string;
  readonly occurrenceId: string;
  readonly attempt: number;
  readonly token: number;
  /** Epoch ms: when it was allowed to start, by the scheduler and by its caller, and when it did. */
  readonly dueAt: number;
  readonly notBeforeMs: number;
  readonly at: number;
}

export class Journal {
  readonly #fd: number;

  constructor(file: string) {
    this.#fd = openSync(file, 'a');
  }

  readonly note = (line: Line): void => {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
  };

  close(): void {
    closeSync(this.#fd);
  }
}

/** In the order written. A last line that was cut off by the kill was not written. */
export function readJournal(file: string): Line[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  lines.pop();
  return lines.map((line) => JSON.parse(line) as Line);
}
