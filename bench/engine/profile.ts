/** Where the processor's time goes: the functions with the most time of their own. */
import { Session } from 'node:inspector/promises';

export interface Hot {
  readonly name: string;
  /** Of all samples, 0 to 1. */
  readonly share: number;
}

export async function hottest(count: number, act: () => Promise<unknown>): Promise<Hot[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  await act();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  const byId = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const own = new Map<string, number>();
  const samples = profile.samples ?? [];
  for (const id of samples) {
    const frame = byId.get(id);
    if (frame === undefined) continue;
    const file = frame.url.split('/').slice(-2).join('/');
    const name = file === '' ? frame.functionName : `${frame.functionName} (${file})`;
    own.set(name, (own.get(name) ?? 0) + 1);
  }
  return [...own]
    .filter(([name]) => !/^\((idle|program|root)\)/.test(name))
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([name, ticks]) => ({ name, share: ticks / samples.length }));
}
