import { lookup as systemLookup } from 'node:dns';
import { isIP } from 'node:net';

/*
 * Not built on `net.BlockList`, which only knows the mapped form of an IPv4 address: 127.0.0.1 in its NAT64 or 6to4
 * form passes a list that contains 127.0.0.0/8.
 */

/** Prefixes of IPv4 addresses that are not public (IANA's registry of special-purpose addresses, and multicast). */
const closed4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's host, reachable from every machine there.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/** Prefixes within 2000::/3, the only block of public IPv6 addresses, that are not public: RFC 2928, 3849 and 9637. */
const closed6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
];

/**
 * Blocks whose addresses contain an IPv4 address, and the byte at which it begins (RFC 4291 section 2.5.5.2, RFC 6052,
 * RFC 3056).
 */
const carriers: readonly (readonly [string, number, number])[] = [
  ['::ffff:0:0', 96, 12],
  ['64:ff9b::', 96, 12],
  ['2002::', 16, 2],
];

const blocks4 = closed4.map(([address, bits]) => ({ bytes: bytes4(address), bits }));
const blocks6 = closed6.map(([address, bits]) => ({ bytes: bytes6(address), bits }));
const carrierBlocks = carriers.map(([address, bits, at]) => ({ bytes: bytes6(address), bits, at }));
const public6 = bytes6('2000::');
const moreCarriers = (
  [
    ['64:ff9b:1::', 48, 12],
    ['::', 96, 12],
  ] as const
).map(([address, bits, at]) => ({ bytes: bytes6(address), bits, at }));

/**
 * Whether an address is on the public internet: not private, shared (CGNAT), loopback, link-local, multicast, reserved
 * for documentation or tests, nor an IPv6 form of such an IPv4 address.
 * @param address in a resolver's notation; anything else, and an address with a zone, is not public
 */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return isPublic4(bytes4(address));
    case 6:
      return !address.includes('%') && isPublic6(bytes6(address));
    default:
      return false;
  }
}

const privateEndings = ['.localhost', '.local', '.internal'];

/**
 * Whether a name by itself denotes this host (RFC 6761 section 6.3), the local network (RFC 6762 section 3) or a
 * private network.
 * @param name lower-case, without a trailing dot
 */
export function isPrivateName(name: string): boolean {
  return !name.includes('.') || privateEndings.some((ending) => name.endsWith(ending));
}

/** Returns the 4 or 16 bytes of an address without a zone. */
export function addressBytes(address: string): Uint8Array {
  return isIP(address) === 4 ? bytes4(address) : bytes6(address);
}

/**
 * Returns the IPv4 address within an IPv6 address, or null: for the blocks of `carriers`, the local form of NAT64 (RFC
 * 8215) and the deprecated compatible form (RFC 4291 section 2.5.5.1).
 */
export function carriedAddress(bytes: Uint8Array): Uint8Array | null {
  const carrier = [...carrierBlocks, ...moreCarriers].find((block) => begins(bytes, block.bytes, block.bits));
  return carrier === undefined ? null : bytes.subarray(carrier.at, carrier.at + 4);
}

/** Whether an address shares its first bits with another of the same length. */
export const sharesBits = begins;

/** Looks up every address of a name, like `dns.lookup` with `all`. */
export type Resolver = (
  name: string,
  options: { readonly all: true; readonly hints?: number },
  done: (
    error: Error | null,
    addresses: readonly { readonly address: string; readonly family: number }[],
  ) => void,
) => void;

/** The system's resolver, which reads `/etc/hosts`. */
export const systemResolver: Resolver = (name, options, done) => systemLookup(name, options, done);

function isPublic4(bytes: Uint8Array): boolean {
  return !blocks4.some((block) => begins(bytes, block.bytes, block.bits));
}

function isPublic6(bytes: Uint8Array): boolean {
  const carrier = carrierBlocks.find((block) => begins(bytes, block.bytes, block.bits));
  if (carrier !== undefined) return isPublic4(bytes.subarray(carrier.at, carrier.at + 4));
  return begins(bytes, public6, 3) && !blocks6.some((block) => begins(bytes, block.bytes, block.bits));
}

function begins(bytes: Uint8Array, block: Uint8Array, bits: number): boolean {
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (bytes[i] !== block[i]) return false;
  const shift = 8 - (bits & 7);
  return shift === 8 || (bytes[whole] ?? 0) >> shift === (block[whole] ?? 0) >> shift;
}

function bytes4(address: string): Uint8Array {
  return Uint8Array.from(address.split('.'), Number);
}

/** @param address a valid IPv6 address without a zone (RFC 4291 section 2.2) */
function bytes6(address: string): Uint8Array {
  const [head = '', tail = null] = address.split('::');
  const before = groups(head);
  const after = tail === null ? [] : groups(tail);
  const gap = new Array<number>(8 - before.length - after.length).fill(0);
  return Uint8Array.from([...before, ...gap, ...after].flatMap((group) => [group >> 8, group & 255]));
}

function groups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = bytes4(group);
    return [(a << 8) | b, (c << 8) | d];
  });
}
