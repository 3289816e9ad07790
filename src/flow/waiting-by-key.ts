/**
 * What waits for its turn, by the key that asked for it. The keys take turns, so that one with much to do delays another
 * by at most one item each time.
 */
export class WaitingByKey<Item> {
  /** The key whose turn is next comes first. No list is empty. */
  readonly #byKey = new Map<string, Item[]>();
  /** Number of items of all keys. */
  size = 0;

  add(keyId: string, item: Item): void {
    const own = this.#byKey.get(keyId);
    if (own === undefined) this.#byKey.set(keyId, [item]);
    else own.push(item);
    this.size += 1;
  }

  /** Returns the number of items of a key. */
  countOf(keyId: string): number {
    return this.#byKey.get(keyId)?.length ?? 0;
  }

  /** Removes the next item. */
  take(): Item | undefined {
    for (const [keyId, items] of this.#byKey) {
      this.#byKey.delete(keyId);
      const item = items.shift();
      if (items.length > 0) this.#byKey.set(keyId, items);
      this.size -= 1;
      return item;
    }
    return undefined;
  }

  /** Removes the newest item of the key that has the most. */
  takeLastOfMost(): Item | undefined {
    let keyOfMost = '';
    let most: Item[] = [];
    for (const [keyId, items] of this.#byKey)
      if (items.length > most.length) [keyOfMost, most] = [keyId, items];
    if (most.length === 0) return undefined;
    if (most.length === 1) this.#byKey.delete(keyOfMost);
    this.size -= 1;
    return most.pop();
  }

  /** Removes all items. */
  takeAll(): readonly Item[] {
    const all = [...this.#byKey.values()].flat();
    this.#byKey.clear();
    this.size = 0;
    return all;
  }
}
