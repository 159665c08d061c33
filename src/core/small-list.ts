/**
 * Lists that most often hold one item. An empty array that is pushed to takes 17 places at once, 150 bytes; a
 * task at hand has half a dozen such lists, and that made up a tenth of all garbage.
 */

/** The list with the item behind; a new list when it was empty. */
export function withItem<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item];
  list.push(item);
  return list;
}

/** Takes an item out of a list, if it is there. */
export function removeItem<T>(list: T[], item: T): void {
  const index = list.length === 1 ? (list[0] === item ? 0 : -1) : list.indexOf(item);
  if (index < 0) return;
  if (index === list.length - 1) list.pop();
  else list.splice(index, 1);
}
