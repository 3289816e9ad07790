import { isIP } from 'node:net';
import type { Upstream } from '../../config/types.js';
import { secretFailure } from '../../protocols/error-formats/own-secrets.js';
import { isPublicAddress } from '../../upstream/address.js';

/** Names of the own host (RFC 6761 section 6.3), of the local network (RFC 6762 section 3), and of private ones. */
const privateNames = /\.(?:localhost|local|internal)$/;

/**
 * Whether clients may be told the URL under which an upstream keeps a file: not one into the gateway's own network, or
 * on the upstream itself, which wants the gateway's credentials and is none of their business, nor one that holds them.
 * @param upstream null for one that the config has no more
 */
export function isForClients(url: string, upstream: Upstream | null): boolean {
  if (upstream?.fetchPrivate === true || !URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if ((protocol !== 'http:' && protocol !== 'https:') || username !== '' || password !== '') return false;
  const host = bareHost(hostname);
  if (upstream !== null && (host === hostOf(upstream) || holdsKey(url, upstream))) return false;
  if (isIP(host) !== 0) return isPublicAddress(host);
  return host.includes('.') && !privateNames.test(host);
}

function holdsKey(url: string, { secrets }: Upstream): boolean {
  return secretFailure(url, secrets)?.vendorAccountStatus === 401;
}

function hostOf({ origin }: Upstream): string {
  return bareHost(new URL(`http://${origin.authority}`).hostname);
}

/** A host as URLs have it, without the brackets of an IPv6 address and the dot that a name may end with. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
