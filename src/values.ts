/** Values as stored bytes and back: the payload codec, and then the caller's own, if one was given. */
import {
  InvalidArgumentError,
  PayloadNotSerializableError,
  StoreCorruptError,
  type StoredError,
  toStoredError,
} from './core/errors.js';
import type { PayloadCodec } from './execution/executor.js';
import { createPayloadCodec } from './execution/payload.js';
import type { StoredBytesCodec } from './options.js';

export interface Encoded {
  readonly bytes: Uint8Array;
  readonly value: unknown;
}

export class Values {
  /** What travels to handlers. */
  readonly codec: PayloadCodec;
  readonly #caller: StoredBytesCodec | undefined;

  constructor(maxPayloadBytes: number, caller: StoredBytesCodec | undefined) {
    this.codec = createPayloadCodec({ maxPayloadBytes });
    this.#caller = caller;
  }

  /** @throws PayloadNotSerializableError, PayloadTooLargeError */
  encode(value: unknown, what: string): Uint8Array {
    return this.seal(this.codec.encode(value, what)) as Uint8Array;
  }

  /** As `encode`, with the value that the bytes stand for: the caller may go on changing the one that it gave. */
  encodeAndCopy(value: unknown, what: string): Encoded {
    const bytes = this.codec.encode(value, what);
    const copy = this.codec.copy(value, bytes);
    return { bytes: this.seal(bytes) as Uint8Array, value: copy };
  }

  decode = (bytes: Uint8Array | undefined): unknown => {
    if (bytes === undefined) return undefined;
    return bytes.length === 0 ? LOST : this.codec.decode(this.open(bytes) as Uint8Array);
  };

  /** Never throws: an attempt must be able to end. */
  encodeError = (error: StoredError): Uint8Array => {
    // An enormous message or stack, or one that the caller's codec refuses: keep what identifies it.
    const short = { name: error.name.slice(0, 100), message: error.message.slice(0, 200) };
    for (const candidate of [error, short, LOST]) {
      try {
        return this.encode(candidate, 'error');
      } catch {}
    }
    return new Uint8Array(0);
  };

  /** Encoded bytes as the store gets them. @throws PayloadNotSerializableError */
  seal = (bytes: Uint8Array | undefined): Uint8Array | undefined =>
    bytes === undefined || this.#caller === undefined ? bytes : this.#sealed(this.#caller, bytes);

  #sealed(caller: StoredBytesCodec, bytes: Uint8Array): Uint8Array {
    let sealed: unknown;
    try {
      sealed = caller.encode(bytes);
    } catch (error) {
      const { message } = toStoredError(error);
      throw new PayloadNotSerializableError(
        `payloadCodec '${caller.id}' could not encode it: ${message}`,
        { cause: error },
      );
    }
    return bytesOf(sealed, `payloadCodec '${caller.id}' encode`);
  }

  /** Stored bytes as the payload codec made them. @throws StoreCorruptError */
  open = (bytes: Uint8Array | undefined): Uint8Array | undefined =>
    bytes === undefined || this.#caller === undefined ? bytes : this.#opened(this.#caller, bytes);

  #opened(caller: StoredBytesCodec, bytes: Uint8Array): Uint8Array {
    let opened: unknown;
    try {
      opened = caller.decode(bytes);
    } catch (error) {
      const { message } = toStoredError(error);
      throw new StoreCorruptError(
        `payloadCodec '${caller.id}' could not decode stored bytes: ${message}`,
        { cause: error },
      );
    }
    return bytesOf(opened, `payloadCodec '${caller.id}' decode`);
  }
}

/** Stands for an error that could not be stored; kept as no bytes at all when even this cannot. */
const LOST: StoredError = { name: 'Error', message: 'the error could not be stored' };

function bytesOf(value: unknown, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new InvalidArgumentError(`${what} returned ${typeof value}; allowed: a Uint8Array`);
}
