/** Who looks at a file while a writer in another thread commits must not take what it sees for damage. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, it } from 'vitest';
import { lmdbStore, systemClock } from '../../src/index.js';
import { newestMeta } from '../../src/store/lmdb/file-check.js';

const root = mkdtempSync(join(tmpdir(), 'tickwheel-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Where the number of a meta's transaction lies in its page. */
const TRANSACTION_AT = 24 + 128;
const LOOKS = 5_000;

/** Commits, as far as the metas tell: transaction after transaction, in the one page and the other. */
const WRITER = `
  const { workerData, parentPort } = require('node:worker_threads');
  const fs = require('node:fs');
  const fd = fs.openSync(workerData.file, 'r+');
  const bytes = Buffer.alloc(8);
  let running = true;
  parentPort.on('message', () => { running = false; });
  let transaction = BigInt(workerData.transaction);
  const commits = () => {
    for (let i = 0; i < 20; i++) {
      transaction += 1n;
      bytes.writeBigUInt64LE(transaction);
      fs.writeSync(fd, bytes, 0, 8, Number(transaction & 1n) * 4096 + workerData.at);
    }
    if (running) setImmediate(commits);
    else { fs.closeSync(fd); parentPort.close(); }
  };
  parentPort.postMessage('writing');
  commits();
`;

it('takes the metas of a file that is being written for whole', async () => {
  const path = join(root, 'data');
  const retention = { succeededMs: 1000, failedMs: 1000 };
  const session = await lmdbStore({ path }).open({ clock: systemClock(), retention });
  await session.close();
  const file = join(path, 'data.mdb');
  const { transaction } = newestMeta(file);
  const fd = openSync(file, 'r');
  const first = Buffer.alloc(8);
  readSync(fd, first, 0, 8, TRANSACTION_AT);
  closeSync(fd);
  expect(Number(first.readBigUInt64LE())).toBe(transaction - (transaction & 1));

  const workerData = { file, transaction, at: TRANSACTION_AT };
  const writer = new Worker(WRITER, { eval: true, workerData });
  await new Promise((resolve) => writer.once('message', resolve));
  let before = transaction;
  try {
    for (let i = 0; i < LOOKS; i++) {
      const seen = newestMeta(file).transaction;
      expect(seen).toBeGreaterThanOrEqual(before);
      before = seen;
    }
  } finally {
    writer.postMessage('stop');
    await new Promise((resolve) => writer.once('exit', resolve));
  }
  expect(before).toBeGreaterThan(transaction);
});
