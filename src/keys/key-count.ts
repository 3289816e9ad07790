import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import type { Store } from '../store/store.js';
import { keyCollection } from './key-feed.js';

const recountMs = 60_000;
const pageSize = 1000;

/** Bounds how many keys there are. */
export interface KeyCount {
  /**
   * Does what makes one more key.
   * @throws {GatewayError} `conflict` when there are as many as there may be; whatever `make` throws
   */
  add(make: () => Promise<void>): Promise<void>;
}

/**
 * Counts the keys of a store when the last count is a minute old, and adds those of this process in between. So the
 * bound holds for one process, and several may pass it by what the others make within a minute.
 */
export function createKeyCount(store: Store, most: number): KeyCount {
  let counted: Promise<number> | null = null;
  let countedAt = Number.NEGATIVE_INFINITY;
  /** Made since the count began. */
  let made = 0;
  let making = 0;

  const count = (): Promise<number> => {
    if (counted !== null && performance.now() - countedAt < recountMs) return counted;
    countedAt = performance.now();
    made = 0;
    const counting = countRecords(store);
    counted = counting;
    counting.catch(() => {
      if (counted === counting) counted = null;
    });
    return counting;
  };

  return {
    async add(make) {
      if ((await count()) + made + making >= most) {
        throw new GatewayError('conflict', `There are ${most} keys already, and there can be no more.`);
      }
      making++;
      try {
        await make();
        made++;
      } finally {
        making--;
      }
    },
  };
}

async function countRecords(store: Store): Promise<number> {
  let total = 0;
  let from: string | null = null;
  do {
    const page = await store.list(keyCollection, pageSize, from);
    total += page.records.length;
    from = page.next;
  } while (from !== null);
  return total;
}
