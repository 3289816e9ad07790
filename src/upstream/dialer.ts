import type { Resolver } from './address.js';
import { createNameCache, type NameCache, type StaleNames } from './names.js';
import { createSecureProfiles, type SecureProfiles } from './secure.js';

/** What all new connections of a worker to its upstreams share: the addresses of names, and the settings of TLS. */
export interface Dialer {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/** @param resolve in place of the system's resolver */
export function createDialer(resolve?: Resolver, staleNames?: StaleNames): Dialer {
  return { names: createNameCache(resolve, staleNames), secureProfiles: createSecureProfiles() };
}
