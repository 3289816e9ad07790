import type { Budget } from '../config/types.js';
import type { ActiveKey, KeyChange } from './managed-key.js';

/**
 * A change of the managed keys as sent between processes: plain JSON, a few hundred bytes for one key, about 140 bytes
 * each for many.
 */
export interface WireKeys extends Omit<KeyChange, 'put'> {
  /** The distinct lists of groups of the keys. */
  readonly groups: readonly (readonly string[])[];
  readonly put: readonly WireKey[];
}

/** A key as a tuple: with a hundred thousand keys, each field's name would be sent a hundred thousand times. */
type WireKey = readonly [
  id: string,
  hash: string,
  /** Index into `groups`. */
  groups: number,
  mayRoute: 0 | 1,
  expiresAt: number | null,
  limits: WireLimits | null,
  budget: readonly [usd: number, per: Budget['per']] | null,
  former: readonly (readonly [hash: string, until: number])[],
];

type WireLimits = readonly [
  requestsPerMinute: number | null,
  tokensPerMinute: number | null,
  concurrent: number | null,
];

/** Converts a change to its wire form. */
export function toWire({ whole, put, removed, more }: KeyChange): WireKeys {
  const groups: (readonly string[])[] = [];
  const indices = new Map<string, number>();
  const indexOf = (names: readonly string[]): number => {
    const identity = JSON.stringify(names);
    const known = indices.get(identity);
    if (known !== undefined) return known;
    indices.set(identity, groups.length);
    return groups.push(names) - 1;
  };
  return { whole, groups, put: put.map((key) => keyToWire(key, indexOf(key.groups))), removed, more };
}

/**
 * Converts a change from its wire form, received from another process of the same gateway.
 * @throws {RangeError} when a key refers to groups that are missing, which `toWire` never produces
 */
export function fromWire({ whole, groups, put, removed, more }: WireKeys): KeyChange {
  return { whole, put: put.map((key) => keyFromWire(key, groups)), removed, more };
}

function keyToWire(
  { id, hash, mayRoute, expiresAt, limits, budget, former }: ActiveKey,
  groups: number,
): WireKey {
  return [
    id,
    hash,
    groups,
    mayRoute ? 1 : 0,
    expiresAt,
    limits === null ? null : [limits.requestsPerMinute, limits.tokensPerMinute, limits.concurrent],
    budget === null ? null : [budget.usd, budget.per],
    former.map(({ hash, until }) => [hash, until]),
  ];
}

function keyFromWire(
  [id, hash, index, mayRoute, expiresAt, limits, budget, former]: WireKey,
  groups: WireKeys['groups'],
): ActiveKey {
  const names = groups[index];
  if (names === undefined) throw new RangeError(`the key ${id} names groups that are not there`);
  return {
    id,
    hash,
    groups: names,
    mayRoute: mayRoute === 1,
    expiresAt,
    limits:
      limits === null
        ? null
        : { requestsPerMinute: limits[0], tokensPerMinute: limits[1], concurrent: limits[2] },
    budget: budget === null ? null : { usd: budget[0], per: budget[1] },
    former: former.map(([formerHash, until]) => ({ hash: formerHash, until })),
  };
}
