import { BlockList, isIP } from 'node:net';

/** Networks whose hosts are trusted to name the client of a request. */
export type TrustedProxies = BlockList;

/** Converts networks to the form that is checked for every request. */
export function trustedProxies(
  networks: readonly {
    readonly address: string;
    readonly prefix: number;
    readonly family: 'ipv4' | 'ipv6';
  }[],
): TrustedProxies {
  const trusted = new BlockList();
  for (const { address, prefix, family } of networks) trusted.addSubnet(address, prefix, family);
  return trusted;
}

/**
 * Returns the address of a request's client: that of the connection, or behind trusted proxies the last address in
 * `x-forwarded-for` that is not a trusted proxy's. Each proxy appends the address of its own client at the right, so
 * everything to the left of the rightmost untrusted address may be forged.
 * @param peer the connection's address, as 4 or 16 bytes
 * @param forwardedFor the header, its lines joined by commas; empty if there is none
 */
export function clientAddress(peer: ArrayBuffer, forwardedFor: string, trusted: TrustedProxies): string {
  let client = addressText(peer);
  let end = forwardedFor.length;
  while (end > 0 && isTrusted(client, trusted)) {
    const comma = forwardedFor.lastIndexOf(',', end - 1);
    const address = addressIn(forwardedFor.slice(comma + 1, end));
    // Anything but an address means that a proxy does not know its client. Only that proxy's address is known then.
    if (address === null) break;
    client = address;
    end = comma;
  }
  return client;
}

/** Whether the connection comes from a trusted proxy, whose headers about the request may be used. */
export function isFromProxy(peer: ArrayBuffer, trusted: TrustedProxies): boolean {
  return isTrusted(addressText(peer), trusted);
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  return address !== '' && trusted.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

/** Parses an entry of the header: an address with an optional port; IPv6 may be in brackets. */
function addressIn(entry: string): string | null {
  const text = entry.trim();
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  if (isIP(bare) === 0 || bare.includes('%')) return null;
  return withoutMapping(bare.toLowerCase());
}

/** Returns the IPv4 address in an IPv6 address (RFC 4291 section 2.5.5.2), as listeners on `::` get them. */
function withoutMapping(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

/** Formats an address. Empty for a connection that has just broken. */
function addressText(peer: ArrayBuffer): string {
  const bytes = new Uint8Array(peer);
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return '';
  if (isMapped(bytes)) return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  );
  // The URL parser makes the short form (RFC 5952).
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0);
}
