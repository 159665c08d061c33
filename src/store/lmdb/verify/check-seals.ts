/** Each stored value against its checksum, whatever it means; and the log of tasks against the tree of them. */
import type { Environment } from '../environment.js';
import type { StoreReader } from '../reader.js';
import { isWhole } from '../seal.js';
import type { Findings } from './findings.js';
import { inPieces } from './pieces.js';

/** Changes nothing, and reads all of the file once. */
export function* checkSeals(env: Environment, findings: Findings): Generator<void> {
  for (const db of Object.values(env.db)) {
    if (!db.isSealed) continue;
    const look = ({ key, value }: { key: Uint8Array; value: Uint8Array }): void => {
      if (isWhole(key, key.length, value)) return;
      const hex = Buffer.from(key).toString('hex');
      findings.add(`record ${hex} of '${db.name}' is not what was written`);
    };
    yield* inPieces(db, look, true);
  }
}

/** Tasks that the log has: the tree has an older version of each, or the same, and none of what is removed must be read. */
export function* checkRowLog({ records }: StoreReader, findings: Findings): Generator<void> {
  let looked = 0;
  for (const id of records.loggedIds()) {
    const { logged, stored } = records.versions(id);
    if (logged !== undefined && stored === undefined) {
      findings.add(`task ${id} is in the log of tasks and not in the tree of them`);
    } else if (logged !== undefined && stored !== undefined) {
      const [newer, older] = [logged.task.revision, stored.task.revision];
      if (newer < older) {
        findings.add(
          `task ${id} has revision ${newer} in the log of tasks and ${older} in the tree`,
        );
      }
    }
    if (++looked % LOOKS_A_PIECE === 0) yield;
  }
}

const LOOKS_A_PIECE = 500;
