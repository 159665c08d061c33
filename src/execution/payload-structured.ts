/**
 * The careful half of the payload codec: V8's structured form for what MessagePack would not bring back equal.
 * The value is copied first, so that whatever is refused is named by its path, views carry no more than their own
 * bytes, and errors, of which V8 drops the code and other fields, become plain data:
 *
 *   [copy, errors]      in the copy a boxed number (never a value of the caller's) stands for an error
 */
import { types } from 'node:util';
import { Deserializer, Serializer } from 'node:v8';
import { PayloadNotSerializableError, PayloadTooLargeError } from '../core/errors.js';
import { type ErrorFields, fieldsOfError, reviveError } from './payload-error.js';

/** The first byte of the structured form. */
export const STRUCTURED = 0xc1;
/** Levels of nesting. Far below what overflows the stack of a thread. */
const DEPTH_MAX = 500;

/** @throws PayloadNotSerializableError, PayloadTooLargeError */
export function encodeStructured(value: unknown, what: string, maxBytes: number): Uint8Array {
  const copier = new Copier(what, maxBytes);
  const copy = copier.copy(value);
  const serializer = new Serializer();
  serializer.writeRawBytes(Uint8Array.of(STRUCTURED));
  serializer.writeHeader();
  serializer.writeValue([copy, copier.errors]);
  return serializer.releaseBuffer();
}

export function decodeStructured(bytes: Uint8Array): unknown {
  const deserializer = new Deserializer(bytes.subarray(1));
  deserializer.readHeader();
  const [value, errors] = deserializer.readValue() as [unknown, ErrorFields[]];
  return errors.length === 0 ? value : new Reviver(errors).revive(value);
}

type Holder = Record<string, unknown>;

/** Copies a value into what V8 brings back equal, or refuses it. */
class Copier {
  readonly errors: ErrorFields[] = [];
  readonly #what: string;
  readonly #maxBytes: number;
  #bytesLeft: number;
  /** Where the walk is, as written after `what`. */
  readonly #path: string[] = [];
  readonly #ancestors = new Set<object>();

  constructor(what: string, maxBytes: number) {
    this.#what = what;
    this.#maxBytes = maxBytes;
    this.#bytesLeft = maxBytes;
  }

  copy(value: unknown): unknown {
    this.#spend(1);
    switch (typeof value) {
      case 'function':
      case 'symbol':
        return this.#refuse(`a ${typeof value}`);
      case 'string':
        this.#spend(value.length);
        return value;
      case 'object':
        return value === null ? null : this.#guarded(value);
      default:
        return value;
    }
  }

  #spend(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft >= 0) return;
    throw new PayloadTooLargeError(
      `${this.#what} takes more than ${this.#maxBytes} bytes; allowed: ${this.#maxBytes} (limits.maxPayloadBytes)`,
    );
  }

  #refuse(found: string, cause?: unknown): never {
    throw new PayloadNotSerializableError(
      `${this.#what}${this.#path.join('')} is ${found}, which would not come back equal; allowed: plain objects, arrays, primitives, Date, RegExp, Map, Set, ArrayBuffer, typed arrays, DataView and errors`,
      { cause },
    );
  }

  #at(step: string, value: unknown): unknown {
    this.#path.push(step);
    const copied = this.copy(value);
    this.#path.pop();
    return copied;
  }

  #guarded(value: object): unknown {
    if (this.#ancestors.has(value)) this.#refuse('part of a cycle');
    if (this.#ancestors.size >= DEPTH_MAX) this.#refuse(`nested more than ${DEPTH_MAX} deep`);
    this.#ancestors.add(value);
    try {
      return this.#copyObject(value);
    } catch (error) {
      const known =
        error instanceof PayloadNotSerializableError || error instanceof PayloadTooLargeError;
      // A proxy's trap, or a detached buffer.
      return known ? thrown(error) : this.#refuse('an object that cannot be read', error);
    } finally {
      this.#ancestors.delete(value);
    }
  }

  #copyObject(value: object): unknown {
    const prototype = Object.getPrototypeOf(value);
    if (Array.isArray(value)) return this.#copyArray(value, prototype);
    if (prototype === null || isObjectPrototype(prototype)) return this.#copyFields(value);
    if (types.isNativeError(value) || value instanceof Error) return this.#copyError(value);
    if (!isBuiltIn(prototype) && !Buffer.isBuffer(value)) return this.#refuseInstance(prototype);
    if (ArrayBuffer.isView(value)) return this.#copyView(value);
    if (Object.keys(value).length > 0 || Object.getOwnPropertySymbols(value).length > 0) {
      return this.#refuse('a built-in object with further properties');
    }
    if (types.isDate(value)) return new Date(value.getTime());
    if (types.isMap(value)) return this.#copyMap(value);
    if (types.isSet(value)) return this.#copySet(value);
    if (types.isArrayBuffer(value)) {
      this.#spend(value.byteLength);
      return value.slice(0);
    }
    if (types.isRegExp(value) && value.lastIndex === 0) {
      return new RegExp(value.source, value.flags);
    }
    return this.#refuseInstance(prototype);
  }

  #refuseInstance(prototype: object): never {
    const maker: unknown = prototype.constructor;
    const name = typeof maker === 'function' ? maker.name : '';
    return this.#refuse(name === '' ? 'an instance of a class' : `an instance of ${name}`);
  }

  #copyArray(value: readonly unknown[], prototype: object): unknown {
    if (!isBuiltIn(prototype)) return this.#refuseInstance(prototype);
    this.#spend(value.length);
    const names = Reflect.ownKeys(value);
    // All own keys but `length`, which comes after the indices.
    if (
      names.length - 1 !== value.length ||
      (value.length > 0 && names[value.length] !== 'length')
    ) {
      const extra = names.length - 1 > value.length;
      return this.#refuse(extra ? 'an array with further properties' : 'a sparse array');
    }
    const copy = new Array<unknown>(value.length);
    for (let i = 0; i < value.length; i++) {
      copy[i] = this.#at(`[${i}]`, this.#plainField(value, String(i), `[${i}]`));
    }
    return copy;
  }

  /** Own enumerable fields. */
  #copyFields(value: object): Holder {
    const copy: Holder = {};
    for (const name of Reflect.ownKeys(value)) {
      if (typeof name === 'symbol') return this.#refuse('an object with a symbol as a key');
      if (!Object.prototype.propertyIsEnumerable.call(value, name)) continue;
      this.#spend(name.length);
      const step = stepOf(name);
      if (name === '__proto__') {
        this.#path.push(step);
        return this.#refuse('a field named __proto__');
      }
      copy[name] = this.#at(step, this.#plainField(value, name, step));
    }
    return copy;
  }

  #plainField(value: object, name: string, step: string): unknown {
    const field = Object.getOwnPropertyDescriptor(value, name);
    if (field === undefined || 'value' in field) return field?.value;
    this.#path.push(step);
    return this.#refuse('an accessor');
  }

  #copyMap(value: ReadonlyMap<unknown, unknown>): Map<unknown, unknown> {
    const copy = new Map<unknown, unknown>();
    let i = 0;
    for (const [key, element] of value) {
      const step = typeof key === 'string' ? `.get(${JSON.stringify(key)})` : `.values()[${i}]`;
      copy.set(this.#at(`.keys()[${i}]`, key), this.#at(step, element));
      i++;
    }
    return copy;
  }

  #copySet(value: ReadonlySet<unknown>): Set<unknown> {
    const copy = new Set<unknown>();
    let i = 0;
    for (const element of value) copy.add(this.#at(`.values()[${i++}]`, element));
    return copy;
  }

  /** Only the bytes that the view shows: its buffer may be a pool shared with others. */
  #copyView(value: ArrayBufferView): ArrayBufferView {
    this.#spend(value.byteLength);
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
    if (value instanceof DataView || types.isDataView(value)) return new DataView(bytes.buffer);
    if (types.isUint8Array(value)) return bytes;
    const View = value.constructor as new (buffer: ArrayBufferLike) => ArrayBufferView;
    return new View(bytes.buffer);
  }

  #copyError(value: Error): unknown {
    const fields = fieldsOfError(value);
    this.#spend(fields.name.length + fields.message.length + (fields.stack?.length ?? 0));
    const copied: ErrorFields = {
      ...fields,
      ...('cause' in fields ? { cause: this.#at('.cause', fields.cause) } : {}),
      ...('errors' in fields ? { errors: this.#at('.errors', fields.errors) } : {}),
      own: this.#copyFields(value),
    };
    // A box, which no value of a caller's can be: those are refused.
    return new Number(this.errors.push(copied) - 1);
  }
}

function thrown(error: unknown): never {
  throw error;
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

function stepOf(name: string): string {
  return IDENTIFIER.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

/** `Object.prototype`, also that of another realm. */
function isObjectPrototype(prototype: object): boolean {
  if (prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && isBuiltIn(prototype);
}

/** The prototype of a class of the language itself, not of one that extends it. */
function isBuiltIn(prototype: object): boolean {
  const own = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value as unknown;
  if (typeof own !== 'function') return false;
  return Function.prototype.toString.call(own).endsWith('{ [native code] }');
}

/** Puts errors back in the place of their boxes, in place: the value was just read and is nobody else's. */
class Reviver {
  readonly #errors: readonly ErrorFields[];

  constructor(errors: readonly ErrorFields[]) {
    this.#errors = errors;
  }

  revive(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (types.isNumberObject(value)) return this.#reviveError(this.#errors[Number(value)]!);
    if (value instanceof Map) {
      const entries = [...value];
      value.clear();
      for (const [key, element] of entries) value.set(this.revive(key), this.revive(element));
    } else if (value instanceof Set) {
      const elements = [...value];
      value.clear();
      for (const element of elements) value.add(this.revive(element));
    } else if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
      const holder = value as Holder;
      for (const name of Object.keys(holder)) holder[name] = this.revive(holder[name]);
    }
    return value;
  }

  #reviveError(fields: ErrorFields): Error {
    return reviveError({
      ...fields,
      ...('cause' in fields ? { cause: this.revive(fields.cause) } : {}),
      ...('errors' in fields ? { errors: this.revive(fields.errors) } : {}),
      own: this.revive(fields.own) as Holder,
    });
  }
}
