/**
 * Bytes and strings of any length outside the JavaScript heap: slabs of slots, one slab for each size class.
 *
 *   handle u32:  class 5 bits | slot 27 bits          0: none
 *   slot:        length u32 (top bit: wide text) | bytes …
 *
 * Strings are stored one byte a character when all are Latin-1, else two (UTF-16, so that lone surrogates
 * come back as they went in). What is larger than the largest class is kept as an array of its own.
 */
import { assert } from '../../core/assert.js';
import { Slots } from '../../core/slots.js';

const CAPACITIES: readonly number[] = [
  ...Array.from({ length: 16 }, (_, index) => (index + 1) * 8),
  ...[160, 192, 224, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384, 65536, 262144],
];
const CAPACITY_MAX = 262144;
/** Handles of this class are arrays of their own. */
const HUGE = 30;
/** Handles of this class are never given out here: interned values use them (interned.ts). */
export const FOREIGN = 31;

export const SLOT_BITS = 27;
export const SLOT_MASK = 2 ** SLOT_BITS - 1;
const HEADER_BYTES = 4;
const CHUNK_BYTES_MAX = 512 * 1024;
/** Of a slot, in Slots. */
const LINK_BYTES = 2;
const NOTHING = new ArrayBuffer(0);
const WIDE = 0x8000_0000;
const LENGTH_MASK = 0x7fff_ffff;

/** The slots of one size class. */
class SizeClass {
  readonly chunks: Buffer[] = [];
  readonly words: Uint32Array[] = [];
  readonly capacity: number;
  readonly slotBytes: number;
  /** Slots in a chunk: 2 to this power. */
  readonly chunkBits: number;
  readonly #slots: Slots;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.slotBytes = capacity + HEADER_BYTES;
    this.chunkBits = Math.max(0, Math.floor(Math.log2(CHUNK_BYTES_MAX / this.slotBytes)));
    const owner = {
      add: (chunk: number) =>
        this.#set(chunk, new ArrayBuffer(this.slotBytes * 2 ** this.chunkBits)),
      drop: (chunk: number) => this.#set(chunk, NOTHING),
    };
    this.#slots = new Slots(owner, this.chunkBits, SLOT_MASK + 1, 1);
  }

  get bytes(): number {
    return this.#slots.chunks * (this.slotBytes + LINK_BYTES) * 2 ** this.chunkBits;
  }

  alloc(): number {
    return this.#slots.alloc();
  }

  free(slot: number): void {
    this.#slots.free(slot);
  }

  #set(chunk: number, buffer: ArrayBuffer): void {
    this.chunks[chunk] = Buffer.from(buffer);
    this.words[chunk] = new Uint32Array(buffer);
  }

  /** Where the slot begins in its chunk. */
  offset(slot: number): number {
    return (slot & ((1 << this.chunkBits) - 1)) * this.slotBytes;
  }
}

export class Blobs {
  readonly #classes = CAPACITIES.map((capacity) => new SizeClass(capacity));
  readonly #huge: (Uint8Array | string | undefined)[] = [undefined];
  readonly #hugeFree: number[] = [];
  #hugeBytes = 0;

  /** Bytes of all buffers, in use or free. */
  get bytes(): number {
    let bytes = this.#hugeBytes;
    for (const { bytes: held } of this.#classes) bytes += held;
    return bytes;
  }

  /** Replaces what `handle` holds (0: nothing yet), in place where it fits; undefined frees it. */
  set(handle: number, bytes: Uint8Array | undefined): number {
    if (bytes === undefined) {
      this.free(handle);
      return 0;
    }
    if (handle !== 0) {
      const kind = handle >>> SLOT_BITS;
      if (kind === classOf(bytes.length) && kind !== HUGE) {
        this.#fill(kind, handle & SLOT_MASK, bytes);
        return handle;
      }
      this.free(handle);
    }
    return this.#put(bytes);
  }

  /** A copy; undefined for handle 0. */
  get(handle: number): Uint8Array | undefined {
    if (handle === 0) return undefined;
    const kind = handle >>> SLOT_BITS;
    const slot = handle & SLOT_MASK;
    if (kind === HUGE) return (this.#huge[slot] as Uint8Array).slice();
    const { words, chunks, chunkBits } = this.#classes[kind];
    const start = this.#classes[kind].offset(slot);
    const length = words[slot >>> chunkBits][start >>> 2];
    const copy = new Uint8Array(length);
    const source = chunks[slot >>> chunkBits];
    const from = start + HEADER_BYTES;
    // A call into the engine costs more than a short loop.
    if (length > 96) copy.set(source.subarray(from, from + length));
    else for (let i = 0; i < length; i++) copy[i] = source[from + i];
    return copy;
  }

  putText(text: string): number {
    const wide = isWide(text);
    const length = wide ? text.length * 2 : text.length;
    const kind = classOf(length);
    if (kind === HUGE) return this.#putHuge(text, length);
    const sized = this.#classes[kind];
    const slot = sized.alloc();
    const start = sized.offset(slot);
    const chunk = sized.chunks[slot >>> sized.chunkBits];
    const header = wide ? (length | WIDE) >>> 0 : length;
    sized.words[slot >>> sized.chunkBits][start >>> 2] = header;
    if (wide) chunk.write(text, start + HEADER_BYTES, 'utf16le');
    else writeLatin1(chunk, start + HEADER_BYTES, text);
    return ((kind << SLOT_BITS) | slot) >>> 0;
  }

  /** Undefined for handle 0. */
  getText(handle: number): string | undefined {
    if (handle === 0) return undefined;
    const kind = handle >>> SLOT_BITS;
    const slot = handle & SLOT_MASK;
    if (kind === HUGE) return this.#huge[slot] as string;
    const sized = this.#classes[kind];
    const start = sized.offset(slot);
    const header = sized.words[slot >>> sized.chunkBits][start >>> 2];
    const from = start + HEADER_BYTES;
    const to = from + (header & LENGTH_MASK);
    const encoding = (header & WIDE) === 0 ? 'latin1' : 'utf16le';
    return sized.chunks[slot >>> sized.chunkBits].toString(encoding, from, to);
  }

  /** Whether `handle` holds this text; makes no string. */
  isText(handle: number, text: string): boolean {
    if (handle === 0) return false;
    const kind = handle >>> SLOT_BITS;
    if (kind === HUGE) return this.#huge[handle & SLOT_MASK] === text;
    const slot = handle & SLOT_MASK;
    const sized = this.#classes[kind];
    const start = sized.offset(slot);
    const header = sized.words[slot >>> sized.chunkBits][start >>> 2];
    if ((header & WIDE) !== 0) return this.getText(handle) === text;
    if (header !== text.length) return false;
    const chunk = sized.chunks[slot >>> sized.chunkBits];
    for (let i = 0; i < header; i++) {
      if (chunk[start + HEADER_BYTES + i] !== text.charCodeAt(i)) return false;
    }
    return true;
  }

  free(handle: number): void {
    if (handle === 0) return;
    const kind = handle >>> SLOT_BITS;
    const slot = handle & SLOT_MASK;
    if (kind !== HUGE) {
      this.#classes[kind].free(slot);
      return;
    }
    this.#hugeBytes -= (this.#huge[slot] as Uint8Array | string).length;
    this.#huge[slot] = undefined;
    this.#hugeFree.push(slot);
  }

  #put(bytes: Uint8Array): number {
    const kind = classOf(bytes.length);
    if (kind === HUGE) return this.#putHuge(Uint8Array.from(bytes), bytes.length);
    const slot = this.#classes[kind].alloc();
    this.#fill(kind, slot, bytes);
    return ((kind << SLOT_BITS) | slot) >>> 0;
  }

  #fill(kind: number, slot: number, bytes: Uint8Array): void {
    const sized = this.#classes[kind];
    const start = sized.offset(slot);
    const length = bytes.length;
    sized.words[slot >>> sized.chunkBits][start >>> 2] = length;
    const chunk = sized.chunks[slot >>> sized.chunkBits];
    const to = start + HEADER_BYTES;
    if (length > 96) chunk.set(bytes, to);
    else for (let i = 0; i < length; i++) chunk[to + i] = bytes[i];
  }

  #putHuge(content: Uint8Array | string, lengthBytes: number): number {
    const slot = this.#hugeFree.pop() ?? this.#huge.length;
    this.#huge[slot] = content;
    this.#hugeBytes += content.length;
    assert(lengthBytes > CAPACITY_MAX, 'only what fits no class is kept by itself');
    return ((HUGE << SLOT_BITS) | slot) >>> 0;
  }
}

function classOf(length: number): number {
  if (length <= 128) return length === 0 ? 0 : (length - 1) >>> 3;
  if (length > CAPACITY_MAX) return HUGE;
  let kind = 16;
  while (CAPACITIES[kind] < length) kind += 1;
  return kind;
}

function isWide(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return true;
  return false;
}

function writeLatin1(chunk: Buffer, at: number, text: string): void {
  if (text.length > 96) chunk.write(text, at, 'latin1');
  else for (let i = 0; i < text.length; i++) chunk[at + i] = text.charCodeAt(i);
}
