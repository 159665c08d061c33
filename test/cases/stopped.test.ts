/** Case 34, of one process: stopped past all leases and going on. Needs `npm run build:ts`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as forReal } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const fixture = fileURLToPath(new URL('./fixtures/stopped.mjs', import.meta.url));
/** Five leases. */
const STOPPED_MS = 1000;

it('34. SIGSTOP past all leases, then SIGCONT: none charged, none started twice', async () => {
  const child = spawn(process.execPath, [fixture], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  const isRunning = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      said += chunk;
      if (said.includes('running\n')) resolve();
    });
  });
  await isRunning;
  child.kill('SIGSTOP');
  await forReal(STOPPED_MS);
  child.kill('SIGCONT');
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  const end = { status: 'succeeded', attempt: 1, failures: 0, crashes: 0 };
  expect(JSON.parse(said.split('\n')[1] as string)).toEqual({
    starts: 4,
    ends: [end, end, end, end],
  });
});
