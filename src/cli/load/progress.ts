/**
 * Where a line of progress goes: rewritten in place on a terminal, else a new line every few
 * seconds.
 */
export interface ProgressLine {
  show(text: string, monotonicMs: number): void;
  end(): void;
}

/** The part of a stream that is used. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const PLAIN_EVERY_MS = 5000;
const CLEAR_LINE = '\r\u001b[2K';

export function progressLine(stream: ProgressStream): ProgressLine {
  return stream.isTTY ? rewrittenLine(stream) : plainLines(stream);
}

function rewrittenLine(stream: ProgressStream): ProgressLine {
  return {
    show(text) {
      // A line that wraps could not be rewritten.
      stream.write(CLEAR_LINE + text.slice(0, (stream.columns ?? 80) - 1));
    },
    end() {
      stream.write(CLEAR_LINE);
    },
  };
}

function plainLines(stream: ProgressStream): ProgressLine {
  let lastMs = Number.NEGATIVE_INFINITY;
  return {
    show(text, monotonicMs) {
      if (monotonicMs - lastMs < PLAIN_EVERY_MS) return;
      lastMs = monotonicMs;
      stream.write(`${text}\n`);
    },
    end() {},
  };
}
