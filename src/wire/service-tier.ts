/**
 * How upstreams serve calls, as far as it has a price. The ledger has them by their places in this list: new ones come
 * last.
 */
export const serviceTiers = ['standard', 'flex', 'priority', 'fast', 'batch', 'scale'] as const;
export type ServiceTier = (typeof serviceTiers)[number];

/** What protocols call them, in lower case. Vertex tells them by the kind of its traffic. */
const tierWords: ReadonlyMap<string, ServiceTier> = new Map([
  ['flex', 'flex'],
  ['priority', 'priority'],
  ['fast', 'fast'],
  ['batch', 'batch'],
  ['scale', 'scale'],
  ['on_demand_flex', 'flex'],
  ['on_demand_priority', 'priority'],
  ['provisioned_throughput', 'scale'],
  ['service_tier_flex', 'flex'],
  ['service_tier_priority', 'priority'],
]);

/** @returns null for the standard tier, for what is no tier that has a price, and for what is no text */
export function tierOf(word: unknown): ServiceTier | null {
  return typeof word === 'string' ? (tierWords.get(word.toLowerCase()) ?? null) : null;
}
