/** An operator's own rules for what is fetched by URL, beside those of `isPublicAddress`. */
import { isIP } from 'node:net';
import { addressBytes, carriedAddress, sharesBits } from './address.js';

export interface FetchRules {
  /** First and last port of each range that may be asked. */
  readonly ports: readonly (readonly [number, number])[];
  /** Addresses that are never asked: those that share their first bits with one. */
  readonly denyNetworks: readonly { readonly address: string; readonly prefix: number }[];
  /** Names as URLs have them, without a dot at their end; `*.name` for all below a name. */
  readonly denyHosts: readonly string[];
}

/** Whether a port may be asked. */
export function allowsPort({ ports }: FetchRules, port: number): boolean {
  return ports.some(([first, last]) => port >= first && port <= last);
}

/** Whether a name is denied. @param host as `URL` gives it: lower-case, in ASCII, perhaps with dots at its end */
export function deniesHost({ denyHosts }: FetchRules, host: string): boolean {
  const name = withoutEndDots(host);
  return denyHosts.some((denied) =>
    denied.startsWith('*.') ? name.endsWith(denied.slice(1)) : name === denied,
  );
}

/** A host may be as long as a client likes, and an expression for its end would look through it from each of its dots. */
function withoutEndDots(host: string): string {
  let end = host.length;
  while (host[end - 1] === '.') end--;
  return host.slice(0, end);
}

/**
 * Whether an address is denied, or an IPv4 address that it carries: mapped, by NAT64 or 6to4. A network of IPv6 that
 * lies within the mapped addresses counts for those of IPv4 as well.
 * @param address in the notation of a resolver, perhaps with a zone
 */
export function deniesAddress({ denyNetworks }: FetchRules, address: string): boolean {
  if (denyNetworks.length === 0) return false;
  const bare = address.replace(/%.*$/, '');
  if (isIP(bare) === 0) return true;
  const bytes = addressBytes(bare);
  const carried = bytes.length === 4 ? bytes : carriedAddress(bytes);
  return denyNetworks.some(({ address: network, prefix }) => {
    const block = addressBytes(network);
    if (block.length === bytes.length && sharesBits(bytes, block, prefix)) return true;
    if (carried === null) return false;
    if (block.length === 4) return sharesBits(carried, block, prefix);
    const inner = prefix >= mappedBits ? carriedAddress(block) : null;
    return inner !== null && sharesBits(carried, inner, prefix - mappedBits);
  });
}

/** Bits before the IPv4 address in one that is mapped or translated (RFC 4291 section 2.5.5.2, RFC 6052). */
const mappedBits = 96;
