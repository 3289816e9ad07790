import type { Upstream } from '../config/types.js';
import type { RemoteOptions } from '../upstream/remote-url.js';

/**
 * Where a file may be that an upstream has named by its URL: at a private address only if the config says so, or on
 * the upstream itself, which is reached there anyway.
 */
export function filePlaces({ fetchPrivate, origin }: Upstream): RemoteOptions {
  const { secure, authority } = origin;
  return { allowPrivate: fetchPrivate, privateOrigin: `${secure ? 'https' : 'http'}://${authority}` };
}
