const shards = 256;

/** By its last two characters, which differ most among names that are counted on, and are as good as any of a hash. */
function shardOf(name: string): number {
  const { length } = name;
  return length < 2 ? 0 : (name.charCodeAt(length - 1) + 16 * name.charCodeAt(length - 2)) % shards;
}

/**
 * A map from names with room for a hundred thousand of them. A `Map` is copied as a whole whenever it has doubled, which
 * with so many takes milliseconds in one piece; here each of many small ones is. Its order is none.
 */
export class WideMap<Value> {
  readonly #shards = Array.from({ length: shards }, () => new Map<string, Value>());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(name: string): Value | undefined {
    return this.#shards[shardOf(name)]?.get(name);
  }

  has(name: string): boolean {
    return this.#shards[shardOf(name)]?.has(name) ?? false;
  }

  set(name: string, value: Value): void {
    const shard = this.#shards[shardOf(name)];
    const before = shard?.size ?? 0;
    shard?.set(name, value);
    this.#size += (shard?.size ?? 0) - before;
  }

  delete(name: string): boolean {
    const isGone = this.#shards[shardOf(name)]?.delete(name) ?? false;
    if (isGone) this.#size -= 1;
    return isGone;
  }

  *keys(): Generator<string, void, undefined> {
    for (const shard of this.#shards) yield* shard.keys();
  }

  *values(): Generator<Value, void, undefined> {
    for (const shard of this.#shards) yield* shard.values();
  }
}
