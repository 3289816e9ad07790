/** What the connections of a worker to its upstreams have in common before they are there. */
import type { Resolver } from './address.js';
import { createNameCache, type NameCache, type StaleNames } from './names.js';
import { createSecureProfiles, type SecureProfiles } from './secure.js';

export interface Dialer {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/** @param resolve in place of the system's resolver */
export function createDialer(resolve?: Resolver, staleNames?: StaleNames): Dialer {
  return { names: createNameCache(resolve, staleNames), secureProfiles: createSecureProfiles() };
}
