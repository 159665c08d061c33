import type { Writer } from '../bytes.js';

/** The commit at hand. */
export interface CommitContext {
  /** Counts commits over all openings. */
  readonly number: number;
  /** All up to this one are visible. */
  readonly visible: number;
  readonly nowMs: number;
  readonly writer: Writer;
}
