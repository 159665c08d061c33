/** The parts that the memory store is made of, each against the plain JavaScript that it stands for. */
import { describe, expect, it } from 'vitest';
import { Blobs } from '../../src/store/memory/blobs.js';
import { formatHex, formatId, parseHex, parseId } from '../../src/store/memory/hex.js';
import { Interned, POLICIES, TEXT } from '../../src/store/memory/interned.js';
import { mix32, RowIndex } from '../../src/store/memory/row-index.js';
import { SeqLog } from '../../src/store/memory/seq-log.js';
import { Slab } from '../../src/store/memory/slab.js';
import { TimeHeap } from '../../src/store/memory/time-heap.js';
import { bytes, idOf, policies } from './builders.js';
import { Random } from './random-units.js';

const SEED = Number(process.env.STORE_SEED ?? 7);

describe(`the memory store's tables (STORE_SEED=${SEED})`, () => {
  it('Slab gives each row once, all zeros, and freed rows first', () => {
    const slab = new Slab(24);
    const rows = Array.from({ length: 5000 }, () => slab.alloc());
    expect(new Set(rows).size).toBe(5000);
    expect(rows.includes(0)).toBe(false);
    for (const row of rows) slab.setDouble(row, 1, row / 2);
    expect(rows.every((row) => slab.double(row, 1) === row / 2)).toBe(true);
    const held = slab.bytes;
    for (const row of rows) slab.free(row);
    expect(slab.used).toBe(0);
    const again = Array.from({ length: 5000 }, () => slab.alloc());
    expect(new Set(again)).toEqual(new Set(rows));
    expect(again.every((row) => slab.double(row, 1) === 0 && slab.word(row, 0) === 0)).toBe(true);
    expect(slab.bytes).toBe(held);
  });

  it('Blobs keep bytes and texts of all lengths through random changes', () => {
    const random = new Random(SEED);
    const blobs = new Blobs();
    const held = new Map<number, Uint8Array | string>();
    const lengthOf = (): number => random.pick([0, 7, 8, 64, 65, 129, 500, 4097, 300_000]);
    for (let step = 0; step < 3000; step++) {
      const handles = [...held.keys()];
      const roll = random.below(10);
      const picked = handles.length > 0 ? random.pick(handles) : 0;
      if (roll < 4) {
        const content = bytes(lengthOf(), step);
        const replaced = typeof held.get(picked) === 'object' && random.chance(50) ? picked : 0;
        held.delete(replaced);
        held.set(blobs.set(replaced, content), content);
      } else if (roll < 7) {
        const text = random.pick(['a', 'é', '中', '\ud800']).repeat(Math.ceil(lengthOf() / 2));
        held.set(blobs.putText(text), text);
      } else if (picked !== 0) {
        blobs.free(picked);
        held.delete(picked);
      }
      if (held.size > 100)
        for (const handle of handles.slice(0, 50)) {
          blobs.free(handle);
          held.delete(handle);
        }
    }
    expect(held.size).toBeGreaterThan(10);
    for (const [handle, content] of held) {
      if (typeof content === 'string') {
        expect(blobs.getText(handle) === content).toBe(true);
        expect(blobs.isText(handle, content)).toBe(true);
        expect(blobs.isText(handle, `${content}x`)).toBe(false);
      } else {
        expect(Buffer.compare(blobs.get(handle) as Uint8Array, content)).toBe(0);
      }
    }
    expect(blobs.get(0)).toBeUndefined();
    expect(blobs.set(0, undefined)).toBe(0);
  });

  it('RowIndex finds what was put in and not what was taken out, with many alike hashes', () => {
    const random = new Random(SEED);
    const keys = new Map<number, number>();
    // Few home slots in one shard: long runs, through the end of the table and around.
    const hashOf = (key: number): number => (mix32(key % 40) & 0x0001_001f) >>> 0;
    let wanted = 0;
    const index = new RowIndex((row) => keys.get(row) === wanted);
    const find = (key: number): number => {
      wanted = key;
      return index.find(hashOf(key));
    };
    for (let step = 0; step < 20_000; step++) {
      const row = 1 + random.below(300);
      const key = keys.get(row);
      if (key === undefined) {
        keys.set(row, row * 1000 + random.below(1000));
        index.insert(hashOf(keys.get(row) as number), row);
      } else if (random.chance(50)) {
        index.remove(hashOf(key), row);
        keys.delete(row);
        expect(find(key)).toBe(0);
      } else {
        expect(find(key)).toBe(row);
      }
    }
    for (const [row, key] of keys) expect(find(key)).toBe(row);
    for (const [row, key] of [...keys]) {
      index.remove(hashOf(key), row);
      keys.delete(row);
    }
    expect(index.bytes).toBeLessThan(2000);
  });

  it('RowIndex spreads real ids over its shards', () => {
    const words = new Uint32Array(4);
    const rows = Array.from({ length: 30_000 }, (_, n) => idOf(n));
    const hashOf = (row: number): number => {
      parseId(rows[row - 1] as string, words);
      return mix32(words[3] ^ Math.imul(words[2], 31) ^ words[1]);
    };
    let wanted = 0;
    const index = new RowIndex((row) => row === wanted);
    for (let row = 1; row <= rows.length; row++) index.insert(hashOf(row), row);
    for (wanted = 1; wanted <= rows.length; wanted += 7)
      expect(index.find(hashOf(wanted))).toBe(wanted);
    expect(index.bytes / rows.length).toBeLessThan(30);
  });

  it('SeqLog keeps the order through holes, frees what is all holes, and restores', () => {
    const random = new Random(SEED);
    const log = new SeqLog();
    const held = new Map<number, number>();
    for (let row = 1; row <= 20_000; row++) held.set(log.append(row), row);
    const full = log.bytes;
    for (const seq of [...held.keys()]) {
      if (seq < 9000 || random.chance(50)) {
        log.remove(seq);
        held.delete(seq);
      }
    }
    expect(log.bytes).toBeLessThan(full);
    log.restore(17, 99);
    held.set(17, 99);
    const rowsInOrder = [...held].sort(([a], [b]) => a - b).map(([, row]) => row);
    const read: number[] = [];
    let from = 0;
    while (from >= 0) {
      from = log.scan(from, 100, (row) => {
        read.push(row);
        return read.length % 7 !== 0;
      });
    }
    expect(read).toEqual(rowsInOrder);
    for (const seq of held.keys()) log.remove(seq);
    expect(log.scan(0, 10, () => true)).toBeGreaterThanOrEqual(-1);
    const last = log.append(5);
    expect(last).toBe(20_000);
  });

  it('TimeHeap gives the earliest first', () => {
    const random = new Random(SEED);
    const heap = new TimeHeap();
    const model: number[] = [];
    for (let step = 0; step < 20_000; step++) {
      if (model.length === 0 || random.chance(60)) {
        const time = random.below(1000);
        heap.push(time, time + 1);
        model.push(time);
      } else {
        const earliest = Math.min(...model.slice(0, 1), heap.earliest as number);
        expect(heap.earliest).toBeLessThanOrEqual(earliest);
        const time = heap.pop() - 1;
        model.splice(model.indexOf(time), 1);
      }
    }
    model.sort((a, b) => a - b);
    const rest: number[] = [];
    while (heap.size > 0) rest.push(heap.pop() - 1);
    expect(rest).toEqual(model);
    expect(heap.earliest).toBeUndefined();
  });

  it('ids and definitions come back from their words; what is none is told apart', () => {
    const words = new Uint32Array(8);
    for (let n = 0; n < 200; n++) {
      expect(parseId(idOf(n), words)).toBe(true);
      expect(formatId(words, 0)).toBe(idOf(n));
    }
    const hex = '00ff10ef89abcdef7654321000000001';
    expect(parseHex(hex, words, 4)).toBe(true);
    expect(formatHex(words, 4)).toBe(hex);
    const id = idOf(1);
    const bad = [
      id.toUpperCase(),
      id.slice(1),
      `${id}0`,
      id.replace('-', '0'),
      id.replace('0', 'g'),
    ];
    for (const text of bad) expect(parseId(text, words)).toBe(false);
    expect(parseHex(`${hex.slice(1)}é`, words, 4)).toBe(false);
  });

  it('Interned keeps each value once, lets it go with its last reference, and spills past its bound', () => {
    const blobs = new Blobs();
    const interned = new Interned(blobs, POLICIES);
    const value = policies({ ttlMs: 5, maxBackoffMs: Number.POSITIVE_INFINITY });
    const first = interned.set(0, value);
    const second = interned.set(0, { ...value });
    expect(second).toBe(first);
    expect(interned.get(first)).toEqual(value);
    interned.release(first);
    expect(interned.size).toBe(1);
    expect(interned.set(second, undefined)).toBe(0);
    expect(interned.size).toBe(0);

    const texts = new Interned(blobs, TEXT);
    const handles = Array.from({ length: 10_000 }, (_, n) => texts.set(0, `text ${n}`));
    expect(texts.size).toBe(4096);
    for (const [n, handle] of handles.entries()) expect(texts.get(handle)).toBe(`text ${n}`);
    for (const handle of handles) texts.release(handle);
    expect(texts.size).toBe(0);
    const again = texts.set(0, 'text 9999');
    expect(texts.get(again)).toBe('text 9999');
  });
});
