import type { KeyEntry, KeyLimits } from './key.js';

/** A limit in use, in the answer of `GET /limits`. */
export interface LimitInUse {
  /** `key:team-a:requests` */
  readonly name: string;
  readonly limit: number;
  /** The share of this host. */
  readonly share: number;
  /** The part of the share that is not leased to a worker. */
  readonly free: number;
}

/** One limit of a key, with the units that workers have leased, used or not. */
interface LimitLine {
  readonly name: keyof KeyLimits;
  readonly limit: number;
  readonly unit: string;
  /** Null if the limit is not in use. */
  readonly taken: number | null;
}

const parts = [
  ['requestsPerMinute', 'requests', 'requests/min'],
  ['tokensPerMinute', 'tokens', 'tokens/min'],
  ['concurrent', 'concurrent', 'at once'],
] as const;

/** @param inUse limits in use, by name */
export function limitLines(
  { id, limits }: Pick<KeyEntry, 'id' | 'limits'>,
  inUse: ReadonlyMap<string, LimitInUse>,
): readonly LimitLine[] {
  return parts.flatMap(([name, poolEnd, unit]) => {
    const limit = limits?.[name] ?? null;
    if (limit === null) return [];
    const pool = inUse.get(`key:${id}:${poolEnd}`);
    return [{ name, limit, unit, taken: pool === undefined ? null : Math.max(0, pool.share - pool.free) }];
  });
}
