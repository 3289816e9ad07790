/**
 * An entry of an index outlives what it names by this, so that hosts whose clocks differ do not lose one to another's
 * sweep.
 */
export const clockSkewMs = 600_000;

/** A time to live as Redis takes it. */
export function milliseconds(ttlMs: number): string {
  return `${Math.ceil(Math.max(1, ttlMs))}`;
}

/** The texts of a reply that is a list. */
export function textsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.filter((each): each is string => typeof each === 'string') : [];
}
