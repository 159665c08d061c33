/** Values as stored bytes and back: the payload codec, and then the caller's own, if one was given. */
import { InvalidArgumentError, type StoredError } from './core/errors.js';
import { createPayloadCodec } from './execution/payload.js';
import type { PayloadCodec } from './execution/executor.js';
import type { StoredBytesCodec } from './options.js';

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

  decode = (bytes: Uint8Array | undefined): unknown =>
    bytes === undefined ? undefined : this.codec.decode(this.open(bytes) as Uint8Array);

  encodeError = (error: StoredError): Uint8Array => {
    try {
      return this.encode(error, 'error');
    } catch {
      // An enormous message or stack: keep what identifies it.
      const message = error.message.slice(0, 200);
      return this.encode({ name: error.name.slice(0, 100), message }, 'error');
    }
  };

  /** Encoded bytes as the store gets them. */
  seal = (bytes: Uint8Array | undefined): Uint8Array | undefined =>
    bytes === undefined || this.#caller === undefined
      ? bytes
      : bytesOf(this.#caller.encode(bytes), `payloadCodec '${this.#caller.id}' encode`);

  /** Stored bytes as the payload codec made them. */
  open = (bytes: Uint8Array | undefined): Uint8Array | undefined =>
    bytes === undefined || this.#caller === undefined
      ? bytes
      : bytesOf(this.#caller.decode(bytes), `payloadCodec '${this.#caller.id}' decode`);
}

function bytesOf(value: unknown, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new InvalidArgumentError(`${what} returned ${typeof value}; allowed: a Uint8Array`);
}
