/**
 * The offsets of a time zone, as pieces of constant offset, found by probing `Intl`.
 *
 *   instant ──────┤ piece ├──────┤ piece ├─────→       wall = instant + offset
 *
 * Time is cut into chunks of about 398 days. A chunk is probed once, every three days, and each change of offset
 * that the probes enclose is bisected to its millisecond. A piece never spans two chunks, so two
 * neighbours may have the same offset. The shortest time between two changes in the IANA database since
 * 1960 is 7 days (America/Recife, 2000), so probes three days apart miss none.
 */
import { assert } from './assert.js';
import { LruCache } from './lru.js';

/** `[startAt, endAt)` with one offset. */
export interface ZonePiece {
  readonly startAt: number;
  readonly endAt: number;
  /** Wall time minus UTC, ms. */
  readonly offsetMs: number;
  /** The offset just before `startAt`. */
  readonly offsetBeforeMs: number;
}

export interface Zone {
  /** The piece that holds an instant between the years 1000 and 9000. 1 µs, 0.2 ms for a chunk not yet probed. */
  pieceAt(instantMs: number): ZonePiece;
}

const CHUNK_MS = 2 ** 35;
const PROBE_MS = 3 * 86_400_000;
/** Chunks start one ms past a multiple of their length: an odd ms, on which no offset ever changes. */
const CHUNK_SHIFT_MS = 1;
/** Some 280 years; all of a zone that a running scheduler looks at lies in two or three. */
const CHUNKS_MAX = 256;
/** A zone's formatter is large, and few zones are in use at a time. */
const ZONES_MAX = 64;

const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

class ProbedZone implements Zone {
  readonly #format: Intl.DateTimeFormat;
  readonly #chunks = new LruCache<readonly ZonePiece[]>(CHUNKS_MAX);

  constructor(timezone: string) {
    const options = { timeZone: timezone, timeZoneName: 'longOffset', day: 'numeric' } as const;
    this.#format = new Intl.DateTimeFormat('en-US', options);
  }

  pieceAt(instantMs: number): ZonePiece {
    const chunk = Math.floor((instantMs - CHUNK_SHIFT_MS) / CHUNK_MS);
    const pieces = this.#chunks.take(String(chunk), () => this.#probe(chunk));
    const piece = pieces.find((candidate) => instantMs < candidate.endAt);
    assert(piece !== undefined, 'an instant lies in its chunk');
    return piece;
  }

  #probe(chunk: number): readonly ZonePiece[] {
    const pieces: ZonePiece[] = [];
    let startAt = chunk * CHUNK_MS + CHUNK_SHIFT_MS;
    const endAt = startAt + CHUNK_MS;
    let offsetMs = this.#offsetAt(startAt);
    let offsetBeforeMs = offsetMs;
    for (let from = startAt; from < endAt; from += PROBE_MS) {
      const to = Math.min(from + PROBE_MS, endAt);
      const offsetAfterMs = this.#offsetAt(to);
      if (offsetAfterMs === offsetMs) continue;
      const changeAt = this.#bisect(from, to, offsetMs);
      pieces.push({ startAt, endAt: changeAt, offsetMs, offsetBeforeMs });
      startAt = changeAt;
      offsetBeforeMs = offsetMs;
      offsetMs = offsetAfterMs;
    }
    pieces.push({ startAt, endAt, offsetMs, offsetBeforeMs });
    return pieces;
  }

  /** The first instant in `(from, to]` whose offset is not `offsetMs`. */
  #bisect(from: number, to: number, offsetMs: number): number {
    let same = from;
    let other = to;
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2);
      if (this.#offsetAt(middle) === offsetMs) same = middle;
      else other = middle;
    }
    return other;
  }

  #offsetAt(instantMs: number): number {
    const text = this.#format.format(instantMs);
    const match = OFFSET.exec(text);
    assert(match !== null, `Intl gives an offset, not ${text}`);
    const seconds =
      Number(match[2] ?? 0) * 3600 + Number(match[3] ?? 0) * 60 + Number(match[4] ?? 0);
    return (match[1] === '-' ? -seconds : seconds) * 1000;
  }
}

const UTC_PIECE: ZonePiece = {
  startAt: Number.NEGATIVE_INFINITY,
  endAt: Number.POSITIVE_INFINITY,
  offsetMs: 0,
  offsetBeforeMs: 0,
};
const UTC: Zone = { pieceAt: () => UTC_PIECE };

/** A name, never an offset such as `+02:00`, which only some releases of Node.js take. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/;

const zones = new LruCache<Zone>(ZONES_MAX);

/** The zone of an IANA name, case ignored; undefined when this build of `Intl` has none of that name. */
export function zoneOf(timezone: string): Zone | undefined {
  if (!ZONE_NAME.test(timezone)) return undefined;
  try {
    return zones.take(timezone.toLowerCase(), () => makeZone(timezone));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function makeZone(timezone: string): Zone {
  const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: timezone }).resolvedOptions();
  return timeZone === 'UTC' ? UTC : new ProbedZone(timezone);
}
