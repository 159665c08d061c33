import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AbortedError,
  PayloadNotSerializableError,
  PayloadTooLargeError,
  StoreCorruptError,
} from '../../src/core/errors.js';
import { canonical, createPayloadCodec, hashDefinition } from '../../src/execution/payload.js';

const codec = createPayloadCodec({ maxPayloadBytes: 256 * 1024 });
const seed = Number(process.env.TEST_SEED ?? 20260101);
const there = (value: unknown): unknown => codec.decode(codec.encode(value, 'payload').slice());

/** JSON-like values with everything else that the contract names, and strings of any code units. */
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, undefined, true, false, 0, -0, Number.NaN, Infinity, -Infinity),
    fc.double(),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.bigInt(),
    fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)), maxLength: 90 }),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array(),
    fc.int16Array(),
    fc.float64Array(),
    fc.bigInt64Array(),
    fc.uint8ClampedArray(),
    fc.uint8Array().map((bytes) => bytes.slice().buffer),
    fc.uint8Array({ minLength: 4 }).map((bytes) => new DataView(bytes.buffer, 1, 2)),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.string(), tie('value'), { maxKeys: 5 }),
    fc
      .array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 })
      .map((entries) => new Map(entries)),
    fc.array(tie('value'), { maxLength: 3 }).map((elements) => new Set(elements)),
    fc
      .tuple(fc.constantFrom(Error, TypeError, RangeError), fc.string(), tie('value'))
      .map(([Kind, message, cause]) => new Kind(message, { cause })),
  ),
})).value;

describe('the payload codec', () => {
  it('brings back every value that it accepts, deeply equal', () => {
    let refused = 0;
    fc.assert(
      fc.property(anything, (value) => {
        let bytes: Uint8Array;
        try {
          bytes = codec.encode(value, 'payload');
        } catch (error) {
          // Only fast-check's own `__proto__` keys are to be refused here.
          expect(error).toBeInstanceOf(PayloadNotSerializableError);
          expect(String(error)).toContain('__proto__');
          refused++;
          return;
        }
        expect(isDeepStrictEqual(codec.decode(bytes.slice()), withoutNull(value))).toBe(true);
      }),
      { seed, numRuns: 3000 },
    );
    expect(refused).toBeLessThan(300);
  });

  it.each([
    ['-0', -0],
    ['a Date before 1970', new Date(-1)],
    ['the last Date', new Date(8.64e15)],
    ['a Date with milliseconds', new Date(1_700_000_000_123)],
    ['a huge bigint', 12345678901234567890123456789012345678901234567890n ** 40n],
    ['a lone surrogate', 'a\ud800b'],
    ['a byte order mark before much text', `\ufeff${'x'.repeat(200)}`],
    ['a field named constructor', { constructor: 1, toJSON: 2, hasOwnProperty: 3 }],
    ['a field that is undefined', { a: undefined }],
    ['a Map with objects as keys', new Map([[{ id: 1 }, new Set([[1], [2]])]])],
    ['a regular expression', /a+b/giu],
    [
      'many fields',
      Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`f${i % 999}`, i])),
    ],
    ['errors with causes', new TypeError('outer', { cause: new Error('inner', { cause: 7 }) })],
    ['an aggregate error', new AggregateError([new Error('one'), new RangeError('two')], 'both')],
    ['an error of this library', new AbortedError('late', { why: 'timedOut' })],
    ['an error with a code', Object.assign(new Error('gone'), { code: 'ENOENT', errno: -2 })],
  ])('keeps %s', (_, value) => {
    const back = there(value);
    expect(isDeepStrictEqual(back, value)).toBe(true);
    expect(isDeepStrictEqual((there({ in: [value] }) as { in: unknown[] }).in[0], value)).toBe(
      true,
    );
  });

  it('keeps the stack, name and fields of an error of a class of the caller', () => {
    class QuotaError extends RangeError {
      readonly left = 3;
      override readonly name = 'QuotaError';
    }
    const error = new QuotaError('none left');
    const back = there(error) as QuotaError;
    expect(back).toBeInstanceOf(RangeError);
    expect([back.name, back.message, back.left]).toEqual(['QuotaError', 'none left', 3]);
    expect(back.stack).toBe(error.stack);
  });

  it('keeps an invalid Date', () => {
    expect((there([new Date(Number.NaN)]) as Date[])[0]?.getTime()).toBeNaN();
  });

  it('gives a Buffer back as a Uint8Array with a buffer of its own', () => {
    const back = there(Buffer.from('pooled')) as Uint8Array;
    expect(Object.getPrototypeOf(back)).toBe(Uint8Array.prototype);
    expect(back.buffer.byteLength).toBe(6);
    expect(Buffer.from(back).toString()).toBe('pooled');
  });

  it.each<[string, (bytes: Uint8Array) => unknown]>([
    ['alone', (bytes) => bytes],
    ['as a Buffer', (bytes) => Buffer.from(bytes)],
    ['as a part of a larger buffer', (bytes) => Uint8Array.of(9, 9, ...bytes, 9).subarray(2, -1)],
    ['in an object', (bytes) => ({ name: 'scan', pages: [bytes, Buffer.from(bytes)] })],
    ['with a constructor of their own', (bytes) => Object.assign(bytes, { constructor: Object })],
    ['none', () => new Uint8Array()],
  ])('brings back bytes, %s', (_, wrap) => {
    for (const length of [1, 63, 255, 256, 65_535, 65_536]) {
      const value = wrap(Uint8Array.from({ length }, (_, i) => i));
      const bytes = codec.encode(value, 'payload').slice();
      for (const back of [codec.decode(bytes), codec.copy(value, bytes)]) {
        expect(canonical(back)).toBe(canonical(value));
        const found = back instanceof Uint8Array ? [back] : (back as { pages: Uint8Array[] }).pages;
        for (const view of found) {
          expect(Object.getPrototypeOf(view)).toBe(Uint8Array.prototype);
          expect(view.buffer.byteLength).toBe(view.length);
        }
      }
    }
  });

  it('writes bytes as MessagePack does', () => {
    expect(codec.encode(Buffer.from('ab'), 'payload')[0]).toBe(0xc4);
    expect(codec.encode({ of: Uint8Array.of(1) }, 'payload')[0]).toBe(0x81);
  });

  it('refuses bytes that were detached, and those over the limit', () => {
    const detached = Uint8Array.of(1, 2);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    expect(() => codec.encode({ detached }, 'payload')).toThrow(PayloadNotSerializableError);
    const { encode } = createPayloadCodec({ maxPayloadBytes: 100 });
    expect(() => encode(new Uint8Array(101), 'payload')).toThrow(PayloadTooLargeError);
    expect(() => encode([new Uint8Array(99)], 'payload')).toThrow(PayloadTooLargeError);
    expect(encode(new Uint8Array(98), 'payload').length).toBe(100);
  });

  it('never lets a handler write into the stored bytes', () => {
    const bytes = codec.encode({ data: new Uint8Array([1, 2, 3]) }, 'payload');
    (codec.decode(bytes) as { data: Uint8Array }).data.fill(9);
    expect(codec.decode(bytes)).toEqual({ data: new Uint8Array([1, 2, 3]) });
  });

  it.each<[string, string, unknown]>([
    ['a function', 'payload.user.fn', { user: { fn: () => 1 } }],
    ['a symbol', 'payload[1]', [0, Symbol('s')]],
    ['a class instance', "payload['a b']".replaceAll("'", '"'), { 'a b': new URL('http://x/') }],
    ['a boxed primitive', 'payload.n', { n: Object(1) }],
    ['a subclass of Map', 'payload', new (class Cache extends Map {})()],
    ['a Promise', 'payload.p', { p: Promise.resolve() }],
    ['a WeakMap', 'payload', new WeakMap()],
    [
      'an accessor',
      'payload.x',
      Object.defineProperty({}, 'x', { get: () => 1, enumerable: true }),
    ],
    ['a sparse array', 'payload.list', { list: new Array(3) }],
    ['an array with fields', 'payload.match', { match: /a/.exec('a') }],
    ['a key that is a symbol', 'payload', { [Symbol('k')]: 1 }],
    ['a field named __proto__', 'payload.__proto__', JSON.parse('{"__proto__": 1}')],
    ['a Date with fields', 'payload', Object.assign(new Date(), { extra: 1 })],
    ['a function in a Map', 'payload.get("f")', new Map([['f', () => 1]])],
    ['a function as a cause', 'payload.cause', new Error('x', { cause: () => 1 })],
    ['shared memory', 'payload', new SharedArrayBuffer(8)],
  ])('refuses %s, naming the path', (_, path, value) => {
    expect(() => codec.encode(value, 'payload')).toThrow(PayloadNotSerializableError);
    expect(() => codec.encode(value, 'payload')).toThrow(`${path} is`);
  });

  it('refuses what cannot be read, by its path', () => {
    const unreadable = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('keep out');
        },
      },
    );
    for (const value of [{ a: [unreadable] }, { a: [new Map([[1, unreadable]])] }]) {
      expect(() => codec.encode(value, 'payload')).toThrow(PayloadNotSerializableError);
      expect(() => codec.encode(value, 'payload')).toThrow(/payload\.a\[0\].*cannot be read/);
    }
  });

  it('says of bytes that are none of its own that they are damaged', () => {
    for (const bytes of [Uint8Array.of(0xdf), Uint8Array.of(0xc1, 1, 2, 3)]) {
      expect(() => codec.decode(bytes)).toThrow(StoreCorruptError);
    }
  });

  it('refuses cycles and bottomless nesting', () => {
    const cycle: Record<string, unknown> = { name: 'x' };
    cycle.self = { back: cycle };
    expect(() => codec.encode(cycle, 'payload')).toThrow('payload.self.back is part of a cycle');
    const map = new Map<string, unknown>();
    map.set('me', map);
    expect(() => codec.encode(map, 'payload')).toThrow('part of a cycle');
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(() => codec.encode(deep, 'payload')).toThrow('nested more than');
    let fine: unknown = 1;
    for (let i = 0; i < 300; i++) fine = { in: fine };
    expect(isDeepStrictEqual(there(fine), fine)).toBe(true);
  });

  it('refuses what is larger than allowed, before it has been encoded at length', () => {
    const small = createPayloadCodec({ maxPayloadBytes: 100 });
    expect(small.decode(small.encode('x'.repeat(90), 'payload'))).toHaveLength(90);
    for (const large of [
      'x'.repeat(101),
      'é'.repeat(60),
      Array.from({ length: 101 }, () => 1),
      new Uint8Array(101),
      new Map([['k', 'v'.repeat(200)]]),
      new Error('e'.repeat(200)),
    ]) {
      expect(() => small.encode(large, 'result')).toThrow(PayloadTooLargeError);
      expect(() => small.encode(large, 'result')).toThrow('result takes');
    }
    // 2³⁰ leaves by way of shared references: refused after as many steps as there may be bytes.
    let shared: unknown = [1];
    for (let i = 0; i < 30; i++) shared = [shared, shared];
    expect(() => codec.encode(shared, 'payload')).toThrow(PayloadTooLargeError);
    expect(() => codec.encode(new Set([shared]), 'payload')).toThrow(PayloadTooLargeError);
  });

  it('does not change what it is given', () => {
    const error = new Error('kept');
    const value = Object.freeze({ list: Object.freeze([error]), when: new Date(0) });
    codec.encode(value, 'payload');
    expect(value.list[0]).toBe(error);
  });
});

describe('the canonical form', () => {
  it('is the same for any order of keys, and for what comes back', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const shuffled = reversed(value);
        expect(canonical(shuffled)).toBe(canonical(value));
        let bytes: Uint8Array;
        try {
          bytes = codec.encode(value, 'payload');
        } catch {
          return;
        }
        expect(canonical(codec.decode(bytes))).toBe(canonical(value));
      }),
      { seed, numRuns: 1000 },
    );
  });

  it('tells different values apart', () => {
    const values = [
      0, -0, '0', 0n, null, 'null', undefined, {}, [], { a: undefined }, { a: null }, [undefined],
      new Date(0), '1970', new Map(), new Set(), new Map([['a', 1]]), { a: 1 }, new Uint8Array(1),
      new Int8Array(1), new ArrayBuffer(1), /a/, /a/g, new Error('a'), new TypeError('a'),
      new Error('a', { cause: 1 }), [1, 23], [12, 3], ['a', 'b'], ['a,b'], { 'a:1,b': 2 }, true,
      { a: 1, b: 2 }, Number.NaN, 'NaN', [[]], [[], []], '\ud800', '\\ud800',
    ]; // biome-ignore format: a table
    expect(new Set(values.map(canonical)).size).toBe(values.length);
  });

  it('makes a hash of 128 bits of handler, payload and schedule', () => {
    const hash = hashDefinition('send', { a: 1, b: [2] }, 'once');
    expect(hash).toMatch(/^[0-9a-f]{32}$/);
    expect(hashDefinition('send', { b: [2], a: 1 }, 'once')).toBe(hash);
    expect(hashDefinition('send2', { a: 1, b: [2] }, 'once')).not.toBe(hash);
    expect(hashDefinition('send', { a: 1, b: [3] }, 'once')).not.toBe(hash);
    expect(hashDefinition('send', { a: 1, b: [2] }, 'cron')).not.toBe(hash);
  });

  it('refuses what has no value', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => canonical(cycle)).toThrow(PayloadNotSerializableError);
    expect(() => canonical(() => 1)).toThrow(PayloadNotSerializableError);
  });
});

/** fast-check's dictionaries may lack a prototype; they come back as plain objects. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (value instanceof Map) {
    return new Map([...value].map(([k, v]) => [withoutNull(k), withoutNull(v)]));
  }
  if (value instanceof Set) return new Set([...value].map(withoutNull));
  if (value instanceof Error) {
    const cause = withoutNull(value.cause);
    Object.defineProperty(value, 'cause', { value: cause, configurable: true, writable: true });
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withoutNull(v)]));
}

/** The same value with the keys of its objects the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value instanceof Map) {
    return new Map([...value].reverse().map(([k, v]) => [reversed(k), reversed(v)]));
  }
  if (value instanceof Set) return new Set([...value].reverse().map(reversed));
  if (typeof value !== 'object' || value === null) return value;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([k, v]) => [k, reversed(v)]));
}
