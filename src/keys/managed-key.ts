import type { Budget, RateLimits } from '../config/types.js';
import { isObject, parseObject } from '../wire/json.js';

/** A key created by operators at run time, as recorded in the store: only its hash, never the key itself. */
export interface ManagedKey {
  readonly id: string;
  /** SHA-256 of the key, lower-case hex. */
  readonly hash: string;
  /** Secrets replaced by rotations that still work for a while, latest first. Few. */
  readonly former: readonly FormerKey[];
  /** The operators' name for it; may be empty. */
  readonly label: string;
  readonly groups: readonly string[];
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
  readonly mayRoute: boolean;
  /** Unix milliseconds, or null for never. */
  readonly expiresAt: number | null;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** Unix milliseconds, or null. A revocation is final. */
  readonly revokedAt: number | null;
}

export interface FormerKey {
  readonly hash: string;
  /** Unix milliseconds. */
  readonly until: number;
}

/** The members of a key, not revoked, that are needed to admit calls. */
export type ActiveKey = Omit<ManagedKey, 'label' | 'createdAt' | 'revokedAt'>;

/** A change of the keys that are not revoked. */
export interface KeyChange {
  /** Whether `put` replaces all keys. */
  readonly whole: boolean;
  /** New and changed keys, each id once. */
  readonly put: readonly ActiveKey[];
  /** Ids of keys that were revoked or no longer exist. None of them is in `put`. */
  readonly removed: readonly string[];
  /** Whether further changes follow, of which the first was `whole`; the keys are incomplete until then. */
  readonly more: boolean;
}

/** Ids that operators may choose: they appear unescaped in paths, logs and tables. */
export const keyIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const hashPattern = /^[0-9a-f]{64}$/;

/** Serializes a key for the store. Only its known fields are written. */
export function writeManagedKey(key: ManagedKey): string {
  const { id, hash, former, label, groups, limits, budget, mayRoute, expiresAt, createdAt, revokedAt } = key;
  return JSON.stringify({
    version: 1,
    id,
    hash,
    former: former.map(({ hash, until }) => ({ hash, until })),
    label,
    groups,
    limits: limits === null ? null : limitsOf(limits),
    budget: budget === null ? null : { usd: budget.usd, per: budget.per },
    mayRoute,
    expiresAt,
    createdAt,
    revokedAt,
  });
}

/**
 * Parses the output of `writeManagedKey`.
 * @returns null for any other text, such as a damaged record or one of another version
 */
export function readManagedKey(text: string): ManagedKey | null {
  const value = parseObject(text);
  if (value === null || value.version !== 1) return null;
  const { id, hash, former, label, groups, limits, budget, mayRoute, expiresAt, createdAt, revokedAt } =
    value;
  if (typeof id !== 'string' || !keyIdPattern.test(id) || !isHash(hash) || !isFormer(former)) return null;
  if (typeof label !== 'string' || !isTexts(groups) || typeof mayRoute !== 'boolean') return null;
  if (!isLimits(limits) || !isBudget(budget)) return null;
  if (!isTime(createdAt) || !isTimeOrNull(expiresAt) || !isTimeOrNull(revokedAt)) return null;
  return { id, hash, former, label, groups, limits, budget, mayRoute, expiresAt, createdAt, revokedAt };
}

/** Whether a value is a whole number above zero that a double holds exactly. */
export function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

/** Whether a value is a period of a budget. */
export function isPeriod(value: unknown): value is Budget['per'] {
  return value === 'day' || value === 'week' || value === 'month';
}

/** Whether a value is a valid amount of a budget. */
export function isSum(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

function limitsOf({ requestsPerMinute, tokensPerMinute, concurrent }: RateLimits): RateLimits {
  return { requestsPerMinute, tokensPerMinute, concurrent };
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && hashPattern.test(value);
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTimeOrNull(value: unknown): value is number | null {
  return value === null || isTime(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isFormer(value: unknown): value is readonly FormerKey[] {
  return (
    Array.isArray(value) && value.every((each) => isObject(each) && isHash(each.hash) && isTime(each.until))
  );
}

function isLimits(value: unknown): value is RateLimits | null {
  if (value === null) return true;
  if (!isObject(value)) return false;
  const { requestsPerMinute, tokensPerMinute, concurrent } = value;
  return [requestsPerMinute, tokensPerMinute, concurrent].every((each) => each === null || isPositive(each));
}

function isBudget(value: unknown): value is Budget | null {
  return value === null || (isObject(value) && isSum(value.usd) && isPeriod(value.per));
}
