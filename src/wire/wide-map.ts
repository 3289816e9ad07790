/** A power of two. */
const shards = 256;

/** Which of the parts of a map a name is in: by all of it, since names may begin or end alike. */
export function shardOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return hash & (shards - 1);
}

/** The same by the last characters alone: for names that are drawn by chance and looked up with every call. */
export function shardOfEnd(name: string): number {
  const { length } = name;
  return (name.charCodeAt(length - 1) * 31 + name.charCodeAt(length - 2)) & (shards - 1);
}

/**
 * A map from names with room for a hundred thousand of them. A `Map` is copied as a whole whenever it has doubled, which
 * with so many takes milliseconds in one piece; here each of many small ones is. Its order is none.
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
    for (const shard of this.#shards) yield* shard.keys();
  }

  *values(): Generator<Value, void, undefined> {
    for (const shard of this.#shards) yield* shard.values();
  }
}
