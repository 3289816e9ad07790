import type { KeyEntry, KeyLimits } from './key.js';

/** A limit in use, as `GET /limits` tells it. */
export interface LimitInUse {
  /** `key:team-a:requests` */
  readonly name: string;
  readonly limit: number;
  /** What this host may use of it. */
  readonly share: number;
  /** Of the share, what no worker has. */
  readonly free: number;
}

/** One limit of a key, and how much of it the workers have taken, used or not. */
interface LimitLine {
  readonly name: keyof KeyLimits;
  readonly limit: number;
  readonly unit: string;
  /** Null where the limit is not in use. */
  readonly taken: number | null;
}

const parts = [
  ['requestsPerMinute', 'requests', 'requests/min'],
  ['tokensPerMinute', 'tokens', 'tokens/min'],
  ['concurrent', 'concurrent', 'at once'],
] as const;

/** @param inUse by their names */
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
