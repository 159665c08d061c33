/** The WebAssembly module as the host sees it: its exports, and how an instance comes about. */
import { readFile } from 'node:fs/promises';
import { instantiate } from '@assemblyscript/loader';
import { SchedulerStateError } from '../core/errors.js';

/** `assembly/index.ts`. Numbers cross as they are; u32 results come back signed. */
export interface NativeWheel {
  readonly memory: { readonly buffer: ArrayBuffer };
  setUp(startTick: number, timersMax: number): void;
  scratchAt(): number;
  scratchRefsAt(): number;
  batchMax(): number;
  expiredMax(): number;
  size(): number;
  reserve(count: number): number;
  touch(count: number): void;
  insert(dueTick: number, ref: number): number;
  insertMany(from: number, count: number): number;
  cancel(handle: number): number;
  cancelMany(from: number, count: number): number;
  cancelled(): number;
  reschedule(handle: number, dueTick: number): number;
  advance(nowTick: number, expiriesMax: number, movesMax: number): number;
  cascadeMoves(): number;
  nextExpiry(): number;
  nextWake(): number;
  reach(dueTick: number): number;
  stateOf(handle: number): number;
  insertParked(ref: number, far: boolean): number;
  park(record: number, far: boolean): void;
  setPlace(record: number, place: number): void;
  enter(record: number, dueTick: number): void;
  expireParked(record: number): number;
  check(): number;
  damage(handle: number): void;
  isCascading(): number;
  retiredCount(): number;
  setLastGeneration(handle: number): number;
}

// `assembly/constants.ts`
/** `insert` found no record, and no memory for another. */
export const FULL = 0;
/** `insert` or `reach`: due before the wheel's cursor. */
export const OVERDUE = -1;
/** `insert` or `reach`: due beyond the wheel's range. */
export const FAR = -2;
/** A handle is generation × this + record index. */
export const RECORDS_MAX = 2 ** 27;

/** A compiled module, as the loader's types know it. */
type Module = Extract<Awaited<Parameters<typeof instantiate>[0]>, object>;

/** The part of the global that Node 20's types lack. */
interface Compiler {
  compile(bytes: Uint8Array): Promise<Module>;
}
const compiler = (globalThis as unknown as { WebAssembly: Compiler }).WebAssembly;

const modules = new Map<string, Promise<Module>>();

/**
 * A new instance; the module is read and compiled once a process. The debug build checks
 * assertions.
 */
export async function loadNativeWheel(options: { debug: boolean }): Promise<NativeWheel> {
  const file = options.debug ? 'wheel.debug.wasm' : 'wheel.wasm';
  let compiled = modules.get(file);
  if (compiled === undefined) {
    // The same relative place from src/ and from dist/.
    compiled = readFile(new URL(`../../build/${file}`, import.meta.url)).then((bytes) =>
      compiler.compile(bytes),
    );
    modules.set(file, compiled);
    compiled.catch(() => modules.delete(file));
  }
  const { instance } = await instantiate(await compiled, {});
  // The loader's own `exports` wrap each function in one that spreads its arguments: too slow here.
  return instance.exports as unknown as NativeWheel;
}

/** What a closed wheel calls: every function throws, and no memory is held. */
export function closedNativeWheel(): NativeWheel {
  return new Proxy({} as NativeWheel, {
    get() {
      throw new SchedulerStateError('this TimerWheel is closed; create another one');
    },
  });
}
