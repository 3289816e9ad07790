/** Number of maps, a power of two. */
const shards = 256;

/** Returns the shard of a name. Uses the whole name, since names may have a common start or end. */
export function shardOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return hash & (shards - 1);
}

/** Returns the shard by the last two characters: for random names that are looked up with every call. */
export function shardOfEnd(name: string): number {
  const { length } = name;
  return (name.charCodeAt(length - 1) * 31 + name.charCodeAt(length - 2)) & (shards - 1);
}

/**
 * A map for a hundred thousand names. A `Map` is copied as a whole each time it has doubled, which blocks for
 * milliseconds at this size. Here, only one of many small maps is copied at a time. The order is undefined. Most maps are
 * empty where names are few: a walk leaves those out, since an iterator of each would take longer than the values.
 */
export class WideMap<Value> {
  readonly #shards = Array.from({ length: shards }, () => new Map<string, Value>());
  readonly #shardOf: (name: string) => number;
  #size = 0;

  constructor(shardOfName: (name: string) => number = shardOf) {
    this.#shardOf = shardOfName;
  }

  get size(): number {
    return this.#size;
  }

  get(name: string): Value | undefined {
    return this.#shards[this.#shardOf(name)]?.get(name);
  }

  has(name: string): boolean {
    return this.#shards[this.#shardOf(name)]?.has(name) ?? false;
  }

  set(name: string, value: Value): void {
    const shard = this.#shards[this.#shardOf(name)];
    const before = shard?.size ?? 0;
    shard?.set(name, value);
    this.#size += (shard?.size ?? 0) - before;
  }

  delete(name: string): boolean {
    const isGone = this.#shards[this.#shardOf(name)]?.delete(name) ?? false;
    if (isGone) this.#size -= 1;
    return isGone;
  }

  *keys(): Generator<string, void, undefined> {
    for (const shard of this.#shards) if (shard.size > 0) yield* shard.keys();
  }

  *values(): Generator<Value, void, undefined> {
    for (const shard of this.#shards) if (shard.size > 0) yield* shard.values();
  }
}
