/** How often each legal transition and each fault occurred. One that never did proves nothing. */
import { MOVES } from '../../src/core/transitions.js';

/** Faults that a run of many seeds must have seen, each at least once. */
export const FAULTS = [
  'crash before',
  'crash visible',
  'crash durable',
  'shutdown',
  'shutdown at once',
  'clock forward',
  'clock back',
  'process stopped',
  'disk full',
  'disk slow',
  'commit fails',
  'flush fails',
  'handler hangs',
  'handler fails: fail',
  'handler fails: unrecoverable',
  'handler fails: retryAfter',
  'handler ignores its abort',
  'succeeds after its abort',
  'thread dies, culprit known',
  'thread dies, all suspect',
  'thread ended by force',
  'run taken back before entry',
  'reports twice',
  'reports late',
  'worker silent',
  'bad record',
  'race of calls',
  'pause of what is on its way',
  'flood of one tenant',
  'creates in bulk',
  'version missing',
  'unflushed commits lost',
  'unflushed commits kept',
] as const;

export type Fault = (typeof FAULTS)[number];

export class Tally {
  readonly moves = new Map<string, number>(MOVES.map(({ from, to }) => [`${from} → ${to}`, 0]));
  readonly faults = new Map<string, number>(FAULTS.map((name) => [name, 0]));
  readonly illegal: string[] = [];

  fault(name: string): void {
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
  }

  /**
   * One commit's change of a state. Several moves of a turn are one change, so the shortest legal way is counted; under
   * a new token it leads through `ready`, where claims begin.
   */
  moved(from: string, to: string, anew: boolean): void {
    const way =
      anew && from !== 'ready' ? [...wayOf(from, 'ready'), ...wayOf('ready', to)] : wayOf(from, to);
    if (way.length === 0) this.illegal.push(`${from} → ${to}`);
    for (const move of way) this.moves.set(move, (this.moves.get(move) ?? 0) + 1);
  }

  add(other: Tally): void {
    for (const [name, count] of other.moves)
      this.moves.set(name, (this.moves.get(name) ?? 0) + count);
    for (const [name, count] of other.faults)
      this.faults.set(name, (this.faults.get(name) ?? 0) + count);
    this.illegal.push(...other.illegal);
  }

  /** All of it in one line. */
  get sum(): string {
    const total = (counts: ReadonlyMap<string, number>) =>
      [...counts.values()].reduce((sum, count) => sum + count, 0);
    return `${total(this.moves)} transitions, ${total(this.faults)} faults, ${this.missing.length} kinds never`;
  }

  /** What never occurred. */
  get missing(): string[] {
    const never = (counts: ReadonlyMap<string, number>) =>
      [...counts].filter(([, count]) => count === 0).map(([name]) => name);
    return [...never(this.moves), ...never(this.faults)];
  }

  toString(): string {
    const lines = (counts: ReadonlyMap<string, number>) =>
      [...counts].map(([name, count]) => `  ${String(count).padStart(9)}  ${name}`).join('\n');
    return `transitions\n${lines(this.moves)}\nfaults\n${lines(this.faults)}`;
  }
}

const WAYS = new Map<string, readonly string[]>();

function wayOf(from: string, to: string): readonly string[] {
  const name = `${from} → ${to}`;
  let way = WAYS.get(name);
  if (way === undefined) {
    way = shortestWay(from, to);
    WAYS.set(name, way);
  }
  return way;
}

/** Of legal moves, the last of which ends in `to`; a move that leads nowhere else counts too. */
function shortestWay(from: string, to: string): readonly string[] {
  const ways: { at: string; way: string[] }[] = [{ at: from, way: [] }];
  const seen = new Set<string>();
  for (const { at, way } of ways) {
    if (at === to && way.length > 0) return way;
    for (const move of MOVES) {
      const name = `${move.from} → ${move.to}`;
      if (move.from !== at || seen.has(name)) continue;
      seen.add(name);
      ways.push({ at: move.to, way: [...way, name] });
    }
  }
  return [];
}
