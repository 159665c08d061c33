/**
 * Writing and reading the stored bytes. A commit is encoded into arenas, one value behind the other; a value is
 * handed to lmdb-js as a place in its arena, never as a Buffer of its own. An arena is not touched again
 * before its commit is over: lmdb-js reads it on another thread.
 *
 *   varint   whole numbers from 0 to 2⁵³, 7 bits a byte, low bits first
 *   f64      little endian
 *   time     varint of its distance from another, 0, −1, 1, −2 … as 1, 2, 3, 4 …; 0 and an f64 where that is no whole number
 *   text     varint of the UTF-8 length, then the bytes
 */
const ARENA_BYTES = 256 * 1024;
/** Behind each value: room for its checksum (seal.ts). */
export const SEAL_BYTES = 4;
const WORD_BYTES = 4;
const TWO_7 = 128;
const TWO_32 = 2 ** 32;
const DISTANCE_MAX = 2 ** 51;

/** What lmdb-js takes a value from: the bytes from `start` to `end` of its memory. */
export interface Arena extends Buffer {
  start: number;
  end: number;
}

function newArena(bytes: number): Arena {
  // Of its own memory: lmdb-js counts from the beginning of it.
  return Object.assign(Buffer.allocUnsafeSlow(bytes), { start: 0, end: 0 });
}

const f64 = new Float64Array(1);
const f64Bytes = new Uint8Array(f64.buffer);

export class Writer {
  #arena: Arena = newArena(ARENA_BYTES);
  #at = 0;
  #start = 0;
  /** Bytes of all finished values. */
  written = 0;
  /** Arenas given away with the commit at hand. */
  #used: Arena[] = [];
  #free: Arena[] = [];
  readonly #reuses: boolean;

  /** @param reuses false: arenas are not given away with each commit, but live as long as somebody has them */
  constructor(reuses = true) {
    this.#reuses = reuses;
  }

  /** Begins a value of at most that many bytes, at a whole word. */
  begin(bytesMax: number): void {
    this.align();
    const max = bytesMax + SEAL_BYTES;
    if (this.#at + max > this.#arena.length) {
      if (this.#reuses) this.#used.push(this.#arena);
      this.#arena = max > ARENA_BYTES ? newArena(max) : this.#take();
      this.#at = 0;
    }
    this.#start = this.#at;
  }

  /** The value that was begun, as a place in its arena; valid until the next `end`. Its checksum has room behind it. */
  end(): Arena {
    const arena = this.endAt(this.size);
    this.#at += SEAL_BYTES;
    return arena;
  }

  /** Of the first `size` bytes, which have no room for a checksum: those behind them begin the next value. */
  endAt(size: number): Arena {
    const arena = this.#arena;
    arena.start = this.#start;
    this.#start += size;
    arena.end = this.#start;
    this.written += size;
    return arena;
  }

  get arena(): Arena {
    return this.#arena;
  }

  /** Where in its arena it writes. */
  get at(): number {
    return this.#at;
  }

  /** Bytes of the value at hand. */
  get size(): number {
    return this.#at - this.#start;
  }

  hasRoomFor(bytes: number): boolean {
    return this.#at + bytes <= this.#arena.length;
  }

  u32(value: number): void {
    this.u32At(this.#at, value);
    this.#at += 4;
  }

  /** On to a whole word. */
  align(): void {
    this.#at = wholeWords(this.#at);
  }

  u32At(at: number, value: number): void {
    this.#arena.writeUInt32LE(value, at);
  }

  /** What the finished commit was written in; to be given back when the commit is over. */
  takeArenas(): readonly Arena[] {
    const used = this.#used;
    used.push(this.#arena);
    this.#used = [];
    this.#arena = this.#take();
    this.#at = 0;
    return used;
  }

  giveBack(arenas: readonly Arena[]): void {
    for (const arena of arenas) {
      if (arena.length === ARENA_BYTES && this.#free.length < 16) this.#free.push(arena);
    }
  }

  #take(): Arena {
    return this.#free.pop() ?? newArena(ARENA_BYTES);
  }

  byte(value: number): void {
    this.#arena[this.#at++] = value;
  }

  varint(value: number): void {
    let left = value;
    while (left >= TWO_32) {
      this.#arena[this.#at++] = (left % TWO_7) | TWO_7;
      left = Math.floor(left / TWO_7);
    }
    left >>>= 0;
    while (left >= TWO_7) {
      this.#arena[this.#at++] = (left & 127) | TWO_7;
      left >>>= 7;
    }
    this.#arena[this.#at++] = left;
  }

  number(value: number): void {
    f64[0] = value;
    const arena = this.#arena;
    const at = this.#at;
    for (let i = 0; i < 8; i++) arena[at + i] = f64Bytes[i];
    this.#at = at + 8;
  }

  /** Whole numbers as their distance from `base`, the near ones in few bytes; any other number in nine. */
  time(value: number, base: number): void {
    const distance = value - base;
    if (Math.abs(distance) < DISTANCE_MAX && base + distance === value && distance % 1 === 0) {
      this.varint(distance < 0 ? -2 * distance : 2 * distance + 1);
    } else {
      this.byte(0);
      this.number(value);
    }
  }

  text(value: string): void {
    const { length } = value;
    const arena = this.#arena;
    if (length < TWO_7) {
      // Most are short and ASCII; a call into Buffer costs more than the loop.
      let at = this.#at + 1;
      let i = 0;
      for (; i < length; i++) {
        const code = value.charCodeAt(i);
        if (code >= TWO_7) break;
        arena[at++] = code;
      }
      if (i === length) {
        arena[this.#at] = length;
        this.#at = at;
        return;
      }
    }
    const bytes = Buffer.byteLength(value);
    this.varint(bytes);
    this.#at += arena.write(value, this.#at, 'utf8');
  }

  bytes(value: Uint8Array): void {
    this.varint(value.length);
    this.raw(value, value.length);
  }

  raw(value: Uint8Array, length: number): void {
    const arena = this.#arena;
    const at = this.#at;
    if (length > 32) arena.set(length === value.length ? value : value.subarray(0, length), at);
    else for (let i = 0; i < length; i++) arena[at + i] = value[i];
    this.#at = at + length;
  }
}

export function wholeWords(bytes: number): number {
  return Math.ceil(bytes / WORD_BYTES) * WORD_BYTES;
}

/** Bytes that a text takes at most, with its length. */
export function textMax(value: string | undefined): number {
  return value === undefined ? 0 : value.length * 3 + 5;
}

export function bytesMax(value: Uint8Array | undefined): number {
  return value === undefined ? 0 : value.length + 5;
}

/** Stored bytes are not what was written. */
export class MalformedError extends Error {}

export class Reader {
  #from: Uint8Array;
  at: number;
  #end: number;

  constructor(from: Uint8Array, at = 0, end = from.length) {
    this.#from = from;
    this.at = at;
    this.#end = end;
  }

  reset(from: Uint8Array, at: number, end: number): void {
    this.#from = from;
    this.at = at;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end;
  }

  byte(): number {
    if (this.at >= this.#end) throw new MalformedError('a stored value is cut short');
    return this.#from[this.at++];
  }

  varint(): number {
    let value = this.byte();
    if (value < TWO_7) return value;
    value -= TWO_7;
    let factor = TWO_7;
    for (;;) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < TWO_7) return value;
      factor *= TWO_7;
      if (factor > 2 ** 56) throw new MalformedError('a stored number has no end');
    }
  }

  u32(): number {
    this.#take(4);
    const from = this.#from;
    const at = this.at - 4;
    return (from[at] | (from[at + 1] << 8) | (from[at + 2] << 16) | (from[at + 3] << 24)) >>> 0;
  }

  skip(length: number): void {
    this.#take(length);
  }

  number(): number {
    this.#take(8);
    for (let i = 0; i < 8; i++) f64Bytes[i] = this.#from[this.at - 8 + i];
    return f64[0];
  }

  time(base: number): number {
    const code = this.varint();
    if (code === 0) return this.number();
    return base + (code % 2 === 0 ? -code / 2 : (code - 1) / 2);
  }

  text(): string {
    const length = this.varint();
    this.#take(length);
    const from = this.at - length;
    if (length < 24) {
      let text = '';
      let i = 0;
      for (; i < length; i++) {
        const code = this.#from[from + i];
        if (code >= TWO_7) break;
        text += String.fromCharCode(code);
      }
      if (i === length) return text;
    }
    return Buffer.prototype.utf8Slice.call(this.#from, from, this.at);
  }

  /** A copy. */
  bytes(): Uint8Array {
    return this.raw(this.varint());
  }

  raw(length: number): Uint8Array {
    this.#take(length);
    // Not `slice`, which makes a Buffer of a Buffer.
    const copy = new Uint8Array(length);
    const from = this.at - length;
    if (length > 64) copy.set(this.#from.subarray(from, this.at));
    else for (let i = 0; i < length; i++) copy[i] = this.#from[from + i];
    return copy;
  }

  /** Reads into `target` from its beginning. */
  into(target: Uint8Array, length: number): void {
    this.#take(length);
    for (let i = 0; i < length; i++) target[i] = this.#from[this.at - length + i];
  }

  #take(length: number): void {
    if (this.at + length > this.#end) throw new MalformedError('a stored value is cut short');
    this.at += length;
  }
}
