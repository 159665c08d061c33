/** What really happened to each attempt, told by the workers, not by the engine. */
export interface Entry {
  readonly occurrenceId: string;
  readonly taskId: string;
  readonly token: number;
  readonly life: number;
  /** Still inside the handler, as far as the engine may know. */
  inside: boolean;
  /** Not heard of any more. */
  silent: boolean;
  aborted: string | undefined;
  truth: string | undefined;
  result: string | undefined;
}

interface Past {
  newestToken: number;
  failedReports: number;
  crashReports: number;
  /** The first in which it was entered. */
  firstLife: number;
  inside: Entry | undefined;
}

const NONE: Past = {
  newestToken: 0,
  failedReports: 0,
  crashReports: 0,
  firstLife: Number.POSITIVE_INFINITY,
  inside: undefined,
};

export class Attempts {
  readonly #byToken = new Map<number, Entry>();
  readonly #past = new Map<string, Past>();

  of(token: number): Entry | undefined {
    return this.#byToken.get(token);
  }

  past(occurrenceId: string): Past {
    let past = this.#past.get(occurrenceId);
    if (past === undefined) {
      past = { ...NONE };
      this.#past.set(occurrenceId, past);
    }
    return past;
  }

  enter(entry: Entry): void {
    this.#byToken.set(entry.token, entry);
    const past = this.past(entry.occurrenceId);
    past.newestToken = Math.max(past.newestToken, entry.token);
    past.firstLife = Math.min(past.firstLife, entry.life);
    past.inside = entry;
  }

  end(token: number, truth: string, result: string | undefined): void {
    const entry = this.#byToken.get(token);
    if (entry === undefined) return;
    entry.inside = false;
    entry.truth = truth;
    entry.result = result;
    const past = this.past(entry.occurrenceId);
    if (past.inside === entry) past.inside = undefined;
    if (truth === 'failed' || entry.aborted === 'timedOut') past.failedReports++;
    else if (truth === 'culprit') past.crashReports++;
  }

  /** The process is gone, and all that ran in it. */
  died(life: number): void {
    for (const entry of this.#byToken.values()) if (entry.life === life) entry.inside = false;
    for (const past of this.#past.values()) past.inside = undefined;
  }
}
