/** Raw memory in WebAssembly, over as much of it as `count` timers take. */
import { readFile } from 'node:fs/promises';
import { instantiate } from '@assemblyscript/loader';
import { permutation } from '../lib/random.js';
import { must } from '../lib/report.js';
import type { Samples } from '../lib/samples.js';

interface NativeFloors {
  readonly memory: { readonly buffer: ArrayBuffer };
  prepare(cells: number): number;
  storeAll(cells: number): void;
  updateRandom(count: number): void;
  readRandom(count: number): number;
  nothing(value: number): number;
}

const RECORD_BYTES = 20;
const CELL_BYTES = 16;

export const SEQUENTIAL_STORE = 'sequential 16-byte store';
export const RANDOM_UPDATE = 'random 16-byte read-modify-write';
export const RANDOM_READ = 'independent random read';
export const EMPTY_CALL = 'empty call into WebAssembly';

export class Floors {
  readonly #native: NativeFloors;
  readonly #cells: number;
  readonly #count: number;

  private constructor(native: NativeFloors, count: number, random: () => number) {
    this.#native = native;
    this.#count = count;
    this.#cells = Math.ceil((count * RECORD_BYTES) / CELL_BYTES);
    const at = native.prepare(this.#cells);
    new Uint32Array(native.memory.buffer, at, this.#cells).set(permutation(this.#cells, random));
    native.storeAll(this.#cells); // Touches it all.
  }

  static async create(count: number, random: () => number): Promise<Floors> {
    return new Floors(await load(), count, random);
  }

  /** One sample of each floor. */
  sample(samples: Samples, prefix: string): void {
    const native = this.#native;
    samples.time(prefix + SEQUENTIAL_STORE, this.#cells, () => native.storeAll(this.#cells));
    samples.time(prefix + RANDOM_UPDATE, this.#count, () => native.updateRandom(this.#count));
    // Each cell was stored as 1, and those of the order's first part updated once.
    const read = samples.time(prefix + RANDOM_READ, this.#count, () =>
      native.readRandom(this.#count),
    );
    must(read >>> 0 === (this.#count * 2) % 2 ** 32, 'sum of the random reads');
    const calls = Math.min(this.#count, 1_000_000);
    const end = samples.time(prefix + EMPTY_CALL, calls, () => {
      let value = 0;
      for (let i = 0; i < calls; i++) value = native.nothing(value + 1);
      return value;
    });
    must(end === calls, 'count of empty calls');
  }
}

/** `npm run build:wasm` makes it, with the settings of the wheel's own. */
async function load(): Promise<NativeFloors> {
  const bytes = await readFile(new URL('../../build/floors.wasm', import.meta.url));
  const { instance } = await instantiate(bytes, {});
  return instance.exports as unknown as NativeFloors;
}
