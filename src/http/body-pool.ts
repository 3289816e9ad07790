/** Bodies below this come from Node's own slabs, and above the other from the system. */
const smallestBytes = 16 * 1024;
const largestBytes = 1024 * 1024;

/**
 * Buffers for request bodies of middle size, kept for the next body once nobody can read them any more: buffers
 * of a few hundred kilobytes, made and collected with every request, cost more than the copy into them (measured
 * with 318 KB prompts: a fifth of the gateway's time went into collecting them).
 */
export interface BodyPool {
  /** @returns a buffer of at least `bytes` for `give`, or null for a size that is not kept here. */
  take(bytes: number): Buffer | null;
  /** Takes a buffer back that came from `take` and to which no reference is left anywhere. */
  give(buffer: Buffer): void;
  /** Lets go of what has not been used since the last call. */
  trim(): void;
}

/** @param limit bytes that may wait here at most */
export function createBodyPool(limit: number): BodyPool {
  const free: Buffer[][] = [];
  let waiting = 0;
  /** Fewest bytes that waited since the last trim: so much was not needed. */
  let unused = 0;
  return {
    take(bytes) {
      if (bytes < smallestBytes || bytes > largestBytes) return null;
      const sizeClass = 32 - Math.clz32(bytes - 1);
      const buffer = free[sizeClass]?.pop();
      if (buffer === undefined) return Buffer.allocUnsafeSlow(2 ** sizeClass);
      waiting -= buffer.length;
      unused = Math.min(unused, waiting);
      return buffer;
    },
    give(buffer) {
      if (waiting + buffer.length > limit) return;
      const sizeClass = 31 - Math.clz32(buffer.length);
      free[sizeClass] ??= [];
      free[sizeClass].push(buffer);
      waiting += buffer.length;
    },
    trim() {
      for (const buffers of free) {
        while (unused > 0 && buffers !== undefined && buffers.length > 0) {
          const size = (buffers.shift() as Buffer).length;
          waiting -= size;
          unused -= size;
        }
      }
      unused = waiting;
    },
  };
}
