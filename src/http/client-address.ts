import { BlockList, isIP } from 'node:net';

/** Networks whose hosts are believed when they say for whom they ask. */
export type TrustedProxies = BlockList;

/** @returns the networks in the form that is asked for every request */
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
 * The address of whoever a request comes from: that of the connection, and behind trusted proxies the last one in
 * `x-forwarded-for` that is not itself a trusted proxy's. Each proxy adds at the right whom it was asked by, so
 * everything left of the first untrusted address may be made up.
 * @param peer the connection's address as bytes, 4 or 16 of them
 * @param forwardedFor the header, its lines joined by commas; empty where there is none
 */
export function clientAddress(peer: ArrayBuffer, forwardedFor: string, trusted: TrustedProxies): string {
  let client = addressText(peer);
  let end = forwardedFor.length;
  while (end > 0 && isTrusted(client, trusted)) {
    const comma = forwardedFor.lastIndexOf(',', end - 1);
    const address = addressIn(forwardedFor.slice(comma + 1, end));
    // What is no address says that a proxy does not know: nor do we know more than who that proxy is.
    if (address === null) break;
    client = address;
    end = comma;
  }
  return client;
}

/** Whether the connection itself comes from a trusted proxy, so that its word on the request counts. */
export function isFromProxy(peer: ArrayBuffer, trusted: TrustedProxies): boolean {
  return isTrusted(addressText(peer), trusted);
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  return address !== '' && trusted.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

/** An entry of the header: an address, perhaps with a port, and IPv6 perhaps in brackets. */
function addressIn(entry: string): string | null {
  const text = entry.trim();
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  if (isIP(bare) === 0 || bare.includes('%')) return null;
  return withoutMapping(bare.toLowerCase());
}

/** IPv4 addresses inside of IPv6 ones (RFC 4291 section 2.5.5.2), as listeners on `::` see them. */
function withoutMapping(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

/** Empty for a connection that has just broken. */
function addressText(peer: ArrayBuffer): string {
  const bytes = new Uint8Array(peer);
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return '';
  if (isMapped(bytes)) return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  );
  // The URL parser knows the short form (RFC 5952).
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0);
}
