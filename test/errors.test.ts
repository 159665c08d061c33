import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as errors from '../src/core/errors.js';
import * as api from '../src/index.js';

/** Arguments that some classes need besides a message and a cause. */
const EXTRA: Readonly<Record<string, object>> = {
  OverloadedError: { retryAfterMs: 5 },
  QuotaExceededError: { retryAfterMs: 5 },
  AbortedError: { why: 'cancelled' },
};
const CAUSE = new Error('the cause');

type AnyErrorClass = new (message: unknown, options: object) => errors.TickwheelError;

/** Every concrete class that errors.ts exports. */
const classes = Object.entries<unknown>(errors).filter(
  (entry): entry is [string, AnyErrorClass] =>
    typeof entry[1] === 'function' &&
    entry[1].prototype instanceof Error &&
    entry[1] !== errors.TickwheelError,
);

function make(name: string, Class: AnyErrorClass): errors.TickwheelError {
  const message = name === 'RetryAfterError' ? 1500 : 'what was wrong';
  return new Class(message, { ...EXTRA[name], cause: CAUSE });
}

/** `PayloadTooLargeError` → `TICKWHEEL_PAYLOAD_TOO_LARGE`. */
function codeFor(name: string): string {
  const words = name.replace(/Error$/, '').replace(/(?!^)([A-Z])/g, '_$1');
  return `TICKWHEEL_${words.toUpperCase()}`;
}

interface Row {
  readonly name: string;
  readonly code: string;
  readonly when: string;
  readonly remedy: string;
}

function tableRows(): Row[] {
  const text = readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8');
  const rows = text.matchAll(/^\| `(\w+)` \| `(\w+)` \| ([^|]+) \| ([^|]+) \|$/gm);
  return [...rows].map(([, name, code, when, remedy]) => {
    return { name: name!, code: code!, when: when!.trim(), remedy: remedy!.trim() };
  });
}

describe('the error table', () => {
  it('names each class of errors.ts once, in the order of the file, and no other', () => {
    expect(classes.length).toBeGreaterThan(20);
    expect(tableRows().map((row) => row.name)).toEqual(inFileOrder());
    expect(inFileOrder().toSorted()).toEqual(classes.map(([name]) => name).toSorted());
  });

  it('has the code that each class has, and says when it comes and what to do', () => {
    const codes = classes.map(([name, Class]) => [name, make(name, Class).code]);
    const told = new Map(tableRows().map((row) => [row.name, row.code]));
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(codes));
    for (const { name, when, remedy } of tableRows()) {
      expect(when.length, `${name}: when`).toBeGreaterThan(10);
      expect(remedy.length, `${name}: what to do`).toBeGreaterThan(10);
    }
  });
});

describe('every error class', () => {
  it.each(classes)('%s extends TickwheelError, is exported, and keeps its cause', (name, Class) => {
    const error = make(name, Class);
    expect(error).toBeInstanceOf(errors.TickwheelError);
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe(name);
    expect(error.code).toBe(codeFor(name));
    expect(error.cause).toBe(CAUSE);
    expect(error.message).not.toBe('');
    expect((api as Record<string, unknown>)[name]).toBe(Class);
  });

  it.each(classes)('%s has no cause when none was given', (name, Class) => {
    const message = name === 'RetryAfterError' ? 1500 : 'what was wrong';
    expect('cause' in new Class(message, { ...EXTRA[name] })).toBe(false);
  });

  it.each(classes)('%s can be made of a cause alone, or of nothing', (name, Class) => {
    const message = name === 'RetryAfterError' ? 1500 : 'what was wrong';
    const made = [
      new Class(message, { cause: CAUSE }),
      new (Class as new (message: unknown) => errors.TickwheelError)(message),
    ];
    for (const error of made) {
      if ('retryAfterMs' in error) expect(error.retryAfterMs).toBe(1000);
      if ('why' in error) expect(error.why).toBe('cancelled');
    }
    expect(made.map(({ cause }) => cause)).toEqual([CAUSE, undefined]);
  });

  it('has a code of its own', () => {
    const codes = classes.map(([name, Class]) => make(name, Class).code);
    expect(new Set(codes).size).toBe(classes.length);
  });
});

function inFileOrder(): string[] {
  const text = readFileSync(new URL('../src/core/errors.ts', import.meta.url), 'utf8');
  return [...text.matchAll(/^export class (\w+) extends TickwheelError/gm)].map((m) => m[1]!);
}
