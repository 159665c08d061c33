/**
 * Wheels made at once: those that WebAssembly makes asynchronously come after a while of real time, which would be
 * another one in each run.
 */
import { readFileSync } from 'node:fs';
import { TimerWheel } from '../../src/index.js';
import type { NativeWheel } from '../../src/wheel/native.js';

/** The part of the global that Node 20's types lack. */
interface Synchronous {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}
const { Module, Instance } = (globalThis as unknown as { WebAssembly: Synchronous }).WebAssembly;

let compiled: object | undefined;

export function makeWheel(startTick: number): Promise<TimerWheel> {
  compiled ??= new Module(readFileSync(new URL('../../build/wheel.wasm', import.meta.url)));
  const native = new Instance(compiled).exports as NativeWheel;
  return Promise.resolve(TimerWheel.createOn(native, { startTick }));
}
