/**
 * A binary min-heap whose items know their position, so that one can be moved or removed without a
 * search. The position lives in a field of the item that the subclass names; −1 when it is not in
 * the heap.
 */
import { assert } from './assert.js';

export abstract class IndexedHeap<T> {
  /** Heap order: the children of `i` are `2i + 1` and `2i + 2`. Not to be written from outside. */
  readonly items: T[] = [];

  protected abstract before(a: T, b: T): boolean;
  protected abstract indexOf(item: T): number;
  protected abstract setIndex(item: T, index: number): void;

  get size(): number {
    return this.items.length;
  }

  /** The least item. O(1). */
  get top(): T | undefined {
    return this.items[0];
  }

  has(item: T): boolean {
    return this.indexOf(item) >= 0;
  }

  /** O(log n). */
  push(item: T): void {
    assert(this.indexOf(item) < 0, 'an item enters a heap twice');
    this.items.push(item);
    this.#up(item, this.items.length - 1);
  }

  /** To be called when the item's key has changed. O(log n). */
  update(item: T): void {
    const index = this.indexOf(item);
    assert(this.items[index] === item, 'an item is not where its heap put it');
    this.#up(item, index);
    if (this.indexOf(item) === index) this.#down(item, index);
  }

  /** O(log n). */
  remove(item: T): void {
    const index = this.indexOf(item);
    assert(this.items[index] === item, 'an item is not where its heap put it');
    const last = this.items.pop() as T;
    this.setIndex(item, -1);
    if (last === item) return;
    this.setIndex(last, index);
    this.items[index] = last;
    this.update(last);
  }

  #up(item: T, from: number): void {
    const { items } = this;
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = items[parent];
      if (!this.before(item, above)) break;
      items[index] = above;
      this.setIndex(above, index);
      index = parent;
    }
    items[index] = item;
    this.setIndex(item, index);
  }

  #down(item: T, from: number): void {
    const { items } = this;
    const { length } = items;
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length && this.before(items[child + 1], items[child])) child++;
      const below = items[child];
      if (!this.before(below, item)) break;
      items[index] = below;
      this.setIndex(below, index);
      index = child;
    }
    items[index] = item;
    this.setIndex(item, index);
  }
}
