import { isIP, isIPv6 } from 'node:net';

/** All addresses that have the first `prefix` bits of `address`. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/**
 * Parses a network in CIDR notation (RFC 4632 section 3.1), or a single address.
 * @returns null if the text is neither
 */
export function parseNetwork(text: string): Network | null {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return null;
  const longest = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : Number(bits);
  if (prefix > longest) return null;
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/**
 * Parses a host name, or `*.` and a name for all names below it, in any spelling that URLs permit.
 * @returns the name in the spelling of URLs, without a final dot. Null for anything else, including an address.
 */
export function parseHostPattern(text: string): string | null {
  const [, wildcard = '', name = ''] = /^(\*\.)?([^\s*/\\:@?#%[\]]+)$/.exec(text) ?? [];
  if (name === '' || !URL.canParse(`http://${name}`)) return null;
  const host = new URL(`http://${name}`).hostname.replace(/\.+$/, '');
  return host === '' || isIP(host) !== 0 ? null : wildcard + host;
}

/** Returns the first and last port of a range such as `8000-8999`, or of a single port. */
export function portRange(port: number | string): readonly [number, number] {
  if (typeof port === 'number') return [port, port];
  const [first = 0, last = 0] = port.split('-', 2).map(Number);
  return [first, last];
}

/** Whether two hosts overlap, so that two processes cannot listen on the same port of both. */
export function isOneAddress(one: string, other: string): boolean {
  return one === other || covers(one, other) || covers(other, one);
}

/** Whether a host stands for all addresses of a machine that include the other. `::` includes those of IPv4. */
function covers(all: string, host: string): boolean {
  return all === '::' || (all === '0.0.0.0' && !isIPv6(host));
}
