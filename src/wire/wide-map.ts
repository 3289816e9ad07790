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

/** Most names in the first map, whose copying takes microseconds. */
const mostFirst = 512;

/**
 * A map for a hundred thousand names. A `Map` is copied as a whole each time it has doubled, which blocks for
 * milliseconds at this size. Here, names beyond the first few hundred are spread over many small maps, of which only one
 * is copied at a time. The order is undefined. A value is never `undefined`.
 */
export class WideMap<Value> {
  /** Searched and walked alone while there are no more names: choosing a shard takes longer than a look into it. */
  readonly #first = new Map<string, Value>();
  /** None until the first map is full. */
  #shards: readonly Map<string, Value>[] = [];
  readonly #shardOf: (name: string) => number;
  #size = 0;

  constructor(shardOfName: (name: string) => number = shardOf) {
    this.#shardOf = shardOfName;
  }

  get size(): number {
    return this.#size;
  }

  get(name: string): Value | undefined {
    const value = this.#first.get(name);
    if (value !== undefined || this.#shards.length === 0) return value;
    return this.#shards[this.#shardOf(name)]?.get(name);
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  set(name: string, value: Value): void {
    const map = this.#mapOf(name);
    const before = map.size;
    map.set(name, value);
    this.#size += map.size - before;
  }

  delete(name: string): boolean {
    const isGone = this.#first.delete(name) || (this.#shards[this.#shardOf(name)]?.delete(name) ?? false);
    if (isGone) this.#size -= 1;
    return isGone;
  }

  *keys(): Generator<string, void, undefined> {
    yield* this.#first.keys();
    for (const shard of this.#shards) if (shard.size > 0) yield* shard.keys();
  }

  *values(): Generator<Value, void, undefined> {
    yield* this.#first.values();
    for (const shard of this.#shards) if (shard.size > 0) yield* shard.values();
  }

  /** Returns the map that has a name, or is to take it. */
  #mapOf(name: string): Map<string, Value> {
    if (this.#first.has(name)) return this.#first;
    const shard = this.#shards[this.#shardOf(name)];
    if (this.#first.size < mostFirst && !shard?.has(name)) return this.#first;
    if (shard !== undefined) return shard;
    this.#shards = Array.from({ length: shards }, () => new Map<string, Value>());
    return this.#mapOf(name);
  }
}
