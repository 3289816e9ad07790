import { isIP, isIPv6 } from 'node:net';

/** The addresses that share their first `prefix` bits with one. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/**
 * Reads a network in CIDR notation (RFC 4632 section 3.1), or a single address.
 * @returns null when the text is neither
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
 * Reads the name of a host, or `*.` and a name for all that are below it, in any spelling that a URL may have.
 * @returns it as URLs have it, without a dot at its end; null for what is no name, an address included
 */
export function parseHostPattern(text: string): string | null {
  const [, wildcard = '', name = ''] = /^(\*\.)?([^\s*/\\:@?#%[\]]+)$/.exec(text) ?? [];
  if (name === '' || !URL.canParse(`http://${name}`)) return null;
  const host = new URL(`http://${name}`).hostname.replace(/\.+$/, '');
  return host === '' || isIP(host) !== 0 ? null : wildcard + host;
}

/** The first and the last port of a range such as `8000-8999`, or of a single one. */
export function portRange(port: number | string): readonly [number, number] {
  if (typeof port === 'number') return [port, port];
  const [first = 0, last = 0] = port.split('-', 2).map(Number);
  return [first, last];
}

/** Whether nobody can listen on a port of one host while another process does on that of the other. */
export function isOneAddress(one: string, other: string): boolean {
  return one === other || covers(one, other) || covers(other, one);
}

/** Whether a host is all addresses of a machine, and the other is one of them: `::` takes those of IPv4 as well. */
function covers(all: string, host: string): boolean {
  return all === '::' || (all === '0.0.0.0' && !isIPv6(host));
}
