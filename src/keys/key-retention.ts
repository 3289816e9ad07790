import type { ManagedKey } from './managed-key.js';

/** What has no end in a store where every record has one: a hundred years. */
export const foreverMs = 100 * 365 * 24 * 60 * 60 * 1000;

/** A key that was revoked or has expired is still shown to operators for so long, and its id is not free. */
export const endedMs = 30 * 24 * 60 * 60 * 1000;

/**
 * How long the record of a key is kept from now on, in milliseconds.
 * @param now Unix milliseconds
 */
export function retentionMs({ expiresAt, revokedAt }: ManagedKey, now: number): number {
  const end = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, revokedAt ?? Number.POSITIVE_INFINITY);
  return end === Number.POSITIVE_INFINITY ? foreverMs : Math.max(1, end + endedMs - now);
}
