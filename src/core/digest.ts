/** Digests of texts. `crypto.hash` (Node 20.12 and later) takes half the time of a Hash object. */
import * as crypto from 'node:crypto';

type Encoding = 'hex' | 'binary';

export const digest: (algorithm: string, text: string, encoding: Encoding) => string =
  typeof crypto.hash === 'function'
    ? crypto.hash
    : (algorithm, text, encoding) => crypto.createHash(algorithm).update(text).digest(encoding);
