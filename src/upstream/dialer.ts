/** What the connections of a worker to its upstreams have in common before they are there. */
import type { Resolver } from './address.js';
import { createNameCache, type NameCache } from './names.js';
import { createSecureProfiles, type SecureProfiles } from './secure.js';

export interface Dialer {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/** @param resolve in place of the system's resolver */
export function createDialer(resolve?: Resolver): Dialer {
  return { names: createNameCache(resolve), secureProfiles: createSecureProfiles() };
}
