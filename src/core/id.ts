/** Ids of tasks: UUIDv7 (RFC 9562), in the order of their creation. */
import { formatUuid } from './uuid.js';

export interface IdSource {
  /** A new id, greater as text than all before it from this source. About 300 ns. */
  next(): string;
}

export interface IdSourceOptions {
  /** In [0, 1). */
  readonly random: () => number;
  /** Wall clock, epoch ms. */
  readonly nowMs: () => number;
}

const UINT32 = 2 ** 32;

/**
 * Ids grow strictly, also when the wall clock stands still or goes back: then the last millisecond
 * is kept and a counter of 32 bits behind it grows (RFC 9562, 6.2, method 1). In a new millisecond
 * the counter starts at random in its lower half, so that it has room; when it is used up, the next
 * millisecond is begun early.
 */
export function createIdSource({ random, nowMs }: IdSourceOptions): IdSource {
  const words = new Uint32Array(4);
  let ms = -1;
  let counter = 0;
  const next = (): string => {
    const now = Math.floor(nowMs());
    if (now > ms) {
      ms = now;
      counter = Math.floor(random() * (UINT32 / 2));
    } else if (++counter === UINT32) {
      ms++;
      counter = 0;
    }
    // 48 bits of time | version 7 | counter, 12 bits ‖ variant 2 | counter, 20 bits | random, 42 bits
    words[0] = Math.floor(ms / 0x1_0000);
    words[1] = ((ms % 0x1_0000) << 16) | 0x7000 | (counter >>> 20);
    words[2] = 0x8000_0000 | ((counter & 0xf_ffff) << 10) | (random() * 0x400);
    words[3] = random() * UINT32;
    return formatUuid(words);
  };
  return { next };
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether the text is an id as `next` writes it: a UUIDv7 in lower case. */
export function isId(text: string): boolean {
  return ID.test(text);
}
