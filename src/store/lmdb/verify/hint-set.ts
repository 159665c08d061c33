/** Which tasks and occurrences have a hint for retention: 16 bytes each, two hashes of 32 bits, open addressing. */
import { ID_BYTES, readId } from '../keys.js';

const id = new Uint8Array(ID_BYTES);

export class HintSet {
  #slots = new Uint32Array(2 ** 12);
  #count = 0;

  add(taskId: string, serial: number): void {
    if (this.#count * 4 >= this.#slots.length) this.#grow();
    const [high, low] = hashOf(taskId, serial);
    this.#put(high, low);
  }

  /** False: certainly not. True: but for one in 2⁶⁴ that happens to have its hashes. */
  has(taskId: string, serial: number): boolean {
    const [high, low] = hashOf(taskId, serial);
    const at = this.#slotOf(high, low);
    return this.#slots[at] !== 0;
  }

  #put(high: number, low: number): void {
    const at = this.#slotOf(high, low);
    if (this.#slots[at] === 0) this.#count += 1;
    this.#slots[at] = high;
    this.#slots[at + 1] = low;
  }

  #slotOf(high: number, low: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = (low << 1) & mask;
    while (slots[at] !== 0 && (slots[at] !== high || slots[at + 1] !== low)) at = (at + 2) & mask;
    return at;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    this.#count = 0;
    for (let at = 0; at < old.length; at += 2) if (old[at] !== 0) this.#put(old[at], old[at + 1]);
  }
}

/** FNV-1a with two beginnings; the first is never 0, which says that a slot is free. */
function hashOf(taskId: string, serial: number): [number, number] {
  readId(taskId, id, 0);
  let high = 0x811c_9dc5;
  let low = (0x9e37_79b1 ^ serial) >>> 0;
  for (let i = 0; i < ID_BYTES; i++) {
    high = Math.imul(high ^ id[i], 0x0100_0193);
    low = Math.imul(low ^ id[i], 0x85eb_ca6b);
    low ^= low >>> 15;
  }
  high = Math.imul(high ^ serial, 0x0100_0193);
  return [high >>> 0 || 1, low >>> 0];
}
