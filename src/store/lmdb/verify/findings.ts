/** What did not agree, and how much was looked at. */

import type { OccurrenceRecord } from '../../../core/model.js';
import { type Counts, countedAs, type Place, type TenantCounts } from '../counts.js';

const KEPT_MAX = 1000;

export class Findings {
  /** In words, the first 1000. */
  readonly texts: string[] = [];
  count = 0;

  add(text: string): void {
    this.count += 1;
    if (this.texts.length < KEPT_MAX) this.texts.push(text);
  }
}

/** Counted anew, from the records. */
export class Recount {
  readonly #tenants = new Map<string, { -readonly [P in Place]: number }>();

  add(tenant: string, place: Place | undefined): void {
    if (place === undefined) return;
    let counts = this.#tenants.get(tenant);
    if (counts === undefined) {
      counts = { pending: 0, ready: 0, running: 0, deadLetters: 0, openTasks: 0 };
      this.#tenants.set(tenant, counts);
    }
    counts[place] += 1;
  }

  addOccurrence(record: OccurrenceRecord): void {
    this.add(record.tenant, countedAs(record));
  }

  compare(stored: Counts, findings: Findings): void {
    const { tenants } = stored.all();
    for (const tenant of new Set([...tenants.keys(), ...this.#tenants.keys()])) {
      const [kept, found] = [tenants.get(tenant), this.#tenants.get(tenant)];
      for (const place of Object.keys(kept ?? found ?? {}) as (keyof TenantCounts)[]) {
        const [was, is] = [kept?.[place] ?? 0, found?.[place] ?? 0];
        if (was === is) continue;
        findings.add(`count ${place} of tenant '${tenant}' is ${was}, its records make ${is}`);
      }
    }
  }
}
